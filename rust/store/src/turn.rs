//! Commits in a caller's own turn: a caller that has nothing else to do writes by itself, and spares two wake-ups of threads.

use std::{
    mem,
    sync::{
        MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{
    flush::{self, Work},
    options::{Durability, Options, OwnCommits},
    state::{State, Writer},
    store::{Shared, Store, hold},
};

/// Larger commits are the committing thread's.
pub(crate) const BYTES_MAX: usize = 128 << 10;

/// How long commits take lately.
#[derive(Debug)]
pub(crate) struct Pace {
    nanoseconds: AtomicU64,
}

impl Pace {
    /// A long time, until there were some commits.
    pub(crate) fn new() -> Self {
        Self {
            nanoseconds: AtomicU64::new(Duration::from_millis(10).as_nanos() as u64),
        }
    }

    /// Called by whoever has the journal: by one at a time.
    pub(crate) fn committed(&self, took: Duration) {
        let before = self.nanoseconds.load(Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds
            .store(before - before / 8 + took / 8, Relaxed);
    }

    fn usual(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Relaxed))
    }
}

/// When a store with `options` leaves commits to its callers.
pub(crate) fn own_commits(options: &Options) -> OwnCommits {
    let clients_max = options.own_commits.clients_max;
    OwnCommits {
        clients_max: match options.durability {
            Durability::Os => clients_max,
            Durability::Fsync => clients_max.min(1),
            Durability::Bucket => 0,
        },
        ..options.own_commits
    }
}

impl Store {
    /// Begins a turn of the caller in which it serves `clients`. What is staged during it is committed at its end, by the caller
    /// if they are few and commits take little time. Each turn is ended by `end_turn`, or left by `leave_turn`.
    pub fn begin_turn(&self, clients: usize) {
        if !self.may_commit(clients) || self.shared.pace.usual() > self.own_commits.time_max {
            return;
        }
        let mut state = self.shared.lock();
        state.held = !state.closing && state.writer != Writer::Busy;
    }

    fn may_commit(&self, clients: usize) -> bool {
        let clients_max = self.own_commits.clients_max;
        clients_max > 0 && clients <= clients_max
    }

    /// Ends a turn in which `clients` were served. Returns whether the caller has committed, so that it must `drain`.
    pub fn end_turn(&self, clients: usize) -> bool {
        let shared = &*self.shared;
        let mut state = shared.lock();
        if !mem::take(&mut state.held) {
            return false;
        }
        let waits = matches!(state.writer, Writer::Idle | Writer::Lingering);
        let is_own = waits && state.is_urgent() && !state.closing && !state.roll;
        if !is_own || state.staged_bytes > BYTES_MAX || !self.may_commit(clients) {
            shared.pass_on(state);
            return false;
        }
        let before = mem::replace(&mut state.writer, Writer::Caller);
        drop(state);
        let mut journal = hold(&shared.journal);
        let mut commits = false;
        if let Some(journal) = journal.as_mut().filter(|it| !it.is_full()) {
            let work = flush::next(&mut shared.lock(), true);
            commits = work.is_some();
            match work {
                Some(Work::Commit(group)) => flush::commit(shared, journal, group),
                // asked for by another thread since
                Some(roll @ Work::Roll) => roll.run(shared, journal),
                Some(Work::Ship(_)) => unreachable!("a home's commits wait for the bucket"),
                None => {}
            }
        }
        let mut state = shared.lock();
        debug_assert_eq!(state.writer, Writer::Caller, "another one commits, too");
        state.writer = before;
        shared.pass_on(state);
        commits
    }

    /// Ends a turn that went wrong: the committing thread takes what it has staged.
    pub fn leave_turn(&self) {
        let mut state = self.shared.lock();
        if mem::take(&mut state.held) {
            self.shared.pass_on(state);
        }
    }
}

impl Shared {
    /// Wakes the committing thread if there is work that it does not notice by itself.
    fn pass_on(&self, state: MutexGuard<'_, State>) {
        let lingers = state.writer == Writer::Idle && state.has_staged();
        if lingers || state.is_urgent() || state.closing || state.roll {
            self.wake(state);
        }
    }
}
