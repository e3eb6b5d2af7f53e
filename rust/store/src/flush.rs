//! The thread that commits: takes what is staged, writes and syncs it as one frame, reports the outcome.

use std::{io, sync::Arc, time::Instant};

use crate::{
    checkpoint::{self, Since},
    journal::Journal,
    maintain::Seal,
    segment::Kind,
    state::{Group, State},
    store::Shared,
};

/// About how many bytes one frame carries; whatever else is staged waits for the next.
const GROUP_BYTES: usize = 8 << 20;

pub(crate) fn run(shared: &Arc<Shared>, mut journal: Journal) {
    loop {
        let mut state = shared.lock();
        let work = loop {
            if let Some(work) = next(&mut state, &journal) {
                break work;
            }
            if state.closing {
                journal.finish();
                return;
            }
            state = shared.work.wait(state).expect("no panic under the lock");
        };
        drop(state);
        work.run(shared, &mut journal);
    }
}

/// Does what there is to do, once; returns whether there was anything.
pub(crate) fn step(shared: &Shared, journal: &mut Journal) -> bool {
    let work = next(&mut shared.lock(), journal);
    work.is_some_and(|work| {
        work.run(shared, journal);
        true
    })
}

enum Work {
    Commit(Group),
    /// To go on in a new segment, with nothing to write.
    Roll,
}

impl Work {
    fn run(self, shared: &Shared, journal: &mut Journal) {
        match self {
            Self::Commit(group) => {
                commit(shared, journal, group);
                shared.signal.raise();
                shared.settled.notify_all();
            }
            Self::Roll => {
                // a failure here is tried again when the cleaner asks again
                let _ = next_segment(shared, journal, None);
            }
        }
    }
}

fn next(state: &mut State, journal: &Journal) -> Option<Work> {
    if std::mem::take(&mut state.roll) && !journal.is_empty() {
        return Some(Work::Roll);
    }
    state
        .has_staged()
        .then(|| Work::Commit(state.take(GROUP_BYTES)))
}

fn commit(shared: &Shared, journal: &mut Journal, group: Group) {
    let mut ops = Vec::with_capacity(group.pending.len());
    for pending in &group.pending {
        pending.ops(&mut ops);
    }
    let room = if journal.is_full() {
        next_segment(shared, journal, Some(&group))
    } else {
        Ok(())
    };
    let begun = Instant::now();
    let written = room.and_then(|()| {
        let (segment, position) = (journal.segment, journal.position);
        let written = journal.write(&ops, &shared.fault)?;
        debug_assert_eq!(segment, journal.segment, "a frame lies in one segment");
        shared
            .counts
            .committed(begun.elapsed(), journal.position - position);
        Ok(written)
    });
    drop(ops);
    let mut state = shared.lock();
    match written {
        Ok(written) => {
            let garbage = state.committed(group, &written);
            if garbage {
                shared.maintenance.notify_all();
            }
        }
        Err(error) => {
            shared.counts.failed();
            let path = journal.dir.display();
            state.failed(group, &format!("writing to {path} failed: {error}"));
        }
    }
}

/// Goes on in a new segment, and hands the full one to the maintenance with a checkpoint of what has been committed.
fn next_segment(shared: &Shared, journal: &mut Journal, group: Option<&Group>) -> io::Result<()> {
    let next = shared.lock().segments.new_id();
    let (segment, position) = (journal.segment, journal.position);
    journal.rotate(next)?;
    let mut state = shared.lock();
    let since = Since {
        segment: next,
        frame: journal.next_frame,
    };
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
