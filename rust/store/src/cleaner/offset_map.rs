//! The newest offset of each key, for as many keys as fit into a given memory.

use std::hash::{BuildHasher, RandomState};

/// Two hashes of a key with secret seeds, so that nobody can construct a collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    key: (u64, u64),
    offset: i64,
}

/// Bytes per key.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();

const EMPTY: Slot = Slot {
    key: (0, 0),
    offset: -1,
};
const SLOTS_LEAST: usize = 1 << 10;

/// Offsets by key: open addressing, grown by doubling up to a bound.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    seeds: [RandomState; 2],
    slots: Vec<Slot>,
    len: usize,
    slots_max: usize,
    keys_max: usize,
}

impl OffsetMap {
    /// A map of at most `bytes`, filled up to the fraction `load`.
    pub(crate) fn new(bytes: usize, load: f64) -> Self {
        let slots_max = (bytes / SLOT_BYTES).max(SLOTS_LEAST);
        let per_mille = (load.clamp(0.001, 0.95) * 1000.0) as usize;
        Self {
            seeds: [RandomState::new(), RandomState::new()],
            slots: vec![EMPTY; SLOTS_LEAST],
            len: 0,
            slots_max,
            keys_max: (slots_max / 1000 * per_mille + slots_max % 1000 * per_mille / 1000).max(1),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * SLOT_BYTES
    }

    /// Whether there is no room for another key.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.keys_max
    }

    /// Sets a key's newest offset; exceeds the limit if the caller does not check `is_full`.
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) {
        debug_assert!(offset > EMPTY.offset, "this offset means none");
        let limit = if self.slots.len() < self.slots_max {
            self.slots.len() / 4 * 3
        } else {
            self.slots.len() / 20 * 19
        };
        if self.len >= limit {
            self.grow();
        }
        let key = self.hashed(key);
        let at = find(&self.slots, key);
        self.len += usize::from(self.slots[at] == EMPTY);
        self.slots[at] = Slot { key, offset };
        assert!(
            self.len < self.slots.len(),
            "an unsuccessful search would not end"
        );
    }

    /// A key's newest offset.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let found = self.slots[find(&self.slots, self.hashed(key))];
        (found != EMPTY).then_some(found.offset)
    }

    fn hashed(&self, key: &[u8]) -> (u64, u64) {
        (self.seeds[0].hash_one(key), self.seeds[1].hash_one(key))
    }

    fn grow(&mut self) {
        let doubled = self.slots.len() * 2;
        let size = if self.slots.len() < self.slots_max {
            doubled.min(self.slots_max)
        } else {
            doubled
        };
        let mut slots = vec![EMPTY; size];
        for slot in self.slots.iter().filter(|slot| **slot != EMPTY) {
            let at = find(&slots, slot.key);
            debug_assert_eq!(slots[at], EMPTY, "a key has one place");
            slots[at] = *slot;
        }
        assert!(slots.len() > self.slots.len(), "it has not grown");
        self.slots = slots;
    }
}

/// The slot of a key, or the empty one for it.
fn find(slots: &[Slot], key: (u64, u64)) -> usize {
    let mut at = ((u128::from(key.0) * slots.len() as u128) >> 64) as usize;
    while slots[at] != EMPTY && slots[at].key != key {
        at += 1;
        if at == slots.len() {
            at = 0;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_newest_offset_of_each_key_is_found_while_it_grows() {
        let mut map = OffsetMap::new(1 << 20, 0.9);
        let mut expected = HashMap::new();
        for offset in 0..100_000_i64 {
            let key = (offset * offset % 30_011).to_string();
            map.put(key.as_bytes(), offset);
            expected.insert(key, offset);
        }
        assert_eq!(map.len(), expected.len());
        for (key, offset) in &expected {
            assert_eq!(map.get(key.as_bytes()), Some(*offset));
        }
        assert_eq!(map.get(b"never"), None);
    }

    #[test]
    fn it_is_full_at_its_share_of_its_bytes() {
        let slots = 4096;
        let mut map = OffsetMap::new(slots * SLOT_BYTES, 0.5);
        let mut keys = 0;
        while !map.is_full() {
            map.put(&keys.to_string().into_bytes(), keys);
            keys += 1;
        }
        assert_eq!(keys as usize, slots / 2);
        assert!(map.bytes() <= slots * SLOT_BYTES);
        // a batch larger than the whole map is still included completely
        for key in keys..4 * keys {
            map.put(&key.to_string().into_bytes(), key);
        }
        assert_eq!(map.get(b"0"), Some(0));
        assert_eq!(map.len(), 4 * keys as usize);
    }
}
