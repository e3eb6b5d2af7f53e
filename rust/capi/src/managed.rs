//! Share partitions with rules: order, back-off, delivery times, times to live.

use std::sync::Arc;

use sharecore_engine::{Backoff, Engine, Entry, Key, Order, Rules, Spec};

use crate::guard::{guarded, with};
use crate::handle::{self, SharecorePartition};
use crate::lease::ranges;
use crate::memory::{Place, array, one};
use crate::status::{Failure, SharecoreStatus};
use crate::types::{
    SharecoreConfig, SharecoreRange, SharecoreStateBatch, SharecoreWrite, state_batches,
};
use crate::write::to_c;

const NO_ORDER: u8 = 0;
const BY_KEY: u8 = 1;
const WHOLE: u8 = 2;

/// Rules for order, delivery times and retries.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreRules {
    /// 0 none; 1 by key, from the entries of `sharecore_admit`; 2 all records of the partition, one after the other.
    pub ordering: u8,
    /// Whether released records back off.
    pub on_release: bool,
    /// Whether records whose lock expired back off.
    pub on_timeout: bool,
    /// Whether expired records wait for a dead-letter record.
    pub expired_letters: bool,
    /// How many consecutive records of an order one member may acquire together; positive.
    pub run_max: i64,
    /// The back-off before the second delivery, in milliseconds; 0 for none.
    pub backoff_ms: i64,
    /// The longest back-off.
    pub backoff_max_ms: i64,
    /// Growth of each back-off over the previous one; 1 or more.
    pub multiplier: f64,
    /// A back-off grows by up to this fraction; 0 to 1.
    pub jitter: f64,
    /// How many records of the window may be neither acquired nor finished; positive.
    pub max_waiting: i64,
    /// 0: records have no entries. Else any number; a new one restarts the admission of the window.
    pub looks_for: u64,
}

/// Delivery times and key of a record. Applies to the offsets up to the next entry too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreEntry {
    /// The record's offset.
    pub offset: i64,
    /// Earliest delivery, in milliseconds since the epoch; INT64_MIN for none.
    pub not_before_ms: i64,
    /// Expiry, in milliseconds since the epoch; INT64_MAX for never.
    pub expires_ms: i64,
    /// A hash of its key that strangers cannot predict; 0 without a key, and so without an order.
    pub digest: u64,
}

/// The next read of the log.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreWanted {
    /// The offset to read from; -1 if nothing can be acquired now.
    pub offset: i64,
    /// The most records, if they must be admitted.
    pub max_records: i64,
    /// Whether to pass them to `sharecore_admit` before acquiring.
    pub admits: bool,
}

/// Why records of a share partition are not delivered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreWaiting {
    /// Records waiting for their back-off.
    pub backoff: i64,
    /// Records waiting for their delivery time.
    pub delivery: i64,
    /// Records waiting for earlier ones of their key.
    pub behind: i64,
    /// Acquired records.
    pub leased: i64,
    /// Whether the window is full.
    pub is_full: bool,
    /// When `sharecore_advance_at` is due next by the monotonic clock; INT64_MAX for never.
    pub next_time_ms: i64,
    /// When it is due next, in milliseconds since the epoch.
    pub next_wall_ms: i64,
}

fn refused(text: &str) -> Failure {
    Failure::new(SharecoreStatus::BadArgument, text)
}

impl SharecoreRules {
    fn checked(self) -> Result<Rules, Failure> {
        let order = match self.ordering {
            NO_ORDER | BY_KEY => Order::None,
            WHOLE => Order::Partition,
            _ => {
                return Err(refused(
                    "ordering must be 0 (none), 1 (by key) or 2 (the partition)",
                ));
            }
        };
        if self.run_max <= 0 || self.max_waiting <= 0 {
            return Err(refused("run_max and max_waiting must be positive"));
        }
        if self.backoff_ms < 0 || self.backoff_max_ms < self.backoff_ms {
            return Err(refused(
                "backoff_ms must be 0 or more, and no longer than backoff_max_ms",
            ));
        }
        if !(1.0..=10.0).contains(&self.multiplier) || !(0.0..=1.0).contains(&self.jitter) {
            return Err(refused("multiplier must be 1 to 10, and jitter 0 to 1"));
        }
        let by_key = self.ordering == BY_KEY;
        if by_key && self.looks_for == 0 {
            return Err(refused("an order by key needs a looks_for other than 0"));
        }
        // callers read headers and keys themselves
        let spec = (self.looks_for != 0).then(|| {
            Arc::new(Spec {
                id: self.looks_for,
                key: by_key.then_some(Key::Own),
                ..Spec::default()
            })
        });
        Ok(Rules {
            order,
            run_max: self.run_max,
            backoff: Backoff {
                first_ms: self.backoff_ms,
                max_ms: self.backoff_max_ms,
                multiplier: self.multiplier,
                jitter: self.jitter,
                on_release: self.on_release,
                on_timeout: self.on_timeout,
            },
            max_waiting: self.max_waiting,
            spec,
            expired_letters: self.expired_letters,
        })
    }
}

/// Fills in rules without effect, with sharecore's defaults for the other fields.
///
/// # Safety
/// `rules` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_rules_default(rules: *mut SharecoreRules) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        unsafe { Place::new(rules, "rules") }?.put(SharecoreRules {
            ordering: NO_ORDER,
            on_release: true,
            on_timeout: true,
            expired_letters: false,
            run_max: 1,
            backoff_ms: 0,
            backoff_max_ms: 300_000,
            multiplier: 2.0,
            jitter: 0.2,
            max_waiting: 16_000,
            looks_for: 0,
        });
        Ok(())
    })
}

/// As `sharecore_create`, with rules.
///
/// # Safety
/// `config` and `rules` must be null or readable, `partition` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_create_managed(
    config: *const SharecoreConfig,
    rules: *const SharecoreRules,
    start_offset: i64,
    partition: *mut SharecorePartition,
) -> SharecoreStatus {
    // SAFETY: promised by the caller; no state batches
    unsafe {
        sharecore_load_managed(
            config,
            rules,
            0,
            start_offset,
            std::ptr::null(),
            0,
            partition,
        )
    }
}

/// As `sharecore_load`, with rules. Records delivered before back off as if released now.
///
/// # Safety
/// `config` and `rules` must be null or readable, `partition` null or writable, and `batches` point to `batch_count`
/// elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_load_managed(
    config: *const SharecoreConfig,
    rules: *const SharecoreRules,
    now_ms: i64,
    start_offset: i64,
    batches: *const SharecoreStateBatch,
    batch_count: usize,
    partition: *mut SharecorePartition,
) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        let (place, config, rules, batches) = unsafe {
            (
                Place::new(partition, "partition")?,
                one(config, "config")?,
                one(rules, "rules")?,
                array(batches, batch_count, "batches")?,
            )
        };
        place.put(0);
        let (config, rules) = (config.checked()?, rules.checked()?);
        let state = state_batches(batches)?;
        let made = Engine::new(config, start_offset, &state, Some(rules), now_ms)?;
        place.put(handle::insert(made)?);
        Ok(())
    })
}

/// Sets a partition's rules, or removes them with null. Running waits are kept; without rules all waits end.
///
/// # Safety
/// `rules` must be null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_set_rules(
    partition: SharecorePartition,
    rules: *const SharecoreRules,
) -> SharecoreStatus {
    with(partition, |partition| {
        let rules = if rules.is_null() {
            None
        } else {
            // SAFETY: promised by the caller
            Some(unsafe { one(rules, "rules") }?.checked()?)
        };
        partition.set_rules(rules);
        Ok(())
    })
}

/// Where to read for a member's fetch. Applies delivery times that are due.
///
/// # Safety
/// `wanted` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_wanted(
    partition: SharecorePartition,
    now_ms: i64,
    wall_ms: i64,
    wanted: *mut SharecoreWanted,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(wanted, "wanted") }?;
        partition.come_up(now_ms, wall_ms);
        let known = match partition.spec() {
            None => Some(partition.next_fetch_offset()),
            Some(_) => partition.next_ready(),
        };
        let found = match (known, partition.next_admission()) {
            _ if !partition.can_acquire() => (-1, 0, false),
            (Some(offset), _) => (offset, i64::MAX, false),
            (None, Some((offset, room))) => (offset, room, true),
            (None, None) => (-1, 0, false),
        };
        let (offset, max_records, admits) = found;
        place.put(SharecoreWanted {
            offset,
            max_records,
            admits,
        });
        Ok(())
    })
}

/// Admits record batches read from the log from `fetch_offset`, before they can be acquired. `admitted` is false, and
/// nothing changes, if they do not continue what was admitted before. BAD_ARGUMENT: `looks_for` is 0.
///
/// # Safety
/// Each pointer must be null or point to as many elements as its count says; `admitted` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_admit(
    partition: SharecorePartition,
    now_ms: i64,
    wall_ms: i64,
    fetch_offset: i64,
    batches: *const SharecoreRange,
    batch_count: usize,
    entries: *const SharecoreEntry,
    entry_count: usize,
    batch_size: i64,
    admitted: *mut bool,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let (batches, entries, place) = unsafe {
            (
                array(batches, batch_count, "batches")?,
                array(entries, entry_count, "entries")?,
                Place::new(admitted, "admitted")?,
            )
        };
        let batches = ranges(batches)?;
        if !entries.is_sorted_by(|a, b| a.offset < b.offset) {
            return Err(refused("the offsets of entries must be ascending"));
        }
        let Some(spec) = partition.spec().cloned() else {
            return Err(refused(
                "the partition's rules do not need records to be admitted",
            ));
        };
        let entries: Vec<_> = entries.iter().map(|&each| each.into()).collect();
        let times = (now_ms, wall_ms);
        place.put(partition.admit(times, &spec, fetch_offset, &batches, &entries, batch_size));
        Ok(())
    })
}

impl From<SharecoreEntry> for Entry {
    fn from(entry: SharecoreEntry) -> Self {
        Self {
            offset: entry.offset,
            not_before_ms: entry.not_before_ms,
            expires_ms: entry.expires_ms,
            digest: entry.digest,
        }
    }
}

/// As `sharecore_advance`; also applies delivery times and expiry by `now_ms` and `wall_ms`, milliseconds since the
/// epoch.
///
/// # Safety
/// `write` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_advance_at(
    partition: SharecorePartition,
    now_ms: i64,
    wall_ms: i64,
    write: *mut SharecoreWrite,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(write, "write") }?;
        place.put(to_c(partition.advance(now_ms, wall_ms)));
        Ok(())
    })
}

/// As `sharecore_commit`; released records back off from `now_ms`.
///
/// INVALID_REQUEST: the write has ended, or never existed.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_commit_at(
    partition: SharecorePartition,
    write_id: u64,
    now_ms: i64,
) -> SharecoreStatus {
    with(partition, |partition| {
        partition.commit(write_id, now_ms)?;
        Ok(())
    })
}

/// Why records are not delivered, and when that changes by itself.
///
/// # Safety
/// `waiting` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_waiting(
    partition: SharecorePartition,
    waiting: *mut SharecoreWaiting,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let place = unsafe { Place::new(waiting, "waiting") }?;
        let found = partition.waiting_reasons(0);
        place.put(SharecoreWaiting {
            backoff: found.backoff,
            delivery: found.delivery,
            behind: found.keys.as_ref().map_or(0, |keys| keys.behind),
            leased: found.leased,
            is_full: found.is_full,
            next_time_ms: partition.next_time_ms().unwrap_or(i64::MAX),
            next_wall_ms: partition.next_wall_ms().unwrap_or(i64::MAX),
        });
        Ok(())
    })
}

/// Refuses a call without time arguments on a partition whose records may wait.
pub(crate) fn plain(partition: &Engine, instead: &str) -> Result<(), Failure> {
    match partition {
        Engine::Plain(_) => Ok(()),
        Engine::Managed(_) => Err(Failure::new(
            SharecoreStatus::BadArgument,
            format_args!("the partition has rules; use {instead}"),
        )),
    }
}
