//! Timers with one duration, or nearly so.
//!
//! Timers of one duration end in the order in which they start, so a list is enough: a timer is added at its end, and
//! the next to expire is at its beginning. The locks of a share partition have one duration, and two for a while after
//! a configuration change, so there are two lists. A timer with a third duration is inserted in order.
//!
//! Each list is a ring through a sentinel entry. Insert and remove therefore take the same few steps at any position:
//! the position is unpredictable, and a mispredicted branch costs as much as all of these steps.
//!
//! ```text
//! ring 0 (never runs out) -> 30,010 -> 30,020 -> 30,020 -> ring 0
//! ring 1 (never runs out) -> 15,030 -> ring 1
//! ```

use std::ops::{Index, IndexMut};

use crate::slab::Slab;
use crate::unaligned::Unaligned;

const RINGS: u32 = 2;

/// Timers per chunk of memory.
const CHUNK: usize = 32;

/// The deadline of a stopped timer, and of the ring sentinels.
const STOPPED: u64 = u64::MAX;

const _: () = assert!(RINGS as usize <= CHUNK, "the rings are in the first chunk");

#[derive(Clone, Debug, Default)]
struct Entry<T> {
    deadline: Unaligned,
    /// The entry itself if it is in no ring.
    next: u32,
    prev: u32,
    value: T,
}

/// Timers, each with a value that stays after expiry until the timer is removed.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    /// The first [`RINGS`] are sentinels; they are created with the first timer.
    entries: Slab<Entry<T>, CHUNK>,
    /// The ring of new timers, and their duration.
    ring: u32,
    duration: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            entries: Slab::default(),
            ring: 0,
            duration: STOPPED,
        }
    }
}

impl<T: Default> Timers<T> {
    /// Starts a timer at tick `now` that ends at tick `deadline`; returns its number, which is reused once it is
    /// removed. A past deadline expires at once.
    #[inline]
    pub fn insert(&mut self, now: u64, deadline: u64, value: T) -> u32 {
        let deadline = self.begin(now, deadline);
        let prev = self.last_before(deadline);
        let next = self.entries[prev].next;
        let index = self.entries.insert(Entry {
            deadline: deadline.into(),
            next,
            prev,
            value,
        });
        self.entries[prev].next = index;
        self.entries[next].prev = index;
        debug_assert!(self.is_linked(index), "a timer out of its order");
        index
    }

    /// Restarts a running or expired timer.
    pub fn restart(&mut self, index: u32, now: u64, deadline: u64) {
        self.unlink(index);
        let deadline = self.begin(now, deadline);
        let prev = self.last_before(deadline);
        let next = std::mem::replace(&mut self.entries[prev].next, index);
        self.entries[next].prev = index;
        let entry = &mut self.entries[index];
        (entry.deadline, entry.next, entry.prev) = (deadline.into(), next, prev);
        debug_assert!(self.is_linked(index), "a timer out of its order");
    }

    /// Chooses the ring of a new timer; returns when the timer ends.
    fn begin(&mut self, now: u64, deadline: u64) -> u64 {
        let deadline = deadline.min(STOPPED - 1);
        let duration = deadline.saturating_sub(now);
        if duration != self.duration {
            self.change_duration(duration);
        }
        debug_assert!(deadline < STOPPED, "a timer that never ends");
        debug_assert!(
            self.entries.get(self.ring).is_some(),
            "a ring that is not there"
        );
        deadline
    }

    /// Moves to the other ring for timers of another duration, so that the earlier ones stay in order.
    #[cold]
    fn change_duration(&mut self, duration: u64) {
        assert_ne!(self.duration, duration, "nothing changes");
        self.duration = duration;
        if self.entries.get(0).is_some() {
            self.ring = (self.ring + 1) % RINGS;
            return;
        }
        for ring in 0..RINGS {
            let pinned = self.entries.pin(Entry {
                deadline: STOPPED.into(),
                next: ring,
                prev: ring,
                value: T::default(),
            });
            assert_eq!(pinned, ring, "a ring is known by its number");
        }
    }
}

impl<T> Timers<T> {
    /// Counts the running timers.
    pub fn len(&self) -> usize {
        let rings = (0..RINGS).filter_map(|ring| self.entries.get(ring));
        let walk = |entry| {
            std::iter::successors(Some(entry), |entry: &&Entry<T>| {
                Some(&self.entries[entry.next])
            })
        };
        rings
            .map(|ring| {
                walk(&self.entries[ring.next])
                    .take_while(|entry| u64::from(entry.deadline) != STOPPED)
                    .count()
            })
            .sum()
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.first().0 == STOPPED
    }

    /// Removes a timer, running or expired, and its value.
    pub fn remove(&mut self, index: u32) {
        debug_assert!(index >= RINGS, "a sentinel is not a timer");
        self.unlink(index);
        self.entries.free(index);
    }

    /// The tick at which a timer ends; `None` if it has expired.
    pub fn deadline(&self, index: u32) -> Option<u64> {
        Some(self.entries[index].deadline.into()).filter(|&deadline| deadline != STOPPED)
    }

    /// The numbers of matching values, including removed ones until their number is reused, and defaults that belong to
    /// no timer.
    pub(crate) fn find_all(&self, wanted: impl Fn(&T) -> bool) -> impl Iterator<Item = u32> {
        self.entries.find_all(move |entry| wanted(&entry.value))
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index).map(|entry| &entry.value)
    }

    /// The entry after which a new timer belongs: the last that ends no later.
    #[inline]
    fn last_before(&self, deadline: u64) -> u32 {
        let mut prev = self.entries[self.ring].prev;
        // adding one makes the sentinel the earliest of all
        while deadline + 1 < u64::from(self.entries[prev].deadline).wrapping_add(1) {
            prev = self.entries[prev].prev;
        }
        debug_assert!(
            prev == self.ring || prev >= RINGS,
            "the place is in another ring"
        );
        prev
    }

    /// Whether a running timer is in order between its neighbors, and linked with them.
    fn is_linked(&self, index: u32) -> bool {
        let entry = &self.entries[index];
        let (prev, next) = (&self.entries[entry.prev], &self.entries[entry.next]);
        let deadline = u64::from(entry.deadline);
        let follows = entry.prev < RINGS || u64::from(prev.deadline) <= deadline;
        let precedes = entry.next < RINGS || deadline <= u64::from(next.deadline);
        prev.next == index && next.prev == index && follows && precedes
    }

    /// Removes an entry from its ring, if it is in one.
    #[inline]
    fn unlink(&mut self, index: u32) {
        let entry = &self.entries[index];
        let (next, prev) = (entry.next, entry.prev);
        debug_assert!(
            self.entries[prev].next == index && self.entries[next].prev == index,
            "its neighbors do not know the timer"
        );
        self.entries[prev].next = next;
        self.entries[next].prev = prev;
    }

    /// The deadline and number of the timer that ends next; `STOPPED` if none runs.
    fn first(&self) -> (u64, u32) {
        let rings = (0..RINGS).filter_map(|ring| self.entries.get(ring));
        rings
            .map(|ring| (self.entries[ring.next].deadline.into(), ring.next))
            .min_by_key(|&(deadline, _)| deadline)
            .unwrap_or((STOPPED, 0))
    }

    /// The tick at which the next timer ends.
    pub fn next_deadline(&self) -> Option<u64> {
        Some(self.first().0).filter(|&deadline| deadline != STOPPED)
    }

    /// The timers expired at tick `now`; they stay until [`pop`](Self::pop) takes them.
    pub(crate) fn due(&self, now: u64) -> impl Iterator<Item = u32> + '_ {
        let rings = (0..RINGS).filter(|&ring| self.entries.get(ring).is_some());
        rings.flat_map(move |ring| {
            let first = self.entries[ring].next;
            std::iter::successors(Some(first), |&index| Some(self.entries[index].next)).take_while(
                move |&index| {
                    let deadline = u64::from(self.entries[index].deadline);
                    deadline != STOPPED && deadline <= now
                },
            )
        })
    }

    /// Takes the earliest timer expired at tick `now`; its value stays.
    pub fn pop(&mut self, now: u64) -> Option<u32> {
        let (deadline, index) = self.first();
        if deadline > now.min(STOPPED - 1) {
            return None;
        }
        debug_assert!(index >= RINGS, "a sentinel never expires");
        self.unlink(index);
        let entry = &mut self.entries[index];
        entry.deadline = STOPPED.into();
        (entry.next, entry.prev) = (index, index);
        debug_assert!(self.deadline(index).is_none(), "it has run out");
        debug_assert!(deadline <= self.first().0, "another ended before");
        Some(index)
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
    }
}

impl<T> Index<u32> for Timers<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.entries[index].value
    }
}

impl<T> IndexMut<u32> for Timers<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index].value
    }
}
