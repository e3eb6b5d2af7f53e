//! Folds the records of one partition of the topic into the final states.
//!
//! All records of a share partition are in one partition of the topic, so each of these is folded alone.

use std::collections::HashMap;

use crate::{
    content::{Content, read, read_repaired},
    fault::RecordFault,
    key::{Key, split_kind},
    value::{Batch, Head, Kind},
};

/// States by key, without the key's type.
#[derive(Debug, Default)]
pub struct Fold {
    states: HashMap<Box<[u8]>, Folded>,
    room: Vec<Batch>,
    repairs: bool,
    repaired: usize,
}

/// The state of a share partition, and its position.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    /// The state.
    pub content: Content,
    /// The offset of the last snapshot: earlier records are redundant.
    pub snapshot_offset: i64,
    /// The offset of the last record.
    pub offset: i64,
    /// The timestamp of the last record.
    pub timestamp: i64,
}

impl Fold {
    /// A fold that accepts records with invalid state batches, see [`repaired`](Self::repaired).
    pub fn repairing() -> Self {
        Self {
            repairs: true,
            ..Self::default()
        }
    }

    /// Applies a record of a requested group; an unreadable one changes nothing.
    ///
    /// An update without a preceding snapshot is a [`RecordFault::NoSnapshot`].
    pub fn take(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: &[u8],
        value: Option<&[u8]>,
        wants: impl Fn(&str) -> bool,
    ) -> Result<(), RecordFault> {
        let (kind, rest) = split_kind(key)?;
        let Self {
            states,
            room,
            repairs,
            repaired,
        } = self;
        let read = |value, room| {
            if *repairs {
                read_repaired(kind, value, room)
            } else {
                read(kind, value, room).map(|head| (head, 0))
            }
        };
        let Some(value) = value else {
            return match states.remove(rest) {
                Some(_) => Ok(()),
                None => Key::read_rest(rest).map(|_| ()),
            };
        };
        if let Some(state) = states.get_mut(rest) {
            let (head, found) = read(value, room)?;
            *repaired += found;
            state.take(offset, timestamp, kind, head, room);
            return Ok(());
        }
        if !wants(Key::read_rest(rest)?.group) {
            return Ok(());
        }
        let (head, found) = read(value, room)?;
        if kind == Kind::Update {
            return Err(RecordFault::NoSnapshot);
        }
        *repaired += found;
        let mut state = Folded::default();
        state.take(offset, timestamp, kind, head, room);
        states.insert(rest.into(), state);
        Ok(())
    }

    /// How many state batches were invalid so far; their records are delivered again.
    pub fn repaired(&self) -> usize {
        self.repaired
    }

    /// The keys of the share partitions with state, without the keys' type, unordered.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.states.keys().map(|key| &**key)
    }

    /// A state by key, without the key's type.
    pub fn get(&self, key: &[u8]) -> Option<&Folded> {
        self.states.get(key)
    }

    /// The states with their keys, unordered.
    pub fn states(&self) -> impl Iterator<Item = (&[u8], &Folded)> {
        self.states.iter().map(|(key, state)| (&**key, state))
    }

    /// The states with records that were delivered this often and wait for redelivery, and how many each has.
    pub fn waiting(&mut self, deliveries: u32) -> impl Iterator<Item = (&[u8], i64)> {
        let states = self.states.iter_mut();
        let counted = states.map(move |(key, state)| (&**key, state.content.waiting(deliveries)));
        counted.filter(|(_, records)| *records > 0)
    }

    /// Removes a state.
    pub fn remove(&mut self, key: &[u8]) -> Option<Folded> {
        self.states.remove(key)
    }

    /// Removes all states, unordered.
    pub fn drain(&mut self) -> impl Iterator<Item = (Box<[u8]>, Folded)> {
        std::mem::take(&mut self.states).into_iter()
    }
}

impl Folded {
    fn take(&mut self, offset: i64, timestamp: i64, kind: Kind, head: Head, batches: &[Batch]) {
        self.content.apply(kind, head, batches);
        if kind == Kind::Snapshot {
            self.snapshot_offset = offset;
        }
        (self.offset, self.timestamp) = (offset, timestamp);
    }
}
