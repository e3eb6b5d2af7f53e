//! A share partition whose records may wait although they are available: a group with rules about when records come again.
//!
//! [`Managed`] wraps a [`Partition`]. It marks runs that must not be acquired yet with a bit, which takes them out of the
//! index of what can be acquired: a million of them cost a search nothing. When they come up is known beside the map.
//! What is persisted is the same as without rules; a wait begins anew when a partition is loaded.

mod in_line;
mod rules;
mod times;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

pub use self::rules::{Backoff, Order, Rules};
use self::times::Times;
use crate::error::Refusal;
use crate::offset::{Offset, OffsetRange};
use crate::partition::{AcquireOptions, Acquired, Config, Partition, StateBatch, Write};
use crate::record_state::RecordState;

/// A share partition, with or without rules. What rules change is a method here; all else is the partition's.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "most are plain, and lie where they are used"
)]
pub enum Engine {
    /// Without rules.
    Plain(Partition),
    /// With rules.
    Managed(Box<Managed>),
}

/// What an open write is about that no acknowledgement has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The session of a member has ended.
    Session,
    /// Locks have run out, or letters are written: the records have changed already.
    Done,
}

/// A share partition with rules.
#[derive(Debug)]
pub struct Managed {
    inner: Partition,
    rules: Rules,
    times: Times,
    /// Open writes that are not acknowledgements.
    causes: BTreeMap<u64, Cause>,
}

impl From<Partition> for Engine {
    fn from(partition: Partition) -> Self {
        Self::Plain(partition)
    }
}

impl Deref for Engine {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        match self {
            Self::Plain(partition) => partition,
            Self::Managed(managed) => &managed.inner,
        }
    }
}

impl DerefMut for Engine {
    fn deref_mut(&mut self) -> &mut Partition {
        match self {
            Self::Plain(partition) => partition,
            Self::Managed(managed) => &mut managed.inner,
        }
    }
}

impl Engine {
    /// A partition as it was persisted, as [`Partition::new`]. With rules, records that were delivered before wait as if
    /// they had been released at `now_ms`.
    pub fn new(
        config: Config,
        start_offset: Offset,
        state: &[StateBatch],
        rules: Option<Rules>,
        now_ms: i64,
    ) -> Result<Self, Refusal> {
        let mut engine = Self::Plain(Partition::new(config, start_offset, state)?);
        if let Some(rules) = rules {
            engine.set_rules(Some(rules));
            if let Self::Managed(managed) = &mut engine {
                for batch in state {
                    managed.hold_back(OffsetRange::new(batch.first, batch.last), now_ms);
                }
            }
        }
        Ok(engine)
    }

    /// Changes the rules. Times that run are kept; without rules nothing waits any more.
    pub fn set_rules(&mut self, rules: Option<Rules>) {
        match (&mut *self, rules) {
            (Self::Managed(managed), Some(rules)) => managed.rules = rules,
            (Self::Plain(_), None) => {}
            (Self::Managed(managed), None) => {
                managed.let_all_go();
                *self = Self::Plain(std::mem::replace(&mut managed.inner, Self::empty()));
            }
            (Self::Plain(partition), Some(rules)) => {
                let inner = std::mem::replace(partition, Self::empty());
                *self = Self::Managed(Box::new(Managed {
                    inner,
                    rules,
                    times: Times::default(),
                    causes: BTreeMap::new(),
                }));
            }
        }
    }

    fn empty() -> Partition {
        let empty = Partition::new(Config::default(), 0, &[]);
        empty.unwrap_or_else(|refusal| unreachable!("an empty state is refused: {refusal:?}"))
    }

    /// The rules in force.
    pub fn rules(&self) -> Option<Rules> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => Some(managed.rules),
        }
    }

    /// As [`Partition::acquire`]; what waits is left out. With rules, the in-flight limit counts what is leased.
    pub fn acquire(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        match self {
            Self::Plain(partition) => partition.acquire(now_ms, member, batches, options, out),
            Self::Managed(managed) => managed.acquire(now_ms, member, batches, options, out),
        }
    }

    /// Whether records come only after others are settled.
    pub fn is_ordered(&self) -> bool {
        self.rules().is_some_and(|rules| rules.order != Order::None)
    }

    /// The most records that one call of [`acquire`](Self::acquire) gives; none where no order says so.
    pub fn run_max(&self) -> Option<i64> {
        match self {
            Self::Managed(managed) if managed.rules.order == Order::Partition => {
                Some(managed.rules.run_max)
            }
            _ => None,
        }
    }

    /// As [`Partition::can_acquire`].
    pub fn can_acquire(&self) -> bool {
        match self {
            Self::Plain(partition) => partition.can_acquire(),
            Self::Managed(managed) => managed.can_acquire(),
        }
    }

    /// As [`Partition::release`]; what a session that ends gives back does not wait.
    pub fn release(&mut self, member: &str) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.release(member),
            Self::Managed(managed) => managed.release(member),
        }
    }

    /// As [`Partition::advance`]; records whose time has come can be acquired.
    pub fn advance(&mut self, now_ms: i64) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.advance(now_ms),
            Self::Managed(managed) => managed.advance(now_ms),
        }
    }

    /// As [`Partition::finish_archiving`].
    pub fn finish_archiving(&mut self, first: Offset, last: Offset) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.finish_archiving(first, last),
            Self::Managed(managed) => managed.finish_archiving(first, last),
        }
    }

    /// As [`Partition::commit`]; what members have released waits from `now_ms` on.
    pub fn commit(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        match self {
            Self::Plain(partition) => partition.commit(write_id),
            Self::Managed(managed) => managed.commit(write_id, now_ms),
        }
    }

    /// As [`Partition::rollback`]; what is free because its lock has run out waits from `now_ms` on.
    pub fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        match self {
            Self::Plain(partition) => partition.rollback(write_id, now_ms),
            Self::Managed(managed) => managed.rollback(write_id, now_ms),
        }
    }

    /// When [`advance`](Self::advance) has something to do: a lock runs out, or records have waited long enough.
    pub fn next_time_ms(&self) -> Option<i64> {
        let deadline_ms = self.next_deadline_ms();
        match self {
            Self::Plain(_) => deadline_ms,
            Self::Managed(managed) => deadline_ms.into_iter().chain(managed.times.next_ms()).min(),
        }
    }

    /// How many records wait, and whether the window takes no new ones because of what waits in it.
    pub fn waiting(&self) -> (i64, bool) {
        match self {
            Self::Plain(_) => (0, false),
            Self::Managed(managed) => {
                let waiting = managed.inner.waiting().map(OffsetRange::count).sum();
                (waiting, !managed.may_admit(managed.inner.leased()))
            }
        }
    }

    /// Bytes held, indexes included.
    pub fn memory_bytes(&self) -> usize {
        let inner = (**self).memory_bytes();
        match self {
            Self::Plain(_) => inner,
            Self::Managed(managed) => inner + managed.times.memory_bytes(),
        }
    }

    /// Checks what must hold between calls.
    pub fn check(&self) -> Result<(), String> {
        (**self).check()?;
        match self {
            Self::Plain(partition) => match partition.waiting().next() {
                Some(range) => Err(format!("{range:?} waits without rules")),
                None => Ok(()),
            },
            Self::Managed(managed) => managed.check(),
        }
    }
}

impl Managed {
    /// Whether records that are not in flight may come into the window.
    fn may_admit(&self, leased: i64) -> bool {
        let limit = self.rules.max_waiting;
        let runs = limit.saturating_add(self.inner.config().max_inflight);
        self.inner.open_units(leased) < limit && (self.inner.runs() as i64) < runs.saturating_mul(2)
    }

    fn can_acquire(&self) -> bool {
        let leased = self.inner.leased();
        leased < self.inner.config().max_inflight
            && self
                .in_line(leased, self.inner.next_fetch_offset())
                .is_some()
            && (self.inner.next_fetch_offset() != self.inner.past_end() || self.may_admit(leased))
    }

    fn acquire(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        mut options: AcquireOptions,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let leased = self.inner.leased();
        let Some(line) = self.in_line(leased, options.fetch_offset) else {
            return 0;
        };
        let room = self.inner.config().max_inflight - leased;
        let Some(tail) = batches.last() else {
            return 0;
        };
        let budget = options.max_fetch_records.min(room).min(line.records);
        options.record_limit |= self.rules.order != Order::None;
        let last = if self.may_admit(leased) {
            tail.last
        } else if options.fetch_offset <= self.inner.end_offset() {
            tail.last.min(self.inner.end_offset())
        } else {
            return 0;
        };
        if budget <= 0 {
            return 0;
        }
        let cap = (last.min(line.last), budget);
        self.inner
            .acquire_within(now_ms, member, batches, options, cap, out)
    }

    fn release(&mut self, member: &str) -> Option<Write<'_>> {
        let write = self.inner.release(member)?;
        self.causes.insert(write.id, Cause::Session);
        Some(write)
    }

    fn finish_archiving(&mut self, first: Offset, last: Offset) -> Option<Write<'_>> {
        let write = self.inner.finish_archiving(first, last)?;
        self.causes.insert(write.id, Cause::Done);
        Some(write)
    }

    fn advance(&mut self, now_ms: i64) -> Option<Write<'_>> {
        while let Some(range) = self.times.pop(now_ms) {
            self.inner.ready(range);
        }
        let write = self.inner.advance(now_ms)?;
        let Write {
            id,
            start_offset,
            delivery_complete_count,
            batches,
        } = write;
        self.causes.insert(id, Cause::Done);
        let freed = freed(batches);
        if self.rules.backoff.on_timeout {
            for range in freed {
                self.hold_back(range, now_ms);
            }
        }
        let batches = self.inner.write_batches(id).unwrap_or_default();
        Some(Write {
            id,
            start_offset,
            delivery_complete_count,
            batches,
        })
    }

    fn commit(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let freed = freed(self.inner.write_batches(write_id)?);
        self.inner.commit(write_id)?;
        if self.causes.remove(&write_id).is_none() && self.rules.backoff.on_release {
            for range in freed {
                self.hold_back(range, now_ms);
            }
        }
        Ok(())
    }

    fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let begun: Vec<_> = ranges(self.inner.write_batches(write_id)?);
        self.inner.rollback(write_id, now_ms)?;
        if self.causes.remove(&write_id) != Some(Cause::Done) && self.rules.backoff.on_timeout {
            for range in begun {
                self.hold_back(range, now_ms);
            }
        }
        Ok(())
    }

    /// What is available in `range`, because it was given back, waits.
    fn hold_back(&mut self, range: OffsetRange, now_ms: i64) {
        for (piece, delivery_count) in self.inner.available_in(range) {
            if delivery_count == 0 {
                continue; // loaded, and never delivered
            }
            let wait_ms = self.rules.backoff.wait_ms(piece.first, delivery_count);
            if wait_ms > 0 {
                self.inner.wait(piece);
                self.times.push(now_ms.saturating_add(wait_ms), piece);
            }
        }
    }

    fn let_all_go(&mut self) {
        let waiting: Vec<_> = self.inner.waiting().collect();
        for range in waiting {
            self.inner.ready(range);
        }
        self.times.clear();
    }

    fn check(&self) -> Result<(), String> {
        let mut known: Vec<_> = self.times.iter().collect();
        known.sort_by_key(|range| range.first);
        for range in self.inner.waiting() {
            let mut unknown = range.first;
            for each in &known {
                if each.first <= unknown && unknown <= each.last {
                    unknown = each.last + 1;
                }
            }
            if unknown <= range.last {
                return Err(format!("offset {unknown} waits for no time"));
            }
        }
        Ok(())
    }
}

/// The ranges of a write whose records are available once it is durable.
fn freed(batches: &[StateBatch]) -> Vec<OffsetRange> {
    let freed = batches
        .iter()
        .filter(|batch| batch.state == RecordState::Available);
    freed
        .map(|batch| OffsetRange::new(batch.first, batch.last))
        .collect()
}

fn ranges(batches: &[StateBatch]) -> Vec<OffsetRange> {
    let ranges = batches.iter();
    ranges
        .map(|batch| OffsetRange::new(batch.first, batch.last))
        .collect()
}
