//! A store whose confirmations wait for its bucket, over a network that loses, delays and repeats requests, through kills, lost
//! disks and takeovers: everything confirmed exists from then on, and nothing unconfirmed breaks a start.

mod bounded;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod full_disk;
mod hanging;
mod idle;
mod network;
mod pair;
mod set_back;
mod standby;
mod takeover;
mod unwaiting;
mod world;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use common::{Client, PLAIN, tiny};
use files::{directory, numbers};
use sharecore_bucket::{
    Body, Bucket, Kind, MemoryBucket,
    mistakes::{Mistake, plant},
    names, read,
};
use sharecore_store::{
    BackupState, BucketError, Change, JournalCache, Moment, Prepared, Store, has_own_data,
    prepare_home, restore,
};
use world::{NUMBERED, World, options};

/// Prepare a directory for a store without a bound.
fn prepare(
    bucket: &mut dyn Bucket,
    dir: &Path,
    cluster: (Option<&str>, &str),
    journal: Option<&JournalCache>,
) -> Result<Prepared, BucketError> {
    prepare_home(bucket, dir, cluster, journal, false, &mut |_| {})
}

/// Return how many segments have left the disk.
fn run(seed: u64, actions: u64, is_bounded: bool) -> u64 {
    let mut world = World::keeping(seed, 15, is_bounded);
    for _ in 0..actions {
        world.act();
    }
    world.settle();
    world.check();
    for (log, (next, _)) in &world.sequences {
        // Each batch has one record, so its offset equals its sequence unless a batch was lost or duplicated
        let offsets = world.leader.store.offsets(*log).expect("a log");
        assert_eq!(offsets.high_watermark, i64::from(*next), "log {log}");
    }
    let target = directory();
    let mut bucket = world.network.lock().expect("one thread").bucket.clone();
    restore(&mut bucket, target.path(), Moment::Latest, &mut |_| {}).expect("it is whole");
    let store = Store::open_stepped(target.path(), &tiny()).expect("it opens");
    for put in &world.answered {
        let entries = store.entries(&put.to_be_bytes());
        assert_eq!(entries.len(), 1, "entry {put} was answered");
    }
    for log in 1..=NUMBERED {
        assert_eq!(
            numbers(&store, log),
            numbers(&world.leader.store, log),
            "log {log}"
        );
    }
    world.evicted
}

#[test]
fn what_was_answered_outlives_kills_lost_disks_and_takeovers() {
    for seed in (0..60).chain([2957]) {
        println!("seed {seed}");
        run(seed, 150, false);
    }
}

/// Run a store until nothing is left to do, or everything left waits for a journal object from this place on.
fn settle_up_to(store: &Store, bucket: &mut MemoryBucket, place: u64) {
    let line = store.bucket_line().expect("it has a bucket");
    for second in 0..100 {
        store.step_bucket(second * 1000, second as i64 * 1000);
        while let Some(call) = line.next(Duration::ZERO) {
            if names::parse_journal(call.what.name()).is_none_or(|it| it < place) {
                line.answer(call.id, bucket.ask(call.what));
            }
        }
        while store.step() {}
    }
}

/// True if a producer's next batch is accepted by a store that starts from a checkpoint created while an earlier batch was
/// pending.
fn is_taken_after_a_checkpoint() -> bool {
    let (dir, target) = (directory(), directory());
    let mut bucket = MemoryBucket::default();
    let mut options = options(1);
    options.bucket.as_mut().expect("it has one").beat_ms = 0;
    let store = Store::open_stepped(dir.path(), &options).expect("it opens");
    settle_up_to(&store, &mut bucket, u64::MAX);
    let batch = |sequence| Client {
        producer: (7, 0, sequence),
        ..PLAIN
    };
    let append = |store: &Store, sequence| store.append(1, &batch(sequence).bytes(), 1000);
    store.change(vec![Change::CreateLog(1)]).expect("room");
    append(&store, 0).expect("room");
    while store.step() {}
    store.roll().expect("room");
    while store.step() {}
    append(&store, 1).expect("room");
    while store.step() {}
    // The objects after the claim belong to the first segment and then to the second
    settle_up_to(&store, &mut bucket, 3);
    let outcomes = store.drain().outcomes;
    assert_eq!(
        outcomes.last().map(|it| it.sequence),
        Some(2),
        "the second is not"
    );
    assert!(store.maintain(), "the first segment is sealed");
    store.abandon();
    // A start for which the second object was never written
    for name in [
        "0000000000000001.journal",
        "0000000000000002.checkpoint",
        "format",
    ] {
        fs::copy(dir.path().join(name), target.path().join(name)).expect("it is there");
    }
    let begun = fs::read(dir.path().join("0000000000000002.journal")).expect("it is there");
    fs::write(target.path().join("0000000000000002.journal"), &begun[..32]).expect("written");
    let store = Store::open_stepped(target.path(), &tiny()).expect("it opens");
    let appended = append(&store, 1).expect("it is new");
    store.wait(appended.sequence);
    store.offsets(1).expect("a log").high_watermark == 2
}

#[test]
fn a_checkpoint_leaves_out_what_is_under_way() {
    assert!(is_taken_after_a_checkpoint());
    plant(Some(Mistake::CheckpointUnshipped));
    let is_taken = is_taken_after_a_checkpoint();
    plant(None);
    assert!(!is_taken, "the mistake is found");
}

/// The time in milliseconds, and a bucket that answers at once.
type Surroundings = Arc<Mutex<(u64, MemoryBucket)>>;

/// Give a store a bucket; each call of the function lets it go on for 100 ms, also while a call of the store waits.
fn pumped(store: &Arc<Store>) -> (Surroundings, impl Fn() + Clone + use<>) {
    let world = Surroundings::default();
    let (waiting, shared) = (Arc::downgrade(store), Arc::clone(&world));
    let tick = move || {
        let (now_ms, bucket) = &mut *shared.lock().expect("one thread");
        let store: Arc<Store> = waiting.upgrade().expect("it is open");
        *now_ms += 100;
        store.step_bucket(*now_ms, *now_ms as i64);
        let line = store.bucket_line().expect("it has a bucket");
        while let Some(call) = line.next(Duration::ZERO) {
            line.answer(call.id, bucket.ask(call.what));
        }
    };
    store.set_pump(tick.clone());
    (world, tick)
}

/// The kinds of the objects of a journal, in the order of their places.
fn kinds(bucket: &MemoryBucket) -> Vec<Kind> {
    let journal = bucket
        .objects()
        .filter(|(name, _)| name.starts_with(names::JOURNAL));
    let kind = |(_, body): (_, &Body)| read(body).expect("an object").header.kind;
    journal.map(kind).collect()
}

#[test]
fn an_idle_home_gives_signs_of_life_and_its_bucket_does_not_grow() {
    let dir = directory();
    let store = Arc::new(Store::open_stepped(dir.path(), &options(1)).expect("it opens"));
    let (world, tick) = pumped(&store);
    store.change(vec![Change::CreateLog(1)]).expect("room");
    let mut most = 0;
    while world.lock().expect("one thread").0 < 400_000 {
        tick();
        while store.step() {}
        store.maintain();
        most = most.max(kinds(&world.lock().expect("one thread").1).len());
    }
    let mut bucket = world.lock().expect("one thread").1.clone();
    let status = store.bucket_status().expect("it has a bucket");
    let beats = status.place;
    assert!(
        (1900..2100).contains(&beats),
        "one each 200 ms for 400 s: {beats}"
    );
    assert!(most < 100, "{most} objects");
    assert_eq!(kinds(&bucket).last(), Some(&Kind::Beat));
    store.abandon();
    let again = directory();
    let prepared = prepare(&mut bucket, again.path(), (None, "one"), None).expect("it is whole");
    assert!(matches!(prepared, Prepared::Bucket(_)), "{prepared:?}");
    let store = Store::open_stepped(again.path(), &options(2)).expect("it opens");
    assert_eq!(store.logs(), [1]);
}

#[test]
fn a_home_that_is_closed_releases_its_journal() {
    let dir = directory();
    let bucket = Arc::new(Mutex::new(MemoryBucket::default()));
    let store = Store::open(dir.path(), &options(1)).expect("it opens");
    let (line, network) = (
        store.bucket_line().expect("it has a bucket"),
        Arc::clone(&bucket),
    );
    let network = thread::spawn(move || {
        while !line.is_closed() {
            if let Some(call) = line.next(Duration::from_secs(1)) {
                let answer = network.lock().expect("no panic").ask(call.what);
                line.answer(call.id, answer);
            }
        }
    });
    let created = store.change(vec![Change::CreateLog(1)]).expect("room");
    store.wait(created);
    assert!(store.is_proven(60_000), "its newest object is there");
    store.close();
    network.join().expect("no panic");
    let kinds = kinds(&bucket.lock().expect("no panic"));
    assert_eq!(kinds.last(), Some(&Kind::Release), "{kinds:?}");
}

#[test]
fn of_two_that_begin_with_an_empty_bucket_the_slower_one_can_lead_later() {
    let (one, two) = (directory(), directory());
    let mut bucket = MemoryBucket::default();
    // they agree on the first one's cluster
    for (dir, proposed) in [(&one, "one"), (&two, "two")] {
        let found = prepare(&mut bucket, dir.path(), (None, proposed), None);
        assert_eq!(found.expect("it answers"), Prepared::Empty("one".into()));
    }
    let first = Store::open_stepped(one.path(), &options(1)).expect("it opens");
    let second = Store::open_stepped(two.path(), &options(2)).expect("it opens");
    first.change(vec![Change::CreateLog(1)]).expect("room");
    second.change(vec![Change::CreateLog(2)]).expect("room");
    settle_up_to(&first, &mut bucket, u64::MAX);
    settle_up_to(&second, &mut bucket, u64::MAX);
    let state = |store: &Store| store.bucket_status().expect("it has a bucket").state;
    assert_eq!(state(&first), BackupState::Leading);
    assert_eq!(state(&second), BackupState::Refused);
    first.abandon();
    second.abandon();
    assert!(
        !has_own_data(two.path()).expect("readable"),
        "it can stand by"
    );
    // a cluster that it had thought of by itself
    let own = (Some("two"), "three");
    let found = prepare(&mut bucket, two.path(), own, None).expect("it answers");
    assert!(matches!(found, Prepared::Bucket(_)), "{found:?}");
    let aside = fs::read_dir(two.path().join("bucket.unconfirmed.1")).expect("put aside");
    assert!(aside.count() > 0);
    let second = Store::open_stepped(two.path(), &options(3)).expect("it opens");
    assert_eq!(second.logs(), [1], "what was confirmed");
    settle_up_to(&second, &mut bucket, u64::MAX);
    assert_eq!(state(&second), BackupState::Leading);
    second.abandon();
}

#[test]
fn what_a_directory_has_served_without_its_bucket_is_kept() {
    let dir = directory();
    let mut bucket = MemoryBucket::default();
    let found = prepare(&mut bucket, dir.path(), (None, "one"), None).expect("it answers");
    assert_eq!(found, Prepared::Empty("one".into()));
    let store = Store::open_stepped(dir.path(), &tiny()).expect("it opens");
    store.change(vec![Change::CreateLog(1)]).expect("room");
    while store.step() {}
    drop(store);
    assert!(has_own_data(dir.path()).expect("readable"));
    let found = prepare(&mut bucket, dir.path(), (None, "one"), None).expect("it answers");
    assert_eq!(found, Prepared::Local);
    let store = Store::open_stepped(dir.path(), &tiny()).expect("it opens");
    assert_eq!(store.logs(), [1]);
}

/// Return the first seed with which the world finds a mistake.
fn found(mistake: Mistake) -> Option<u64> {
    first_found(mistake, false)
}

/// As `found`, with stores that keep little on the disk.
fn first_found(mistake: Mistake, is_bounded: bool) -> Option<u64> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    plant(Some(mistake));
    let found = (0..60)
        .find(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, 150, is_bounded))).is_err());
    plant(None);
    std::panic::set_hook(hook);
    found
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in [
        Mistake::SegmentSwept,
        Mistake::FrameBeforeUpload,
        Mistake::TailTrusted,
        Mistake::ExistsIsOurs,
        Mistake::UnknownSkipped,
    ] {
        let seed = found(mistake);
        println!("{mistake:?}: seed {seed:?}");
        assert!(seed.is_some(), "{mistake:?}");
    }
}
