//! A store without threads, for simulations: they decide when it commits and when it does maintenance.

use std::{path::Path, sync::atomic::Ordering};

use crate::{
    bucket::Worker,
    error::StoreError,
    flush, maintain,
    options::Options,
    store::{Shared, Store, hold},
};

impl Shared {
    /// Commits once if no thread does; returns whether there was anything.
    pub(crate) fn step(&self) -> bool {
        hold(&self.stepped)
            .as_mut()
            .is_some_and(|journal| flush::step(self, journal))
    }

    /// Lets time go by, if a simulation wants to.
    pub(crate) fn pump(&self) -> bool {
        let pump = hold(&self.pump).take();
        pump.is_some_and(|mut pump| {
            pump();
            hold(&self.pump).get_or_insert(pump);
            true
        })
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

    /// Looks after the copy in a bucket once, in a store without threads: takes the answers that have come, and makes the
    /// calls that are due (`bucket_line`). Returns when to do it again by itself, in milliseconds of the same clock.
    pub fn step_bucket(&self, now_ms: u64, wall_ms: i64) -> Option<u64> {
        let backup = self.shared.backup.as_ref()?;
        let mut worker = hold(&self.stepped_worker);
        let worker = worker.get_or_insert_with(Worker::new);
        worker.step(&self.shared, backup, now_ms, wall_ms)
    }

    /// Have `pump` called where a call waits for the bucket, until it need not wait any more. It calls `step_bucket`, and
    /// answers what the bucket is asked.
    pub fn set_pump(&self, pump: impl FnMut() + Send + 'static) {
        *hold(&self.shared.pump) = Some(Box::new(pump));
    }

    /// Ends a store without threads as a killed process does: nothing more is written.
    pub fn abandon(&self) {
        drop(hold(&self.shared.stepped).take());
        let mut state = self.shared.lock();
        self.shared.leaving.store(true, Ordering::Relaxed);
        state.closing = true;
        state.ended = Some("the process was killed".into());
        drop(state);
        drop(hold(&self.shared.pump).take());
        drop(hold(&self.lock).take());
    }
}
