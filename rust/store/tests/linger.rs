//! Appends that no one waits for are committed with the next commit, or on their own after some milliseconds.

mod common;

use std::time::{Duration, Instant};

use common::{PLAIN, batches, create_log, open, put};
use sharecore_store::{Appended, LogId, Options, Store};

/// An append checked sooner than this after a commit is still in time.
const LINGER: Duration = Duration::from_millis(5);
const ROUNDS: usize = 1000;

fn linger(store: &Store, log: LogId) -> Appended {
    store
        .append_local(log, &[(Some(b"key"), Some(b"value"))], None, 1, true)
        .expect("room")
}

fn commits(store: &Store) -> u64 {
    store.figures().commits.iter().sum()
}

#[test]
fn what_lingers_shares_the_next_commit() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let (ours, theirs) = (create_log(&store), create_log(&store));
    let mut shared = 0;
    for round in 1..=ROUNDS as i64 {
        let began = Instant::now();
        put(&store, theirs, PLAIN).expect("appended");
        let before = commits(&store);
        let lingering = linger(&store, ours);
        std::thread::sleep(Duration::from_micros(500));
        let end = store.offsets(ours).expect("a log").high_watermark;
        let next = store.append(theirs, &PLAIN.bytes(), 1000).expect("room");
        let in_time = began.elapsed() < LINGER;
        store.wait(next.sequence);
        assert_eq!(store.offsets(ours).expect("a log").high_watermark, round);
        if in_time {
            assert_eq!(
                end, lingering.base_offset,
                "nothing was committed for it alone"
            );
            assert_eq!(commits(&store), before + 1);
            shared += 1;
        }
        if shared == 20 {
            return;
        }
    }
    panic!("{shared} of {ROUNDS} rounds were quick enough to see anything");
}

#[test]
fn what_lingers_is_committed_once_somebody_is_in_a_hurry() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    store.hurry();
    let mut quick = 0;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        put(&store, log, PLAIN).expect("appended");
        let lingering = linger(&store, log);
        store.hurry();
        store.wait(lingering.sequence);
        quick += usize::from(began.elapsed() < LINGER);
        if quick == 20 {
            return;
        }
    }
    panic!("{quick} of {ROUNDS} writes were quick");
}

#[test]
fn what_lingers_is_durable_soon_where_nothing_follows() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    for pause in [Duration::ZERO, LINGER * 4] {
        // Right after a commit, and long after one
        std::thread::sleep(pause);
        let lingering = linger(&store, log);
        store.wait(lingering.sequence);
        let end = store.offsets(log).expect("a log").high_watermark;
        assert_eq!(end, lingering.last_offset + 1);
    }
}

#[test]
fn what_lingers_is_committed_by_a_store_that_closes() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    linger(&store, log);
    store.close();
    let store = open(dir.path(), &Options::default());
    assert_eq!(batches(&store, log, 0), [(0, 0)]);
}
