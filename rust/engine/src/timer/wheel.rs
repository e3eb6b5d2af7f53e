//! A hierarchical timing wheel.
//!
//! A timer lies in the level where its deadline first differs from the wheel's own tick, counted in digits of six bits;
//! its slot there is that digit. So a slot of level 0 is one tick, one of level 1 is 64, and so on, and every timer of
//! a lower level ends before any of a higher one. When the wheel comes to a slot of a higher level, its timers move
//! down.
//!
//! ```text
//! tick   ...  000101 000011 000000        timer at 000101 000011 010001 differs in the last digit: level 0, slot 17
//! level          2      1      0          timer at 000101 000100 000001 differs in the middle one: level 1, slot  4
//! ```
//!
//! One bit per slot tells whether it is empty, so a jump of days looks at one word per level and at no empty slot.
//! Lists are kept in the order of insertion. If all timers have the same duration, that is the order of deadlines too;
//! a slot remembers whether it is, so that the next deadline is read from the head of a list instead of being searched
//! for.

use std::ops::{Index, IndexMut};

use crate::slab::Slab;
use crate::unaligned::Unaligned;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const NONE: u32 = u32::MAX;

/// The deadline of a timer that does not run.
const STOPPED: u64 = u64::MAX;

#[derive(Clone, Debug)]
struct Entry<T> {
    deadline: Unaligned,
    next: u32,
    prev: u32,
    value: T,
}

#[derive(Clone, Debug)]
struct Level {
    occupied: u64,
    /// Slots whose list is not in the order of deadlines.
    mixed: u64,
    heads: [u32; SLOTS],
    tails: [u32; SLOTS],
}

impl Level {
    fn new() -> Self {
        Self {
            occupied: 0,
            mixed: 0,
            heads: [NONE; SLOTS],
            tails: [NONE; SLOTS],
        }
    }
}

/// Timers, each with a value that stays when the timer has run out, until it is removed.
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    /// No timer ends before this tick.
    tick: u64,
    levels: Vec<Level>,
    entries: Slab<Entry<T>>,
    running: usize,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self {
            tick: 0,
            levels: Vec::new(),
            entries: Slab::default(),
            running: 0,
        }
    }
}

fn level_of(tick: u64, deadline: u64) -> usize {
    ((u64::BITS - 1 - ((tick ^ deadline) | 1).leading_zeros()) / BITS) as usize
}

fn slot_of(level: usize, deadline: u64) -> usize {
    (deadline >> (BITS as usize * level)) as usize % SLOTS
}

impl<T> Wheel<T> {
    /// How many timers run.
    pub fn len(&self) -> usize {
        self.running
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.running == 0
    }

    /// Starts a timer that ends at tick `deadline`, seen from tick `now`; returns its number, which is used again once it is
    /// removed. A deadline that is past ends at once.
    pub fn insert(&mut self, now: u64, deadline: u64, value: T) -> u32 {
        let deadline = self.begin(now, deadline);
        let index = self.entries.insert(Entry {
            deadline: deadline.into(),
            next: NONE,
            prev: NONE,
            value,
        });
        self.link(index, deadline);
        index
    }

    /// Starts a timer anew, whether it runs or has run out.
    pub fn restart(&mut self, index: u32, now: u64, deadline: u64) {
        self.stop(index);
        let deadline = self.begin(now, deadline);
        self.entries[index].deadline = deadline.into();
        self.link(index, deadline);
    }

    /// Forgets a timer and its value, whether it runs or has run out.
    pub fn remove(&mut self, index: u32) {
        self.stop(index);
        self.entries.free(index);
    }

    /// The tick at which a timer ends; `None` when it has run out.
    pub fn deadline(&self, index: u32) -> Option<u64> {
        Some(self.entries[index].deadline.into()).filter(|&deadline| deadline != STOPPED)
    }

    /// All values with their numbers; those that were removed are among them until their number is used again.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = self.entries.iter();
        entries.map(|(index, entry)| (index, &entry.value))
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index).map(|entry| &entry.value)
    }

    /// Counts a timer that begins; returns when it ends.
    fn begin(&mut self, now: u64, deadline: u64) -> u64 {
        if self.running == 0 {
            self.tick = now;
        }
        self.running += 1;
        deadline.clamp(self.tick, STOPPED - 1)
    }

    /// Puts an entry, whose links are `NONE`, at the end of its slot's list.
    fn link(&mut self, index: u32, deadline: u64) {
        let (level, slot) = self.place(deadline);
        while self.levels.len() <= level {
            self.levels.push(Level::new());
        }
        let level = &mut self.levels[level];
        let tail = std::mem::replace(&mut level.tails[slot], index);
        if tail == NONE {
            level.heads[slot] = index;
            level.occupied |= 1 << slot;
            return;
        }
        let before = &mut self.entries[tail];
        before.next = index;
        let mixed = deadline < before.deadline.into();
        level.mixed |= u64::from(mixed) << slot;
        self.entries[index].prev = tail;
    }

    fn place(&self, deadline: u64) -> (usize, usize) {
        let level = level_of(self.tick, deadline);
        (level, slot_of(level, deadline))
    }

    fn stop(&mut self, index: u32) {
        let entry = &mut self.entries[index];
        let (deadline, next, prev) = (entry.deadline.into(), entry.next, entry.prev);
        if deadline == STOPPED {
            return;
        }
        entry.deadline = STOPPED.into();
        (entry.next, entry.prev) = (NONE, NONE);
        self.running -= 1;
        let (level, slot) = self.place(deadline);
        let level = &mut self.levels[level];
        if prev == NONE {
            level.heads[slot] = next;
        } else {
            self.entries[prev].next = next;
        }
        if next == NONE {
            level.tails[slot] = prev;
        } else {
            self.entries[next].prev = prev;
        }
        if prev == NONE && next == NONE {
            level.occupied &= !(1 << slot);
            level.mixed &= !(1 << slot);
        }
    }

    /// The first slot with timers: its level, the slot, and the first tick that belongs to it.
    fn first(&self) -> Option<(usize, usize, u64)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let slot = self.levels[level].occupied.trailing_zeros() as usize;
        let shift = BITS as usize * level;
        let above = self
            .tick
            .checked_shr((shift + BITS as usize) as u32)
            .unwrap_or(0);
        let start = above
            .checked_shl((shift + BITS as usize) as u32)
            .unwrap_or(0)
            | ((slot as u64) << shift);
        Some((level, slot, start))
    }

    /// The tick at which the next timer ends.
    pub fn next_deadline(&self) -> Option<u64> {
        let (level, slot, start) = self.first()?;
        let head = self.levels[level].heads[slot];
        if level == 0 {
            return Some(start);
        }
        if self.levels[level].mixed >> slot & 1 == 0 {
            return Some(self.entries[head].deadline.into());
        }
        let list = std::iter::successors(Some(head), |&index| {
            Some(self.entries[index].next).filter(|&next| next != NONE)
        });
        list.map(|index| self.entries[index].deadline.into()).min()
    }

    /// The next timer that has run out by tick `now`, the earliest first; its value stays.
    pub fn pop(&mut self, now: u64) -> Option<u32> {
        loop {
            let Some((level, slot, start)) = self.first().filter(|&(_, _, start)| start <= now)
            else {
                self.tick = self.tick.max(now);
                return None;
            };
            let head = self.levels[level].heads[slot];
            let in_order = self.levels[level].mixed >> slot & 1 == 0;
            if level == 0 || in_order && u64::from(self.entries[head].deadline) <= now {
                self.stop(head);
                return Some(head);
            }
            // the slot is emptied first: with the new tick its timers belong to other slots
            let level = &mut self.levels[level];
            let mut index = std::mem::replace(&mut level.heads[slot], NONE);
            level.tails[slot] = NONE;
            level.occupied &= !(1 << slot);
            level.mixed &= !(1 << slot);
            self.tick = start;
            while index != NONE {
                let entry = &mut self.entries[index];
                let (next, deadline) = (entry.next, entry.deadline.into());
                (entry.next, entry.prev) = (NONE, NONE);
                self.link(index, deadline);
                index = next;
            }
        }
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.levels.len() * size_of::<Level>() + self.entries.memory_bytes()
    }
}

impl<T> Index<u32> for Wheel<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.entries[index].value
    }
}

impl<T> IndexMut<u32> for Wheel<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index].value
    }
}
