//! Leases: who holds which offsets until when.
//!
//! A lease covers what one acquire (or renewal) gave a member in one stretch. Runs name their lease instead of
//! repeating owner and deadline, so splitting a run costs nothing here; a lease ends when no offset belongs to it any
//! more.

use std::collections::HashMap;

use super::member::{MemberId, Members};
use crate::inflight::LeaseId;
use crate::offset::{Offset, OffsetRange};
use crate::slab::Slab;
use crate::timer::{Handle, Wheel};

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Lease {
    first: Offset,
    last: Offset,
    /// How many offsets of the range still belong to the lease.
    live: i64,
    member: MemberId,
    /// The member's next older and next newer lease.
    older: u32,
    newer: u32,
    /// Stale once the lock has run out; offsets that still belong to the lease then have an open write.
    timer: Handle,
}

/// All leases of a partition, by member and by deadline.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    slots: Slab<Lease>,
    timers: Wheel<u32>,
    members: Members,
}

impl Leases {
    /// The member of this name, if it may hold anything.
    pub(crate) fn member(&self, name: &str) -> Option<MemberId> {
        self.members.find(name)
    }

    pub(crate) fn intern(&mut self, name: &str) -> MemberId {
        self.members.intern(name)
    }

    /// Opens a lease over `range`, all of which will belong to it.
    pub(crate) fn open(
        &mut self,
        member: MemberId,
        range: OffsetRange,
        now_ms: i64,
        deadline_ms: i64,
    ) -> LeaseId {
        debug_assert!(!range.is_empty(), "a lease of nothing");
        debug_assert!(
            now_ms <= deadline_ms,
            "a lock that has run out before it begins"
        );
        let older = self.members.get(member).newest;
        let id = self.slots.insert(Lease {
            first: range.first,
            last: range.last,
            live: range.count(),
            member,
            older,
            newer: NONE,
            timer: Handle::NONE,
        });
        self.slots[id].timer =
            self.timers
                .insert(now_ms.max(0) as u64, deadline_ms.max(0) as u64, id);
        if older != NONE {
            self.slots[older].newer = id;
        }
        self.members.count(member, id, true);
        LeaseId(id)
    }

    pub(crate) fn owner(&self, id: LeaseId) -> MemberId {
        self.slots[id.0].member
    }

    pub(crate) fn owner_name(&self, id: LeaseId) -> &str {
        self.members.get(self.owner(id)).name()
    }

    /// When the lock runs out; none where it has.
    pub(crate) fn deadline_ms(&self, id: LeaseId) -> Option<i64> {
        let deadline = self.timers.deadline(self.slots[id.0].timer);
        deadline.map(|deadline| deadline as i64)
    }

    /// Whether the lock has run out, at `now_ms` or before.
    pub(crate) fn has_expired(&self, id: LeaseId, now_ms: i64) -> bool {
        let deadline = self.timers.deadline(self.slots[id.0].timer);
        deadline.is_none_or(|deadline| now_ms >= 0 && deadline <= now_ms as u64)
    }

    pub(crate) fn range(&self, id: LeaseId) -> OffsetRange {
        let lease = &self.slots[id.0];
        OffsetRange::new(lease.first, lease.last)
    }

    /// `count` offsets no longer belong to the lease.
    pub(crate) fn settle(&mut self, id: LeaseId, count: i64) {
        let lease = &mut self.slots[id.0];
        debug_assert!(
            (0..=lease.live).contains(&count),
            "more is given back than was leased"
        );
        lease.live -= count;
        if lease.live == 0 {
            self.close(id.0);
        }
    }

    fn close(&mut self, id: u32) {
        let Lease {
            member,
            older,
            newer,
            timer,
            ..
        } = self.slots[id];
        self.timers.cancel(timer);
        if older != NONE {
            self.slots[older].newer = newer;
        }
        let newest = if newer == NONE {
            older
        } else {
            self.slots[newer].older = older;
            self.members.get(member).newest
        };
        self.members.count(member, newest, false);
        self.slots.free(id);
    }

    /// Starts the lock of `piece` of a lease anew. Returns the lease that the piece belongs to from then on.
    pub(crate) fn renew(
        &mut self,
        id: LeaseId,
        piece: OffsetRange,
        now_ms: i64,
        deadline_ms: i64,
    ) -> LeaseId {
        let lease = &self.slots[id.0];
        debug_assert!(lease.first <= piece.first && piece.last <= lease.last);
        debug_assert!(now_ms <= deadline_ms && piece.count() <= lease.live);
        if lease.live != piece.count() {
            let renewed = self.open(lease.member, piece, now_ms, deadline_ms);
            self.settle(id, piece.count());
            return renewed;
        }
        self.timers.cancel(lease.timer);
        let timer = self
            .timers
            .insert(now_ms.max(0) as u64, deadline_ms.max(0) as u64, id.0);
        self.slots[id.0].timer = timer;
        id
    }

    /// The leases of a member, newest first.
    pub(crate) fn held_by(&self, member: MemberId) -> impl Iterator<Item = LeaseId> + '_ {
        let newest = Some(self.members.get(member).newest).filter(|&id| id != NONE);
        std::iter::successors(newest, |&id| {
            Some(self.slots[id].older).filter(|&older| older != NONE)
        })
        .map(LeaseId)
    }

    /// Takes a lease whose lock has run out at `now_ms`.
    pub(crate) fn pop_expired(&mut self, now_ms: i64) -> Option<LeaseId> {
        self.timers.pop(now_ms.max(0) as u64).map(LeaseId)
    }

    pub(crate) fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_deadline().map(|deadline| deadline as i64)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.timers.memory_bytes() + self.members.memory_bytes()
    }

    /// Checks the leases against the number of offsets that belong to each.
    pub(crate) fn check(&self, leaning: &HashMap<u32, i64>) -> Result<(), String> {
        for (&id, &counted) in leaning {
            let live = self.slots.get(id).map_or(0, |lease| lease.live);
            if live != counted {
                return Err(format!(
                    "lease {id} counts {live} offsets, {counted} lean on it"
                ));
            }
        }
        let held: u64 = self
            .members
            .iter()
            .map(|member| u64::from(member.leases))
            .sum();
        if held != leaning.len() as u64 || self.timers.len() > leaning.len() {
            return Err(format!(
                "{} leases are leant on, members hold {held}",
                leaning.len()
            ));
        }
        Ok(())
    }
}
