//! When waits end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::offset::{Offset, OffsetRange, after};

/// Bits of a range's size; larger ranges are stored in parts.
const COUNT_BITS: u32 = 19;
const COUNT_MAX: i64 = 1 << COUNT_BITS;
/// Bits of its first offset.
const FIRST_BITS: u32 = 63;
/// Bits of the end of its wait, in milliseconds: enough until the year 2806.
const DUE_BITS: u32 = 45;
const DUE_MAX: i64 = (1 << DUE_BITS) - 1;
/// What is added to the end of a wait, since clocks of tests may be negative.
const DUE_BIAS: i64 = 1 << 43;

/// A heap with room for fewer ranges is left as it is.
const SMALL: usize = 256;

const _: () = assert!(COUNT_BITS + FIRST_BITS + DUE_BITS < u128::BITS);

/// A range and the end of its wait, packed: a million records that wait each have one. Ordered by that end, then by
/// offset.
///
/// ```text
/// bits   82..127   19..82         0..19
///        due       first offset   count - 1
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Time(u128);

impl Time {
    /// A range of at most [`COUNT_MAX`] offsets.
    fn new(due_ms: i64, range: OffsetRange) -> Self {
        debug_assert!(range.first >= 0, "offsets are not negative");
        debug_assert!((1..=COUNT_MAX).contains(&range.count()), "stored in parts");
        let due = due_ms.saturating_add(DUE_BIAS).clamp(0, DUE_MAX);
        let place = (due as u128) << FIRST_BITS | range.first as u128;
        Self(place << COUNT_BITS | (range.count() - 1) as u128)
    }

    /// The end of the wait; `i64::MAX` if it is too far away to be stored.
    fn due_ms(self) -> i64 {
        match (self.0 >> (FIRST_BITS + COUNT_BITS)) as i64 {
            DUE_MAX => i64::MAX,
            due => due - DUE_BIAS,
        }
    }

    fn range(self) -> OffsetRange {
        let first = (self.0 >> COUNT_BITS) as i64 & Offset::MAX;
        OffsetRange::new(first, first + (self.0 as i64 & (COUNT_MAX - 1)))
    }
}

/// Ranges by the end of their wait.
///
/// A range that stopped waiting earlier is skipped when its time comes; only [`retain`](Self::retain) removes ranges
/// before that.
#[derive(Debug, Default)]
pub(crate) struct Times {
    heap: BinaryHeap<Reverse<Time>>,
    /// Offsets in all ranges.
    records: i64,
}

impl Times {
    pub(crate) fn push(&mut self, due_ms: i64, range: OffsetRange) {
        debug_assert!(!range.is_empty(), "nothing waits");
        self.records += range.count();
        let mut rest = range;
        while !rest.is_empty() {
            let last = rest.last.min(rest.first.saturating_add(COUNT_MAX - 1));
            let part = OffsetRange::new(rest.first, last);
            self.heap.push(Reverse(Time::new(due_ms, part)));
            rest.first = after(last);
        }
    }

    pub(crate) fn next_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse(time)| time.due_ms())
    }

    /// Takes a range whose wait is over, with the end of the wait.
    pub(crate) fn pop(&mut self, now_ms: i64) -> Option<(i64, OffsetRange)> {
        let due_ms = self.next_ms()?;
        if due_ms > now_ms {
            return None;
        }
        let Reverse(time) = self.heap.pop()?;
        // while a million records come up, the map of runs grows by as much
        let (len, room) = (self.heap.len(), self.heap.capacity());
        if room > SMALL && len < room / 4 * 3 {
            self.heap.shrink_to(len + len / 8);
        }
        let range = time.range();
        self.records -= range.count();
        debug_assert!(
            self.records >= 0 && (self.records == 0) == self.heap.is_empty(),
            "the count of waiting records is wrong"
        );
        debug_assert!(
            self.next_ms().is_none_or(|next| next >= due_ms),
            "another was due before"
        );
        Some((due_ms, range))
    }

    /// The number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Drops the ranges that are not `wanted`.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(OffsetRange) -> bool) {
        self.heap.retain(|Reverse(time)| wanted(time.range()));
        self.heap.shrink_to(2 * self.heap.len());
        self.records = self.iter().map(OffsetRange::count).sum();
    }

    /// The number of offsets in all ranges; some may not wait any more.
    pub(crate) fn records(&self) -> i64 {
        self.records
    }

    /// Takes all ranges, unordered.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (i64, OffsetRange)> + use<> {
        self.records = 0;
        let times = std::mem::take(&mut self.heap).into_iter();
        times.map(|Reverse(time)| (time.due_ms(), time.range()))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Time>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        self.heap.iter().map(|Reverse(time)| time.range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(times: &mut Times, now_ms: i64) -> Vec<(i64, i64, i64)> {
        std::iter::from_fn(|| times.pop(now_ms))
            .map(|(due_ms, range)| (due_ms, range.first, range.last))
            .collect()
    }

    #[test]
    fn ranges_come_up_by_time_then_by_offset_and_are_whole() {
        let far = Offset::MAX - 10;
        let mut times = Times::default();
        for (due_ms, first, last) in [(7, far, far + 9), (-5, 3, 3), (7, 0, 9), (6, 20, 20)] {
            times.push(due_ms, OffsetRange::new(first, last));
        }
        assert_eq!(times.records(), 22);
        assert_eq!(times.next_ms(), Some(-5));
        assert_eq!(all(&mut times, 6), [(-5, 3, 3), (6, 20, 20)]);
        assert_eq!(all(&mut times, 7), [(7, 0, 9), (7, far, far + 9)]);
        assert_eq!((times.records(), times.next_ms()), (0, None));
    }

    #[test]
    fn a_time_beyond_all_clocks_never_comes() {
        let mut times = Times::default();
        times.push(i64::MAX, OffsetRange::new(0, 0));
        times.push(DUE_MAX, OffsetRange::new(1, 1));
        times.push(DUE_MAX - DUE_BIAS - 1, OffsetRange::new(2, 2));
        times.push(i64::MIN, OffsetRange::new(3, 3));
        let near = DUE_MAX - DUE_BIAS - 1;
        assert_eq!(all(&mut times, near), [(-DUE_BIAS, 3, 3), (near, 2, 2)]);
        assert_eq!(all(&mut times, i64::MAX - 1), []);
        assert_eq!((times.next_ms(), times.records()), (Some(i64::MAX), 2));
    }

    #[test]
    fn a_long_range_is_kept_in_parts() {
        let mut times = Times::default();
        let long = OffsetRange::new(5, 5 + 2 * COUNT_MAX);
        times.push(1, long);
        assert_eq!((times.len(), times.records()), (3, long.count()));
        let parts = all(&mut times, 1);
        assert_eq!(parts[0], (1, 5, 4 + COUNT_MAX));
        assert_eq!(parts[2], (1, long.last, long.last));
        assert!(parts.windows(2).all(|both| both[0].2 + 1 == both[1].1));
    }

    #[test]
    fn what_has_come_up_takes_no_memory() {
        let mut times = Times::default();
        let count = 100_000;
        for number in 0..count {
            times.push(number, OffsetRange::new(number, number));
        }
        let most = times.memory_bytes();
        assert!(most < 22 * count as usize, "{most}");
        for left in [60_000, 30_000, 1_000, 10] {
            while times.len() > left {
                assert!(times.pop(count).is_some());
            }
            let bytes = times.memory_bytes();
            assert!(bytes <= 24 * left + 16 * SMALL, "{bytes} for {left}");
        }
    }
}
