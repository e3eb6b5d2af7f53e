//! Members of the group, interned: a lease refers to its owner with four bytes.

use crate::slab::Slab;

/// A member of the group; none by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberId(u32);

impl Default for MemberId {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

/// Up to this many members without leases are kept, so that one that soon returns keeps its number.
const IDLE_MAX: usize = 64;

/// Members per chunk of memory.
const CHUNK: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    name: Box<str>,
    pub(crate) leases: u32,
}

impl Member {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A slot in the table of members; free by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    hash: u32,
    member: MemberId,
}

/// Members by name and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    /// An open-addressing hash table, at most half full: a displaced member is in one of the next slots.
    places: Vec<Place>,
    slots: Slab<Member, CHUNK>,
    known: usize,
    idle: usize,
}

impl Members {
    /// The member of this name, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<MemberId> {
        let hash = hash(name);
        let place = self.places.get(self.place(hash))?;
        if place.hash == hash && self.is_called(place.member, name) {
            return Some(place.member);
        }
        self.find_displaced(name)
    }

    /// The member of this name, if its slot was taken.
    #[inline(never)]
    fn find_displaced(&self, name: &str) -> Option<MemberId> {
        let hash = hash(name);
        let mut at = self.place(hash);
        while let Some(place) = self.places.get(at)
            && place.member != MemberId::default()
        {
            if place.hash == hash && self.is_called(place.member, name) {
                return Some(place.member);
            }
            at = self.after(at);
        }
        None
    }

    fn is_called(&self, member: MemberId, name: &str) -> bool {
        member != MemberId::default() && *self.slots[member.0].name == *name
    }

    /// Returns the member of this name, adding it if need be.
    pub(crate) fn intern(&mut self, name: &str) -> MemberId {
        let member = self.find(name).unwrap_or_else(|| self.add(name));
        debug_assert!(self.is_called(member, name), "somebody else has its number");
        member
    }

    #[cold]
    fn add(&mut self, name: &str) -> MemberId {
        if self.idle >= IDLE_MAX {
            self.forget_idle();
        }
        if self.places.len() < 2 * (self.known + 1) {
            self.arrange(8.max(2 * self.places.len()), |_| true);
        }
        let member = MemberId(self.slots.insert(Member {
            name: name.into(),
            leases: 0,
        }));
        let hash = hash(name);
        self.put(Place { hash, member });
        self.idle += 1;
        assert_ne!(member, MemberId::default(), "this number stands for nobody");
        assert!(
            2 * self.known <= self.places.len(),
            "a search that finds nothing would not end"
        );
        debug_assert_eq!(
            self.find(name),
            Some(member),
            "it is where it is looked for"
        );
        member
    }

    /// The slot of a member with this hash, or a slot before it.
    fn place(&self, hash: u32) -> usize {
        hash as usize & self.places.len().wrapping_sub(1)
    }

    fn after(&self, at: usize) -> usize {
        debug_assert!(self.places.len().is_power_of_two(), "the mask is one less");
        (at + 1) & (self.places.len() - 1)
    }

    /// Puts a member into a free slot.
    fn put(&mut self, place: Place) {
        assert!(self.known < self.places.len(), "no place is free");
        let mut at = self.place(place.hash);
        while self.places[at] != Place::default() {
            at = self.after(at);
        }
        self.places[at] = place;
        self.known += 1;
    }

    /// Rehashes the members that stay into `room` slots, a power of two.
    fn arrange(&mut self, room: usize, stays: impl Fn(&Member) -> bool) {
        assert!(room.is_power_of_two(), "a hash is cut by a mask");
        let before = std::mem::replace(&mut self.places, vec![Place::default(); room]);
        self.known = 0;
        for place in before {
            if place.member == MemberId::default() {
                continue;
            }
            if stays(&self.slots[place.member.0]) {
                self.put(place);
            } else {
                self.slots.free(place.member.0);
            }
        }
    }

    fn forget_idle(&mut self) {
        self.arrange(self.places.len(), |member| member.leases > 0);
        self.idle = 0;
        debug_assert!(
            self.iter().all(|member| member.leases > 0),
            "who holds nothing is forgotten"
        );
    }

    pub(crate) fn get(&self, member: MemberId) -> &Member {
        &self.slots[member.0]
    }

    /// Counts a lease that begins.
    pub(crate) fn lease_begins(&mut self, member: MemberId) {
        let member = &mut self.slots[member.0];
        self.idle -= usize::from(member.leases == 0);
        member.leases += 1;
        debug_assert!(!member.name.is_empty() || member.leases > 0);
        debug_assert!(self.idle < self.known, "one holds something now");
    }

    /// Counts a lease that has ended.
    pub(crate) fn lease_ended(&mut self, member: MemberId) {
        let member = &mut self.slots[member.0];
        debug_assert!(member.leases > 0, "a lease ends that has not begun");
        member.leases -= 1;
        self.idle += usize::from(member.leases == 0);
        debug_assert!(self.idle <= self.known, "more are idle than there are");
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        let known = self.places.iter().map(|place| place.member);
        known
            .filter(|&member| member != MemberId::default())
            .map(|member| self.get(member))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.iter().map(|member| member.name.len()).sum();
        self.slots.memory_bytes() + self.places.capacity() * size_of::<Place>() + names
    }
}

/// A collision costs only one more comparison.
fn hash(name: &str) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = name.as_bytes();
    let (words, rest) = bytes.as_chunks();
    // the last bytes, some of them twice; no loop over single bytes
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
    let mix = |hash: u64| hash.wrapping_mul(ODD).rotate_left(32);
    let hash = words.iter().fold(
        mix(rest),
        |hash, &word| mix(hash ^ u64::from_le_bytes(word)),
    );
    hash as u32
}
