//! A run: neighbouring offsets that are equal in every respect.

use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

/// Names the lease that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseId(pub(crate) u32);

impl LeaseId {
    /// No lease.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// All that is known of each offset of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) state: RecordState,
    /// `state` is begun, not durable; the lease is kept for a rollback.
    pub(crate) pending: bool,
    pub(crate) delivery_count: u16,
    pub(crate) lease: LeaseId,
}

impl Cell {
    /// A cell that nobody holds.
    pub(crate) fn free(state: RecordState, delivery_count: u16) -> Self {
        Self {
            state,
            pending: false,
            delivery_count,
            lease: LeaseId::NONE,
        }
    }

    /// Whether the offsets can be acquired.
    pub(crate) fn is_available(self) -> bool {
        self.state == RecordState::Available && !self.pending
    }

    /// Whether nothing will happen to the offsets any more.
    pub(crate) fn is_settled(self) -> bool {
        self.state.is_terminal() && !self.pending
    }
}

/// Offsets `first..=last`, equal in every respect and of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    pub(crate) cell: Cell,
    /// A batch, as first acquired, begins with this run.
    pub(crate) opens_batch: bool,
}

impl Run {
    pub(crate) fn range(&self) -> OffsetRange {
        OffsetRange::new(self.first, self.last)
    }

    /// Whether `next`, which follows, may be joined to this run.
    pub(crate) fn joins(&self, next: &Run) -> bool {
        !next.opens_batch && self.last + 1 == next.first && self.cell == next.cell
    }
}
