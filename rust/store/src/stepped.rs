//! A store without threads, for simulations, which decide when it commits and does maintenance.

use std::{path::Path, sync::atomic::Ordering};

use crate::{
    bucket::Worker,
    error::StoreError,
    flush, maintain,
    options::Options,
    state::Writer,
    store::{Shared, Store, hold},
};

impl Shared {
    /// Whether a simulation commits, and no thread.
    pub(crate) fn is_stepped(&self) -> bool {
        self.stepped.load(Ordering::Relaxed)
    }

    /// Commits once if no thread does; returns whether there was anything.
    pub(crate) fn step(&self) -> bool {
        self.is_stepped()
            && hold(&self.journal)
                .as_mut()
                .is_some_and(|journal| flush::step(self, journal))
    }

    /// Lets simulated time pass, if a simulation asked for it.
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
    /// As `open`, without threads: a simulation calls `step` to commit, `step_read` for reads apart, and `maintain` to
    /// seal or rewrite segments.
    pub fn open_stepped(dir: &Path, options: &Options) -> Result<Self, StoreError> {
        let options = Options {
            read_threads: 0,
            ..options.clone()
        };
        let (store, journal) = Self::recover(dir, &options)?;
        *hold(&store.shared.journal) = Some(journal);
        store.shared.stepped.store(true, Ordering::Relaxed);
        store.shared.lock().writer = Writer::Idle;
        Ok(store)
    }

    /// Whether an operation waits to be committed.
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
        self.shared.is_stepped()
            && hold(&self.shared.journal).is_some()
            && maintain::step(&self.shared, &self.dir, self.segment_bytes)
    }

    /// Runs the copy in a bucket once, in a store without threads: handles answers, and makes the calls that are due
    /// (`bucket_line`). Returns when it is due again, in milliseconds of the same clock.
    pub fn step_bucket(&self, now_ms: u64, wall_ms: i64) -> Option<u64> {
        let backup = self.shared.backup.as_ref()?;
        let mut worker = hold(&self.stepped_worker);
        let worker = worker.get_or_insert_with(|| Worker::new(backup));
        worker.step(&self.shared, backup, now_ms, wall_ms)
    }

    /// Sets `pump`, which is called repeatedly while a call waits for the bucket. It must call `step_bucket` and answer
    /// the bucket's calls.
    pub fn set_pump(&self, pump: impl FnMut() + Send + 'static) {
        *hold(&self.shared.pump) = Some(Box::new(pump));
    }

    /// Whether an operation has an outcome, which `drain` returns.
    pub fn is_settled(&self, sequence: u64) -> bool {
        let state = self.shared.lock();
        state.is_settled(sequence) || state.ended.is_some()
    }

    /// Ends a store without threads as a killed process would: nothing more is written.
    pub fn abandon(&self) {
        drop(hold(&self.shared.journal).take());
        let mut state = self.shared.lock();
        self.shared.leaving.store(true, Ordering::Relaxed);
        state.closing = true;
        state.ended = Some("the process was killed".into());
        drop(state);
        drop(hold(&self.shared.pump).take());
        drop(hold(&self.lock).take());
    }
}
