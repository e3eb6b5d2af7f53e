//! Members of the group, interned: a lease names its owner with four bytes.

use crate::slab::Slab;

/// A member of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let at = self.by_hash.partition_point(|entry| entry.hash < hash);
        let alike = self.by_hash[at..].iter();
        alike
            .take_while(|entry| entry.hash == hash)
            .find(|entry| *self.slots[entry.id].name == *name)
            .map(|entry| MemberId(entry.id))
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
        let at = self.by_hash.partition_point(|entry| entry.hash < hash);
        self.by_hash.insert(at, Entry { hash, id });
        self.idle += 1;
        MemberId(id)
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

/// Names of up to seven bytes have hashes of their own; a collision of longer names only costs one more comparison.
fn hash(name: &str) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_bytes().as_chunks();
    let rest = rest
        .iter()
        .fold(rest.len() as u64, |hash, &byte| hash << 8 | u64::from(byte));
    words.iter().fold(rest, |hash, &word| {
        (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(ODD)
            .rotate_left(32)
    })
}
