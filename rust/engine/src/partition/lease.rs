//! Leases: which member holds which offsets, and until when.
//!
//! A lease covers the consecutive offsets of one acquire or renewal. Runs refer to their lease instead of repeating
//! owner and deadline, so splitting a run needs no copies; a lease ends with its last offset.

use std::collections::{BTreeMap, HashMap};

use super::member::{MemberId, Members};
use crate::inflight::{Cursor, LeaseId, RunMap};
use crate::offset::{Offset, OffsetRange, before};
use crate::timer::Timers;
use crate::unaligned::Unaligned;

/// A lease, in 36 bytes with its timer: there is one per batch in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Lease {
    /// A lower bound of the lease's offsets.
    first: Unaligned,
    /// The number of the lease's offsets.
    live: Unaligned,
    member: MemberId,
}

const _: () = assert!(
    size_of::<Lease>() == 8 + 8 + 4,
    "what a batch in flight costs"
);

/// All leases of a partition, each with the timer of its lock. Offsets still belonging to a lease whose lock has
/// expired have an open write.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    timers: Timers<Lease>,
    members: Members,
    /// The original start of extended locks, by lease. Kept beside the leases because few groups extend locks.
    kept: BTreeMap<u32, i64>,
}

impl Leases {
    /// The member of this name, if it may hold leases.
    pub(crate) fn member(&self, name: &str) -> Option<MemberId> {
        self.members.find(name)
    }

    pub(crate) fn intern(&mut self, name: &str) -> MemberId {
        self.members.intern(name)
    }

    /// Opens a lease over all of `range`.
    #[inline(never)]
    pub(crate) fn open(
        &mut self,
        member: MemberId,
        range: OffsetRange,
        now_ms: i64,
        deadline_ms: i64,
    ) -> LeaseId {
        debug_assert!(!range.is_empty(), "an empty lease");
        debug_assert!(
            now_ms <= deadline_ms,
            "a lock that has expired before it begins"
        );
        let lease = Lease {
            first: range.first.into(),
            live: range.length().into(),
            member,
        };
        self.members.lease_begins(member);
        let id = LeaseId(self.timers.insert(tick(now_ms), tick(deadline_ms), lease));
        debug_assert_ne!(id, LeaseId::NONE, "this number means no lease");
        debug_assert_eq!(self.first(id), range.first);
        id
    }

    pub(crate) fn owner(&self, id: LeaseId) -> MemberId {
        debug_assert_ne!(id, LeaseId::NONE, "nobody has a lease of it");
        self.timers[id.0].member
    }

    pub(crate) fn owner_name(&self, id: LeaseId) -> &str {
        self.members.get(self.owner(id)).name()
    }

    /// When the lock expires; `None` if it has.
    pub(crate) fn deadline_ms(&self, id: LeaseId) -> Option<i64> {
        let deadline = self.timers.deadline(id.0);
        deadline.map(|deadline| deadline as i64)
    }

    /// Whether the lock has expired by `now_ms`.
    pub(crate) fn has_expired(&self, id: LeaseId, now_ms: i64) -> bool {
        let deadline = self.timers.deadline(id.0);
        deadline.is_none_or(|deadline| now_ms >= 0 && deadline <= now_ms as u64)
    }

    /// A lower bound of the lease's offsets.
    pub(crate) fn first(&self, id: LeaseId) -> Offset {
        self.timers[id.0].first.into()
    }

    /// The span of the lease's offsets in `map`, and the run that it begins in.
    pub(crate) fn extent(&self, id: LeaseId, map: &RunMap) -> (Cursor, OffsetRange) {
        let first = self.first(id);
        let mut rest = i64::from(self.timers[id.0].live);
        debug_assert!(rest > 0, "a lease that has ended");
        let at = map.seek(first);
        if let Some(run) = map.get(at)
            && run.cell().lease() == id
            && run.range().length() == rest
        {
            return (at, run.range());
        }
        let mut last = before(first);
        map.walk(at, |run| {
            if run.cell().lease() == id {
                rest -= run.range().length();
                last = run.last;
            }
            rest > 0
        });
        debug_assert_eq!(rest, 0, "runs refer to a lease that does not count them");
        (at, OffsetRange::new(first, last))
    }

    /// Removes `count` offsets from the lease.
    #[inline(never)]
    pub(crate) fn settle(&mut self, id: LeaseId, count: i64) {
        let lease = &mut self.timers[id.0];
        let live = i64::from(lease.live);
        debug_assert!(
            (0..=live).contains(&count),
            "more offsets are returned than acquired"
        );
        lease.live = (live - count).into();
        if live == count {
            let member = std::mem::take(&mut lease.member);
            self.members.lease_ended(member);
            self.timers.remove(id.0);
            self.keep_no_longer(id);
        }
    }

    /// Restarts the lock of `piece` of a lease. Returns the lease of the piece from then on.
    pub(crate) fn renew(
        &mut self,
        id: LeaseId,
        piece: OffsetRange,
        now_ms: i64,
        deadline_ms: i64,
    ) -> LeaseId {
        let lease = self.timers[id.0];
        debug_assert!(self.first(id) <= piece.first && now_ms <= deadline_ms);
        debug_assert!(
            piece.length() <= i64::from(lease.live),
            "more offsets are renewed than acquired"
        );
        if i64::from(lease.live) == piece.length() {
            self.timers.restart(id.0, tick(now_ms), tick(deadline_ms));
            self.keep_no_longer(id);
            return id;
        }
        let renewed = self.open(lease.member, piece, now_ms, deadline_ms);
        self.settle(id, piece.length());
        debug_assert_ne!(renewed, id, "the rest keeps its lock");
        renewed
    }

    /// The leases whose locks have expired at `now_ms` and were not taken by [`pop_expired`](Self::pop_expired).
    pub(super) fn running_out(&self, now_ms: i64) -> impl Iterator<Item = LeaseId> + '_ {
        self.timers.due(tick(now_ms)).map(LeaseId)
    }

    /// Restarts the expired lock of a lease: for `lock_ms`, up to `max_ms` since the lock first began.
    pub(super) fn keep(&mut self, id: LeaseId, now_ms: i64, lock_ms: i64, max_ms: i64) {
        let Some(deadline_ms) = self.deadline_ms(id) else {
            return;
        };
        let began_ms = self.kept.get(&id.0).copied();
        let began_ms = began_ms.unwrap_or(deadline_ms - lock_ms);
        let until_ms = began_ms.saturating_add(max_ms);
        if now_ms < until_ms {
            let deadline_ms = until_ms.min(now_ms.saturating_add(lock_ms));
            self.timers.restart(id.0, tick(now_ms), tick(deadline_ms));
            self.kept.insert(id.0, began_ms);
        }
    }

    /// The lease has ended, or its member has renewed it.
    #[inline]
    fn keep_no_longer(&mut self, id: LeaseId) {
        if !self.kept.is_empty() {
            self.kept.remove(&id.0);
        }
    }

    /// How many offsets belong to leases with extended locks.
    pub(super) fn kept(&self) -> i64 {
        let kept = self.kept.keys();
        kept.map(|&id| i64::from(self.timers[id].live)).sum()
    }

    /// The leases of a member, unordered. Scans all leases: sessions end rarely, and a list per member would cost every
    /// lease memory and time.
    pub(crate) fn held_by(&self, member: MemberId) -> impl Iterator<Item = LeaseId> + '_ {
        let count = self.members.get(member).leases as usize;
        let held = self.timers.find_all(move |lease| lease.member == member);
        held.map(LeaseId).take(count)
    }

    /// The number of offsets of a member's leases.
    pub(crate) fn count_of(&self, name: &str) -> i64 {
        let held = self.member(name).map(|member| self.held_by(member));
        let counts = held.into_iter().flatten();
        counts.map(|id| i64::from(self.timers[id.0].live)).sum()
    }

    /// The number of offsets of all leases.
    pub(crate) fn count(&self) -> i64 {
        // a free place has zero
        let all = self.timers.find_all(|_| true);
        all.map(|id| i64::from(self.timers[id].live)).sum()
    }

    /// Takes a lease whose lock has expired at `now_ms`.
    pub(crate) fn pop_expired(&mut self, now_ms: i64) -> Option<LeaseId> {
        self.timers.pop(tick(now_ms)).map(LeaseId)
    }

    pub(crate) fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_deadline().map(|deadline| deadline as i64)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let kept = self.kept.len() * size_of::<(u32, i64)>();
        self.timers.memory_bytes() + self.members.memory_bytes() + kept
    }

    /// Checks the leases against the number of offsets of each.
    pub(crate) fn check(&self, leaning: &HashMap<u32, i64>) -> Result<(), String> {
        for (&id, &counted) in leaning {
            let live = self.timers.get(id).map_or(0, |lease| lease.live.into());
            if live != counted {
                return Err(format!(
                    "lease {id} counts {live} offsets, {counted} refer to it"
                ));
            }
        }
        if let Some(id) = self.kept.keys().find(|id| !leaning.contains_key(id)) {
            return Err(format!(
                "lease {id} has an extended lock, and no offset refers to it"
            ));
        }
        let held: u64 = self
            .members
            .iter()
            .map(|member| u64::from(member.leases))
            .sum();
        if held != leaning.len() as u64 || self.timers.len() > leaning.len() {
            return Err(format!(
                "{} leases are referred to, members hold {held}",
                leaning.len()
            ));
        }
        Ok(())
    }
}

fn tick(ms: i64) -> u64 {
    ms.max(0) as u64
}
