//! The structs of the boundary: plain data in C layout.
//!
//! States and types are Kafka's numbers. States: 0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived.
//! Acknowledge types: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.

use sharecore_engine::{Acquired, Config, InFlightRun, RecordState, StateBatch};

use crate::status::{Failure, SharecoreStatus};

/// The limits of a share partition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreConfig {
    /// Deliveries before a record is archived; positive.
    pub max_delivery_count: u16,
    /// Whether members may renew their locks.
    pub renew_enabled: bool,
    /// Whether rejected and undeliverable records wait for a dead-letter record before they are archived (KIP-1191).
    pub dead_letters: bool,
    /// How many offsets may be in flight; positive.
    pub max_inflight: i64,
    /// How long an acquisition lock lasts, in milliseconds; positive.
    pub lock_ms: i64,
}

/// The offsets of a record batch, first to last, both included.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreRange {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
}

/// Offsets with the same state and delivery count.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreStateBatch {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// 0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived.
    pub state: u8,
    /// How often the records were delivered.
    pub delivery_count: u16,
}

/// Limits of a fetch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreFetch {
    /// The offset of the read.
    pub fetch_offset: i64,
    /// How many records the member wants; whole record batches are returned, so it may get more unless `record_limit`.
    pub max_fetch_records: i64,
    /// Newly acquired records start another batch after this many offsets, at the next record-batch boundary.
    pub batch_size: i64,
    /// Whether `max_fetch_records` is strict.
    pub record_limit: bool,
}

/// Offsets acquired by a member.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreAcquired {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// How often they have been delivered, including this time.
    pub delivery_count: u16,
}

/// A member's acknowledgement of the records first to last.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreAcknowledgement {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
    pub types: *const u8,
    /// 1, or the number of offsets.
    pub type_count: usize,
}

/// A state change that has begun and waits for the persister, until it is committed or rolled back.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharecoreWrite {
    /// The ID of the write; 0 if there is nothing to persist.
    pub id: u64,
    /// The start offset before the operation.
    pub start_offset: i64,
    /// Acknowledged and archived records at or after the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    /// The number of state batches in `sharecore_write_batches`.
    pub batch_count: usize,
}

/// Neighboring records that each wait for a dead-letter record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreDeadLetter {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// How often the records were delivered.
    pub delivery_count: u16,
    /// Whether a member rejected them, rather than the delivery limit. Guessed from the delivery count in loaded state.
    pub rejected: bool,
    /// Whether their time to live ended. Lost in loaded state.
    pub expired: bool,
}

/// The state of a partition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreState {
    /// The lowest unfinished offset (SPSO).
    pub start_offset: i64,
    /// The highest offset in flight; if nothing is in flight, the next one to fetch.
    pub end_offset: i64,
    /// The offset to fetch from next.
    pub next_fetch_offset: i64,
    /// Acknowledged and archived records at or after the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    /// When the next acquisition lock expires; INT64_MAX if none is held.
    pub next_deadline_ms: i64,
    /// The number of in-flight runs.
    pub runs: usize,
    /// Bytes held, indexes included.
    pub memory_bytes: usize,
    /// Whether the in-flight limit allows an acquire.
    pub can_acquire: bool,
}

impl SharecoreConfig {
    pub(crate) fn checked(self) -> Result<Config, Failure> {
        if self.max_delivery_count == 0 || self.max_inflight <= 0 || self.lock_ms <= 0 {
            return Err(Failure::new(
                SharecoreStatus::BadArgument,
                "max_delivery_count, max_inflight and lock_ms must be positive",
            ));
        }
        Ok(Config {
            max_delivery_count: self.max_delivery_count,
            max_inflight: self.max_inflight,
            lock_ms: self.lock_ms,
            renew_enabled: self.renew_enabled,
            dead_letters: self.dead_letters,
        })
    }
}

impl From<Config> for SharecoreConfig {
    fn from(config: Config) -> Self {
        Self {
            max_delivery_count: config.max_delivery_count,
            renew_enabled: config.renew_enabled,
            dead_letters: config.dead_letters,
            max_inflight: config.max_inflight,
            lock_ms: config.lock_ms,
        }
    }
}

impl From<Acquired> for SharecoreAcquired {
    fn from(acquired: Acquired) -> Self {
        Self {
            first: acquired.first,
            last: acquired.last,
            delivery_count: acquired.delivery_count,
        }
    }
}

impl From<StateBatch> for SharecoreStateBatch {
    fn from(batch: StateBatch) -> Self {
        Self {
            first: batch.first,
            last: batch.last,
            state: batch.state.id(),
            delivery_count: batch.delivery_count,
        }
    }
}

impl From<InFlightRun> for SharecoreStateBatch {
    fn from(run: InFlightRun) -> Self {
        Self {
            first: run.first,
            last: run.last,
            state: run.state.id(),
            delivery_count: run.delivery_count,
        }
    }
}

/// Converts state batches for the engine.
pub(crate) fn state_batches(batches: &[SharecoreStateBatch]) -> Result<Vec<StateBatch>, Failure> {
    batches
        .iter()
        .map(|batch| {
            let state = RecordState::from_id(batch.state).ok_or_else(|| {
                Failure::new(
                    SharecoreStatus::BadArgument,
                    format_args!("unknown record state {}; must be 0 to 4", batch.state),
                )
            })?;
            Ok(StateBatch {
                first: batch.first,
                last: batch.last,
                state,
                delivery_count: batch.delivery_count,
            })
        })
        .collect()
}
