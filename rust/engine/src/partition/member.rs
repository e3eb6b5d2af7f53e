//! Members of the group, interned: a lease names its owner with four bytes.

use std::collections::BTreeMap;

use crate::slab::Slab;

/// A member of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberId(pub(crate) u32);

/// Members that hold nothing are kept up to this number: who comes back soon keeps its name.
const IDLE_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: Box<str>,
    /// The newest of its leases.
    pub(crate) newest: u32,
    pub(crate) leases: u32,
}

/// Members by name and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    by_name: BTreeMap<Box<str>, u32>,
    slots: Slab<Member>,
    idle: usize,
    /// Whoever was asked for last is likely to be asked for next.
    last: Option<MemberId>,
}

impl Members {
    /// The member with a name, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<MemberId> {
        if let Some(last) = self.last
            && *self.slots[last.0].name == *name
        {
            return Some(last);
        }
        self.by_name.get(name).map(|&id| MemberId(id))
    }

    /// The member with a name, which is known from here on.
    pub(crate) fn intern(&mut self, name: &str) -> MemberId {
        let member = self.find(name).unwrap_or_else(|| self.add(name));
        self.last = Some(member);
        member
    }

    fn add(&mut self, name: &str) -> MemberId {
        if self.idle >= IDLE_MAX {
            self.forget_idle();
        }
        let id = self.slots.insert(Member {
            name: name.into(),
            newest: u32::MAX,
            leases: 0,
        });
        self.by_name.insert(name.into(), id);
        self.idle += 1;
        MemberId(id)
    }

    fn forget_idle(&mut self) {
        let slots = &mut self.slots;
        self.by_name.retain(|_, &mut id| {
            let busy = slots[id].leases > 0;
            if !busy {
                slots.free(id);
            }
            busy
        });
        self.idle = 0;
        self.last = None;
    }

    pub(crate) fn get(&self, member: MemberId) -> &Member {
        &self.slots[member.0]
    }

    /// Counts a lease that begins, or one that ends.
    pub(crate) fn count(&mut self, member: MemberId, newest: u32, begins: bool) {
        let member = &mut self.slots[member.0];
        if begins {
            self.idle -= usize::from(member.leases == 0);
            member.leases += 1;
        } else {
            member.leases -= 1;
            self.idle += usize::from(member.leases == 0);
        }
        member.newest = newest;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_name.values().map(|&id| &self.slots[id])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.by_name.keys().map(|name| 2 * name.len() + 48).sum();
        self.slots.memory_bytes() + names
    }
}
