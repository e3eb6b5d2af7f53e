//! Loading a partition from its persisted state.

use super::dead_letter::DeadLetters;
use super::lease::Leases;
use super::writes::Writes;
use super::{Config, Partition, StateBatch};
use crate::error::Refusal;
use crate::inflight::{Cell, Run, RunMap};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;
use crate::state_batch::is_range;

impl Partition {
    /// Loads a persisted partition: nothing is acquired, and offsets that no state batch covers are fetched again.
    ///
    /// Refuses state batches that overlap, lie before the start offset, are acquired, or exceed the protocol's delivery
    /// count.
    pub fn new(
        config: Config,
        start_offset: Offset,
        state: &[StateBatch],
    ) -> Result<Self, Refusal> {
        let mut state = state.to_vec();
        state.sort_by_key(|batch| batch.first);
        let state_len = state.len();
        let mut partition = Self {
            config,
            start: start_offset,
            end: start_offset,
            map: RunMap::default(),
            leases: Leases::default(),
            read_gap: None,
            complete: 0,
            overtaken: Vec::new(),
            writes: Writes::default(),
            dead_letters: DeadLetters::default(),
            timed_out: 0,
            expired: 0,
        };
        if start_offset < 0 {
            return Err(Refusal::CorruptState {
                first: start_offset,
                last: start_offset,
            });
        }
        let mut next = start_offset;
        let mut gap = None;
        for batch in &state {
            let possible = next <= batch.first
                && is_range(batch.first, batch.last)
                && i16::try_from(batch.delivery_count).is_ok();
            if !possible || batch.state == RecordState::Acquired {
                return Err(Refusal::CorruptState {
                    first: batch.first,
                    last: batch.last,
                });
            }
            if batch.first > next && gap.is_none() {
                gap = Some(next);
            }
            next = batch.last + 1;
            if batch.state.is_terminal() {
                partition.complete += batch.last - batch.first + 1;
            }
            if batch.state == RecordState::Archiving {
                partition.dead_letters.found(batch, &config);
            }
            let range = OffsetRange::new(batch.first, batch.last);
            let run = Run::new(range, Cell::free(batch.state, batch.delivery_count));
            partition.map.insert(run.opening_batch(true));
        }
        if !state.is_empty() {
            partition.end = next - 1;
            if let Some(start) = gap {
                partition.set_gap(start, next - 1);
            }
            partition.advance_start();
        }
        assert!(
            partition.start >= start_offset,
            "the start offset fell while the state was loaded"
        );
        assert!(partition.runs() <= state_len, "runs of no batch");
        debug_assert_eq!(partition.check(), Ok(()), "what was loaded is sound");
        Ok(partition)
    }
}
