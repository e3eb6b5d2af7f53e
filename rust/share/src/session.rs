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
    }

    /// Takes a partition out; returns its leader where that was ready.
    pub fn forget(&mut self, partition: &K) -> Option<L> {
        let member = self.members.remove(partition)?;
        if let Some(owed) = member.owed {
            self.owed.remove(&owed);
        }
        self.take_place(member.place);
        self.unknown.remove(partition);
        self.ready.remove(member.place)
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
        self.order.push_back((place, partition));
        place
    }

    fn take_place(&mut self, place: Place) {
        if let Ok(at) = self.order.binary_search_by_key(&place, |(place, _)| *place) {
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
mod tests {
    use super::*;

    type Named = Session<u8, char>;

    fn session(partitions: &[u8]) -> Named {
        let mut session = Named::default();
        for each in partitions {
            session.add(*each);
        }
        session
    }

    fn order(session: &Named) -> Vec<u8> {
        session.partitions().collect()
    }

    fn owed(session: &Named) -> Vec<u8> {
        session.unreported().collect()
    }

    fn looked_at(session: &Named, first: Place) -> String {
        let mut walk = session.walk(first);
        std::iter::from_fn(|| session.step(&mut walk).copied()).collect()
    }

    /// Partitions 0 to 9, all of them ready; each has its number for its leader.
    fn ready() -> Named {
        let mut session = session(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for each in 0..10 {
            assert!(session.put(&each, char::from(b'0' + each)));
        }
        session
    }

    #[test]
    fn epochs_count_up_and_begin_again_at_one() {
        assert_eq!(next_epoch(0), 1);
        assert_eq!(next_epoch(7), 8);
        assert_eq!(next_epoch(i32::MAX), 1);
        assert_eq!(Named::default().epoch, 1);
    }

    #[test]
    fn partitions_take_turns_at_being_first() {
        let mut session = session(&[4, 5, 6, 4]);
        let mut first = Vec::new();
        for epoch in 1..=4 {
            session.epoch = epoch;
            first.push(session.in_order(order(&session), session.rotation())[0]);
        }
        assert_eq!(first, [4, 5, 6, 4]);
        session.epoch = 3;
        assert_eq!(session.in_order([5, 6, 9], session.rotation()), [6, 5]);
        session.forget(&5);
        session.forget(&9);
        assert_eq!(order(&session), [4, 6]);
        session.forget(&4);
        assert_eq!(session.rotation(), 0);
    }

    #[test]
    fn what_brought_records_goes_behind_the_others_from_the_second_answer_on() {
        let mut session = session(&[1, 2, 3]);
        session.report([1, 2, 3], [], [1]);
        assert_eq!(order(&session), [1, 2, 3]);
        session.report([1], [], [1]);
        assert_eq!(order(&session), [2, 3, 1]);
        session.forget(&2);
        session.report([2, 3], [], [2, 3]);
        assert_eq!(order(&session), [1, 3]);
    }

    #[test]
    fn an_answer_owes_each_partition_once_and_again_after_an_error() {
        let mut session = session(&[1, 2]);
        assert_eq!(owed(&session), [1, 2]);
        session.report([1], [], [1]);
        assert!(
            owed(&session).is_empty(),
            "the first answer is the one that counts"
        );
        session.add(1);
        session.add(3);
        assert_eq!(owed(&session), [3]);
        session.report([], [], []);
        assert_eq!(owed(&session), [3]);
        session.report([3, 2], [2, 7], [3]);
        assert_eq!(owed(&session), [2]);
        session.report([], [2, 1], []);
        assert_eq!(owed(&session), [2, 1], "what is owed keeps its turn");
        session.forget(&2);
        session.report([2], [2], []);
        assert_eq!(owed(&session), [1]);
    }

    #[test]
    fn the_member_holds_what_it_has_leased_of_partitions_that_are_still_here() {
        let mut before = session(&[1, 2]);
        before.touch(1);
        before.touch(2);
        before.forget(&2);
        assert_eq!(before.held().collect::<Vec<_>>(), [1]);
        let mut session = session(&[2]);
        session.replace(&before);
        assert_eq!(session.held().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_walk_goes_round_from_where_it_begins() {
        let mut session = ready();
        assert_eq!(looked_at(&session, 0), "0123456789");
        assert_eq!(looked_at(&session, 7), "7890123456");
        assert_eq!(looked_at(&session, 99), "0123456789");
        assert_eq!(session.take_out(&7), Some('7'));
        assert_eq!(session.take_out(&7), None);
        assert_eq!(session.forget(&0), Some('0'));
        assert_eq!(looked_at(&session, 7), "89123456");
        session.report([], [], []);
        session.report([8], [], [8]);
        assert_eq!(looked_at(&session, 7), "98123456");
    }

    #[test]
    fn a_walk_bears_what_comes_and_goes_meanwhile() {
        let mut session = ready();
        let mut walk = session.walk(8);
        let mut seen = String::new();
        while let Some(leader) = session.step(&mut walk).copied() {
            seen.push(leader);
            session.take_out(&(leader as u8 - b'0'));
            if leader == '9' {
                session.take_out(&1);
                assert!(
                    session.put(&8, 'x'),
                    "what comes behind it waits for another"
                );
            }
        }
        assert_eq!(seen, "890234567");
        assert_eq!(looked_at(&session, 0), "x");
    }

    #[test]
    fn partitions_are_unknown_until_their_leader_is_there_and_once_it_is_gone() {
        let mut session = session(&[1, 2]);
        assert!(!session.is_known());
        assert!(session.put(&1, 'a'));
        assert!(session.put(&2, 'b'));
        assert!(!session.put(&3, 'c'), "the session does not have it");
        assert!(session.is_known());
        assert!(session.put(&1, 'z'));
        assert_eq!(looked_at(&session, 0), "ab", "who is there already stays");
        assert!(session.lose(&1));
        assert!(!session.lose(&3));
        assert_eq!(session.unknown().collect::<Vec<_>>(), [1]);
        assert_eq!(looked_at(&session, 0), "b");
        session.forget(&1);
        assert!(session.is_known());
    }
}
