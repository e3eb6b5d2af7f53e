//! What is persisted: changes that begin, their batches, how they end, and how they are joined.

use sharecore_engine::{Combiner, Write};

use crate::guard::{guarded, with};
use crate::handle::SharecorePartition;
use crate::managed::plain;
use crate::memory::{List, Place, array};
use crate::status::SharecoreStatus;
use crate::types::{SharecoreStateBatch, SharecoreWrite, state_batches};

/// What a caller is told of a change that begins; all zero where nothing does.
pub(crate) fn told(write: Option<Write<'_>>) -> SharecoreWrite {
    write.map_or_else(SharecoreWrite::default, |write| SharecoreWrite {
        id: write.id,
        start_offset: write.start_offset,
        delivery_complete_count: write.delivery_complete_count,
        batch_count: write.batches.len(),
    })
}

/// The state batches of an open write, in order of their offsets, equal neighbours joined.
///
/// INVALID_REQUEST: the write has ended, or never was. TOO_SMALL: ask again with a larger array.
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

/// The write is durable: what it changed may change again, and the start offset moves over what is settled.
///
/// INVALID_REQUEST: the write has ended, or never was. BAD_ARGUMENT: the partition has rules.
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

/// The write failed: what it changed is as before, save for locks that have run out meanwhile.
///
/// INVALID_REQUEST: the write has ended, or never was.
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

/// Ends the acquisition locks that have run out. BAD_ARGUMENT: the partition has rules.
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
        place.put(told(answer));
        Ok(())
    })
}

/// Retention or DeleteRecords moved the log's start. Nothing is to be persisted: the start offset goes with the next write.
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

/// Offsets that hold no record for this group: aborted transactions, control records.
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

/// The log holds nothing from `first` to `last`, as a fetch from `first` has shown. Nothing is to be persisted.
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

/// Joins new state batches with those persisted before, and drops what lies before `start_offset` (-1: nothing).
///
/// The result ascends and does not overlap; at most twice as many batches go out as came in.
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
