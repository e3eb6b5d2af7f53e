//! Reading the state of a partition.

use crate::guard::with;
use crate::handle::SharecorePartition;
use crate::memory::{List, Place};
use crate::status::{Failure, SharecoreStatus};
use crate::types::{SharecoreState, SharecoreStateBatch};

/// Offsets, counts and the next deadline of a partition.
///
/// # Safety
/// `state` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_inspect(
    partition: SharecorePartition,
    state: *mut SharecoreState,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(state, "state") }?;
        place.put(SharecoreState {
            start_offset: partition.start_offset(),
            end_offset: partition.end_offset(),
            next_fetch_offset: partition.next_fetch_offset(),
            delivery_complete_count: partition.delivery_complete_count(),
            next_deadline_ms: partition.next_deadline_ms().unwrap_or(i64::MAX),
            runs: partition.runs(),
            memory_bytes: partition.memory_bytes(),
            can_acquire: partition.can_acquire(),
        });
        Ok(())
    })
}

/// The in-flight records from the start offset; neighbors with the same state and count are merged.
///
/// TOO_SMALL: ask again with a larger array.
///
/// # Safety
/// `out` must point to `capacity` writable elements, `count` be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_inflight(
    partition: SharecorePartition,
    out: *mut SharecoreStateBatch,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let list = unsafe { List::new(out, capacity, count) }?;
        list.put(partition.inflight().into_iter().map(Into::into))
    })
}

/// Checks every invariant of the engine, for tests and simulation; on BROKEN the message names the broken one.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_check(partition: SharecorePartition) -> SharecoreStatus {
    with(partition, |partition| {
        let checked = partition.check();
        checked.map_err(|broken| Failure::new(SharecoreStatus::Broken, broken))
    })
}
