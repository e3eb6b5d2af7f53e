//! The records of a share partition that have the same key, in their order.

use std::collections::{BTreeMap, HashMap};

use crate::offset::{Offset, OffsetRange};

/// A digest of a key; two keys with the same digest count as one.
pub(super) type Digest = u64;

const NONE: Offset = -1;

/// Neighboring unfinished records of one key.
#[derive(Clone, Copy, Debug)]
struct Unit {
    last: Offset,
    digest: Digest,
    /// Start of the key's next unit.
    next: Offset,
}

/// The unfinished records of one key.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: Offset,
    tail: Offset,
    records: i64,
}

/// Unfinished records with a key, acquired ones included.
#[derive(Debug, Default)]
pub(super) struct Chains {
    units: BTreeMap<Offset, Unit>,
    keys: HashMap<Digest, Chain>,
    records: i64,
}

impl Chains {
    /// The number of units.
    pub(super) fn units(&self) -> i64 {
        self.units.len() as i64
    }

    /// The number of records.
    pub(super) fn records(&self) -> i64 {
        self.records
    }

    /// The number of keys.
    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// All keys, unordered.
    pub(super) fn digests(&self) -> Vec<Digest> {
        self.keys.keys().copied().collect()
    }

    /// The keys with the most records, each with its record count and first offset.
    pub(super) fn largest(&self, limit: usize) -> Vec<(Digest, i64, Offset)> {
        let keys = self.keys.iter();
        let mut all: Vec<_> = keys
            .map(|(digest, chain)| (*digest, chain.records, chain.head))
            .collect();
        let rank = |&(_, records, head): &(Digest, i64, Offset)| (std::cmp::Reverse(records), head);
        if limit < all.len() {
            all.select_nth_unstable_by_key(limit, rank);
            all.truncate(limit);
        }
        all.sort_unstable_by_key(rank);
        debug_assert!(all.len() <= limit, "more keys than were asked for");
        all
    }

    /// Appends records to the chain of their key.
    pub(super) fn append(&mut self, digest: Digest, range: OffsetRange) {
        let OffsetRange { first, last } = range;
        debug_assert!(!range.is_empty(), "no record is added");
        self.records += range.count();
        let unit = Unit {
            last,
            digest,
            next: NONE,
        };
        let Some(chain) = self.keys.get_mut(&digest) else {
            let chain = Chain {
                head: first,
                tail: first,
                records: range.count(),
            };
            self.keys.insert(digest, chain);
            self.units.insert(first, unit);
            return;
        };
        chain.records += range.count();
        if let Some(tail) = self.units.get_mut(&chain.tail) {
            debug_assert!(tail.last < first, "it comes behind all others");
            debug_assert_eq!(tail.digest, digest, "the tail is of another key");
            if tail.last + 1 == first {
                tail.last = last;
                return;
            }
            tail.next = first;
        }
        chain.tail = first;
        self.units.insert(first, unit);
    }

    /// Adds the keys of records in `range` to `out`, possibly with duplicates.
    pub(super) fn digests_in(&self, range: OffsetRange, out: &mut Vec<Digest>) {
        if range.is_empty() {
            return;
        }
        let before = self.units.range(..range.first).next_back();
        let before = before.filter(|(_, unit)| unit.last >= range.first);
        let within = self.units.range(range.first..=range.last);
        for (_, unit) in before.into_iter().chain(within) {
            if out.last() != Some(&unit.digest) {
                out.push(unit.digest);
            }
        }
    }

    /// The first unit of a key, or the one after `at`.
    pub(super) fn next(&self, digest: Digest, at: Option<Offset>) -> Option<OffsetRange> {
        let first = match at {
            None => self.keys.get(&digest)?.head,
            Some(at) => self.units.get(&at)?.next,
        };
        let unit = self.units.get(&first)?;
        Some(OffsetRange::new(first, unit.last))
    }

    /// Replaces the first units of a key, up to the one at `upto`, with `kept`, which is ascending and within them.
    pub(super) fn replace(&mut self, digest: Digest, upto: Offset, kept: &[OffsetRange]) {
        let Some(chain) = self.keys.get_mut(&digest) else {
            return;
        };
        debug_assert!(
            kept.is_sorted_by(|a, b| a.last < b.first),
            "units are in order"
        );
        let (mut at, mut gone) = (chain.head, 0);
        let rest = loop {
            let Some(unit) = self.units.remove(&at) else {
                break NONE;
            };
            gone += unit.last - at + 1;
            if at == upto {
                break unit.next;
            }
            at = unit.next;
        };
        let mut next = rest;
        for range in kept.iter().rev() {
            gone -= range.count();
            let unit = Unit {
                last: range.last,
                digest,
                next,
            };
            self.units.insert(range.first, unit);
            next = range.first;
        }
        debug_assert!(
            (0..=chain.records).contains(&gone),
            "more is gone than there was"
        );
        self.records -= gone;
        chain.records -= gone;
        chain.head = next;
        if rest == NONE
            && let Some(last) = kept.last()
        {
            chain.tail = last.first;
        }
        debug_assert_eq!(
            next == NONE,
            chain.records == 0,
            "a chain of no records has no units"
        );
        if next == NONE {
            self.keys.remove(&digest);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // a tree is two thirds full, a hash table a little more
        self.units.len() * size_of::<(Offset, Unit)>() * 3 / 2
            + self.keys.capacity() * (size_of::<(Digest, Chain)>() + 1)
    }

    /// Checks that every unit is in the chain of its key, once and in order.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut units = 0;
        let mut records = 0;
        for (digest, chain) in &self.keys {
            let (mut at, mut last, mut count) = (None, NONE, 0);
            while let Some(range) = self.next(*digest, at) {
                if range.first <= last || self.units[&range.first].digest != *digest {
                    return Err(format!("{range:?} follows {last} in its key"));
                }
                (at, last, units) = (Some(range.first), range.last, units + 1);
                count += range.count();
            }
            if at != Some(chain.tail) || count != chain.records {
                return Err(format!("the chain from {} on ends at {at:?}", chain.head));
            }
            records += count;
        }
        if units != self.units.len() || records != self.records {
            return Err(format!(
                "{units} units are in chains, of {}",
                self.units.len()
            ));
        }
        Ok(())
    }
}
