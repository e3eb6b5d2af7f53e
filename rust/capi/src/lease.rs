//! Operations of members: acquire, acknowledge, release.

use std::cell::RefCell;
use std::ffi::c_char;

use sharecore_engine::{AckBatch, AcquireOptions, Acquired, OffsetRange};

use crate::guard::{guarded, with};
use crate::handle::SharecorePartition;
use crate::memory::{List, Place, array, name, one};
use crate::status::{Failure, SharecoreStatus};
use crate::types::{
    SharecoreAcknowledgement, SharecoreAcquired, SharecoreFetch, SharecoreRange, SharecoreWrite,
};
use crate::write::to_c;

thread_local! {
    /// This thread's last acquired records, kept so that a caller whose array was too small does not lose them.
    static ACQUIRED: RefCell<Vec<Acquired>> = const { RefCell::new(Vec::new()) };
}

/// Acquires for a member the available records of batches read from the log (ascending, without overlaps).
///
/// TOO_SMALL: the records are acquired; `sharecore_acquired` returns them in a larger array.
///
/// # Safety
/// Each pointer must be null or point to as many elements as its count or capacity says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_acquire(
    partition: SharecorePartition,
    now_ms: i64,
    member: *const c_char,
    member_length: usize,
    batches: *const SharecoreRange,
    batch_count: usize,
    fetch: *const SharecoreFetch,
    out: *mut SharecoreAcquired,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let (member, batches, fetch, list) = unsafe {
            (
                name(member, member_length)?,
                array(batches, batch_count, "batches")?,
                one(fetch, "fetch")?,
                List::new(out, capacity, count)?,
            )
        };
        let batches = ranges(batches)?;
        let options = AcquireOptions {
            fetch_offset: fetch.fetch_offset,
            max_fetch_records: fetch.max_fetch_records,
            batch_size: fetch.batch_size,
            record_limit: fetch.record_limit,
        };
        ACQUIRED.with_borrow_mut(|acquired| {
            acquired.clear();
            partition.acquire(now_ms, member, &batches, options, acquired);
            list.put(acquired.iter().copied().map(Into::into))
        })
    })
}

/// Returns the records of this thread's last `sharecore_acquire` again.
///
/// # Safety
/// `out` must point to `capacity` writable elements, `count` be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_acquired(
    out: *mut SharecoreAcquired,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        let list = unsafe { List::new(out, capacity, count) }?;
        ACQUIRED.with_borrow(|acquired| list.put(acquired.iter().copied().map(Into::into)))
    })
}

/// Accepts, releases, rejects or renews records that a member holds: the whole request or, if it is refused, only the
/// renewals before the refused batch. Offsets before the start offset are skipped.
///
/// # Safety
/// Each pointer, those within `batches` included, must be null or point to as many elements as its count says; `write`
/// must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_acknowledge(
    partition: SharecorePartition,
    now_ms: i64,
    member: *const c_char,
    member_length: usize,
    batches: *const SharecoreAcknowledgement,
    batch_count: usize,
    write: *mut SharecoreWrite,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let (member, batches, place) = unsafe {
            (
                name(member, member_length)?,
                array(batches, batch_count, "batches")?,
                Place::new(write, "write")?,
            )
        };
        let batches = batches
            .iter()
            .map(|batch| {
                Ok(AckBatch {
                    first: batch.first,
                    last: batch.last,
                    // SAFETY: promised by the caller
                    types: unsafe { array(batch.types, batch.type_count, "types") }?,
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let answer = partition.acknowledge(now_ms, member, &batches)?;
        place.put(to_c(answer));
        Ok(())
    })
}

/// Releases all records that a member holds: its session has closed.
///
/// # Safety
/// `member` must point to `member_length` bytes; `write` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_release(
    partition: SharecorePartition,
    member: *const c_char,
    member_length: usize,
    write: *mut SharecoreWrite,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let (member, place) =
            unsafe { (name(member, member_length)?, Place::new(write, "write")?) };
        let answer = partition.release(member);
        place.put(to_c(answer));
        Ok(())
    })
}

/// Converts record batches for the engine.
pub(crate) fn ranges(batches: &[SharecoreRange]) -> Result<Vec<OffsetRange>, Failure> {
    let mut after = 0;
    batches
        .iter()
        .map(|&SharecoreRange { first, last }| {
            // a record batch counts its offsets in 32 bits: a longer one is invalid, and would be split into many
            // leases
            if first < after
                || last < first
                || last - first > i64::from(i32::MAX)
                || last == i64::MAX
            {
                return Err(Failure::new(
                    SharecoreStatus::BadArgument,
                    format_args!(
                        "record batch {first}-{last} is too long, or overlaps the batches before it, up to offset {}",
                        after - 1
                    ),
                ));
            }
            after = last + 1;
            Ok(OffsetRange::new(first, last))
        })
        .collect()
}
