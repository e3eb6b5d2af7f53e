//! Dead letters: which are due, and archiving them once written (KIP-1191).

use sharecore_engine::DeadLetterCause;

use crate::guard::with;
use crate::handle::SharecorePartition;
use crate::memory::{List, Place};
use crate::status::SharecoreStatus;
use crate::types::{SharecoreDeadLetter, SharecoreWrite};
use crate::write::to_c;

/// The dead letters that became due since the last call, oldest first.
///
/// TOO_SMALL: none is taken; call again with a larger array.
///
/// # Safety
/// `out` must point to `capacity` writable elements, `count` be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_take_dead_letters(
    partition: SharecorePartition,
    out: *mut SharecoreDeadLetter,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let list = unsafe { List::new(out, capacity, count) }?;
        let due = partition.dead_letters();
        list.put(due.iter().map(|letter| SharecoreDeadLetter {
            first: letter.first,
            last: letter.last,
            delivery_count: letter.delivery_count,
            rejected: letter.cause == DeadLetterCause::Rejected,
            expired: letter.cause == DeadLetterCause::Expired,
        }))?;
        partition.take_dead_letters();
        Ok(())
    })
}

/// The dead letters of `first` to `last` are written, or never will be: the records that waited for them are archived,
/// for good, whether the write succeeds or not.
///
/// # Safety
/// `write` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_finish_archiving(
    partition: SharecorePartition,
    first: i64,
    last: i64,
    write: *mut SharecoreWrite,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(write, "write") }?;
        let answer = partition.finish_archiving(first, last);
        place.put(to_c(answer));
        Ok(())
    })
}
