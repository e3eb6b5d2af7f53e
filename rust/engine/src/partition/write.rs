//! What a change asks the persister to make durable.

use smallvec::SmallVec;

use crate::offset::{Offset, OffsetRange};
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

/// State that has begun to change and waits for the persister.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Names the write in [`commit`](crate::Partition::commit) and [`rollback`](crate::Partition::rollback).
    pub id: u64,
    /// The start offset from before the operation.
    pub start_offset: Offset,
    /// Settled records at or behind the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    pub(super) batches: Batches,
}

impl Write {
    /// The changed offsets in order, equal neighbours joined.
    pub fn batches(&self) -> &[StateBatch] {
        &self.batches
    }
}

/// Most writes change one stretch of offsets: they need no memory of their own.
pub(super) type Batches = SmallVec<[StateBatch; 2]>;
pub(super) type Ranges = SmallVec<[OffsetRange; 2]>;

/// Collects what an operation changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    batches: Batches,
}

impl Changes {
    pub(super) fn push(&mut self, piece: OffsetRange, state: RecordState, delivery_count: u16) {
        if let Some(last) = self.batches.last_mut()
            && last.last + 1 == piece.first
            && last.state == state
            && last.delivery_count == delivery_count
        {
            last.last = piece.last;
        } else {
            let OffsetRange { first, last } = piece;
            self.batches.push(StateBatch {
                first,
                last,
                state,
                delivery_count,
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The changes in order of their offsets, joined.
    pub(super) fn finish(mut self) -> Batches {
        if self.batches.len() == 1 || self.batches.is_sorted_by_key(|batch| batch.first) {
            return self.batches;
        }
        self.batches.sort_unstable_by_key(|batch| batch.first);
        let mut joined = Self::default();
        for batch in self.batches {
            joined.push(
                OffsetRange::new(batch.first, batch.last),
                batch.state,
                batch.delivery_count,
            );
        }
        joined.batches
    }

    /// The changed offsets, neighbours joined whatever their state.
    pub(super) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::new();
        if let [batch] = self.batches[..] {
            ranges.push(OffsetRange::new(batch.first, batch.last));
            return ranges;
        }
        for batch in &self.batches {
            match ranges.last_mut() {
                Some(last) if last.last + 1 == batch.first => last.last = batch.last,
                _ => ranges.push(OffsetRange::new(batch.first, batch.last)),
            }
        }
        ranges
    }
}
