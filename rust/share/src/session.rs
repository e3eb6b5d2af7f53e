//! The bookkeeping of a share session (KIP-932, "Share sessions"): its epoch, its partitions in their order, and which
//! of them a fetch looks at.
//!
//! `K` names a partition, `L` is its leader. Time, requests and who leads what are not known here.

mod ready;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use ready::Ready;

use crate::epoch::{INITIAL_EPOCH, Unexpected, following, next_epoch};

/// Where a partition stands among the others of its session; it grows in their order.
pub type Place = u64;

/// A partition of the session.
#[derive(Debug)]
struct Member {
    place: Place,
    /// Its number among those that an answer still has to name.
    owed: Option<u64>,
}

/// What one member of one group fetches.
///
/// Those partitions of which a fetch may get something are ready, and a fetch looks at no others: one that it finds empty
/// leaves them. So a fetch costs by what it looks at, not by what the session has.
#[derive(Debug)]
pub struct Session<K, L> {
    /// The one that the next request must bring.
    pub epoch: i32,
    members: HashMap<K, Member>,
    order: VecDeque<(Place, K)>,
    next: Place,
    is_answered: bool,
    /// Those that an answer still has to name, in the order in which they came to be so.
    owed: BTreeMap<u64, K>,
    next_owed: u64,
    touched: HashSet<K>,
    ready: Ready<L>,
    unknown: HashSet<K>,
}

impl<K, L> Default for Session<K, L> {
    fn default() -> Self {
        Self {
            epoch: next_epoch(INITIAL_EPOCH),
            members: HashMap::new(),
            order: VecDeque::new(),
            next: 0,
            is_answered: false,
            owed: BTreeMap::new(),
            next_owed: 0,
            touched: HashSet::new(),
            ready: Ready::default(),
            unknown: HashSet::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, L> Session<K, L> {
    /// A request goes on with the session, or ends it; the next one must bring the epoch that follows.
    pub fn resume(&mut self, epoch: i32) -> Result<(), Unexpected> {
        self.epoch = following(self.epoch, epoch)?;
        Ok(())
    }

    /// How many partitions it has.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether it has no partitions.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether it has a partition.
    pub fn contains(&self, partition: &K) -> bool {
        self.members.contains_key(partition)
    }

    /// Its partitions, in the order in which they were added, or last brought records.
    pub fn partitions(&self) -> impl Iterator<Item = K> {
        self.order.iter().map(|(_, partition)| *partition)
    }

    /// Puts a partition behind the others; one that it has keeps its place.
    pub fn add(&mut self, partition: K) {
        if self.contains(&partition) {
            return;
        }
        let place = self.put_behind(partition);
        let owed = None;
        self.members.insert(partition, Member { place, owed });
        self.owe(&partition);
        self.unknown.insert(partition);
        self.assert_whole();
    }

    /// What must hold between calls, as far as it is cheap to say.
    fn assert_whole(&self) {
        debug_assert_eq!(
            self.members.len(),
            self.order.len(),
            "each partition has one place"
        );
        debug_assert!(
            self.order
                .back()
                .is_none_or(|(place, _)| *place < self.next),
            "a place is given twice"
        );
        debug_assert!(
            self.owed.len() <= self.members.len() && self.unknown.len() <= self.members.len(),
            "partitions are known that the session does not have"
        );
        debug_assert!(
            self.ready.len() + self.unknown.len() <= self.members.len(),
            "what has no leader is ready"
        );
    }

    /// Takes a partition out; returns its leader where that was ready.
    pub fn forget(&mut self, partition: &K) -> Option<L> {
        let member = self.members.remove(partition)?;
        if let Some(owed) = member.owed {
            self.owed.remove(&owed);
        }
        self.take_place(member.place);
        self.unknown.remove(partition);
        let leader = self.ready.remove(member.place);
        self.assert_whole();
        leader
    }

    /// The place at which this request begins to serve.
    ///
    /// It moves by one partition a request, as with Kafka, so that a busy partition cannot keep the others from being
    /// served.
    pub fn rotation(&self) -> Place {
        if self.order.len() < 2 {
            return 0;
        }
        let turn = (i64::from(self.epoch) - 1).rem_euclid(self.order.len() as i64);
        self.order[turn as usize].0
    }

    /// Partitions in the order in which a request serves them that begins at the place `first`; those that it does not
    /// have (any more) are left out.
    pub fn in_order(&self, partitions: impl IntoIterator<Item = K>, first: Place) -> Vec<K> {
        let here = partitions.into_iter().filter_map(|partition| {
            let place = self.members.get(&partition)?.place;
            Some((place < first, place, partition))
        });
        let mut here: Vec<_> = here.collect();
        here.sort_unstable_by_key(|(is_past, place, _)| (*is_past, *place));
        here.into_iter()
            .map(|(_, _, partition)| partition)
            .collect()
    }

    /// Notes which partitions an answer names.
    ///
    /// The first answer of a session is expected to name each partition that can be fetched, and so is the first after a
    /// partition was added or had an error; later ones name partitions with records alone.
    ///
    /// `failed`: those of them that it names with an error; `served`: those of them of which it brings records, which
    /// from the second answer on go behind the others, as with Kafka.
    pub fn report(
        &mut self,
        named: impl IntoIterator<Item = K>,
        failed: impl IntoIterator<Item = K>,
        served: impl IntoIterator<Item = K>,
    ) {
        if self.is_answered {
            if !self.owed.is_empty() {
                for partition in named {
                    let owed = self.members.get_mut(&partition);
                    if let Some(owed) = owed.and_then(|member| member.owed.take()) {
                        self.owed.remove(&owed);
                    }
                }
            }
            if self.order.len() > 1 {
                served.into_iter().for_each(|each| self.put_last(&each));
            }
        } else {
            self.is_answered = true;
            for partition in std::mem::take(&mut self.owed).values() {
                if let Some(member) = self.members.get_mut(partition) {
                    member.owed = None;
                }
            }
        }
        failed.into_iter().for_each(|each| self.owe(&each));
        self.assert_whole();
    }

    /// Partitions of which no answer has told yet that they can be fetched: those that were added, and those whose last
    /// answer was an error.
    pub fn unreported(&self) -> impl Iterator<Item = K> {
        self.owed.values().copied()
    }

    /// Notes that the member has leased records of a partition.
    pub fn touch(&mut self, partition: K) {
        self.touched.insert(partition);
    }

    /// The session takes the place of another one of its member, who holds what it held.
    pub fn replace(&mut self, before: &Self) {
        self.touched.extend(before.touched.iter().copied());
    }

    /// Partitions whose records are released when the session ends, in the session's order, so that a simulation sees
    /// the same each time. As in Apache Kafka's broker, what was leased of others, forgotten or of a session before,
    /// stays with the member until its lock runs out.
    pub fn held(&self) -> impl Iterator<Item = K> {
        self.partitions()
            .filter(|partition| self.touched.contains(partition))
    }

    /// Those without a leader that is loaded; each fetch tries them again.
    pub fn unknown(&self) -> impl Iterator<Item = K> {
        self.unknown.iter().copied()
    }

    /// Those with a leader that is loaded, in the order of all.
    pub fn known(&self) -> impl Iterator<Item = K> {
        self.partitions()
            .filter(|partition| !self.unknown.contains(partition))
    }

    /// Whether each partition has a leader that is loaded.
    pub fn is_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// The leader of a partition is loaded, or may have something: the partition is ready. False where the session does
    /// not have it.
    pub fn put(&mut self, partition: &K, leader: L) -> bool {
        self.unknown.remove(partition);
        let Some(member) = self.members.get(partition) else {
            return false;
        };
        self.ready.put(member.place, leader);
        true
    }

    /// A fetch has found nothing in a partition: it is not ready.
    pub fn take_out(&mut self, partition: &K) -> Option<L> {
        let place = self.members.get(partition)?.place;
        self.ready.remove(place)
    }

    /// A partition has no leader any more. False where the session does not have it.
    pub fn lose(&mut self, partition: &K) -> bool {
        let known = self.contains(partition);
        if known {
            self.take_out(partition);
            self.unknown.insert(*partition);
            self.assert_whole();
        }
        known
    }

    /// The leaders of the ready ones, in no order.
    pub fn leaders(&self) -> impl Iterator<Item = &L> {
        self.ready.leaders()
    }

    /// Begins to look at those that are ready, from a place on and round.
    pub fn walk(&self, first: Place) -> Walk {
        Walk {
            first,
            at: Some((first, false)),
        }
    }

    /// The next leader of a walk; partitions may have come and gone since the one before.
    pub fn step(&self, walk: &mut Walk) -> Option<&L> {
        let (from, is_round) = walk.at?;
        let found = match self.ready.next(from) {
            Some((place, _)) if is_round && place >= walk.first => None,
            Some((place, leader)) => Some((place, is_round, leader)),
            None if is_round => None,
            None => match self.ready.next(0) {
                Some((place, leader)) if place < walk.first => Some((place, true, leader)),
                _ => None,
            },
        };
        walk.at = found.map(|(place, is_round, _)| (place + 1, is_round));
        found.map(|(_, _, leader)| leader)
    }

    fn put_behind(&mut self, partition: K) -> Place {
        let place = self.next;
        self.next += 1;
        debug_assert!(
            self.order.back().is_none_or(|(last, _)| *last < place),
            "it comes behind all others"
        );
        self.order.push_back((place, partition));
        place
    }

    fn take_place(&mut self, place: Place) {
        let at = self.order.binary_search_by_key(&place, |(place, _)| *place);
        debug_assert!(at.is_ok(), "a partition without a place");
        if let Ok(at) = at {
            self.order.remove(at);
        }
    }

    fn put_last(&mut self, partition: &K) {
        let Some(before) = self.members.get(partition).map(|member| member.place) else {
            return;
        };
        self.take_place(before);
        let behind = self.put_behind(*partition);
        self.ready.rename(before, behind);
        if let Some(member) = self.members.get_mut(partition) {
            member.place = behind;
        }
    }

    fn owe(&mut self, partition: &K) {
        if let Some(member) = self.members.get_mut(partition)
            && member.owed.is_none()
        {
            member.owed = Some(self.next_owed);
            self.owed.insert(self.next_owed, *partition);
            self.next_owed += 1;
        }
    }
}

/// How far a fetch has looked.
#[derive(Debug)]
pub struct Walk {
    first: Place,
    /// Where it goes on, and whether it has come round; None at its end.
    at: Option<(Place, bool)>,
}

#[cfg(test)]
mod tests;
