//! The records of one partition of the topic, folded into the states that hold in the end.
//!
//! All records about a share partition lie in one partition of the topic, so each of these is folded alone.

use std::collections::HashMap;

use crate::{
    content::{Content, read, read_repaired},
    fault::RecordFault,
    key::{Key, split_kind},
    value::{Batch, Head, Kind},
};

/// States by what follows the type in a key.
#[derive(Debug, Default)]
pub struct Fold {
    states: HashMap<Box<[u8]>, Folded>,
    room: Vec<Batch>,
    repairs: bool,
    repaired: usize,
}

/// The state of a share partition, and where it was written.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    /// The state.
    pub content: Content,
    /// The offset of the last snapshot: what lies before it is redundant.
    pub snapshot_offset: i64,
    /// The offset of the last record.
    pub offset: i64,
    /// The timestamp of the last record.
    pub timestamp: i64,
}

impl Fold {
    /// A fold that goes on with records whose state batches are impossible, see [`repaired`](Self::repaired).
    pub fn repairing() -> Self {
        Self {
            repairs: true,
            ..Self::default()
        }
    }

    /// Takes a record of a group that is wanted; one that cannot be read changes nothing.
    ///
    /// An update without a snapshot before it is a [`RecordFault::NoSnapshot`].
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

    /// How many state batches so far were impossible ones; their records are delivered again.
    pub fn repaired(&self) -> usize {
        self.repaired
    }

    /// What follows the type in the keys of the share partitions that have state, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.states.keys().map(|key| &**key)
    }

    /// A state, by what follows the type in its records' keys.
    pub fn get(&self, key: &[u8]) -> Option<&Folded> {
        self.states.get(key)
    }

    /// The states with their keys, in no order.
    pub fn states(&self) -> impl Iterator<Item = (&[u8], &Folded)> {
        self.states.iter().map(|(key, state)| (&**key, state))
    }

    /// The states that have records which were delivered so often and wait to be delivered again, and how many.
    pub fn waiting(&mut self, deliveries: u32) -> impl Iterator<Item = (&[u8], i64)> {
        let states = self.states.iter_mut();
        let counted = states.map(move |(key, state)| (&**key, state.content.waiting(deliveries)));
        counted.filter(|(_, records)| *records > 0)
    }

    /// Takes a state out.
    pub fn remove(&mut self, key: &[u8]) -> Option<Folded> {
        self.states.remove(key)
    }

    /// Takes all states out, in no order.
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
