//! A share partition with or without rules: one branch per call.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{
    Bug, Entry, Inner, KeyDetails, Lateness, Managed, Order, Rules, Spec, Times, is_planted,
};
use crate::error::Refusal;
use crate::offset::{Offset, OffsetRange};
use crate::partition::{AcquireOptions, Acquired, Config, Partition, StateBatch, Write};

/// A share partition with or without rules. Methods here are those that rules change; the rest are the partition's.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "most partitions are plain; boxing them would cost an indirection"
)]
pub enum Engine {
    /// Without rules.
    Plain(Partition),
    /// With rules.
    Managed(Box<Managed>),
}

/// Why records of a share partition are not delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Records waiting for their back-off.
    pub backoff: i64,
    /// Records waiting for their delivery time.
    pub delivery: i64,
    /// Records not examined since the partition was loaded or its rules changed.
    pub unread: i64,
    /// When the first back-off ends.
    pub backoff_due_ms: Option<i64>,
    /// The first delivery time, by the wall clock.
    pub delivery_due_ms: Option<i64>,
    /// Acquired records.
    pub leased: i64,
    /// Acquired records whose lock was extended because their member is connected.
    pub kept: i64,
    /// What counts against [`Rules::max_waiting`]: records that are neither acquired nor finished; ordered by key, runs of
    /// neighbors with one key.
    pub units: i64,
    /// The window is full.
    pub is_full: bool,
    /// The partition is delivered in order, and records are acquired: the others wait for them.
    pub is_in_line: bool,
    /// Records waiting for earlier ones of their key; `None` without order by key.
    pub keys: Option<KeyDetails>,
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
    /// Loads a persisted partition, as [`Partition::new`]. With rules, records delivered before wait as if released at
    /// `now_ms`.
    pub fn new(
        config: Config,
        start_offset: Offset,
        state: &[StateBatch],
        rules: Option<Rules>,
        now_ms: i64,
    ) -> Result<Self, Refusal> {
        let mut engine = Self::Plain(Partition::new(config, start_offset, state)?);
        if let Some(rules) = rules {
            engine.set_rules(Some(Rules {
                spec: None,
                ..rules.clone()
            }));
            if let Self::Managed(managed) = &mut engine {
                let waits = !is_planted(Bug::LoadForgetsBackoff);
                for batch in state.iter().filter(|_| waits) {
                    managed.hold_back(OffsetRange::new(batch.first, batch.last), now_ms);
                }
                managed.set_rules(rules);
            }
        }
        Ok(engine)
    }

    /// Changes the rules. Running waits are kept; without rules all waits end.
    pub fn set_rules(&mut self, rules: Option<Rules>) {
        match (&mut *self, rules) {
            (Self::Managed(managed), Some(rules)) => managed.set_rules(rules),
            (Self::Plain(_), None) => {}
            (Self::Managed(managed), None) => {
                managed.let_all_go();
                debug_assert_eq!(managed.inner.waiting().next(), None, "nothing waits now");
                *self = Self::Plain(managed.inner.replace(Self::empty()));
            }
            (Self::Plain(partition), Some(rules)) => {
                let inner = std::mem::replace(partition, Self::empty());
                let mut managed = Box::new(Managed {
                    inner: Inner::new(inner),
                    rules: Rules {
                        spec: None,
                        ..rules.clone()
                    },
                    times: Times::default(),
                    causes: BTreeMap::new(),
                    admission: None,
                    keys: None,
                    lateness: Lateness::default(),
                    round: 0,
                });
                managed.set_rules(rules);
                *self = Self::Managed(managed);
            }
        }
    }

    fn empty() -> Partition {
        let empty = Partition::new(Config::default(), 0, &[]);
        empty.unwrap_or_else(|refusal| unreachable!("an empty state is refused: {refusal:?}"))
    }

    /// The current rules.
    pub fn rules(&self) -> Option<Rules> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => Some(managed.rules.clone()),
        }
    }

    /// What must be read from records before they can be acquired, if anything.
    pub fn spec(&self) -> Option<&Arc<Spec>> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.rules.spec.as_ref(),
        }
    }

    /// Where to read the log for records to examine, and how many offsets at most.
    pub fn next_admission(&self) -> Option<(Offset, i64)> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.next_admission(),
        }
    }

    /// Admits record batches read from the log from `from`, with the times from their headers and ages. `entries` are
    /// ascending. Returns false if they do not continue the examined part, or if `spec` has changed.
    pub fn admit(
        &mut self,
        times: (i64, i64),
        spec: &Spec,
        from: Offset,
        batches: &[OffsetRange],
        entries: &[Entry],
        batch_size: i64,
    ) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Managed(managed) => {
                managed.admit(times, spec, from, batches, entries, batch_size)
            }
        }
    }

    /// Makes records whose time has come acquirable and expired ones not. [`advance`](Self::advance) does this too, and
    /// archives the expired ones.
    pub fn come_up(&mut self, now_ms: i64, wall_ms: i64) {
        if let Self::Managed(managed) = self {
            managed.wait_no_longer(now_ms, wall_ms);
        }
    }

    /// The next record that can be acquired without being examined first. With delivery times, the records are taken in
    /// rounds through the window, so that those that come up in front keep nobody behind them waiting.
    pub fn next_ready(&self) -> Option<Offset> {
        match self {
            Self::Managed(managed) => managed.next_ready(),
            Self::Plain(_) => self.first_ready(),
        }
    }

    /// As [`next_ready`](Self::next_ready), from an offset.
    pub fn next_ready_from(&self, offset: Offset) -> Option<Offset> {
        self.first_ready_from(offset)
    }

    /// Makes the first `wanted` records up to `to` acquirable that a fetch may have: those behind the first of a key,
    /// too, if it may have several.
    pub fn line_up(&mut self, wanted: i64, to: Offset) {
        if let Self::Managed(managed) = self {
            managed.line_up(wanted, to);
        }
    }

    /// Returns the last record from `offset` to `to` that the in-flight limit lets a member acquire, or `offset`.
    ///
    /// A client chooses `to`, so the room bounds the walk.
    pub fn last_ready(&self, offset: Offset, to: Offset) -> Offset {
        let leased = match self {
            Self::Managed(managed) => managed.inner.leased(),
            Self::Plain(partition) => partition.leased(),
        };
        let room = self.config().max_inflight - leased;
        (**self).last_ready(offset, to, room)
    }

    /// How many offsets are neither finished nor about to become dead letters.
    pub fn unfinished_records(&self, range: OffsetRange) -> i64 {
        let unsettled = self.unsettled_in(range).into_iter();
        unsettled.map(|(piece, _)| piece.count()).sum()
    }

    /// As [`Partition::next_fetch_offset`]; unexamined records count if need be.
    pub fn next_fetch_offset(&self) -> Offset {
        match self {
            Self::Managed(managed) if managed.admission.is_some() => {
                let ready = managed.inner.first_ready();
                let unread = managed.next_admission().map(|(next, _)| next);
                let next = ready.into_iter().chain(unread).min();
                next.unwrap_or_else(|| managed.inner.past_end())
            }
            _ => (**self).next_fetch_offset(),
        }
    }

    /// As [`Partition::acquire`], without waiting records. With rules, the in-flight limit counts acquired records.
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

    /// Whether records wait for earlier ones to be finished.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Managed(managed) if managed.rules.order != Order::None || managed.keys.is_some())
    }

    /// Whether one [`acquire`](Self::acquire) may take several records of an order. What it leaves of them waits.
    pub fn has_runs(&self) -> bool {
        self.is_ordered() && matches!(self, Self::Managed(managed) if managed.rules.run_max > 1)
    }

    /// The most records of one [`acquire`](Self::acquire), if the order limits them.
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

    /// As [`Partition::release`]; records of a closed session do not back off.
    pub fn release(&mut self, member: &str) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.release(member),
            Self::Managed(managed) => managed.release(member),
        }
    }

    /// As [`Partition::advance`]; also makes due records acquirable and archives expired ones. `wall_ms`: milliseconds
    /// since the epoch.
    pub fn advance(&mut self, now_ms: i64, wall_ms: i64) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.advance(now_ms),
            Self::Managed(managed) => managed.advance(now_ms, wall_ms),
        }
    }

    /// As [`Partition::finish_archiving`].
    pub fn finish_archiving(&mut self, first: Offset, last: Offset) -> Option<Write<'_>> {
        match self {
            Self::Plain(partition) => partition.finish_archiving(first, last),
            Self::Managed(managed) => managed.finish_archiving(first, last),
        }
    }

    /// As [`Partition::commit`]; released records back off from `now_ms`.
    pub fn commit(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        match self {
            Self::Plain(partition) => partition.commit(write_id),
            Self::Managed(managed) => managed.commit(write_id, now_ms),
        }
    }

    /// As [`Partition::rollback`]; records freed by an expired lock back off from `now_ms`.
    pub fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        match self {
            Self::Plain(partition) => partition.rollback(write_id, now_ms),
            Self::Managed(managed) => managed.rollback(write_id, now_ms),
        }
    }

    /// When [`advance`](Self::advance) is due next: a lock expires, or a wait ends.
    pub fn next_time_ms(&self) -> Option<i64> {
        let deadline_ms = self.next_deadline_ms();
        match self {
            Self::Plain(_) => deadline_ms,
            Self::Managed(managed) => deadline_ms.into_iter().chain(managed.times.next_ms()).min(),
        }
    }

    /// When, in milliseconds since the epoch, [`advance`](Self::advance) is due next: a delivery time or an expiry.
    pub fn next_wall_ms(&self) -> Option<i64> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.admission.as_ref()?.next_wall_ms(),
        }
    }

    /// How many records wait, and whether waiting records fill the window.
    pub fn waiting(&self) -> (i64, bool) {
        match self {
            Self::Plain(_) => (0, false),
            Self::Managed(managed) => {
                let waiting = managed.inner.waiting().map(OffsetRange::count).sum();
                (waiting, !managed.may_admit(managed.inner.leased()))
            }
        }
    }

    /// How many records were acquired after a back-off or a delivery time, and the sum of the milliseconds from when
    /// they could be.
    pub fn lateness(&self) -> (u64, u64) {
        match self {
            Self::Plain(_) => (0, 0),
            Self::Managed(managed) => managed.lateness.sum(),
        }
    }

    /// Why records are not delivered, with the `limit` keys that have the most records.
    pub fn waiting_reasons(&self, limit: usize) -> Waiting {
        let leased = self.leased();
        let Self::Managed(managed) = self else {
            return Waiting {
                leased,
                kept: self.kept(),
                is_full: !self.can_acquire(),
                ..Waiting::default()
            };
        };
        let admission = managed.admission.as_ref();
        let scanned = admission.map_or(Offset::MAX - 1, |admission| admission.scanned());
        let unseen = OffsetRange::new(scanned, Offset::MAX - 1);
        let (mut seen, mut unread) = (0, 0);
        for range in managed.inner.waiting() {
            let behind = range.clip(unseen).count();
            unread += behind;
            seen += range.count() - behind;
        }
        debug_assert!(seen >= 0 && unread >= 0, "fewer than no records wait");
        let delivery = admission.map_or(0, |admission| admission.delayed_records().min(seen));
        Waiting {
            backoff: managed.times.records().min(seen - delivery),
            delivery,
            unread,
            backoff_due_ms: managed.times.next_ms(),
            delivery_due_ms: admission.and_then(|admission| admission.next_delivery_ms()),
            leased,
            kept: managed.inner.kept(),
            units: managed.units(leased),
            is_full: !managed.may_admit(leased) || leased >= managed.inner.config().max_inflight,
            is_in_line: leased > 0 && managed.rules.order == Order::Partition,
            keys: managed.key_details(limit),
        }
    }

    /// Whether records wait for times that are not in the state of the share partition; with `backs_off`, also those that
    /// were delivered before, as a partition that is loaded again counts their back-off from then.
    pub fn knows_waits(&self, backs_off: bool) -> bool {
        let Self::Managed(managed) = self else {
            return false;
        };
        let admission = managed.admission.as_ref();
        managed.times.records() > 0
            || admission.is_some_and(|admission| admission.delayed_records() > 0)
            || (backs_off && managed.inner.has_returned())
    }

    /// Bytes held, indexes included.
    pub fn memory_bytes(&self) -> usize {
        let inner = (**self).memory_bytes();
        match self {
            Self::Plain(_) => inner,
            Self::Managed(managed) => {
                let admission = managed.admission.as_ref();
                inner
                    + managed.times.memory_bytes()
                    + admission.map_or(0, |admission| admission.memory_bytes())
                    + managed.keys_memory_bytes()
                    + managed.lateness.memory_bytes()
            }
        }
    }

    /// Checks the invariants.
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
