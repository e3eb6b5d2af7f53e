//! The committing thread: writes and syncs staged operations as one frame, and reports the outcome.

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
    store::{Shared, Store},
};

/// About how many bytes a frame carries; other staged operations wait for the next.
const GROUP_BYTES: usize = 8 << 20;

/// How long after a commit operations that nobody waits for may stay staged, to share the next commit.
const LINGER: Duration = Duration::from_millis(5);

pub(crate) fn run(shared: &Arc<Shared>, mut journal: Journal) {
    let mut lingers_until = Instant::now();
    loop {
        let mut state = shared.lock();
        let work = loop {
            let left = lingers_until.saturating_duration_since(Instant::now());
            let all = left.is_zero() || state.closing;
            if let Some(work) = next(&mut state, &journal, all) {
                break work;
            }
            if state.closing {
                journal.finish();
                return;
            }
            if left.is_zero() {
                state.writer = Writer::Idle;
                state = shared.work.wait(state).expect("no panic under the lock");
            } else {
                state.writer = Writer::Lingering;
                let woken = shared.work.wait_timeout(state, left);
                state = woken.expect("no panic under the lock").0;
            }
            state.writer = Writer::Busy;
        };
        drop(state);
        work.run(shared, &mut journal);
        lingers_until = Instant::now() + LINGER;
    }
}

/// Does one step of pending work; returns whether there was any.
pub(crate) fn step(shared: &Shared, journal: &mut Journal) -> bool {
    let work = next(&mut shared.lock(), journal, true);
    work.is_some_and(|work| {
        work.run(shared, journal);
        true
    })
}

impl Shared {
    /// Wakes the committing thread, after releasing the lock.
    pub(crate) fn hurry(&self, mut state: MutexGuard<'_, State>) {
        state.hurry();
        let waits = mem::replace(&mut state.writer, Writer::Busy) != Writer::Busy;
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
        if !lingers || state.writer == Writer::Idle {
            self.hurry(state);
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

enum Work {
    Commit(Group),
    /// Write a group whose outcome waits for the bucket.
    Ship(Arc<Group>),
    /// Begin a new segment, with nothing to write.
    Roll,
}

impl Work {
    fn run(self, shared: &Shared, journal: &mut Journal) {
        match self {
            Self::Commit(group) => {
                let is_awaited = commit(shared, journal, group);
                shared.signal.raise();
                if is_awaited {
                    shared.settled.notify_all();
                }
            }
            Self::Ship(group) => ship(shared, journal, group),
            Self::Roll => {
                // a failure here is retried when the cleaner asks again
                let _ = next_segment(shared, journal, None);
            }
        }
    }
}

/// `all`: lingering operations too.
fn next(state: &mut State, journal: &Journal, all: bool) -> Option<Work> {
    if mem::take(&mut state.roll) && !journal.is_empty() {
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
    shared.counts.committed(begun.elapsed(), bytes);
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

/// Returns whether a caller waits for an outcome.
fn commit(shared: &Shared, journal: &mut Journal, group: Group) -> bool {
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
    state.waiters > 0
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
