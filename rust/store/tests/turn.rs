//! A caller commits in its own turn if it serves few clients and commits are short; else the committing thread does.

mod common;

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use common::{PLAIN, batches, create_log, open, put, tiny};
use sharecore_store::{Durability, FaultPoint, LogId, Options, OwnCommits, Store};

const FULL_DISK: i32 = 28;

/// A store that commits in its callers' turns, however long commits take.
fn options(clients_max: usize) -> Options {
    Options {
        durability: Durability::Os,
        own_commits: OwnCommits {
            clients_max,
            time_max: Duration::MAX,
        },
        ..Options::default()
    }
}

/// Whether the store asks for a `drain`, at once or within some time.
fn is_signaled(store: &Store, within_s: i64) -> bool {
    // SAFETY: the store is open
    let signal = unsafe { BorrowedFd::borrow_raw(store.fileno()) };
    let mut polled = [rustix::event::PollFd::from_borrowed_fd(
        signal,
        rustix::event::PollFlags::IN,
    )];
    let within = rustix::event::Timespec {
        tv_sec: within_s,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut polled, Some(&within)).expect("polled") > 0
}

/// Waits until the committing thread has nothing to do, and passes on what it did.
fn settle(store: &Store, log: LogId) {
    put(store, log, PLAIN).expect("appended");
    store.drain();
    // the thread may be between its last commit and its next wait
    for _ in 0..10_000 {
        store.begin_turn(1);
        let appended = store.append(log, &PLAIN.bytes(), 1000).expect("room");
        let is_own = store.end_turn(1);
        store.wait(appended.sequence);
        store.drain();
        if is_own {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
    panic!("no turn had a commit of its own");
}

#[test]
fn what_a_turn_stages_is_durable_at_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(16);
    let first = store.append(log, &PLAIN.bytes(), 1000).expect("room");
    let second = store.append(log, &PLAIN.bytes(), 1000).expect("room");
    let before = store.offsets(log).expect("a log").high_watermark;
    assert_eq!(before, first.base_offset, "the turn has not ended");
    let commits = store.figures().commits.iter().sum::<u64>();
    assert!(store.end_turn(1));
    assert!(!is_signaled(&store, 0), "the caller knows by itself");
    let drained = store.drain();
    assert_eq!(drained.outcomes.len(), 1);
    assert_eq!(drained.outcomes[0].sequence, second.sequence);
    assert_eq!(drained.outcomes[0].error, None);
    assert_eq!(drained.moved[0].1.high_watermark, second.last_offset + 1);
    assert_eq!(store.figures().commits.iter().sum::<u64>(), commits + 1);
    store.close();
    let store = open(dir.path(), &options(16));
    assert_eq!(
        store.offsets(log).expect("a log").high_watermark,
        second.last_offset + 1
    );
}

#[test]
fn a_thread_commits_for_many_clients() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(17);
    let appended = store.append(log, &PLAIN.bytes(), 1000).expect("room");
    assert!(!store.end_turn(1));
    assert!(is_signaled(&store, 20));
    assert_eq!(store.drain().outcomes[0].sequence, appended.sequence);
}

#[test]
fn a_thread_commits_where_turns_may_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let synced = Options {
        durability: Durability::Fsync,
        ..options(16)
    };
    let slow = Options {
        own_commits: OwnCommits {
            time_max: Duration::ZERO,
            ..options(16).own_commits
        },
        ..options(16)
    };
    for (options, clients) in [(synced, 2), (slow, 1), (options(0), 1), (options(0), 0)] {
        let store = open(dir.path(), &options);
        let log = create_log(&store);
        for _ in 0..100 {
            store.begin_turn(clients);
            let appended = store.append(log, &PLAIN.bytes(), 1000).expect("room");
            assert!(!store.end_turn(clients));
            store.wait(appended.sequence);
        }
    }
}

#[test]
fn a_turn_of_one_client_syncs_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        durability: Durability::Fsync,
        ..options(16)
    };
    let store = open(dir.path(), &options);
    let log = create_log(&store);
    settle(&store, log);
}

#[test]
fn large_writes_are_a_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(1);
    let large = common::Client {
        value_bytes: 200 << 10,
        ..PLAIN
    };
    let appended = store.append(log, &large.bytes(), 1000).expect("room");
    assert!(!store.end_turn(1));
    store.wait(appended.sequence);
}

#[test]
fn a_turn_that_waits_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(1);
    put(&store, log, PLAIN).expect("appended");
    assert!(!store.end_turn(1), "the thread has committed");
}

#[test]
fn an_empty_turn_commits_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    let commits = store.figures().commits.iter().sum::<u64>();
    store.begin_turn(1);
    assert!(!store.end_turn(1));
    assert!(!store.end_turn(1), "a turn that never began");
    assert_eq!(store.figures().commits.iter().sum::<u64>(), commits);
}

#[test]
fn full_segments_are_begun_by_the_thread() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        segment_bytes: tiny().segment_bytes,
        ..options(16)
    };
    let store = open(dir.path(), &options);
    let log = create_log(&store);
    let mut own = 0;
    for round in 0..1000 {
        store.begin_turn(1);
        let appended = store.append(log, &PLAIN.bytes(), 1000).expect("room");
        own += i64::from(store.end_turn(1));
        store.wait(appended.sequence);
        assert_eq!(store.offsets(log).expect("a log").high_watermark, round + 1);
    }
    assert!(store.figures().segments > 10);
    assert!(own > 0);
    assert_eq!(batches(&store, log, 0).len(), 1000);
}

#[test]
fn a_write_that_fails_in_a_turn_is_undone() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    let end = store.offsets(log).expect("a log").high_watermark;
    store.fault().plan(FaultPoint::Write, FULL_DISK, 0, 1);
    store.begin_turn(1);
    let appended = store.append(log, &PLAIN.bytes(), 1000).expect("room");
    assert!(store.end_turn(1));
    let drained = store.drain();
    assert_eq!(drained.outcomes[0].sequence, appended.sequence);
    assert!(drained.outcomes[0].error.is_some());
    assert_eq!(store.offsets(log).expect("a log").high_watermark, end);
    // the segment is not trusted any more: the thread begins another
    store.begin_turn(1);
    let again = store.append(log, &PLAIN.bytes(), 1000).expect("room");
    assert_eq!(again.base_offset, end);
    assert!(!store.end_turn(1));
    store.wait(again.sequence);
    assert_eq!(store.offsets(log).expect("a log").high_watermark, end + 1);
}

#[test]
fn a_segment_asked_for_in_a_turn_is_begun() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    let segments = store.figures().segments;
    store.begin_turn(1);
    store.roll().expect("a store that writes");
    assert!(!store.end_turn(1));
    for _ in 0..10_000 {
        if store.figures().segments > segments {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody began it");
}

#[test]
fn what_a_turn_leaves_is_committed() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(1);
    store.append(log, &PLAIN.bytes(), 1000).expect("room");
    store.leave_turn();
    assert!(is_signaled(&store, 20));
}

/// The committing thread writes what is too large for a turn before the turn ends.
#[test]
fn large_writes_do_not_wait_for_the_end_of_a_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    settle(&store, log);
    store.begin_turn(1);
    let large = common::Client {
        value_bytes: 200 << 10,
        ..PLAIN
    };
    store.append(log, &large.bytes(), 1000).expect("room");
    assert!(is_signaled(&store, 20));
    assert!(!store.end_turn(1));
}

#[test]
fn what_lingers_is_not_forgotten_by_a_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    let records = &[(Some(&b"key"[..]), Some(&b"value"[..]))];
    for pause_ms in [0, 3, 6, 9] {
        settle(&store, log);
        let first = store.append_local(log, records, None, 1, true);
        store.begin_turn(1);
        // the time to linger may end in the turn
        thread::sleep(Duration::from_millis(pause_ms));
        let second = store.append_local(log, records, None, 1, true);
        store.end_turn(1);
        store.wait(first.expect("room").sequence);
        store.wait(second.expect("room").sequence);
    }
}

#[test]
fn what_lingers_behind_a_turn_is_committed_soon() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(16));
    let log = create_log(&store);
    for _ in 0..20 {
        settle(&store, log);
        let records = &[(Some(&b"key"[..]), Some(&b"value"[..]))];
        let lingering = store
            .append_local(log, records, None, 1, true)
            .expect("room");
        store.wait(lingering.sequence);
    }
}

/// Threads that stage beside a caller with turns, and one that closes the store: all that is accepted has an outcome, in order.
#[test]
fn turns_and_threads_commit_everything_in_order() {
    for (durability, turns) in [(Durability::Os, 2000), (Durability::Fsync, 200)] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options {
            durability,
            segment_bytes: 64 << 10,
            ..options(16)
        };
        let store = Arc::new(open(dir.path(), &options));
        let logs: Vec<_> = (0..4).map(|_| create_log(&store)).collect();
        let ends = Arc::new(AtomicBool::new(false));
        let appended = Arc::new(AtomicU64::new(0));
        let others: Vec<_> = logs[1..]
            .iter()
            .map(|&log| {
                let (store, ends, appended) =
                    (Arc::clone(&store), Arc::clone(&ends), Arc::clone(&appended));
                thread::spawn(move || {
                    while !ends.load(Ordering::Relaxed) {
                        put(&store, log, PLAIN).expect("appended");
                        appended.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_micros(200));
                    }
                })
            })
            .collect();
        let (mut own, mut settled, mut last) = (0, 0, 0);
        for _ in 0..turns {
            store.begin_turn(1);
            last = store
                .append(logs[0], &PLAIN.bytes(), 1000)
                .expect("room")
                .sequence;
            if store.end_turn(1) {
                own += 1;
            } else {
                store.wait(last);
            }
            for outcome in store.drain().outcomes {
                assert!(outcome.sequence > settled, "writes end in order");
                assert_eq!(outcome.error, None);
                settled = outcome.sequence;
            }
        }
        store.wait(last);
        ends.store(true, Ordering::Relaxed);
        for other in others {
            other.join().expect("no panic");
        }
        // three threads that wait for syncs may leave the committing thread no rest
        assert!(own > 0 || durability == Durability::Fsync);
        store.close();
        let store = open(dir.path(), &options);
        let ends: Vec<_> = logs
            .iter()
            .map(|&log| store.offsets(log).expect("a log").high_watermark)
            .collect();
        assert_eq!(ends[0], turns);
        assert_eq!(
            ends[1..].iter().sum::<i64>() as u64,
            appended.load(Ordering::Relaxed)
        );
    }
}
