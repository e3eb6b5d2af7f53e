//! A share partition, with or without rules: one branch a call.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{Bug, Entry, KeyStanding, Managed, Order, Rules, Spec, Times, is_planted};
use crate::error::Refusal;
use crate::offset::{Offset, OffsetRange};
use crate::partition::{AcquireOptions, Acquired, Config, Partition, StateBatch, Write};

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

/// Why records of a share partition do not come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Records that wait since they were given back.
    pub backoff: i64,
    /// Records whose delivery time has not come.
    pub delivery: i64,
    /// Records that have not been looked at since the partition was loaded, or since what they are looked at for has changed.
    pub unread: i64,
    /// When the first of those comes up that were given back.
    pub backoff_due_ms: Option<i64>,
    /// When the first delivery time comes, by the wall clock.
    pub delivery_due_ms: Option<i64>,
    /// Records that members hold.
    pub leased: i64,
    /// Those of them whose lock was started anew, as their member is connected.
    pub kept: i64,
    /// No new records come into the window.
    pub is_full: bool,
    /// Whatever is not leased waits until all that is leased has come back.
    pub is_in_line: bool,
    /// Records that come after others of their key; none without an order by key.
    pub keys: Option<KeyStanding>,
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

    /// Changes the rules. Times that run are kept; without rules nothing waits any more.
    pub fn set_rules(&mut self, rules: Option<Rules>) {
        match (&mut *self, rules) {
            (Self::Managed(managed), Some(rules)) => managed.set_rules(rules),
            (Self::Plain(_), None) => {}
            (Self::Managed(managed), None) => {
                managed.let_all_go();
                debug_assert_eq!(managed.inner.waiting().next(), None, "nothing waits now");
                *self = Self::Plain(std::mem::replace(&mut managed.inner, Self::empty()));
            }
            (Self::Plain(partition), Some(rules)) => {
                let inner = std::mem::replace(partition, Self::empty());
                let mut managed = Box::new(Managed {
                    inner,
                    rules: Rules {
                        spec: None,
                        ..rules.clone()
                    },
                    times: Times::default(),
                    causes: BTreeMap::new(),
                    admission: None,
                    keys: None,
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

    /// The rules in force.
    pub fn rules(&self) -> Option<Rules> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => Some(managed.rules.clone()),
        }
    }

    /// What records have to be looked at for before they can be acquired; none if they have not.
    pub fn spec(&self) -> Option<&Arc<Spec>> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.rules.spec.as_ref(),
        }
    }

    /// Where the log is to be read for more records to look at, and how many offsets at most.
    pub fn next_admission(&self) -> Option<(Offset, i64)> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.next_admission(),
        }
    }

    /// Takes in record batches that the log returned for a read from `from` on, as their records' headers and ages say.
    /// `entries` ascend. Returns whether it did: not if they do not follow what has been looked at, or another `spec` has
    /// come into force.
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

    /// Records whose time has come can be acquired; those that have expired no longer. [`advance`](Self::advance) does
    /// this, too, and gives up what has expired.
    pub fn come_up(&mut self, now_ms: i64, wall_ms: i64) {
        if let Self::Managed(managed) = self {
            managed.wait_no_longer(now_ms, wall_ms);
        }
    }

    /// The first record that can be acquired without being looked at before.
    pub fn next_ready(&self) -> Option<Offset> {
        self.first_ready()
    }

    /// As [`Partition::next_fetch_offset`]; records that have not been looked at count where that is necessary.
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
        matches!(self, Self::Managed(managed) if managed.rules.order != Order::None || managed.keys.is_some())
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

    /// As [`Partition::advance`]; records whose time has come can be acquired, and those that have expired are given up.
    /// `wall_ms`: milliseconds since the epoch.
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

    /// When, in milliseconds since the epoch, [`advance`](Self::advance) has something to do: a delivery time comes, or
    /// records expire.
    pub fn next_wall_ms(&self) -> Option<i64> {
        match self {
            Self::Plain(_) => None,
            Self::Managed(managed) => managed.admission.as_ref()?.next_wall_ms(),
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

    /// Why records do not come, with the `limit` keys that have the most.
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
            is_full: !managed.may_admit(leased) || leased >= managed.inner.config().max_inflight,
            is_in_line: leased > 0 && managed.rules.order == Order::Partition,
            keys: managed.standing(limit),
        }
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
            }
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
