//! Which store a bucket's copy belongs to, where a copy begins, and what a restore refuses.

mod common;

use std::{
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use common::{ALL, Client, PLAIN, create_log, put, tiny};
use sharecore_bucket::{Answer, Bucket, MemoryBucket, What};
use sharecore_store::{
    BackupOptions, BackupState, BackupStatus, LogId, Moment, Options, Restored, Store, restore,
};

fn options(writer: u8) -> Options {
    Options {
        bucket: Some(BackupOptions {
            cluster_id: "one".into(),
            writer: [writer; 16],
            ..BackupOptions::default()
        }),
        ..tiny()
    }
}

fn with(options: &Options, change: impl FnOnce(&mut BackupOptions)) -> Options {
    let mut options = options.clone();
    change(options.bucket.as_mut().expect("it is copied"));
    options
}

fn open(dir: &Path, options: &Options) -> Store {
    Store::open_stepped(dir, options).expect("it opens")
}

/// Let time pass until nothing is left to do.
fn settle(store: &Store, bucket: &mut MemoryBucket) -> BackupStatus {
    let line = store.bucket_line().expect("it is copied");
    for second in 0..1000 {
        store.step_bucket(second * 1000, second as i64 * 1000);
        while let Some(call) = line.next(Duration::ZERO) {
            line.answer(call.id, bucket.ask(call.what));
        }
        while store.step() || store.maintain() {}
    }
    store.bucket_status().expect("it is copied")
}

fn fill(store: &Store, log: LogId, batches: usize) {
    let client = Client {
        value_bytes: 500,
        ..PLAIN
    };
    for _ in 0..batches {
        put(store, log, client).expect("room");
    }
}

fn content(store: &Store, log: LogId) -> (i64, Vec<u8>) {
    let start = store.offsets(log).expect("a log").start;
    let slice = store.read(log, start, ALL).expect("readable");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("readable");
    (start, bytes)
}

fn restored(bucket: &mut MemoryBucket, dir: &Path, moment: Moment) -> Result<Restored, String> {
    restore(bucket, dir, moment, &mut |_| {}).map_err(|error| error.to_string())
}

fn assert_refused(status: &BackupStatus, why: &str) {
    assert_eq!(status.state, BackupState::Refused, "{status:?}");
    let stopped = status.stopped.as_deref().expect("a reason");
    assert!(stopped.contains(why), "{stopped}");
}

#[test]
fn a_directory_that_served_before_is_copied_from_a_checkpoint_on() {
    let (dir, target) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    fill(&store, log, 40);
    let moved = store.delete_records(log, 30).expect("room");
    store.wait(moved);
    while store.maintain() {}
    drop(store);
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    fill(&store, log, 1);
    let status = settle(&store, &mut bucket);
    assert_eq!(
        (status.state, status.behind_bytes),
        (BackupState::Leading, 0)
    );
    assert!(
        status.checkpoint_place > 0 && status.segments > 0,
        "{status:?}"
    );
    fill(&store, log, 2);
    settle(&store, &mut bucket);
    let found = restored(&mut bucket, target.path(), Moment::Latest).expect("it is there");
    assert_eq!(found.cluster_id, "one");
    assert_eq!(
        content(&open(target.path(), &tiny()), log),
        content(&store, log)
    );
}

#[test]
fn a_bucket_of_another_cluster_or_directory_is_refused() {
    let (dir, other) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    let log = create_log(&store);
    settle(&store, &mut bucket);
    let stranger = with(&options(2), |options| options.cluster_id = "two".into());
    let second = open(other.path(), &stranger);
    let before = bucket.clone();
    assert_refused(
        &settle(&second, &mut bucket),
        "holds the copy of cluster one",
    );
    drop(second);
    let second = open(other.path(), &options(2));
    create_log(&second);
    assert_refused(
        &settle(&second, &mut bucket),
        "the copy of another directory",
    );
    assert_eq!(bucket, before, "nothing was written");
    fill(&store, log, 1);
    assert_eq!(
        settle(&store, &mut bucket).stopped,
        None,
        "the first goes on"
    );
}

#[test]
fn of_two_that_go_on_with_one_copy_the_first_is_fenced_and_serves_on() {
    let (dir, other) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    let log = create_log(&store);
    fill(&store, log, 3);
    settle(&store, &mut bucket);
    restored(&mut bucket, other.path(), Moment::Latest).expect("it is there");
    let second = open(other.path(), &options(2));
    fill(&second, log, 1);
    assert_eq!(settle(&second, &mut bucket).epoch, 2);
    fill(&store, log, 2);
    let status = settle(&store, &mut bucket);
    assert_eq!(status.state, BackupState::Fenced);
    let stopped = status.stopped.expect("a reason");
    assert!(stopped.contains("another broker has claimed"), "{stopped}");
    fill(&store, log, 20);
    while store.maintain() {}
    drop(store);
    // Not even after a restart
    let store = open(dir.path(), &options(3));
    assert_refused(
        &settle(&store, &mut bucket),
        "the copy of another directory",
    );
    let target = tempfile::tempdir().expect("a third");
    restored(&mut bucket, target.path(), Moment::Latest).expect("it is there");
    assert_eq!(
        content(&open(target.path(), &tiny()), log),
        content(&second, log)
    );
}

#[test]
fn a_directory_that_lost_what_was_shipped_is_refused() {
    let (dir, old) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    let log = create_log(&store);
    settle(&store, &mut bucket);
    drop(store);
    for entry in std::fs::read_dir(dir.path()).expect("readable").flatten() {
        std::fs::copy(entry.path(), old.path().join(entry.file_name())).expect("a copy");
    }
    let store = open(dir.path(), &options(2));
    fill(&store, log, 2);
    settle(&store, &mut bucket);
    drop(store);
    std::fs::copy(
        dir.path().join("bucket.writers"),
        old.path().join("bucket.writers"),
    )
    .expect("a copy");
    let store = open(old.path(), &options(3));
    assert_refused(&settle(&store, &mut bucket), "has lost some");
    drop(store);
    // As many frames, but different ones
    let store = open(old.path(), &tiny());
    let other = Client {
        value_bytes: 400,
        ..PLAIN
    };
    for _ in 0..5 {
        put(&store, log, other).expect("room");
    }
    drop(store);
    let store = open(old.path(), &options(4));
    assert_refused(&settle(&store, &mut bucket), "have diverged");
}

#[test]
fn files_wait_for_the_bucket_up_to_a_bound_and_then_the_copy_begins_anew() {
    let (dir, target) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let mut bucket = MemoryBucket::default();
    let options = with(&options(1), |options| options.surplus_bytes = 20_000);
    let store = open(dir.path(), &options);
    let log = create_log(&store);
    fill(&store, log, 3);
    settle(&store, &mut bucket);
    let mut most = 0;
    for _ in 0..60 {
        // The bucket does not answer
        fill(&store, log, 5);
        let end = store.offsets(log).expect("a log").high_watermark;
        let moved = store.delete_records(log, end).expect("room");
        store.wait(moved);
        while store.maintain() {}
        store.step_bucket(0, 0);
        let files = std::fs::read_dir(dir.path()).expect("readable").flatten();
        let size = files
            .map(|file| file.metadata().expect("a file").len())
            .sum::<u64>();
        most = most.max(size);
    }
    assert!(most < 60_000, "{most} bytes on the disk");
    let status = settle(&store, &mut bucket);
    assert_eq!(
        (status.state, status.epoch, status.surplus_bytes),
        (BackupState::Leading, 2, 0)
    );
    fill(&store, log, 2);
    settle(&store, &mut bucket);
    restored(&mut bucket, target.path(), Moment::Latest).expect("it is there");
    assert_eq!(
        content(&open(target.path(), &tiny()), log),
        content(&store, log)
    );
}

#[test]
fn a_restore_names_the_damaged_object_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    let log = create_log(&store);
    fill(&store, log, 1);
    settle(&store, &mut bucket);
    fill(&store, log, 40);
    settle(&store, &mut bucket);
    let names: Vec<String> = bucket.objects().map(|(name, _)| name.into()).collect();
    let mut refused = 0;
    for name in &names {
        for is_lost in [true, false] {
            let mut harmed = bucket.clone();
            let mut body = bucket.get(name).expect("an object").to_vec();
            let middle = body.len() / 2;
            body[middle] ^= 1;
            harmed.set(name, (!is_lost).then_some(body));
            let target = tempfile::tempdir().expect("a directory");
            match restored(&mut harmed, target.path(), Moment::Latest) {
                // Damage in objects that the newest moment does not need
                Ok(_) => {
                    let found = open(target.path(), &tiny());
                    let (start, bytes) = content(&found, log);
                    let (own_start, own) = content(&store, log);
                    assert_eq!(start, own_start, "{name}");
                    assert!(own.starts_with(&bytes), "{name}: what is there is right");
                }
                Err(error) => {
                    refused += 1;
                    let is_named = error.contains(name.split('.').next().unwrap_or(name))
                        || error.contains("is lost, or the checkpoint that covers it")
                        || error.contains("format")
                        || error.contains("holds no copy")
                        || error.contains("no state that old");
                    assert!(is_named, "{name}, lost {is_lost}: {error}");
                    let left = std::fs::read_dir(target.path()).expect("readable").count();
                    assert_eq!(left, 0, "{name}");
                }
            }
        }
    }
    assert!(refused > 5, "{refused} of {}", names.len());
    let error = restored(&mut bucket, dir.path(), Moment::Latest).expect_err("it holds a store");
    assert!(error.contains("is not empty"), "{error}");
}

/// A bucket in which one object appears only after it was requested.
struct Late<'a> {
    bucket: &'a mut MemoryBucket,
    name: &'a str,
    is_there: bool,
}

impl Bucket for Late<'_> {
    fn ask(&mut self, what: What) -> Answer {
        let is_first =
            matches!(what, What::Get { .. }) && what.name() == self.name && !self.is_there;
        if is_first {
            self.is_there = true;
            return Answer::Absent;
        }
        self.bucket.ask(what)
    }
}

#[test]
fn an_object_that_is_written_while_it_is_looked_for_is_not_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut bucket = MemoryBucket::default();
    let store = open(dir.path(), &options(1));
    let log = create_log(&store);
    for _ in 0..3 {
        fill(&store, log, 1);
        settle(&store, &mut bucket);
    }
    let names: Vec<String> = bucket.objects().map(|(name, _)| name.into()).collect();
    let journal = names.iter().filter(|name| name.starts_with("journal/"));
    let mut looked_again = 0;
    for name in journal {
        let target = tempfile::tempdir().expect("a directory");
        let mut late = Late {
            bucket: &mut bucket,
            name,
            is_there: false,
        };
        restore(&mut late, target.path(), Moment::Latest, &mut |_| {})
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        looked_again += usize::from(late.is_there);
        let found = content(&open(target.path(), &tiny()), log);
        let own = content(&store, log);
        // The newest object may be one that is written after the restore has ended
        assert!(own.1.starts_with(&found.1), "{name}");
        assert!(
            found == own || Some(name) == names.iter().rfind(|it| it.starts_with("journal/")),
            "{name}"
        );
    }
    assert!(looked_again > 2, "{names:?}");
}

#[test]
fn a_store_with_threads_ships_what_is_left_when_it_is_closed() {
    let (dir, target) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("another"),
    );
    let bucket = Arc::new(Mutex::new(MemoryBucket::default()));
    let options = with(&options(1), |options| {
        options.interval_ms = 600_000;
        options.close_ms = 600_000;
    });
    let store = Store::open(dir.path(), &options).expect("it opens");
    let line = store.bucket_line().expect("it is copied");
    let transport = thread::spawn({
        let bucket = Arc::clone(&bucket);
        move || {
            while !line.is_closed() {
                if let Some(call) = line.next(Duration::from_millis(20)) {
                    let answer = bucket.lock().expect("no panic").ask(call.what);
                    line.answer(call.id, answer);
                }
            }
            // An answer that arrives too late
            line.answer(1, Answer::Done);
        }
    });
    let log = create_log(&store);
    fill(&store, log, 30);
    while store.bucket_status().expect("it is copied").state != BackupState::Leading {
        thread::sleep(Duration::from_millis(5));
    }
    let expected = content(&store, log);
    store.close();
    transport.join().expect("no panic");
    let mut bucket = bucket.lock().expect("no panic").clone();
    restored(&mut bucket, target.path(), Moment::Latest).expect("it is there");
    assert_eq!(content(&open(target.path(), &tiny()), log), expected);
}
