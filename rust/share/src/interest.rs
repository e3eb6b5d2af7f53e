//! Subscribers of a share partition: sessions waiting for records, and sessions that only watch the leader.

use std::collections::BTreeMap;
use std::hash::Hash;

use crate::maps::IdMap;
use crate::planted::{Bug, is_planted};

/// A session's position: watchers come after all waiting sessions.
type Place = (bool, u64);

const WAITS: bool = false;
const HOLDS: bool = true;

/// Waiting sessions are notified once when records may be available, longest waiting first. Watchers are notified only when
/// the leader ends, as all are.
///
/// `K`: a session's key; `S`: its callback.
#[derive(Debug)]
pub struct Interest<K, S> {
    known: IdMap<K, (Place, S)>,
    /// In subscription order.
    order: BTreeMap<Place, K>,
    waiting: usize,
    next: u64,
}

impl<K, S> Default for Interest<K, S> {
    fn default() -> Self {
        Self {
            known: IdMap::default(),
            order: BTreeMap::new(),
            waiting: 0,
            next: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, S> Interest<K, S> {
    /// Subscribe a session to one notification: records may be available, or the leader ended. A waiting session keeps its
    /// position.
    pub fn subscribe(&mut self, key: K, session: S) {
        if self
            .known
            .get(&key)
            .is_some_and(|((kind, _), _)| *kind == WAITS || is_planted(Bug::WatcherNeverWaits))
        {
            return;
        }
        self.take(key);
        self.put(WAITS, key, session);
        self.waiting += 1;
        self.assert_whole();
    }

    /// Subscribe a session to the end of the leader only.
    pub fn subscribe_end(&mut self, key: K, session: S) {
        if !self.known.contains_key(&key) {
            self.put(HOLDS, key, session);
        }
        self.assert_whole();
    }

    /// Unsubscribe a session; return it if it was subscribed.
    pub fn unsubscribe(&mut self, key: K) -> Option<S> {
        let session = self.take(key);
        self.assert_whole();
        session
    }

    /// Remove and return the session that has waited longest.
    pub fn take_next(&mut self) -> Option<S> {
        let (_, key) = self
            .order
            .first_key_value()
            .filter(|((kind, _), _)| *kind == WAITS)?;
        self.unsubscribe(*key)
    }

    /// Return the number of waiting sessions.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Return the waiting sessions, longest first.
    pub fn waiters(&self) -> impl Iterator<Item = &S> {
        self.all().take(self.waiting)
    }

    /// Return waiting sessions, then watchers.
    pub fn all(&self) -> impl Iterator<Item = &S> {
        let order = self.order.values();
        order
            .filter_map(|key| self.known.get(key))
            .map(|(_, session)| session)
    }

    fn put(&mut self, kind: bool, key: K, session: S) {
        let place = (kind, self.next);
        self.next += 1;
        self.order.insert(place, key);
        let before = self.known.insert(key, (place, session));
        debug_assert!(before.is_none(), "a session stands in two places");
    }

    fn take(&mut self, key: K) -> Option<S> {
        let (place, session) = self.known.remove(&key)?;
        self.order.remove(&place);
        self.waiting -= usize::from(place.0 == WAITS);
        Some(session)
    }

    fn assert_whole(&self) {
        debug_assert_eq!(self.known.len(), self.order.len(), "each has one place");
        debug_assert!(
            self.waiting <= self.order.len()
                && self
                    .order
                    .first_key_value()
                    .is_some_and(|((kind, _), _)| *kind == WAITS)
                    == (self.waiting > 0),
            "who waits comes first"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn woken(interest: &mut Interest<u8, u8>) -> Vec<u8> {
        std::iter::from_fn(|| interest.take_next()).collect()
    }

    #[test]
    fn who_has_waited_longest_is_notified_first_and_once() {
        let mut interest = Interest::default();
        for session in [3, 1, 2, 3] {
            interest.subscribe(session, session);
        }
        assert_eq!(interest.waiting(), 3);
        assert_eq!(woken(&mut interest), [3, 1, 2]);
        assert_eq!(interest.all().count(), 0);
    }

    #[test]
    fn who_holds_waits_behind_those_who_wait_and_is_not_notified_of_records() {
        let mut interest = Interest::default();
        interest.subscribe_end(7, 7);
        interest.subscribe(1, 1);
        interest.subscribe_end(1, 1);
        assert_eq!(interest.all().copied().collect::<Vec<_>>(), [1, 7]);
        assert_eq!(interest.waiters().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(woken(&mut interest), [1]);
        interest.subscribe(7, 7);
        assert_eq!(woken(&mut interest), [7]);
        assert_eq!(interest.unsubscribe(7), None);
    }

    proptest! {
        /// Compare with a plain list of waiting sessions and one of watchers.
        #[test]
        fn agrees_with_two_lists(steps in vec((0_u8..4, 0_u8..6), 0..60)) {
            let mut interest = Interest::default();
            let (mut waiting, mut holding): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
            for (step, session) in steps {
                match step {
                    0 => {
                        interest.subscribe(session, session);
                        holding.retain(|each| *each != session);
                        if !waiting.contains(&session) {
                            waiting.push(session);
                        }
                    }
                    1 => {
                        interest.subscribe_end(session, session);
                        if !waiting.contains(&session) && !holding.contains(&session) {
                            holding.push(session);
                        }
                    }
                    2 => {
                        let known = waiting.contains(&session) || holding.contains(&session);
                        prop_assert_eq!(interest.unsubscribe(session), known.then_some(session));
                        waiting.retain(|each| *each != session);
                        holding.retain(|each| *each != session);
                    }
                    _ => {
                        let first = (!waiting.is_empty()).then(|| waiting.remove(0));
                        prop_assert_eq!(interest.take_next(), first);
                    }
                }
                prop_assert_eq!(interest.waiting(), waiting.len());
                let all: Vec<u8> = interest.all().copied().collect();
                prop_assert_eq!(all, [&waiting[..], &holding[..]].concat());
            }
        }
    }
}
