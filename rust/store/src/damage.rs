//! Damaged batches, recorded when readers find them.

use std::{
    collections::BTreeMap,
    mem,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use crate::{LogId, segment::Kind, signal::Signal};

/// How many damaged batches are remembered; more would add nothing new.
const REMEMBERED_MAX: usize = 1_000;

/// A batch that cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The log.
    pub log: LogId,
    /// First and last offset of the batch.
    pub offsets: (i64, i64),
    /// The file.
    pub path: PathBuf,
    /// Where in it the batch begins.
    pub at: u64,
}

/// A segment, and a position in it.
pub(crate) type Place = (u64, Kind);

/// The damaged batches found in a store.
#[derive(Debug)]
pub(crate) struct Damages {
    dir: PathBuf,
    found: Mutex<Found>,
    /// Raised when a new one is found.
    signal: OnceLock<Arc<Signal>>,
}

#[derive(Debug, Default)]
struct Found {
    known: BTreeMap<(u64, u64), Damage>,
    fresh: Vec<Damage>,
}

impl Damages {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            found: Mutex::default(),
            signal: OnceLock::new(),
        }
    }

    /// Sets the signal to raise when a new one is found.
    pub(crate) fn notify(&self, signal: Arc<Signal>) {
        let _ = self.signal.set(signal);
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().expect("no panic under the lock")
    }

    /// Records a batch, once; returns the error for the reader.
    pub(crate) fn note(
        &self,
        log: LogId,
        offsets: (i64, i64),
        (segment, kind): Place,
        at: u64,
    ) -> String {
        let path = kind.path(&self.dir, segment);
        let text = format!(
            "the batch of offsets {} to {} is damaged on disk: {} at byte {at}",
            offsets.0,
            offsets.1,
            path.display()
        );
        let mut found = self.lock();
        let is_new = !found.known.contains_key(&(segment, at));
        if is_new && found.known.len() < REMEMBERED_MAX {
            let damage = Damage {
                log,
                offsets,
                path,
                at,
            };
            found.fresh.push(damage.clone());
            found.known.insert((segment, at), damage);
            debug_assert!(found.fresh.len() <= found.known.len(), "recorded twice");
            drop(found);
            if let Some(signal) = self.signal.get() {
                signal.raise();
            }
        }
        text
    }

    /// The batches found since the last call.
    pub(crate) fn take_fresh(&self) -> Vec<Damage> {
        mem::take(&mut self.lock().fresh)
    }
}
