//! The bookkeeping of a share session (KIP-932, "Share sessions"): its epoch, its partitions in their order, and which
//! of them a fetch looks at.
//!
//! `K` names a partition, `L` is its leader. Time, requests and who leads what are not known here.

mod ready;

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;

use ready::Ready;

use crate::epoch::{INITIAL_EPOCH, Unexpected, following, next_epoch};
use crate::maps::{IdMap, IdSet};
use crate::planted::{Bug, is_planted};

/// Where a partition stands among the others of its session; it grows in their order.
pub type Place = u64;

/// A partition of the session.
#[derive(Debug)]
struct Member {
    place: Place,
    /// Its number among those that an answer still has to name.
    owed: Option<u64>,
}

/// The share session of one member of one group.
///
/// A fetch looks only at ready partitions, and an empty one stops being ready. So a fetch costs as much as the partitions
/// it looks at, not as the size of the session.
#[derive(Debug)]
pub struct Session<K, L> {
    /// The epoch expected next.
    pub epoch: i32,
    members: IdMap<K, Member>,
    order: VecDeque<(Place, K)>,
    next: Place,
    is_answered: bool,
    /// Partitions that a response still has to name, in order.
    owed: BTreeMap<u64, K>,
    next_owed: u64,
    touched: IdSet<K>,
    ready: Ready<L>,
    unknown: IdSet<K>,
}

impl<K, L> Default for Session<K, L> {
    fn default() -> Self {
        Self {
            epoch: next_epoch(INITIAL_EPOCH),
            members: IdMap::default(),
            order: VecDeque::new(),
            next: 0,
            is_answered: false,
            owed: BTreeMap::new(),
            next_owed: 0,
            touched: IdSet::default(),
            ready: Ready::default(),
            unknown: IdSet::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, L> Session<K, L> {
    /// Continue or end the session with a request, and advance the epoch.
    pub fn resume(&mut self, epoch: i32) -> Result<(), Unexpected> {
        self.epoch = following(self.epoch, epoch)?;
        Ok(())
    }

    /// Return the number of partitions.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether it is empty.
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

    /// Append a partition; an existing one keeps its position.
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

    /// Check the cheap invariants.
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

    /// Remove a partition; return its leader if it was ready.
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

    /// Return the position at which this request starts.
    ///
    /// It advances by one partition per request, as in Kafka, so that a busy partition cannot starve the others.
    pub fn rotation(&self) -> Place {
        if self.order.len() < 2 {
            return 0;
        }
        let turn = (i64::from(self.epoch) - 1).rem_euclid(self.order.len() as i64);
        self.order[turn as usize].0
    }

    /// Return the partitions in the order of a request that starts at `first`; missing ones are skipped.
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

    /// Record which partitions a response names.
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

    /// Return partitions that no response has confirmed as fetchable: new ones, and those whose last response was an error.
    pub fn unreported(&self) -> impl Iterator<Item = K> {
        self.owed.values().copied()
    }

    /// Record that the member has acquired records of a partition.
    pub fn touch(&mut self, partition: K) {
        self.touched.insert(partition);
    }

    /// Replace an earlier session of the same member, taking over its acquired records.
    pub fn replace(&mut self, before: &Self) {
        self.touched.extend(before.touched.iter().copied());
    }

    /// Partitions whose records are released when the session ends, in the session's order, so that a simulation sees
    /// the same each time. As in Apache Kafka's broker, what was leased of others, forgotten or of a session before,
    /// stays with the member until its lock runs out.
    pub fn held(&self) -> impl Iterator<Item = K> {
        self.partitions().filter(|partition| {
            self.touched.contains(partition) && !is_planted(Bug::EndKeepsRecords)
        })
    }

    /// Return partitions without a loaded leader; each fetch tries them again.
    pub fn unknown(&self) -> impl Iterator<Item = K> {
        self.unknown.iter().copied()
    }

    /// Return partitions with a loaded leader, in session order.
    pub fn known(&self) -> impl Iterator<Item = K> {
        self.partitions()
            .filter(|partition| !self.unknown.contains(partition))
    }

    /// Whether every partition has a loaded leader.
    pub fn is_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Mark a partition ready: its leader is loaded, or may have records. False if the session does not have it.
    pub fn put(&mut self, partition: &K, leader: L) -> bool {
        self.unknown.remove(partition);
        let Some(member) = self.members.get(partition) else {
            return false;
        };
        self.ready.put(member.place, leader);
        true
    }

    /// Mark a partition not ready, after a fetch found it empty.
    pub fn take_out(&mut self, partition: &K) -> Option<L> {
        let place = self.members.get(partition)?.place;
        self.ready.remove(place)
    }

    /// Note that a partition lost its leader. False if the session does not have it.
    pub fn lose(&mut self, partition: &K) -> bool {
        let known = self.contains(partition);
        if known {
            self.take_out(partition);
            self.unknown.insert(*partition);
            self.assert_whole();
        }
        known
    }

    /// Return the leaders of ready partitions, unordered.
    pub fn leaders(&self) -> impl Iterator<Item = &L> {
        self.ready.leaders()
    }

    /// Start a walk over ready partitions, from a position on, wrapping around.
    pub fn walk(&self, first: Place) -> Walk {
        Walk {
            first,
            at: Some((first, false)),
        }
    }

    /// Return the next leader of a walk; partitions may have changed in between.
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

/// The position of a walk.
#[derive(Debug)]
pub struct Walk {
    first: Place,
    /// Next position, and whether it wrapped around; None at the end.
    at: Option<(Place, bool)>,
}

#[cfg(test)]
mod tests;
