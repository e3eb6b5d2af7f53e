//! When waits end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::offset::{Offset, OffsetRange};

/// Ranges by the end of their wait.
///
/// A range that stopped waiting earlier is skipped when its time comes; only [`retain`](Self::retain) removes ranges
/// before that.
#[derive(Debug, Default)]
pub(crate) struct Times {
    heap: BinaryHeap<Reverse<(i64, Offset, Offset)>>,
    /// Offsets in all ranges.
    records: i64,
}

impl Times {
    pub(crate) fn push(&mut self, due_ms: i64, range: OffsetRange) {
        debug_assert!(!range.is_empty(), "nothing waits");
        self.heap.push(Reverse((due_ms, range.first, range.last)));
        self.records += range.count();
    }

    pub(crate) fn next_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((due_ms, ..))| *due_ms)
    }

    /// Takes a range whose wait is over, with the end of the wait.
    pub(crate) fn pop(&mut self, now_ms: i64) -> Option<(i64, OffsetRange)> {
        let due_ms = self.next_ms()?;
        if due_ms > now_ms {
            return None;
        }
        let Reverse((_, first, last)) = self.heap.pop()?;
        if self.heap.len() < self.heap.capacity() / 4 {
            self.heap.shrink_to(self.heap.capacity() / 2);
        }
        let range = OffsetRange::new(first, last);
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
        self.heap
            .retain(|Reverse((_, first, last))| wanted(OffsetRange::new(*first, *last)));
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
        times.map(|Reverse((due_ms, first, last))| (due_ms, OffsetRange::new(first, last)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(i64, Offset, Offset)>>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        let ranges = self.heap.iter();
        ranges.map(|Reverse((_, first, last))| OffsetRange::new(*first, *last))
    }
}
