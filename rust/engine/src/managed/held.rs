//! Delivery times of records that members hold since before these were known: as the setting was turned on, or changed.

use std::collections::BTreeMap;

use super::overlaps::take_overlaps;
use crate::offset::{Offset, OffsetRange};

/// Held records whose delivery time has not come.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Last offset and delivery time, by first offset.
    times: BTreeMap<Offset, (Offset, i64)>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    pub(super) fn insert(&mut self, range: OffsetRange, not_before_ms: i64) {
        debug_assert!(!range.is_empty(), "nothing is held");
        self.times.insert(range.first, (range.last, not_before_ms));
    }

    /// Takes the records in `range`, with their delivery times: they were returned, or are finished.
    pub(super) fn take(&mut self, range: OffsetRange) -> Vec<(OffsetRange, i64)> {
        let taken = take_overlaps(
            &mut self.times,
            range,
            |(last, _)| *last,
            |(_, at_ms), last| (last, *at_ms),
        );
        let taken = taken.into_iter();
        taken.map(|(piece, (_, at_ms))| (piece, at_ms)).collect()
    }

    /// Forgets those whose time has come.
    pub(super) fn come_up(&mut self, wall_ms: i64) {
        if !self.times.is_empty() {
            self.times.retain(|_, (_, at_ms)| *at_ms > wall_ms);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.times.len() * size_of::<(Offset, (Offset, i64))>()
    }
}
