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

use crate::slab::Slab;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const NONE: u32 = u32::MAX;
/// A generation that no timer has.
const ENDED: u32 = u32::MAX;

/// Names a timer. It is stale after the timer has run out or was cancelled, and is recognised as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    /// Names no timer.
    pub const NONE: Self = Self {
        index: NONE,
        generation: ENDED,
    };
}

#[derive(Clone, Debug)]
struct Entry<T> {
    deadline: u64,
    next: u32,
    prev: u32,
    generation: u32,
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

/// Timers, each with a value.
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    /// No timer ends before this tick.
    tick: u64,
    levels: Vec<Level>,
    entries: Slab<Entry<T>>,
    len: usize,
    /// The generation of the next timer: it tells timers apart that use the same place.
    generation: u32,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self {
            tick: 0,
            levels: Vec::new(),
            entries: Slab::default(),
            len: 0,
            generation: 0,
        }
    }
}

fn level_of(tick: u64, deadline: u64) -> usize {
    ((u64::BITS - 1 - ((tick ^ deadline) | 1).leading_zeros()) / BITS) as usize
}

fn slot_of(level: usize, deadline: u64) -> usize {
    (deadline >> (BITS as usize * level)) as usize % SLOTS
}

impl<T: Copy> Wheel<T> {
    /// How many timers run.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Starts a timer that ends at tick `deadline`, seen from tick `now`. A deadline that is past ends at once.
    pub fn insert(&mut self, now: u64, deadline: u64, value: T) -> Handle {
        if self.len == 0 {
            self.tick = now;
        }
        let deadline = deadline.max(self.tick);
        let generation = self.generation;
        self.generation = if generation == ENDED - 1 {
            0
        } else {
            generation + 1
        };
        let index = self.entries.insert(Entry {
            deadline,
            next: NONE,
            prev: NONE,
            generation,
            value,
        });
        self.len += 1;
        self.link(index, deadline);
        Handle { index, generation }
    }

    fn entry(&self, handle: Handle) -> Option<&Entry<T>> {
        self.entries
            .get(handle.index)
            .filter(|entry| entry.generation == handle.generation && entry.generation != ENDED)
    }

    /// The tick at which a timer ends; `None` when it has ended or was cancelled.
    pub fn deadline(&self, handle: Handle) -> Option<u64> {
        self.entry(handle).map(|entry| entry.deadline)
    }

    /// Stops a timer; false when it has ended or was cancelled before.
    pub fn cancel(&mut self, handle: Handle) -> bool {
        if self.entry(handle).is_none() {
            return false;
        }
        self.unlink(handle.index);
        self.release(handle.index);
        true
    }

    fn release(&mut self, index: u32) {
        self.entries[index].generation = ENDED;
        self.entries.free(index);
        self.len -= 1;
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
        let mixed = deadline < before.deadline;
        level.mixed |= u64::from(mixed) << slot;
        self.entries[index].prev = tail;
    }

    fn place(&self, deadline: u64) -> (usize, usize) {
        let level = level_of(self.tick, deadline);
        (level, slot_of(level, deadline))
    }

    fn unlink(&mut self, index: u32) {
        let Entry {
            deadline,
            next,
            prev,
            ..
        } = self.entries[index];
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
        if level.heads[slot] == NONE {
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
            return Some(self.entries[head].deadline);
        }
        let list = std::iter::successors(Some(head), |&index| {
            Some(self.entries[index].next).filter(|&next| next != NONE)
        });
        list.map(|index| self.entries[index].deadline).min()
    }

    /// Takes a timer that has ended by tick `now`, the earliest first; its handle is stale then.
    pub fn pop(&mut self, now: u64) -> Option<T> {
        loop {
            let Some((level, slot, start)) = self.first().filter(|&(_, _, start)| start <= now)
            else {
                self.tick = self.tick.max(now);
                return None;
            };
            if level == 0 {
                let index = self.levels[0].heads[slot];
                self.unlink(index);
                let value = self.entries[index].value;
                self.release(index);
                return Some(value);
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
                let (next, deadline) = (entry.next, entry.deadline);
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
