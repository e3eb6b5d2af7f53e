//! How late records are acquired after their back-off or delivery time.

use std::collections::BTreeMap;

use super::Managed;
use super::overlaps::take_overlaps;
use crate::offset::{Offset, OffsetRange};
use crate::partition::Acquired;

/// How many ranges are followed at once; more are not counted.
const FOLLOWED_MAX: usize = 16_384;

/// Records whose wait ended, until they are acquired, and the sum of those that were.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// Last offset and due time, by first offset.
    due: BTreeMap<Offset, (Offset, i64)>,
    /// Ranges not followed for lack of room since finished ones were last dropped.
    left_out: usize,
    records: u64,
    late_ms: u64,
}

impl Lateness {
    /// How many records were acquired after a wait, and the sum of the times from its end.
    pub(super) fn sum(&self) -> (u64, u64) {
        (self.records, self.late_ms)
    }

    /// Forgets which records waited; the sum stays.
    pub(super) fn follow_none(&mut self) {
        self.due.clear();
    }

    /// Stops following the records in `range`; returns them with their due times.
    fn take(&mut self, range: OffsetRange) -> Vec<(OffsetRange, (Offset, i64))> {
        take_overlaps(
            &mut self.due,
            range,
            |(last, _)| *last,
            |(_, due_ms), last| (last, *due_ms),
        )
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.due.len() * size_of::<(Offset, (Offset, i64))>()
    }
}

impl Managed {
    /// Follows the records in `range` that can be acquired since `due_ms`, the end of their wait.
    pub(super) fn came_up(&mut self, range: OffsetRange, due_ms: i64) {
        if self.lateness.due.len() >= FOLLOWED_MAX {
            self.lateness.left_out += 1;
            if self.lateness.left_out < FOLLOWED_MAX {
                return;
            }
            let inner = &self.inner;
            self.lateness.left_out = 0;
            self.lateness
                .due
                .retain(|first, (last, _)| !inner.is_settled(OffsetRange::new(*first, *last)));
        }
        let mut ready = self.inner.ready_in(range);
        for digest in self.run_keys_in(range) {
            let run = self.run_of(digest).into_iter();
            let behind = run
                .filter(|piece| piece.is_behind)
                .map(|piece| piece.range.clip(range));
            ready.extend(behind.filter(|piece| !piece.is_empty()));
        }
        for piece in ready {
            self.lateness.take(piece);
            self.lateness.due.insert(piece.first, (piece.last, due_ms));
        }
    }

    /// Sums up how late those of the acquired records are that waited before.
    pub(super) fn came_out(&mut self, acquired: &[Acquired], now_ms: i64) {
        if self.lateness.due.is_empty() {
            return;
        }
        for each in acquired {
            let waited = self.lateness.take(OffsetRange::new(each.first, each.last));
            for (piece, (_, due_ms)) in waited {
                let records = piece.count() as u64;
                let late_ms = now_ms.saturating_sub(due_ms).max(0) as u64;
                self.lateness.records += records;
                self.lateness.late_ms += records.saturating_mul(late_ms);
            }
        }
    }
}
