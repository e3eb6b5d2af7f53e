//! Members of the group, interned: a lease names its owner with four bytes.

use crate::slab::Slab;

/// A member of the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberId(pub(crate) u32);

/// Up to this many members that hold nothing are kept, so that one that soon comes back keeps its number.
const IDLE_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: Box<str>,
    pub(crate) leases: u32,
}

impl Member {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A member's place in the sorted list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    id: u32,
}

/// Members by name and number. A group has at most a thousand (`group.share.max.size`): a sorted list is enough for
/// them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    by_hash: Vec<Entry>,
    slots: Slab<Member>,
    idle: usize,
}

impl Members {
    /// The member of this name, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<MemberId> {
        let hash = hash(name);
        let mut alike = &self.by_hash[self.place(hash)..];
        while let Some((entry, rest)) = alike.split_first()
            && entry.hash == hash
        {
            if *self.slots[entry.id].name == *name {
                return Some(MemberId(entry.id));
            }
            alike = rest;
        }
        None
    }

    /// The member of this name, which is known from now on.
    pub(crate) fn intern(&mut self, name: &str) -> MemberId {
        self.find(name).unwrap_or_else(|| self.add(name))
    }

    fn add(&mut self, name: &str) -> MemberId {
        if self.idle >= IDLE_MAX {
            self.forget_idle();
        }
        let id = self.slots.insert(Member {
            name: name.into(),
            leases: 0,
        });
        let hash = hash(name);
        self.by_hash.insert(self.place(hash), Entry { hash, id });
        self.idle += 1;
        MemberId(id)
    }

    /// Where the entries of a hash are, or would be.
    fn place(&self, hash: u64) -> usize {
        const FEW: usize = 8;
        if self.by_hash.len() > FEW {
            return self.by_hash.partition_point(|entry| entry.hash < hash);
        }
        // counted without branches, none of which could be guessed
        let less = self
            .by_hash
            .iter()
            .map(|entry| usize::from(entry.hash < hash));
        less.sum()
    }

    fn forget_idle(&mut self) {
        let slots = &mut self.slots;
        self.by_hash.retain(|entry| {
            let busy = slots[entry.id].leases > 0;
            if !busy {
                slots.free(entry.id);
            }
            busy
        });
        self.idle = 0;
    }

    pub(crate) fn get(&self, member: MemberId) -> &Member {
        &self.slots[member.0]
    }

    /// Counts a lease that begins.
    pub(crate) fn lease_begins(&mut self, member: MemberId) {
        let member = &mut self.slots[member.0];
        self.idle -= usize::from(member.leases == 0);
        member.leases += 1;
    }

    /// Counts a lease that has ended.
    pub(crate) fn lease_ended(&mut self, member: MemberId) {
        let member = &mut self.slots[member.0];
        member.leases -= 1;
        self.idle += usize::from(member.leases == 0);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_hash.iter().map(|entry| &self.slots[entry.id])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.iter().map(|member| member.name.len()).sum();
        self.slots.memory_bytes() + self.by_hash.capacity() * size_of::<Entry>() + names
    }
}

/// A collision only costs one more comparison.
fn hash(name: &str) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = name.as_bytes();
    let (words, rest) = bytes.as_chunks();
    // the last bytes, some of them for the second time; no loop over single ones
    let rest = match (bytes.last_chunk(), rest.first_chunk(), rest.last_chunk()) {
        (Some(&last), ..) => u64::from_le_bytes(last),
        (None, Some(&first), Some(&last)) => {
            u64::from(u32::from_le_bytes(first)) << 32 | u64::from(u32::from_le_bytes(last))
        }
        _ => [0, rest.len() / 2, rest.len().wrapping_sub(1)]
            .iter()
            .filter_map(|&at| rest.get(at))
            .fold(0, |hash, &byte| hash << 8 | u64::from(byte)),
    };
    words.iter().fold(rest, |hash, &word| {
        (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(ODD)
            .rotate_left(32)
    })
}
