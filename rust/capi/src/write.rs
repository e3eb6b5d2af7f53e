//! Persisting: state changes, their batches, their outcome, and merging them.

use sharecore_engine::{Combiner, Write};

use crate::guard::{guarded, with};
use crate::handle::SharecorePartition;
use crate::managed::plain;
use crate::memory::{List, Place, array};
use crate::status::SharecoreStatus;
use crate::types::{SharecoreStateBatch, SharecoreWrite, state_batches};

/// Converts a state change for the caller; all zero without a change.
pub(crate) fn to_c(write: Option<Write<'_>>) -> SharecoreWrite {
    write.map_or_else(SharecoreWrite::default, |write| SharecoreWrite {
        id: write.id,
        start_offset: write.start_offset,
        delivery_complete_count: write.delivery_complete_count,
        batch_count: write.batches.len(),
    })
}

/// The state batches of an open write, in offset order, equal neighbors merged.
///
/// INVALID_REQUEST: the write has ended, or never existed. TOO_SMALL: call again with a larger array.
///
/// # Safety
/// `out` must point to `capacity` writable elements, `count` be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_write_batches(
    partition: SharecorePartition,
    write_id: u64,
    out: *mut SharecoreStateBatch,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let list = unsafe { List::new(out, capacity, count) }?;
        let batches = partition.write_batches(write_id)?;
        list.put(batches.iter().copied().map(Into::into))
    })
}

/// The write is durable: its records may change again, and the start offset moves past finished ones.
///
/// INVALID_REQUEST: the write has ended, or never existed. BAD_ARGUMENT: the partition has rules.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_commit(
    partition: SharecorePartition,
    write_id: u64,
) -> SharecoreStatus {
    with(partition, |partition| {
        plain(partition, "sharecore_commit_at")?;
        partition.commit(write_id, 0)?;
        Ok(())
    })
}

/// The write failed: its records are as before, except that locks may have expired.
///
/// INVALID_REQUEST: the write has ended, or never existed.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_rollback(
    partition: SharecorePartition,
    write_id: u64,
    now_ms: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        partition.rollback(write_id, now_ms)?;
        Ok(())
    })
}

/// Frees the records whose acquisition lock has expired. BAD_ARGUMENT: the partition has rules.
///
/// # Safety
/// `write` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_advance(
    partition: SharecorePartition,
    now_ms: i64,
    write: *mut SharecoreWrite,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(write, "write") }?;
        plain(partition, "sharecore_advance_at")?;
        let answer = partition.advance(now_ms, 0);
        place.put(to_c(answer));
        Ok(())
    })
}

/// Retention or DeleteRecords moved the log's start. Nothing to persist now: the next write carries the start offset.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_move_log_start(
    partition: SharecorePartition,
    offset: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        partition.move_log_start(offset);
        Ok(())
    })
}

/// Archives offsets without a record for this group: aborted transactions, control records.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_archive(
    partition: SharecorePartition,
    first: i64,
    last: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        partition.archive(first, last);
        Ok(())
    })
}

/// The log has no records from `first` to `last`, as a fetch from `first` has shown. Nothing to persist.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_pass_hole(
    partition: SharecorePartition,
    first: i64,
    last: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        partition.pass_hole(first, last);
        Ok(())
    })
}

/// Merges new state batches with persisted ones, and drops those before `start_offset` (-1: none).
///
/// The result is ascending without overlaps, and at most twice as long as the inputs together.
///
/// # Safety
/// `existing`, `new` and `out` must point to as many elements as their counts and capacity say; `out` must not overlap
/// the other two; `count` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_combine(
    existing: *const SharecoreStateBatch,
    existing_count: usize,
    new_batches: *const SharecoreStateBatch,
    new_count: usize,
    start_offset: i64,
    out: *mut SharecoreStateBatch,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        let (existing, new, list) = unsafe {
            (
                array(existing, existing_count, "existing")?,
                array(new_batches, new_count, "new_batches")?,
                List::new(out, capacity, count)?,
            )
        };
        let start_offset = (start_offset >= 0).then_some(start_offset);
        let (existing, new) = (state_batches(existing)?, state_batches(new)?);
        let mut room = Combiner::default();
        let combined = room.combine(&existing, &new, start_offset);
        list.put(combined.iter().copied().map(Into::into))
    })
}
