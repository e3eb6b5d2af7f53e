//! Reads in threads of the store.

mod common;

use std::{
    collections::BTreeSet,
    mem::MaybeUninit,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use common::{ALL, Client, PLAIN, create_log, open, put, tiny};
use sharecore_store::{FaultPoint, MemoryDisk, Options, ReadFrom, Store};

const SECONDS_MAX: Duration = Duration::from_secs(30);

/// Waits until `count` reads have ended.
fn ended(store: &Store, count: usize) -> BTreeSet<u64> {
    let began = Instant::now();
    let mut ended = BTreeSet::new();
    while ended.len() < count {
        assert!(began.elapsed() < SECONDS_MAX, "{ended:?} of {count}");
        ended.extend(store.drain().read);
        std::thread::sleep(Duration::from_millis(1));
    }
    ended
}

#[test]
fn what_is_filled_is_what_is_copied() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    for number in 0..60 {
        // Some are read alone, some share a read, some are still in the store's memory
        let value_bytes = if number % 7 == 0 { 20_000 } else { 30 };
        put(
            &store,
            log,
            Client {
                value_bytes,
                ..PLAIN
            },
        )
        .expect("appended");
    }
    let slice = store.read(log, 0, ALL).expect("a log");
    assert!(slice.file_bytes() > 0);
    assert!(slice.file_bytes() < slice.size, "the newest are in memory");
    let mut copied = vec![0; slice.size];
    slice.copy_to(&mut copied).expect("readable");
    let mut filled = vec![MaybeUninit::new(0xff); slice.size];
    assert_eq!(slice.fill(ReadFrom::Disk, &mut filled), Ok(true));
    // SAFETY: all of them were initialized at the start
    let filled: Vec<u8> = filled
        .iter()
        .map(|byte| unsafe { byte.assume_init() })
        .collect();
    assert!(filled == copied);
    slice
        .check(&filled)
        .expect("the batches that were looked for");
}

#[test]
fn several_threads_read_at_a_time_and_the_store_reports_which_reads_have_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let together = Arc::new(Barrier::new(Options::default().read_threads));
    let read = || {
        let together = Arc::clone(&together);
        store.read_apart(Box::new(move || {
            together.wait();
        }))
    };
    let numbers: BTreeSet<u64> = (0..4 * Options::default().read_threads)
        .map(|_| read())
        .collect();
    assert_eq!(ended(&store, numbers.len()), numbers);
}

#[test]
fn reads_of_the_disk_do_not_wait_for_those_of_the_bucket() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Arc::new(Mutex::new(goes_on));
    let waiting: BTreeSet<u64> = (0..2 * Options::default().read_threads)
        .map(|_| {
            let goes_on = Arc::clone(&goes_on);
            store.read_apart_from(ReadFrom::Bucket, move |_| {
                let goes_on = goes_on.lock().expect("no panic");
                goes_on.recv().expect("the test lets the read end");
                true
            })
        })
        .collect();
    let local: BTreeSet<u64> = (0..10).map(|_| store.read_apart(|| ())).collect();
    assert_eq!(ended(&store, local.len()), local);
    for _ in &waiting {
        go_on.send(()).expect("the reads wait");
    }
    assert_eq!(ended(&store, waiting.len()), waiting);
}

#[test]
fn a_read_of_the_disk_that_needs_the_bucket_goes_on_in_another_thread() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        read_threads: 1,
        ..Options::default()
    };
    let store = open(dir.path(), &options);
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (sender, received) = mpsc::channel();
    let moved = store.read_apart_from(ReadFrom::Disk, move |from| {
        sender.send(from).expect("the test listens");
        if from == ReadFrom::Bucket {
            goes_on.recv().expect("the test lets the read end");
        }
        from == ReadFrom::Bucket
    });
    // the only thread for the disk is free
    let local = store.read_apart(|| ());
    assert_eq!(ended(&store, 1), [local].into());
    go_on.send(()).expect("it waits");
    assert_eq!(ended(&store, 1), [moved].into());
    assert_eq!(
        received.iter().collect::<Vec<_>>(),
        [ReadFrom::Disk, ReadFrom::Bucket]
    );
}

#[test]
fn reads_end_if_no_thread_can_be_started_for_the_bucket() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let (sender, received) = mpsc::channel();
    let read = |from| {
        let sender = sender.clone();
        store.read_apart_from(from, move |from| {
            sender.send(from).expect("the test listens");
            from == ReadFrom::Bucket
        })
    };
    store.fault().plan(FaultPoint::Thread, 11, 1, u64::MAX);
    let moved = read(ReadFrom::Disk);
    assert_eq!(ended(&store, 1), [moved].into());
    let direct = read(ReadFrom::Bucket);
    assert_eq!(ended(&store, 1), [direct].into());
    // the caller has done the second one
    store.fault().clear();
    let threaded = read(ReadFrom::Disk);
    assert_eq!(ended(&store, 1), [threaded].into());
    assert_eq!(
        received.try_iter().collect::<Vec<_>>(),
        [
            ReadFrom::Disk,
            ReadFrom::Bucket,
            ReadFrom::Bucket,
            ReadFrom::Disk,
            ReadFrom::Bucket
        ]
    );
}

#[test]
fn a_read_that_panics_ends_and_its_thread_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        read_threads: 1,
        ..Options::default()
    };
    let store = open(dir.path(), &options);
    let failing = store.read_apart(Box::new(|| panic!("a defect")));
    let next = store.read_apart(Box::new(|| ()));
    assert_eq!(ended(&store, 2), [failing, next].into());
}

#[test]
fn what_has_not_begun_when_the_store_is_closed_is_forgotten() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        read_threads: 1,
        ..Options::default()
    };
    let store = open(dir.path(), &options);
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let first = store.read_apart(Box::new(move || {
        begun.send(()).expect("the test waits");
        goes_on.recv().expect("the test lets the read end");
    }));
    has_begun.recv_timeout(SECONDS_MAX).expect("a thread");
    let others = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let others = Arc::clone(&others);
        store.read_apart(Box::new(move || {
            others.fetch_add(1, Ordering::Relaxed);
        }));
    }
    std::thread::scope(|threads| {
        let closing = threads.spawn(|| store.close());
        while store.has_reads() {
            std::thread::yield_now();
        }
        assert!(!closing.is_finished(), "the read under way is waited for");
        go_on.send(()).expect("the read waits");
    });
    assert_eq!(store.drain().read, [first]);
    store.read_apart(Box::new(|| panic!("the store is closed")));
    assert!(!store.has_reads());
    assert_eq!(others.load(Ordering::Relaxed), 0);
}

#[test]
fn a_store_without_threads_reads_when_it_is_stepped() {
    let dir = tempfile::tempdir().expect("a directory");
    let _disk = MemoryDisk::mount(dir.path(), 1);
    let store = Store::open_stepped(dir.path(), &tiny()).expect("a store");
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let number = store.read_apart(Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    assert!(store.has_reads());
    assert_eq!(read.load(Ordering::Relaxed), 0);
    assert!(store.step_read());
    assert!(!store.step_read());
    assert_eq!(read.load(Ordering::Relaxed), 1);
    assert_eq!(store.drain().read, [number]);
}
