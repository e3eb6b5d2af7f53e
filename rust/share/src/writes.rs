//! Writes of a share-partition leader: how many are pending, and the outcome of the others.

use std::fmt;

use sharecore_engine::{AckBatch, RecordState, StateBatch};

/// A record is no longer acquired, and its acknowledgement is not persisted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Its offset.
    pub offset: i64,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        write!(
            out,
            "offset {offset} is no longer acquired, and its acknowledgement is not persisted yet"
        )
    }
}

impl std::error::Error for Unwritten {}

/// Whether a change only completes records and makes none available.
pub fn settles_for_good(batches: &[StateBatch]) -> bool {
    let mut states = batches.iter().map(|batch| batch.state);
    states.all(|state| state == RecordState::Acknowledged)
}

/// Writes of one leader's state.
#[derive(Debug)]
pub struct Writes {
    under_way: u64,
    start_is_persisted: bool,
    unwritten_below: i64,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            under_way: 0,
            start_is_persisted: true,
            unwritten_below: 0,
        }
    }
}

impl Writes {
    /// Pending writes.
    pub fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Whether the current start offset is persisted; any write persists it.
    pub fn start_is_persisted(&self) -> bool {
        self.start_is_persisted
    }

    /// Set whether the start offset is persisted.
    pub fn set_start_is_persisted(&mut self, is_persisted: bool) {
        self.start_is_persisted = is_persisted;
    }

    /// A write begins.
    pub fn begin(&mut self) {
        self.under_way += 1;
    }

    /// Note that a write succeeded, with this start offset.
    pub fn succeed(&mut self, start_offset: i64) {
        debug_assert!(start_offset >= 0, "no record has a negative offset");
        self.end();
        self.start_is_persisted = true;
        if start_offset >= self.unwritten_below {
            self.unwritten_below = 0;
        }
    }

    /// Note that a write about records up to `last` failed; `None`: about no records.
    pub fn fail(&mut self, last: Option<i64>) {
        self.end();
        let below = last.map_or(0, |last| last.saturating_add(1));
        self.unwritten_below = self.unwritten_below.max(below);
        debug_assert!(
            last.is_none_or(|last| last < 0 || last == i64::MAX || self.has_failed()),
            "what was not written is forgotten"
        );
    }

    fn end(&mut self) {
        debug_assert!(self.under_way > 0, "a write ends that has not begun");
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Whether acknowledgements of records from `first` on that change nothing may be confirmed without a write. Not if a
    /// write about such records failed: they would be redelivered after a restart.
    pub fn may_pass_over(&self, first: i64, start_offset: i64) -> bool {
        first >= start_offset.min(self.unwritten_below)
    }

    /// Refuse acknowledgements that would be confirmed without a write although an earlier write about them failed: after a
    /// restart those records are redelivered.
    pub fn pass_over(&self, batches: &[AckBatch<'_>], start_offset: i64) -> Result<(), Unwritten> {
        let first = batches.iter().map(|batch| batch.first);
        let offset = first.fold(start_offset, i64::min);
        if self.may_pass_over(offset, start_offset) {
            return Ok(());
        }
        debug_assert!(self.has_failed(), "nothing was lost");
        Err(Unwritten { offset })
    }

    /// Whether [`may_pass_over`](Self::may_pass_over) refuses anything.
    pub fn has_failed(&self) -> bool {
        self.unwritten_below > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_not_written_is_not_passed_over() {
        let mut writes = Writes::default();
        assert!(writes.may_pass_over(0, 10) && !writes.has_failed());
        writes.begin();
        writes.fail(Some(7));
        assert!(writes.has_failed());
        assert!(!writes.may_pass_over(7, 10));
        assert!(writes.may_pass_over(8, 10));
        // Offsets that the start offset has not passed are the engine's to refuse
        assert!(writes.may_pass_over(5, 5));
        writes.begin();
        writes.succeed(7);
        assert!(
            !writes.may_pass_over(7, 10),
            "the write stopped short of it"
        );
        writes.begin();
        writes.succeed(8);
        assert!(writes.may_pass_over(0, 10) && !writes.has_failed());
    }

    #[test]
    fn acknowledgements_of_what_was_not_written_are_refused() {
        let batch = |first| AckBatch {
            first,
            last: first,
            types: &[1],
        };
        let mut writes = Writes::default();
        assert_eq!(writes.pass_over(&[batch(3)], 10), Ok(()));
        writes.begin();
        writes.fail(Some(7));
        assert_eq!(writes.pass_over(&[batch(9), batch(8)], 10), Ok(()));
        let refused = writes.pass_over(&[batch(9), batch(4)], 10);
        assert_eq!(refused, Err(Unwritten { offset: 4 }));
        assert_eq!(writes.pass_over(&[], 10), Ok(()));
    }

    #[test]
    fn only_what_is_acknowledged_is_settled_for_good() {
        let batch = |state| StateBatch {
            first: 0,
            last: 1,
            state,
            delivery_count: 1,
        };
        let good = batch(RecordState::Acknowledged);
        assert!(settles_for_good(&[good, good]));
        for other in [
            RecordState::Available,
            RecordState::Archived,
            RecordState::Archiving,
        ] {
            assert!(!settles_for_good(&[good, batch(other)]));
        }
    }

    #[test]
    fn a_write_about_no_records_leaves_nothing_unwritten() {
        let mut writes = Writes::default();
        writes.begin();
        writes.fail(None);
        assert!(!writes.has_failed());
    }

    #[test]
    fn any_write_brings_the_start_along() {
        let mut writes = Writes::default();
        writes.set_start_is_persisted(false);
        writes.begin();
        writes.fail(Some(3));
        assert!(!writes.start_is_persisted());
        writes.begin();
        writes.succeed(0);
        assert!(writes.start_is_persisted());
    }

    proptest! {
        /// Writes fail and succeed in any order: an offset is refused until a success has passed the last failure.
        #[test]
        fn a_failure_counts_until_a_later_write_passes_it(
            ends in vec((any::<bool>(), 0_i64..20), 0..30),
            first in 0_i64..20,
        ) {
            let mut writes = Writes::default();
            let mut failed: Vec<i64> = Vec::new();
            for (well, offset) in ends {
                writes.begin();
                if well {
                    writes.succeed(offset);
                    if failed.iter().all(|last| offset > *last) {
                        failed.clear();
                    }
                } else {
                    writes.fail(Some(offset));
                    failed.push(offset);
                }
                prop_assert_eq!(writes.under_way(), 0);
                prop_assert_eq!(writes.has_failed(), !failed.is_empty());
                let refused = failed.iter().any(|last| first <= *last);
                prop_assert_eq!(writes.may_pass_over(first, i64::MAX), !refused);
            }
        }
    }
}
