//! Acquire: offsets that enter the window.

use super::Partition;
use super::acquire::{Acquired, Request};
use crate::inflight::{Cell, Run};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

impl Partition {
    /// Acquires offsets not yet in flight, up to a record-batch boundary.
    pub(super) fn acquire_new(&mut self, request: &mut Request<'_>, range: OffsetRange) {
        debug_assert!(
            !range.is_empty() && request.budget > 0,
            "nothing to acquire"
        );
        let mut first = range.first;
        if self.map.is_empty() && self.end > first {
            first = self.end;
        }
        let mut last = range.last;
        let wanted = first.saturating_add(request.budget - 1);
        if wanted < last {
            last = aligned(request.batches, wanted);
            if self.unread_from().is_some() {
                last = last.min(range.last);
            }
        }
        if last < first {
            return;
        }
        let taken = if request.record_limit {
            last.min(wanted)
        } else {
            last
        };
        let mut from = first;
        while from <= last {
            let to = if request.record_limit {
                last
            } else {
                cut(request.batches, from, last, request.batch_size)
            };
            self.insert_new(request, OffsetRange::new(from, to), taken);
            from = to + 1;
        }
        if self.map.first_offset() == Some(first) {
            // the start never moves back, whatever offsets a log returns
            self.start = self.start.max(first);
        }
        // offsets of a record batch below the start offset are gone from the log
        let below = OffsetRange::new(taken + 1, last.min(self.start - 1));
        if !below.is_empty() {
            self.archive_available(below);
        }
        self.end = self.end.max(last);
        if self.read_gap.is_some() {
            self.read_up_to(taken + 1);
        }
        debug_assert!(
            first <= taken && taken <= last,
            "the first offset is given at least"
        );
        debug_assert!(last <= self.end, "what is in flight lies in the window");
        request.taken += taken - first + 1;
        request.budget -= taken - first + 1;
    }

    /// Adds a new batch: acquired up to `taken`, available after it.
    fn insert_new(&mut self, request: &mut Request<'_>, batch: OffsetRange, taken: Offset) {
        debug_assert!(!batch.is_empty(), "an empty batch");
        debug_assert!(
            self.map.at(batch.first).is_none() && self.map.at(batch.last).is_none(),
            "it is in flight already"
        );
        let leased = OffsetRange::new(batch.first, batch.last.min(taken));
        if !leased.is_empty() {
            let lease =
                self.leases
                    .open(request.member, leased, request.now_ms, request.deadline_ms);
            let run = Run::new(leased, Cell::acquired(1, lease));
            self.map.insert(run.opening_batch(true));
            request.out.push(Acquired {
                first: leased.first,
                last: leased.last,
                delivery_count: 1,
            });
        }
        let rest = OffsetRange::new(batch.first.max(taken + 1), batch.last);
        if !rest.is_empty() {
            let run = Run::new(rest, Cell::free(RecordState::Available, 0));
            self.map.insert(run.opening_batch(leased.is_empty()));
        }
    }
}

/// The last offset of the record batch that holds `offset`, or else `offset`.
fn aligned(batches: &[OffsetRange], offset: Offset) -> Offset {
    match batches.partition_point(|batch| batch.first <= offset) {
        0 => offset,
        n => batches[n - 1].last.max(offset),
    }
}

/// The last offset of a batch of new records that begins at `first`: it ends before the first record batch that starts
/// `size` offsets later.
pub(super) fn cut(batches: &[OffsetRange], first: Offset, last: Offset, size: i64) -> Offset {
    if last - first < size {
        return last;
    }
    let at = batches.partition_point(|batch| batch.first - first < size || batch.first <= first);
    let cut = batches
        .get(at)
        .map_or(last, |batch| last.min(batch.first - 1));
    debug_assert!(
        (first..=last).contains(&cut),
        "a batch has an offset at least"
    );
    cut
}
