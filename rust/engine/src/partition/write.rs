//! State changes for the persister.

use crate::offset::Offset;
use crate::record_state::RecordState;

/// The persisted form of a run (KIP-932, `StateBatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBatch {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// The new state.
    pub state: RecordState,
    /// How often the records were delivered.
    pub delivery_count: u16,
}

/// A state change that has begun and waits for the persister.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// The ID for [`commit`](crate::Partition::commit), [`rollback`](crate::Partition::rollback) and
    /// [`write_batches`](crate::Partition::write_batches).
    pub id: u64,
    /// The start offset before the operation.
    pub start_offset: Offset,
    /// Acknowledged and archived records at or after the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    /// The changed offsets in order, equal neighbors merged.
    pub batches: &'a [StateBatch],
}
