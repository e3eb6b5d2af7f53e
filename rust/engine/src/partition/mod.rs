//! A share partition: acquired and finished records, and what is fetched next.

mod acknowledge;
mod acquire;
mod check;
mod dead_letter;
mod expiry;
mod fresh;
mod keep;
mod lease;
mod load;
mod log_start;
mod member;
mod pace;
mod release;
pub(crate) mod waits;
mod window;
mod write;
mod writes;

use std::hint::select_unpredictable;

pub use self::acknowledge::AckBatch;
pub use self::acquire::{AcquireOptions, Acquired};
use self::dead_letter::DeadLetters;
pub use self::dead_letter::{DeadLetter, DeadLetterCause};
use self::lease::Leases;
use self::window::ReadGap;
pub use self::write::{StateBatch, Write};
use self::writes::Writes;
use crate::inflight::{LeaseId, RunMap};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

/// The limits of a share partition; each may change at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Deliveries before a record is archived (`share.delivery.count.limit`).
    pub max_delivery_count: u16,
    /// How many offsets may be in flight (`share.partition.max.record.locks`).
    pub max_inflight: i64,
    /// How long an acquisition lock lasts, in milliseconds (`share.record.lock.duration.ms`).
    pub lock_ms: i64,
    /// Whether members may renew their locks (`share.renew.acknowledge.enable`).
    pub renew_enabled: bool,
    /// Whether rejected and undeliverable records wait for a dead-letter record before they are archived
    /// (`errors.deadletterqueue.topic.name` is set).
    pub dead_letters: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_delivery_count: 5,
            max_inflight: 2000,
            lock_ms: 30_000,
            renew_enabled: true,
            dead_letters: false,
        }
    }
}

/// Neighboring offsets with the same state and delivery count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightRun {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// Their state; while a write is open, the requested state.
    pub state: RecordState,
    /// How often they were delivered.
    pub delivery_count: u16,
}

/// Neighboring offsets that a member holds under one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRun<'a> {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// The member.
    pub member: &'a str,
    /// When the lock expires; `None` if it has, while an earlier acknowledgement is still being written.
    pub deadline_ms: Option<i64>,
}

/// The in-flight state of one share partition.
///
/// Time is an argument, `now_ms`; it must not go backwards. A transition that has to be durable begins with the call and ends
/// with [`commit`](Self::commit) or [`rollback`](Self::rollback) of the [`Write`] that the call returned.
#[derive(Debug)]
pub struct Partition {
    config: Config,
    /// The lowest unfinished offset (SPSO).
    start: Offset,
    /// The highest offset in flight; if nothing is in flight, the next one to fetch.
    end: Offset,
    map: RunMap,
    leases: Leases,
    read_gap: Option<ReadGap>,
    /// Finished offsets from `start`, including those with an open write.
    complete: i64,
    /// Ranges before `start` from which finished offsets are dropped when `start` next moves.
    overtaken: Vec<OffsetRange>,
    writes: Writes,
    dead_letters: DeadLetters,
    /// Offsets whose acquisition lock expired, since the partition was loaded.
    timed_out: u64,
    /// Offsets archived because they expired, since the partition was loaded.
    expired: u64,
}

impl Partition {
    /// The current limits.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Changes the limits; acquired records keep their deadline.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
    }

    /// The lowest unfinished offset (SPSO).
    pub fn start_offset(&self) -> Offset {
        self.start
    }

    /// The highest offset in flight; if nothing is in flight, the next one to fetch.
    pub fn end_offset(&self) -> Offset {
        self.end
    }

    /// Acknowledged and archived records at or after the start offset (KIP-1226).
    pub fn delivery_complete_count(&self) -> i64 {
        self.complete
    }

    /// When the next acquisition lock expires.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.leases.next_deadline_ms()
    }

    /// How many offsets had their acquisition lock expire, since the partition was loaded.
    pub fn timed_out(&self) -> u64 {
        self.timed_out
    }

    /// How many offsets were archived because they expired, since the partition was loaded.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// The number of in-flight runs.
    pub fn runs(&self) -> usize {
        self.map.len()
    }

    /// The in-flight records from the start offset; neighbors with the same state and count are merged.
    pub fn inflight(&self) -> Vec<InFlightRun> {
        let mut out: Vec<InFlightRun> = Vec::new();
        let mut at = self.map.seek(self.start);
        while let Some(run) = self.map.get(at) {
            let (first, state, delivery_count) = (
                run.first.max(self.start),
                run.cell().state(),
                run.cell().delivery_count(),
            );
            match out.last_mut() {
                Some(before)
                    if before.last + 1 == first
                        && (before.state, before.delivery_count) == (state, delivery_count) =>
                {
                    before.last = run.last;
                }
                _ => out.push(InFlightRun {
                    first,
                    last: run.last,
                    state,
                    delivery_count,
                }),
            }
            at = self.map.next(at);
        }
        out
    }

    /// Whether a record that nobody holds was delivered before.
    pub fn has_returned(&self) -> bool {
        let mut has_returned = false;
        self.map.walk(self.map.seek(self.start), |run| {
            let cell = run.cell();
            has_returned = cell.state() == RecordState::Available && cell.delivery_count() > 0;
            !has_returned
        });
        has_returned
    }

    /// The records that members hold from the start offset, in order; pending writes included.
    pub fn held(&self) -> Vec<HeldRun<'_>> {
        let mut out: Vec<HeldRun<'_>> = Vec::new();
        self.map.walk(self.map.seek(self.start), |run| {
            let lease = run.cell().lease();
            if lease == LeaseId::NONE {
                return true;
            }
            let held = HeldRun {
                first: run.first.max(self.start),
                last: run.last,
                member: self.leases.owner_name(lease),
                deadline_ms: self.leases.deadline_ms(lease),
            };
            match out.last_mut() {
                Some(before)
                    if before.last + 1 == held.first
                        && (before.member, before.deadline_ms)
                            == (held.member, held.deadline_ms) =>
                {
                    before.last = held.last;
                }
                _ => out.push(held),
            }
            true
        });
        out
    }

    /// How many offsets a member holds, pending writes included. Scans all leases.
    pub fn held_by(&self, member: &str) -> i64 {
        self.leases.count_of(member)
    }

    /// Bytes held, indexes included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.map.memory_bytes()
            + self.leases.memory_bytes()
            + self.writes.memory_bytes()
            + self.dead_letters.memory_bytes()
            + self.overtaken.capacity() * size_of::<OffsetRange>()
    }
}

/// What decides the next state of a returned record: it is not redelivered at the limit, nor before the log's start.
#[derive(Clone, Copy)]
struct Side {
    start: Offset,
    max_delivery_count: u16,
    dead_letters: bool,
}

impl Side {
    fn of(partition: &Partition) -> Self {
        Self {
            start: partition.start,
            max_delivery_count: partition.config.max_delivery_count,
            dead_letters: partition.config.dead_letters,
        }
    }

    fn given_back(self, piece: OffsetRange, delivery_count: u16) -> RecordState {
        if piece.first < self.start {
            return RecordState::Archived;
        }
        let at_limit = delivery_count >= self.max_delivery_count;
        select_unpredictable(at_limit, self.given_up(), RecordState::Available)
    }

    /// The state of a record that is never redelivered though no member accepted it.
    fn given_up(self) -> RecordState {
        if self.dead_letters {
            RecordState::Archiving
        } else {
            RecordState::Archived
        }
    }

    /// Cuts `piece` to what lies on one side of the start offset.
    fn clip(self, piece: &mut OffsetRange) {
        if piece.first < self.start {
            piece.last = piece.last.min(self.start - 1);
        }
        debug_assert!(!piece.is_empty(), "nothing is left of it");
        debug_assert!(
            piece.last < self.start || piece.first >= self.start,
            "it lies on both sides"
        );
    }

    /// The number of offsets of `piece` at or after the start offset.
    fn counted(self, piece: OffsetRange) -> i64 {
        OffsetRange::new(piece.first.max(self.start), piece.last).count()
    }
}
