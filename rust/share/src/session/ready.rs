//! What is ready, in the order of the session.

use std::collections::VecDeque;

use crate::Place;

/// Leaders by the places of their partitions.
///
/// Most come in behind all others, and most that leave stand in front: a deque moves the shorter side.
#[derive(Debug)]
pub(crate) struct Ready<L>(VecDeque<(Place, L)>);

impl<L> Default for Ready<L> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<L> Ready<L> {
    fn find(&self, place: Place) -> Result<usize, usize> {
        self.0.binary_search_by_key(&place, |(place, _)| *place)
    }

    /// Puts a leader in; who is there already stays.
    pub(crate) fn put(&mut self, place: Place, leader: L) {
        if let Err(at) = self.find(place) {
            self.0.insert(at, (place, leader));
            debug_assert!(
                self.0
                    .iter()
                    .skip(at)
                    .nth(1)
                    .is_none_or(|(next, _)| place < *next)
                    && (at == 0 || self.0[at - 1].0 < place),
                "in the order of the session"
            );
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn remove(&mut self, place: Place) -> Option<L> {
        let at = self.find(place).ok()?;
        self.0.remove(at).map(|(_, leader)| leader)
    }

    /// A partition has another place.
    pub(crate) fn rename(&mut self, before: Place, now: Place) {
        if let Some(leader) = self.remove(before) {
            debug_assert!(self.find(now).is_err(), "another partition's place");
            self.put(now, leader);
        }
    }

    /// The first at a place or behind it.
    pub(crate) fn next(&self, from: Place) -> Option<(Place, &L)> {
        let at = self.find(from).unwrap_or_else(|at| at);
        self.0.get(at).map(|(place, leader)| (*place, leader))
    }

    pub(crate) fn leaders(&self) -> impl Iterator<Item = &L> {
        self.0.iter().map(|(_, leader)| leader)
    }
}
