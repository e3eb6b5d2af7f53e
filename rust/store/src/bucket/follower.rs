//! The catalog of a home that another broker leads, read from its journal.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use crate::{
    checkpoint,
    frame::{Frame, Op},
};

/// A key and its value; None if the key was deleted.
pub type Changed = (Vec<u8>, Option<Vec<u8>>);

/// The catalog as of the objects that were read. Records are not kept.
#[derive(Debug, Default)]
pub(super) struct Follower {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    changed: BTreeSet<Vec<u8>>,
}

impl Follower {
    /// Begin anew with the store's checkpoint; None: with an empty catalog. Returns None if it cannot be read.
    pub(super) fn begin(&mut self, store: Option<&[u8]>) -> Option<()> {
        let entries = match store {
            Some(bytes) => checkpoint::catalog(bytes)?,
            None => BTreeMap::new(),
        };
        let before = mem::replace(&mut self.entries, entries);
        let differs = |key: &&Vec<u8>| before.get(*key) != self.entries.get(*key);
        let keys = before.keys().chain(self.entries.keys());
        self.changed.extend(keys.filter(differs).cloned());
        Some(())
    }

    /// Apply the frames of an object. Returns None if they cannot be read.
    pub(super) fn apply(&mut self, mut frames: &[u8]) -> Option<()> {
        while !frames.is_empty() {
            let frame = Frame::read(frames)?;
            for op in frame.ops() {
                match op?.0 {
                    Op::Put { key, value } => {
                        self.entries.insert(key.to_vec(), value.to_vec());
                        self.changed.insert(key.to_vec());
                    }
                    Op::Delete { key } => {
                        self.entries.remove(key);
                        self.changed.insert(key.to_vec());
                    }
                    _ => {}
                }
            }
            frames = frames.get(frame.size..)?;
        }
        Some(())
    }

    /// Return what has changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<Changed> {
        let changed = mem::take(&mut self.changed).into_iter();
        let value = |key: &Vec<u8>| self.entries.get(key).cloned();
        changed
            .map(|key| (value(&key), key))
            .map(|(v, k)| (k, v))
            .collect()
    }
}
