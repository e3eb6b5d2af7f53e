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

/// All that is known of each offset of a run, in one word: two are compared at once.
///
/// ```text
/// bits   63       57            56        48..51  32..48           0..32
///                 opens batch   pending   state   delivery count   lease
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell(u64);

const COUNT_SHIFT: u32 = 32;
const STATE_SHIFT: u32 = 48;
const STATE: u64 = 0b111 << STATE_SHIFT;
const PENDING: u64 = 1 << 56;
/// Of a run, not of its cell: a batch, as first acquired, begins with it.
const OPENS_BATCH: u64 = 1 << 57;

impl Cell {
    fn new(state: RecordState, delivery_count: u16, lease: LeaseId) -> Self {
        Self(
            u64::from(state.id()) << STATE_SHIFT
                | u64::from(delivery_count) << COUNT_SHIFT
                | u64::from(lease.0),
        )
    }

    /// A cell that nobody holds.
    pub(crate) fn free(state: RecordState, delivery_count: u16) -> Self {
        Self::new(state, delivery_count, LeaseId::NONE)
    }

    /// A cell that is leased.
    pub(crate) fn acquired(delivery_count: u16, lease: LeaseId) -> Self {
        Self::new(RecordState::Acquired, delivery_count, lease)
    }

    /// The same records while the transition to `state` is being written; the lease is kept for a rollback.
    pub(crate) fn begun(self, state: RecordState) -> Self {
        let pending = Self::new(state, self.delivery_count(), self.lease());
        Self(pending.0 | PENDING)
    }

    pub(crate) fn state(self) -> RecordState {
        let id = ((self.0 & STATE) >> STATE_SHIFT) as u8;
        // a number that is none would be settled or delivered by mistake: better that the partition ends here
        RecordState::from_id(id).unwrap_or_else(|| panic!("a run of state {id}, which is none"))
    }

    pub(crate) fn delivery_count(self) -> u16 {
        (self.0 >> COUNT_SHIFT) as u16
    }

    pub(crate) fn lease(self) -> LeaseId {
        LeaseId(self.0 as u32)
    }

    /// Whether the state is begun, not durable.
    pub(crate) fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Whether the offsets can be acquired.
    pub(crate) fn is_available(self) -> bool {
        self.0 & (STATE | PENDING) == (RecordState::Available as u64) << STATE_SHIFT
    }

    /// Whether nothing will happen to the offsets any more.
    pub(crate) fn is_settled(self) -> bool {
        self.state().is_terminal() && !self.is_pending()
    }
}

/// Offsets `first..=last`, equal in every respect and of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    cell: Cell,
}

impl Run {
    pub(crate) fn new(range: OffsetRange, cell: Cell) -> Self {
        let OffsetRange { first, last } = range;
        Self { first, last, cell }
    }

    /// The same run, with which a batch, as first acquired, begins.
    pub(crate) fn opening_batch(mut self, opens: bool) -> Self {
        self.cell.0 |= u64::from(opens) * OPENS_BATCH;
        self
    }

    pub(crate) fn opens_batch(&self) -> bool {
        self.cell.0 & OPENS_BATCH != 0
    }

    pub(crate) fn cell(&self) -> Cell {
        Cell(self.cell.0 & !OPENS_BATCH)
    }

    pub(crate) fn range(&self) -> OffsetRange {
        OffsetRange::new(self.first, self.last)
    }

    /// The run with another cell.
    pub(crate) fn with(&self, cell: Cell) -> Self {
        self.part(self.range(), cell)
    }

    /// A part of the run, with another cell.
    pub(crate) fn part(&self, part: OffsetRange, cell: Cell) -> Self {
        Self::new(part, cell).opening_batch(part.first == self.first && self.opens_batch())
    }

    /// Whether `next`, which follows, may be joined to this run.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.last + 1 == next.first && self.cell() == next.cell
    }
}
