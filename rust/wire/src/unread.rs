//! Memory for unread responses: they share one limit, and no owner can use it up.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A response with room for less than this is not worth its request.
const WORTHWHILE_BYTES: u64 = 64 << 10;

/// Memory for responses that are built and not yet sent.
#[derive(Debug, Default)]
pub struct Unread {
    /// `None` if unlimited.
    bytes_max: Option<u64>,
    used: u64,
    owners: HashMap<Arc<str>, u64>,
}

impl Unread {
    /// Creates room for this many bytes.
    pub fn new(bytes_max: Option<u64>) -> Self {
        Unread {
            bytes_max,
            ..Unread::default()
        }
    }

    /// Total bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Changes the bytes of an owner's connection from `before`.
    pub fn change(&mut self, owner: &Arc<str>, before: u64, now: u64) {
        if before == now {
            return;
        }
        self.used = self.used - before + now;
        let own = self.owners.entry(Arc::clone(owner)).or_default();
        *own = *own - before + now;
        if *own == 0 {
            self.owners.remove(owner);
        }
    }

    /// How many bytes the next response of an owner may carry; 0 if it must wait for others to be read.
    ///
    /// Half of the remaining room, so that no client gets the last of it. `reading`: bytes being read for responses,
    /// which are counted nowhere else.
    pub fn room(&self, owner: &Arc<str>, reading: u64) -> u64 {
        let Some(most) = self.bytes_max else {
            return u64::MAX;
        };
        let own = self.owners.get(owner).copied().unwrap_or(0);
        let left = most.saturating_sub(self.used.saturating_add(reading));
        let left = left.min((most / 2).saturating_sub(own));
        if left == 0 {
            return 0;
        }
        (left / 2).max(WORTHWHILE_BYTES)
    }

    /// Whether an owner waits for its own responses to be read, rather than for anyone's.
    pub fn waits_for_own(&self, owner: &Arc<str>) -> bool {
        let own = self.owners.get(owner).copied().unwrap_or(0);
        self.bytes_max.is_some_and(|most| own >= most / 2)
    }
}

/// Callbacks of those who wait for memory for a response, in order.
#[derive(Debug)]
pub struct Readers<W>(VecDeque<(Arc<str>, W)>);

impl<W> Default for Readers<W> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<W> Readers<W> {
    /// Add one, of an owner.
    pub fn push(&mut self, owner: &Arc<str>, waiter: W) {
        self.0.push_back((Arc::clone(owner), waiter));
    }

    /// Number of waiters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remove and return the next waiter with room, of at most `tries`; the others go to the back. A round is as many tries
    /// as there are waiters at its start, so that one who waits again is not called twice.
    pub fn next(&mut self, tries: &mut usize, has_room: impl Fn(&Arc<str>) -> bool) -> Option<W> {
        while *tries > 0 {
            *tries -= 1;
            let (owner, waiter) = self.0.pop_front()?;
            if has_room(&owner) {
                return Some(waiter);
            }
            self.0.push_back((owner, waiter));
        }
        None
    }

    /// Return the owners that wait, each once.
    pub fn owners(&self) -> Vec<&Arc<str>> {
        let mut owners: Vec<&Arc<str>> = Vec::new();
        for (owner, _) in &self.0 {
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        owners
    }

    /// Return all waiters.
    pub fn iter(&self) -> impl Iterator<Item = &W> {
        self.0.iter().map(|(_, waiter)| waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_with_room_are_called_once_a_round() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut readers = Readers::default();
        for (owner, waiter) in [(&a, 1), (&b, 2), (&a, 3)] {
            readers.push(owner, waiter);
        }
        assert_eq!(readers.owners(), [&a, &b]);
        let mut tries = readers.len();
        let only_a = |owner: &Arc<str>| *owner == a;
        assert_eq!(readers.next(&mut tries, only_a), Some(1));
        readers.push(&a, 1);
        assert_eq!(readers.next(&mut tries, only_a), Some(3));
        assert_eq!(readers.next(&mut tries, only_a), None);
        assert_eq!(readers.iter().copied().collect::<Vec<_>>(), [1, 2]);
        let mut tries = readers.len();
        assert_eq!(readers.next(&mut tries, |_| true), Some(1));
        assert_eq!(readers.next(&mut tries, |_| true), Some(2));
        assert_eq!(readers.next(&mut readers.len(), |_| true), None);
        assert!(readers.is_empty());
    }
}
