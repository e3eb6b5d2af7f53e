//! Commits: staged operations are written and synced as one frame, and the outcome is reported. The committing thread, which
//! does it unless a caller's turn does (`turn`).

use std::{
    io, mem,
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use crate::{
    checkpoint::{self, Since},
    journal::{Journal, Written},
    maintain::Seal,
    pending::Pending,
    segment::Kind,
    shipping::{Full, Shipping},
    state::{Group, State, Writer},
    store::{Shared, Store, hold},
    turn::BYTES_MAX,
};

/// About how many bytes a frame carries; other staged operations wait for the next.
const GROUP_BYTES: usize = 8 << 20;

/// How long after a commit operations that nobody waits for may stay staged, to share the next commit.
const LINGER: Duration = Duration::from_millis(5);

pub(crate) fn run(shared: &Shared) {
    loop {
        let mut state = shared.lock();
        let work = loop {
            state = not_of_a_caller(shared, state);
            state.writer = Writer::Busy;
            let left = state
                .lingers_until
                .saturating_duration_since(Instant::now());
            let all = left.is_zero() || state.closing;
            let waits_for_turn = state.held && !state.closing;
            if !waits_for_turn && let Some(work) = next(&mut state, all) {
                break work;
            }
            if state.closing {
                return;
            }
            if left.is_zero() || waits_for_turn {
                state.writer = Writer::Idle;
                state = shared.work.wait(state).expect("no panic under the lock");
            } else {
                state.writer = Writer::Lingering;
                let woken = shared.work.wait_timeout(state, left);
                state = woken.expect("no panic under the lock").0;
            }
        };
        drop(state);
        if let Some(journal) = hold(&shared.journal).as_mut() {
            work.run(shared, journal);
        }
    }
}

/// Waits until no caller commits.
fn not_of_a_caller<'a>(
    shared: &'a Shared,
    mut state: MutexGuard<'a, State>,
) -> MutexGuard<'a, State> {
    while state.writer == Writer::Caller {
        drop(state);
        drop(hold(&shared.journal));
        state = shared.lock();
    }
    state
}

/// Does one step of pending work; returns whether there was any.
pub(crate) fn step(shared: &Shared, journal: &mut Journal) -> bool {
    let work = next(&mut shared.lock(), true);
    work.is_some_and(|work| {
        work.run(shared, journal);
        true
    })
}

impl Shared {
    /// Has what is staged committed at once, after releasing the lock: by the committing thread, or at the end of the turn.
    pub(crate) fn hurry(&self, mut state: MutexGuard<'_, State>) {
        state.hurry();
        if state.staged_bytes > BYTES_MAX {
            // the committing thread writes it before the turn ends
            state.held = false;
        }
        if !state.held {
            self.wake(state);
        }
    }

    /// Wakes the committing thread if it waits, after releasing the lock.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waits = matches!(state.writer, Writer::Idle | Writer::Lingering) && !self.is_stepped();
        if waits {
            state.writer = Writer::Busy;
        }
        drop(state);
        if waits {
            self.work.notify_one();
        }
    }

    /// Stages an operation.
    ///
    /// If it `lingers`, it is committed with the next one that does not, or some milliseconds after the last commit.
    pub(crate) fn stage(
        &self,
        mut state: MutexGuard<'_, State>,
        pending: Pending,
        lingers: bool,
    ) -> u64 {
        let sequence = state.stage(pending);
        debug_assert!(!state.is_settled(sequence), "it waits for its commit");
        if !lingers {
            self.hurry(state);
        } else if state.writer == Writer::Idle && !self.is_stepped() {
            if Instant::now() < state.lingers_until {
                // it begins to linger
                self.wake(state);
            } else {
                self.hurry(state);
            }
        }
        sequence
    }
}

impl Store {
    /// Commits lingering operations at once.
    pub fn hurry(&self) {
        let state = self.shared.lock();
        if state.has_staged() {
            self.shared.hurry(state);
        }
    }
}

pub(crate) enum Work {
    Commit(Group),
    /// Write a group whose outcome waits for the bucket.
    Ship(Arc<Group>),
    /// Begin a new segment unless this one is empty, with nothing to write.
    Roll,
}

impl Work {
    pub(crate) fn run(self, shared: &Shared, journal: &mut Journal) {
        match self {
            Self::Commit(group) => {
                commit(shared, journal, group);
                shared.signal.raise();
            }
            Self::Ship(group) => ship(shared, journal, group),
            Self::Roll if journal.is_empty() => {}
            Self::Roll => {
                // a failure here is retried when the cleaner asks again
                let _ = next_segment(shared, journal, None);
            }
        }
    }
}

/// `all`: lingering operations too.
pub(crate) fn next(state: &mut State, all: bool) -> Option<Work> {
    if mem::take(&mut state.roll) {
        return Some(Work::Roll);
    }
    let takes = state.is_urgent() || all && state.has_staged();
    if !takes || state.shipping.as_ref().is_some_and(Shipping::is_blocked) {
        return None;
    }
    let group = state.take(GROUP_BYTES);
    Some(match &mut state.shipping {
        None => Work::Commit(group),
        Some(shipping) => {
            let group = Arc::new(group);
            shipping.begin(&group);
            Work::Ship(group)
        }
    })
}

/// Writes a group as a frame.
fn write(shared: &Shared, journal: &mut Journal, group: &Group) -> io::Result<(Written, u64)> {
    assert!(!group.pending.is_empty(), "an empty commit");
    let mut ops = Vec::with_capacity(group.pending.len());
    for pending in &group.pending {
        pending.ops(&mut ops);
    }
    if journal.is_full() {
        next_segment(shared, journal, Some(group))?;
    }
    let begun = Instant::now();
    let (segment, position) = (journal.segment, journal.position);
    let written = journal.write(&ops, &shared.fault)?;
    debug_assert_eq!(segment, journal.segment, "a frame lies in one segment");
    assert!(journal.position > position, "nothing was written");
    assert_eq!(
        written.positions.len(),
        ops.len(),
        "each operation has its place"
    );
    let bytes = journal.position - position;
    let took = begun.elapsed();
    shared.counts.committed(took, bytes);
    shared.pace.committed(took);
    Ok((written, bytes))
}

fn why(journal: &Journal, error: &io::Error) -> String {
    format!("writing to {} failed: {error}", journal.dir.display())
}

/// Notifies the copy in a bucket.
fn report(shared: &Shared, journal: &Journal, bytes: u64) {
    if let Some(backup) = &shared.backup {
        backup.committed(journal.segment, journal.position, journal.next_frame, bytes);
    }
}

/// Writes a group whose outcome waits for the bucket.
fn ship(shared: &Shared, journal: &mut Journal, group: Arc<Group>) {
    let written = write(shared, journal, &group);
    drop(group);
    let mut state = shared.lock();
    state.lingers_until = Instant::now() + LINGER;
    if let Some(shipping) = &mut state.shipping {
        shipping.written(match &written {
            Ok((written, _)) => Ok((written.clone(), journal.next_frame - 1)),
            Err(error) => Err(why(journal, error)),
        });
    }
    if let Ok((_, bytes)) = written {
        drop(state);
        report(shared, journal, bytes);
    } else {
        shared.counts.failed();
        state.confirmed(shared, 0);
    }
}

/// Writes a group; its outcome is drained by whoever calls, or is signaled to.
pub(crate) fn commit(shared: &Shared, journal: &mut Journal, group: Group) {
    let written = write(shared, journal, &group);
    if let Ok((_, bytes)) = &written {
        report(shared, journal, *bytes);
    }
    let mut state = shared.lock();
    match written {
        Ok((written, _)) => {
            let garbage = state.committed(group, &written);
            if garbage {
                shared.maintenance.notify_all();
            }
        }
        Err(error) => {
            shared.counts.failed();
            state.failed(group, &why(journal, &error));
        }
    }
    state.lingers_until = Instant::now() + LINGER;
    let is_awaited = state.waiters > 0;
    drop(state);
    if is_awaited {
        shared.settled.notify_all();
    }
}

/// Begins a new segment, and hands the full one to maintenance with a checkpoint of everything committed.
fn next_segment(shared: &Shared, journal: &mut Journal, group: Option<&Group>) -> io::Result<()> {
    let next = shared.lock().segments.new_id();
    let (segment, position) = (journal.segment, journal.position);
    assert!(next > segment, "segments follow each other");
    journal.rotate(next)?;
    if let Some(backup) = &shared.backup {
        backup.rotated(next, journal.next_frame);
    }
    debug_assert!(journal.is_empty() && !journal.is_full(), "a fresh segment");
    let mut state = shared.lock();
    let since = Since {
        segment: next,
        frame: journal.next_frame,
    };
    if let Some(shipping) = &mut state.shipping {
        let full = Full {
            segment,
            position,
            since,
        };
        shipping.full(full);
        let file = Some(Arc::clone(&journal.file));
        state.segments.add(next, Kind::Journal, file);
        state.confirmed(shared, 0);
        return Ok(());
    }
    let checkpoint = Arc::new(checkpoint::encode(&state, group, since));
    state
        .segments
        .add(next, Kind::Journal, Some(Arc::clone(&journal.file)));
    state.seals.push_back(Seal {
        segment,
        position,
        next,
        checkpoint,
        indexed: None,
    });
    shared.maintenance.notify_all();
    Ok(())
}
