//! A run: neighboring offsets with identical state.

use crate::offset::{Offset, OffsetRange, after};
use crate::record_state::RecordState;

/// The lease of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseId(pub(crate) u32);

impl LeaseId {
    /// No lease.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// The state of each offset of a run in one word, so that comparing two is one instruction.
///
/// ```text
/// bits   60       59      58         57            56        48..51  32..48           0..32
///        behind   waits   rejected   opens batch   pending   state   delivery count   lease
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell(u64);

const COUNT_SHIFT: u32 = 32;
const STATE_SHIFT: u32 = 48;
const STATE: u64 = 0b111 << STATE_SHIFT;
const PENDING: u64 = 1 << 56;
/// Belongs to a run, not to its cell: an originally acquired batch begins with this run.
const OPENS_BATCH: u64 = 1 << 57;
/// While the transition is being written: a member rejected the records; they did not reach the delivery limit.
const REJECTED: u64 = 1 << 58;
/// Available, but not to be acquired yet: see `managed`.
const WAITS: u64 = 1 << 59;
/// Available, but not to be acquired until earlier records with the same key are finished: see `managed`.
const BEHIND: u64 = 1 << 60;

const _: () = {
    let flags = [PENDING, OPENS_BATCH, REJECTED, WAITS, BEHIND];
    let mut taken = STATE | (u16::MAX as u64) << COUNT_SHIFT | u32::MAX as u64;
    let mut at = 0;
    while at < flags.len() {
        assert!(taken & flags[at] == 0, "each bit means one thing");
        taken |= flags[at];
        at += 1;
    }
    assert!(RecordState::Archived as u64 <= STATE >> STATE_SHIFT);
};

impl Cell {
    fn new(state: RecordState, delivery_count: u16, lease: LeaseId) -> Self {
        Self(
            u64::from(state.id()) << STATE_SHIFT
                | u64::from(delivery_count) << COUNT_SHIFT
                | u64::from(lease.0),
        )
    }

    /// A cell without a lease.
    pub(crate) fn free(state: RecordState, delivery_count: u16) -> Self {
        debug_assert_ne!(state, RecordState::Acquired, "a free cell has no lease");
        Self::new(state, delivery_count, LeaseId::NONE)
    }

    /// An acquired cell.
    pub(crate) fn acquired(delivery_count: u16, lease: LeaseId) -> Self {
        Self::new(RecordState::Acquired, delivery_count, lease)
    }

    /// The same records while their transition to `state` is being written; the lease is kept for a rollback.
    pub(crate) fn begun(self, state: RecordState) -> Self {
        debug_assert!(self.is_acquired(), "only acquired records change so");
        debug_assert_ne!(
            state,
            RecordState::Acquired,
            "a transition to a pending state"
        );
        let pending = Self::new(state, self.delivery_count(), self.lease());
        Self(pending.0 | PENDING)
    }

    /// The same records while their rejection by a member is being written; a dead-letter record is due.
    pub(crate) fn rejected(self) -> Self {
        Self(self.begun(RecordState::Archiving).0 | REJECTED)
    }

    pub(crate) fn is_rejected(self) -> bool {
        self.0 & REJECTED != 0
    }

    pub(crate) fn state(self) -> RecordState {
        let id = ((self.0 & STATE) >> STATE_SHIFT) as u8;
        // an unknown number would be finished or delivered by mistake: better to stop the partition here
        RecordState::from_id(id).unwrap_or_else(|| panic!("unknown record state {id}"))
    }

    pub(crate) fn delivery_count(self) -> u16 {
        (self.0 >> COUNT_SHIFT) as u16
    }

    pub(crate) fn lease(self) -> LeaseId {
        LeaseId(self.0 as u32)
    }

    /// Whether a state change has begun and is not durable yet.
    pub(crate) fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// The same available records, now waiting.
    pub(crate) fn waiting(self) -> Self {
        debug_assert!(self.is_free(), "only available records can wait");
        Self(self.0 | WAITS)
    }

    /// The same records, no longer waiting.
    pub(crate) fn ready(self) -> Self {
        Self(self.0 & !WAITS)
    }

    /// The same available records, now behind others.
    pub(crate) fn behind(self) -> Self {
        debug_assert!(
            self.is_free(),
            "only available records can be behind others"
        );
        Self(self.0 | BEHIND)
    }

    /// The same records, no longer behind others.
    pub(crate) fn in_front(self) -> Self {
        Self(self.0 & !BEHIND)
    }

    pub(crate) fn is_behind(self) -> bool {
        self.0 & BEHIND != 0
    }

    /// Whether the offsets are available, now or once their wait and earlier records end.
    pub(crate) fn is_free(self) -> bool {
        self.ready().in_front().is_available()
    }

    pub(crate) fn is_waiting(self) -> bool {
        self.0 & WAITS != 0
    }

    /// Whether the offsets can be acquired.
    pub(crate) fn is_available(self) -> bool {
        self.0 & (STATE | PENDING | WAITS | BEHIND)
            == (RecordState::Available as u64) << STATE_SHIFT
    }

    /// Whether the offsets are acquired, and no state change is being written.
    pub(crate) fn is_acquired(self) -> bool {
        self.0 & (STATE | PENDING) == (RecordState::Acquired as u64) << STATE_SHIFT
    }

    /// Whether the state is final: acknowledged or archived.
    pub(crate) fn is_settled(self) -> bool {
        let bits = (self.0 & (STATE | PENDING)) >> STATE_SHIFT;
        let terminal = 1 << RecordState::Acknowledged as u64 | 1 << RecordState::Archived as u64;
        bits < u64::from(u8::BITS) && terminal >> bits & 1 != 0
    }

    /// Whether records may change from this cell to `next`: the transitions of KIP-932, one by one.
    ///
    /// ```text
    /// Available -> Acquired           leased, one delivery more
    /// Acquired  -> Acquired           renewed
    /// Acquired  -> begun              what its owner, or the end of its session, asks for; the lease stays
    /// begun     -> free, Acquired     written; or not, and leased as before, or freed where the lock has run out
    /// Acquired  -> free               the lock has run out
    /// any       -> Archived           the log has lost the records; or a husk of settled ones (see `bury`)
    /// Available -> Available          begins to wait, or waits no longer; comes after others, or no longer
    /// Available -> Archiving          has expired, and a dead letter is due
    /// ```
    pub(crate) fn may_become(self, next: Self) -> bool {
        use RecordState::{Acquired, Archived, Archiving};
        if self == next {
            return true;
        }
        let fits = |cell: Self| {
            let is_held = cell.lease() != LeaseId::NONE;
            is_held == (cell.is_pending() || cell.state() == Acquired)
                && !(cell.is_pending() && cell.state() == Acquired)
        };
        if !fits(self) || !fits(next) {
            return false;
        }
        if self.is_settled() {
            // a husk
            return next == Self::free(Archived, 0);
        }
        if self.ready().in_front() == next.ready().in_front() {
            return self.is_free();
        }
        if self.is_available() && next.state() == Acquired {
            return next.delivery_count() >= self.delivery_count();
        }
        let keeps_lease = next.lease() == self.lease();
        let is_held = self.lease() != LeaseId::NONE;
        next.delivery_count() == self.delivery_count()
            && if next.is_pending() {
                self.state() == Acquired && keeps_lease
            } else if next.state() == Acquired {
                is_held && (keeps_lease || !self.is_pending())
            } else {
                is_held || matches!(next.state(), Archived | Archiving)
            }
    }
}

/// Offsets `first..=last` of one batch, with identical state.
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

    /// The same run; `opens`: whether an originally acquired batch begins with it.
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

    /// Whether `next`, which follows, can be merged with this run.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        (after(self.last) == next.first) & (self.cell() == next.cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecordState::{Acknowledged, Archived, Archiving, Available};

    #[test]
    fn only_the_transitions_of_the_protocol_are_let_through() {
        let (lease, other) = (LeaseId(7), LeaseId(8));
        let free = Cell::free(Available, 2);
        let held = Cell::acquired(3, lease);
        let begun = |state| held.begun(state);
        for (from, to) in [
            (free, Cell::acquired(3, lease)),
            (free, Cell::free(Archived, 2)),
            (free, free.waiting()),
            (free.waiting(), free),
            (free.behind(), free),
            (free, free.waiting().behind()),
            (free.behind(), Cell::free(Archived, 2)),
            (free.waiting(), Cell::free(Archived, 2)),
            (free.waiting(), Cell::free(Archiving, 2)),
            (held, Cell::acquired(3, other)),
            (held, begun(Acknowledged)),
            (held, begun(Available)),
            (held, Cell::free(Available, 3)),
            (begun(Acknowledged), Cell::free(Acknowledged, 3)),
            (begun(Acknowledged), held),
            (begun(Available), Cell::free(Archived, 3)),
            (Cell::free(Acknowledged, 3), Cell::free(Archived, 0)),
        ] {
            assert!(from.may_become(to), "{from:?} to {to:?}");
        }
        for (from, to) in [
            (free, Cell::acquired(1, lease)),
            (free, Cell::free(Acknowledged, 2)),
            (free, Cell::free(Available, 1)),
            (free.waiting(), Cell::acquired(3, lease)),
            (free.behind(), Cell::acquired(3, lease)),
            (held, free.waiting()),
            (held, Cell::acquired(2, lease)),
            (held, Cell::free(Available, 2)),
            (held, Cell::acquired(3, LeaseId::NONE)),
            (held, Cell::acquired(3, other).begun(Acknowledged)),
            (begun(Acknowledged), begun(Archived)),
            (begun(Acknowledged), Cell::acquired(3, other)),
            (begun(Acknowledged), Cell::free(Acknowledged, 2)),
            (Cell::free(Acknowledged, 3), free),
            (Cell::free(Archived, 3), held),
        ] {
            assert!(!from.may_become(to), "{from:?} to {to:?}");
        }
    }
}
