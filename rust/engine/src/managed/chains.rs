//! The records of a share partition that have the same key, in their order.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::offset::{Offset, OffsetRange};
use crate::partition::waits::Open;

/// A digest of a key; two keys with the same digest count as one.
pub(super) type Digest = u64;

const NONE: Offset = -1;

/// A digest is a hash already, of a seed that nobody knows.
#[derive(Default)]
pub(super) struct AsItIs(u64);

/// Hashes digests.
pub(super) type Digests = BuildHasherDefault<AsItIs>;

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.is_empty(), "only digests are hashed");
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }
}

/// Neighboring unfinished records of one key.
#[derive(Clone, Copy, Debug)]
struct Unit {
    last: Offset,
    digest: Digest,
    /// Start of the key's next unit.
    next: Offset,
}

/// A unit of a key, and where the next one starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) unit: OffsetRange,
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
    keys: HashMap<Digest, Chain, Digests>,
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

    /// Appends records to the chain of their key; returns whether they are its first.
    pub(super) fn append(&mut self, digest: Digest, range: OffsetRange) -> bool {
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
            return true;
        };
        chain.records += range.count();
        if let Some(tail) = self.units.get_mut(&chain.tail) {
            debug_assert!(tail.last < first, "it comes behind all others");
            debug_assert_eq!(tail.digest, digest, "the tail is of another key");
            if tail.last + 1 == first {
                tail.last = last;
                return false;
            }
            tail.next = first;
        }
        chain.tail = first;
        self.units.insert(first, unit);
        false
    }

    /// The key of the record at `offset`, and the last record of its unit.
    pub(super) fn unit_at(&self, offset: Offset) -> Option<(Digest, Offset)> {
        let (_, unit) = self.units.range(..=offset).next_back()?;
        (offset <= unit.last).then_some((unit.digest, unit.last))
    }

    /// The first record with a key from `offset`.
    pub(super) fn next_keyed(&self, offset: Offset) -> Option<Offset> {
        self.units.range(offset..).next().map(|(first, _)| *first)
    }

    /// Adds the keys of records in `range` to `out`, possibly with duplicates.
    pub(super) fn digests_in(&self, range: OffsetRange, out: &mut Vec<Digest>) {
        if range.is_empty() {
            return;
        }
        for (_, unit) in self.units.range(..=range.last).rev() {
            if unit.last < range.first {
                break;
            }
            if out.last() != Some(&unit.digest) {
                out.push(unit.digest);
            }
        }
    }

    /// The first unit of a key.
    pub(super) fn first(&self, digest: Digest) -> Option<Link> {
        self.link(self.keys.get(&digest)?.head)
    }

    /// The unit of a key after another.
    pub(super) fn after(&self, link: Link) -> Option<Link> {
        (link.next != NONE).then(|| self.link(link.next)).flatten()
    }

    fn link(&self, first: Offset) -> Option<Link> {
        let unit = self.units.get(&first)?;
        Some(Link {
            unit: OffsetRange::new(first, unit.last),
            next: unit.next,
        })
    }

    /// Drops the first units of a key, up to and including one.
    pub(super) fn drop_through(&mut self, digest: Digest, last: Link) {
        let Some(chain) = self.keys.get_mut(&digest) else {
            return;
        };
        while chain.head != last.next
            && let Some(unit) = self.units.remove(&chain.head)
        {
            debug_assert_eq!(unit.digest, digest, "the unit is of another key");
            let count = unit.last - chain.head + 1;
            chain.records -= count;
            self.records -= count;
            chain.head = unit.next;
        }
        debug_assert_eq!(
            chain.head == NONE,
            chain.records == 0,
            "a chain of no records has no units"
        );
        if chain.head == NONE {
            self.keys.remove(&digest);
        }
    }

    /// The units that remain of the first ones of a key, up to and including `last`, if only `open` are unfinished.
    ///
    /// `seen_to`: how far they were looked at; the records of `last` behind that remain too.
    pub(super) fn kept(
        &self,
        digest: Digest,
        last: Link,
        open: &[Open],
        seen_to: Offset,
    ) -> Vec<OffsetRange> {
        let mut kept: Vec<OffsetRange> = Vec::new();
        let mut open = open.iter().map(|piece| piece.range).peekable();
        let mut next = self.first(digest);
        while let Some(link) = next {
            let from = kept.len();
            let mut keep = |range: OffsetRange| match kept[from..].last_mut() {
                Some(before) if before.last + 1 == range.first => before.last = range.last,
                _ => kept.push(range),
            };
            while let Some(range) = open.next_if(|range| range.first <= link.unit.last) {
                keep(range);
            }
            let is_last = link.unit == last.unit;
            if is_last && seen_to < link.unit.last {
                keep(OffsetRange::new(seen_to + 1, link.unit.last));
            }
            next = self.after(link).filter(|_| !is_last);
        }
        kept
    }

    /// Replaces the first units of a key, up to and including `upto`, with `kept`, which is ascending and within them.
    pub(super) fn replace(&mut self, digest: Digest, upto: Link, kept: &[OffsetRange]) {
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
            if at == upto.unit.first {
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
            let mut link = self.first(*digest);
            while let Some(Link { unit, .. }) = link {
                if unit.first <= last || self.units[&unit.first].digest != *digest {
                    return Err(format!("{unit:?} follows {last} in its key"));
                }
                (at, last, units) = (Some(unit.first), unit.last, units + 1);
                count += unit.count();
                link = link.and_then(|link| self.after(link));
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn units(chains: &Chains, digest: Digest) -> Vec<OffsetRange> {
        let links = std::iter::successors(chains.first(digest), |link| chains.after(*link));
        links.map(|link| link.unit).collect()
    }

    /// Unfinished offsets, as the map has them.
    fn open(offsets: impl Iterator<Item = Offset>) -> Vec<Open> {
        let piece = |offset| Open {
            range: OffsetRange::new(offset, offset),
            is_held: false,
            is_waiting: false,
            is_behind: false,
        };
        offsets.map(piece).collect()
    }

    proptest! {
        /// Compare with a list of the offsets of each key.
        #[test]
        fn agrees_with_lists(keys in vec(1_u64..4, 1..40), steps in vec((1_u64..4, any::<u64>(), 1_usize..5), 0..12)) {
            let mut chains = Chains::default();
            let mut lists: HashMap<Digest, Vec<Offset>> = HashMap::new();
            for (offset, digest) in (10..).zip(keys) {
                let list = lists.entry(digest).or_default();
                let range = OffsetRange::new(offset, offset);
                prop_assert_eq!(chains.append(digest, range), list.is_empty());
                list.push(offset);
            }
            for (digest, left, reach) in steps {
                let Some(list) = lists.get_mut(&digest) else { continue };
                let Some(last) = std::iter::successors(chains.first(digest), |link| chains.after(*link)).take(reach).last() else {
                    continue;
                };
                let is_done = |offset: Offset| offset <= last.unit.last && left >> (offset % 64) & 1 == 0;
                let stays: Vec<Offset> = list.iter().copied().filter(|offset| !is_done(*offset)).collect();
                let looked_at = stays.iter().copied().filter(|offset| *offset <= last.unit.last);
                let kept = chains.kept(digest, last, &open(looked_at), last.unit.last);
                if kept.is_empty() {
                    chains.drop_through(digest, last);
                } else {
                    chains.replace(digest, last, &kept);
                }
                *list = stays;
                let found: Vec<Offset> = units(&chains, digest).iter().flat_map(|unit| unit.first..=unit.last).collect();
                prop_assert_eq!(&found, list);
                prop_assert_eq!(chains.check(), Ok(()));
            }
        }
    }

    #[test]
    fn records_that_were_not_looked_at_stay() {
        let mut chains = Chains::default();
        chains.append(5, OffsetRange::new(0, 9));
        let first = chains.first(5).expect("a unit");
        let kept = chains.kept(5, first, &open([2, 3].into_iter()), 3);
        assert_eq!(kept, [OffsetRange::new(2, 9)]);
        let kept = chains.kept(5, first, &open([2, 3].into_iter()), 6);
        assert_eq!(kept, [OffsetRange::new(2, 3), OffsetRange::new(7, 9)]);
        let kept = chains.kept(5, first, &open([2, 3].into_iter()), 9);
        assert_eq!(kept, [OffsetRange::new(2, 3)]);
    }
}
