//! Partition calls that order by key changes.

use super::{Bug, Engine, KeyDetails, is_planted};
use crate::offset::{Offset, OffsetRange};
use crate::partition::Partition;

impl Engine {
    /// As [`Partition::move_log_start`].
    pub fn move_log_start(&mut self, offset: Offset) {
        let gone = OffsetRange::new(0, offset.saturating_sub(1));
        self.changing(gone, |partition| partition.move_log_start(offset));
    }

    /// As [`Partition::archive`].
    pub fn archive(&mut self, first: Offset, last: Offset) {
        let gone = OffsetRange::new(first, last);
        self.changing(gone, |partition| partition.archive(first, last));
    }

    /// As [`Partition::pass_hole`].
    pub fn pass_hole(&mut self, first: Offset, last: Offset) {
        let gone = OffsetRange::new(first, last);
        self.changing(gone, |partition| partition.pass_hole(first, last));
    }

    /// Changes records in `range`, which may let others of their keys follow.
    #[inline]
    fn changing(&mut self, range: OffsetRange, change: impl FnOnce(&mut Partition)) {
        match self {
            Self::Plain(partition) => change(partition),
            Self::Managed(managed) => {
                change(&mut managed.inner);
                if !is_planted(Bug::LostHoldBack) {
                    managed.key_lost(range);
                }
            }
        }
    }

    /// Records that wait for others of their key, the number of keys, and the keys with the most records; `None`
    /// without order by key.
    pub fn keys(&self, limit: usize) -> Option<KeyDetails> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.key_details(limit),
        }
    }
}
