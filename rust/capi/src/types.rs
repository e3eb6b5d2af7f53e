//! The structs of the boundary: plain data, as C lays it out.
//!
//! States and types are Kafka's numbers. States: 0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived.
//! Types of acknowledgement: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.

use sharecore_engine::{Acquired, Config, InFlightRun, RecordState, StateBatch};

use crate::status::{Failure, SharecoreStatus};

/// The limits of a share partition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreConfig {
    /// How often a record is delivered before it is given up; positive.
    pub max_delivery_count: u16,
    /// Whether members may renew their locks.
    pub renew_enabled: bool,
    /// Whether what is rejected or given up waits for a dead letter before it is archived (KIP-1191).
    pub dead_letters: bool,
    /// How many offsets may be in flight; positive.
    pub max_inflight: i64,
    /// How long an acquisition lock lasts, in milliseconds; positive.
    pub lock_ms: i64,
}

/// The offsets first to last, both included: a record batch of the log.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreRange {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
}

/// Offsets of one state and delivery count.
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

/// What a fetch asks for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreFetch {
    /// The offset that was read from.
    pub fetch_offset: i64,
    /// How many records the member wants; it gets whole record batches, so it may get more unless `record_limit`.
    pub max_fetch_records: i64,
    /// After how many offsets newly acquired records start another batch, at the next edge of a record batch.
    pub batch_size: i64,
    /// Never more than `max_fetch_records`.
    pub record_limit: bool,
}

/// Offsets that a member has been given.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreAcquired {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// How often they have been delivered, this time included.
    pub delivery_count: u16,
}

/// What a member says of the records first to last.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreAcknowledgement {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
    pub types: *const u8,
    /// 1, or one type an offset.
    pub type_count: usize,
}

/// State that has begun to change and waits for the persister, until it is committed or rolled back.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharecoreWrite {
    /// Names the write; 0 when there is nothing to persist.
    pub id: u64,
    /// The start offset from before the operation.
    pub start_offset: i64,
    /// Settled records at or behind the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    /// How many state batches `sharecore_write_batches` gives.
    pub batch_count: usize,
}

/// Neighbouring records that wait for a dead letter each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharecoreDeadLetter {
    /// First offset.
    pub first: i64,
    /// Last offset.
    pub last: i64,
    /// How often the records were delivered.
    pub delivery_count: u16,
    /// A member rejected them; else they came to their delivery limit. Guessed by the delivery count in loaded state.
    pub rejected: bool,
}

/// Where a partition stands.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharecoreState {
    /// The lowest offset that is not settled (SPSO).
    pub start_offset: i64,
    /// The highest offset in flight; while nothing is, the next one to fetch.
    pub end_offset: i64,
    /// Where the next fetch should read.
    pub next_fetch_offset: i64,
    /// Settled records at or behind the start offset (KIP-1226).
    pub delivery_complete_count: i64,
    /// When the next acquisition lock runs out; INT64_MAX when none is held.
    pub next_deadline_ms: i64,
    /// How many runs the in-flight records make.
    pub runs: usize,
    /// Bytes held, indexes included.
    pub memory_bytes: usize,
    /// Whether the in-flight limit lets anything be acquired.
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

/// State batches as the engine takes them.
pub(crate) fn state_batches(batches: &[SharecoreStateBatch]) -> Result<Vec<StateBatch>, Failure> {
    batches
        .iter()
        .map(|batch| {
            let state = RecordState::from_id(batch.state).ok_or_else(|| {
                Failure::new(
                    SharecoreStatus::BadArgument,
                    format_args!("{} is no record state; 0 to 4 are", batch.state),
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
