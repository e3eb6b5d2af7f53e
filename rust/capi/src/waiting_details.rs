//! Why records of a partition wait, in detail, and the locks that last.

use std::ffi::c_char;

use sharecore_engine::Order;

use crate::guard::with;
use crate::handle::SharecorePartition;
use crate::memory::{List, Place, name};
use crate::status::{Failure, SharecoreStatus};

/// Why records of a share partition are not delivered, in detail.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreWaitingDetails {
    /// Records waiting for their back-off.
    pub backoff: i64,
    /// When the first back-off ends; INT64_MAX for never.
    pub backoff_due_ms: i64,
    /// Records waiting for their delivery time.
    pub delivery: i64,
    /// The first delivery time, in milliseconds since the epoch; INT64_MAX for none.
    pub delivery_due_ms: i64,
    /// Records to be admitted again, since the partition was loaded or its rules changed.
    pub unread: i64,
    /// Records waiting for earlier ones of their key.
    pub behind: i64,
    /// Keys with unfinished records.
    pub keys: i64,
    /// Acquired records.
    pub leased: i64,
    /// Acquired records whose lock `sharecore_keep_locks` extended.
    pub kept: i64,
    /// What counts against `max_waiting`: records that are neither acquired nor finished; ordered by key, runs of
    /// neighbors with one key.
    pub units: i64,
    /// Whether the window is full.
    pub is_full: bool,
    /// Whether the partition is delivered in order, and its next records wait for acquired ones.
    pub is_in_line: bool,
    /// The order, as in `SharecoreRules`.
    pub ordering: u8,
}

/// A key with unfinished records.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreKey {
    /// Its hash, from the entries of `sharecore_admit`.
    pub digest: u64,
    /// How many of its records are admitted and not finished.
    pub records: i64,
    /// The offset of the first one.
    pub first: i64,
}

/// Why records are not delivered, with due times and the state of the order. Without rules only `leased`, `kept` and
/// `is_full` differ from 0 and never.
///
/// # Safety
/// `details` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_waiting_details(
    partition: SharecorePartition,
    details: *mut SharecoreWaitingDetails,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(details, "details") }?;
        let found = partition.waiting_reasons(0);
        let ordering = match (partition.rules().map(|rules| rules.order), &found.keys) {
            (_, Some(_)) => 1,
            (Some(Order::Partition), None) => 2,
            (Some(Order::None) | None, None) => 0,
        };
        let (behind, keys) = found
            .keys
            .map_or((0, 0), |each| (each.behind, each.keys as i64));
        place.put(SharecoreWaitingDetails {
            backoff: found.backoff,
            backoff_due_ms: found.backoff_due_ms.unwrap_or(i64::MAX),
            delivery: found.delivery,
            delivery_due_ms: found.delivery_due_ms.unwrap_or(i64::MAX),
            unread: found.unread,
            behind,
            keys,
            leased: found.leased,
            kept: found.kept,
            units: found.units,
            is_full: found.is_full,
            is_in_line: found.is_in_line,
            ordering,
        });
        Ok(())
    })
}

/// The keys with the most unfinished records, at most `capacity` of them, the largest first. None without order by key.
///
/// # Safety
/// `out` must point to `capacity` writable elements, `count` be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_keys(
    partition: SharecorePartition,
    out: *mut SharecoreKey,
    capacity: usize,
    count: *mut usize,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let list = unsafe { List::new(out, capacity, count) }?;
        let largest = partition
            .keys(capacity)
            .map_or_else(Vec::new, |found| found.largest);
        list.put(
            largest
                .into_iter()
                .map(|(digest, records, first)| SharecoreKey {
                    digest,
                    records,
                    first,
                }),
        )
    })
}

/// Restarts the expired locks of a member that is still connected; call it before `sharecore_advance` or
/// `sharecore_advance_at` with the same time. A lock lasts up to `max_ms` after its records were delivered or renewed.
/// The delivery count stays, and nothing has to be persisted.
///
/// # Safety
/// `member` must be null or point to `member_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_keep_locks(
    partition: SharecorePartition,
    now_ms: i64,
    member: *const c_char,
    member_length: usize,
    max_ms: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let member = unsafe { name(member, member_length) }?;
        if max_ms <= 0 {
            return Err(Failure::new(
                SharecoreStatus::BadArgument,
                "max_ms must be positive",
            ));
        }
        partition.keep_locks(now_ms, &[member], max_ms);
        Ok(())
    })
}
