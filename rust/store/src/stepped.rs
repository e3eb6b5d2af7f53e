//! A store without threads, for simulations: they decide when it commits and when it does maintenance.

use std::{path::Path, sync::atomic::Ordering};

use crate::{
    error::StoreError,
    flush, maintain,
    store::{Options, Shared, Store, hold},
};

impl Shared {
    /// Commits once if no thread does; returns whether there was anything.
    pub(crate) fn step(&self) -> bool {
        hold(&self.stepped)
            .as_mut()
            .is_some_and(|journal| flush::step(self, journal))
    }
}

impl Store {
    /// As `open`, without threads: a simulation calls `step` to commit, `step_read` to read apart, and `maintain` to seal or
    /// rewrite segments.
    pub fn open_stepped(dir: &Path, options: &Options) -> Result<Self, StoreError> {
        let options = Options {
            read_threads: 0,
            ..options.clone()
        };
        let (store, journal) = Self::recover(dir, &options)?;
        *hold(&store.shared.stepped) = Some(journal);
        Ok(store)
    }

    /// Whether something waits to be committed.
    pub fn has_work(&self) -> bool {
        let state = self.shared.lock();
        state.has_staged() || state.roll
    }

    /// Commits once, in a store without threads; returns whether there was anything.
    pub fn step(&self) -> bool {
        self.shared.step()
    }

    /// Seals or rewrites segments once, in a store without threads; returns whether there was anything.
    pub fn maintain(&self) -> bool {
        hold(&self.shared.stepped).is_some()
            && maintain::step(&self.shared, &self.dir, self.segment_bytes)
    }

    /// Ends a store without threads as a killed process does: nothing more is written.
    pub fn abandon(&self) {
        drop(hold(&self.shared.stepped).take());
        let mut state = self.shared.lock();
        self.shared.leaving.store(true, Ordering::Relaxed);
        state.closing = true;
        drop(state);
        drop(hold(&self.lock).take());
    }
}
