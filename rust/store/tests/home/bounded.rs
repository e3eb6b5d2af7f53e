//! A home that keeps little on the disk: segments that the bucket has leave it, and are read from the bucket.

mod starts;

use std::sync::{Arc, Mutex, OnceLock};

use sharecore_bucket::{Answer, Bucket, mistakes::Mistake};
use sharecore_store::{
    CacheOptions, Change, EvictedFigures, EvictedRequests, Options, Prepared, Refusal, Store, Want,
    prepare_home, survey,
};

use crate::{
    Surroundings,
    common::{Client, PLAIN},
    files::directory,
    first_found,
    network::Network,
    prepare, pumped, run,
    world::options,
};

/// A bound of two or three segments; the bucket answers at once.
pub(crate) fn little(network: &Arc<Mutex<Network>>) -> CacheOptions {
    let network = Arc::clone(network);
    CacheOptions {
        bytes: 4000,
        page_bytes: 4096,
        requests: EvictedRequests(Arc::new(move |requests| {
            for (what, reply) in requests {
                let answer = network.lock().expect("one thread").bucket.ask(what);
                reply(answer);
            }
        })),
    }
}

/// What the bucket does with reads of pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Well,
    Silent,
    Lost,
    Rotten,
}

type Moods = Arc<Mutex<Mood>>;

/// Asks the bucket of surroundings that begin later.
fn requests(world: &Arc<OnceLock<Surroundings>>, mood: &Moods) -> EvictedRequests {
    let (world, mood) = (Arc::clone(world), Arc::clone(mood));
    EvictedRequests(Arc::new(move |requests| {
        let world = world.get().expect("it has begun");
        for (what, reply) in requests {
            let answer = world.lock().expect("one thread").1.ask(what);
            reply(match (*mood.lock().expect("one thread"), answer) {
                (Mood::Silent, _) => Answer::Unknown("503 SlowDown".into()),
                (Mood::Lost, _) => Answer::Absent,
                (Mood::Rotten, Answer::Bytes(mut bytes)) => {
                    bytes[0] ^= 1;
                    Answer::Bytes(bytes)
                }
                (_, answer) => answer,
            });
        }
    }))
}

pub(crate) struct Home {
    dir: tempfile::TempDir,
    pub(crate) store: Arc<Store>,
    world: Arc<OnceLock<Surroundings>>,
    mood: Moods,
    pub(crate) sent: Vec<Vec<u8>>,
    tick: Box<dyn Fn()>,
}

const BOUND: u64 = 12_000;
const LARGE_BOUND: u64 = 300_000;
/// A log that is read without waiting.
const INTERNAL: u64 = 2;

fn keeping_large(requests: EvictedRequests) -> Options {
    let mut options = keeping(requests);
    options.segment_bytes = 100_000;
    let bucket = options.bucket.as_mut().expect("it has one");
    bucket.object_bytes = 20_000;
    bucket.part_bytes = 20_000;
    if let Some(cache) = &mut bucket.cache {
        cache.bytes = LARGE_BOUND;
    }
    options
}

fn keeping(requests: EvictedRequests) -> Options {
    let mut options = options(1);
    let bucket = options.bucket.as_mut().expect("it has one");
    bucket.beat_ms = 0;
    bucket.cache = Some(CacheOptions {
        bytes: BOUND,
        page_bytes: 4096,
        requests,
    });
    options
}

impl Home {
    /// A home that was sent some ten times its bound.
    pub(crate) fn full() -> Self {
        Self::full_in(directory())
    }

    pub(crate) fn full_in(dir: tempfile::TempDir) -> Self {
        Self::filled(dir, keeping, 250, |n| 300 + n % 200, false)
    }

    /// A home with larger segments.
    fn large() -> Self {
        Self::filled(directory(), keeping_large, 400, |n| 3000 + n % 200, true)
    }

    /// Log 1 is of a user; an internal log gets a small batch after every 20 of it.
    fn filled(
        dir: tempfile::TempDir,
        keeping: impl Fn(EvictedRequests) -> Options,
        batches: usize,
        value_bytes: impl Fn(usize) -> usize,
        has_internal: bool,
    ) -> Self {
        let (world, mood) = (Arc::default(), Arc::new(Mutex::new(Mood::Well)));
        let options = keeping(requests(&world, &mood));
        let store = Arc::new(Store::open_stepped(dir.path(), &options).expect("it opens"));
        store.keep_local(&[INTERNAL]).expect("nothing is read");
        let (begun, tick) = pumped(&store);
        world.set(begun).expect("once");
        let logs = vec![Change::CreateLog(1), Change::CreateLog(INTERNAL)];
        store.change(logs).expect("room");
        let mut sent = Vec::new();
        for n in 0..batches {
            let client = Client {
                value_bytes: value_bytes(n),
                ..PLAIN
            };
            let mut bytes = client.bytes();
            store.append(1, &bytes, 1000).expect("room");
            if has_internal && n % 20 == 0 {
                store.append(INTERNAL, &PLAIN.bytes(), 1000).expect("room");
            }
            bytes[..8].copy_from_slice(&(n as i64).to_be_bytes());
            // the leader epoch is the reader's
            bytes[12..16].fill(0);
            sent.push(bytes);
            while store.step() {}
            tick();
            while store.maintain() {}
        }
        for _ in 0..50 {
            tick();
            while store.step() {}
            while store.maintain() {}
        }
        Self {
            dir,
            store,
            world,
            mood,
            sent,
            tick: Box::new(tick),
        }
    }

    pub(crate) fn figures(&self) -> EvictedFigures {
        self.store.evicted_figures().expect("it has a bound")
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock().expect("one thread") = mood;
    }

    /// Check that all that was sent is there, byte for byte.
    pub(crate) fn reads_all(&self) {
        for (n, sent) in self.sent.iter().enumerate() {
            assert_eq!(&read(&self.store, n as i64).expect("it is there"), sent);
        }
    }
}

pub(crate) fn read(store: &Store, offset: i64) -> Result<Vec<u8>, Refusal> {
    read_of(store, 1, offset)
}

fn read_of(store: &Store, log: u64, offset: i64) -> Result<Vec<u8>, Refusal> {
    let slice = store.read(log, offset, Want::ONE)?;
    let mut bytes = vec![0; slice.size];
    let intact = slice.copy_to(&mut bytes)?;
    assert_eq!(intact.bytes, bytes.len(), "damaged");
    Ok(bytes)
}

#[test]
fn several_times_the_bound_is_read_back() {
    let home = Home::full();
    let before = home.figures();
    assert!(before.evicted > 10, "{before:?}");
    assert!(before.local_bytes <= BOUND, "{before:?}");
    assert!(before.remote_bytes > 5 * BOUND, "{before:?}");
    assert_eq!(before.reads, 0);
    home.reads_all();
    let after = home.figures();
    assert!(after.local_bytes <= BOUND, "{after:?}");
    assert!(
        after.read_bytes > 5 * BOUND && after.failed == 0,
        "{after:?}"
    );
    assert!(
        home.store.drain().damaged.is_empty(),
        "nothing is taken for damage"
    );
    let found = home.store.offset_for(1, 0).expect("it reads");
    assert_eq!(found.map(|(offset, _)| offset), Some(0), "by time");
}

#[test]
fn a_bucket_that_fails_a_reader_is_named_and_may_be_asked_again() {
    let home = Home::full();
    let newest = home.sent.len() as i64 - 1;
    for (mood, reason) in [
        (Mood::Silent, "503 SlowDown"),
        (Mood::Lost, "is missing in the bucket"),
        (Mood::Rotten, "does not match its checksum"),
    ] {
        home.is(mood);
        let refusal = read(&home.store, 0).expect_err("it cannot be read");
        assert_eq!(refusal.code(), 56, "the client tries again: {refusal}");
        let why = refusal.to_string();
        assert!(why.contains(reason) && why.contains("segments/"), "{why}");
        read(&home.store, newest).expect("local records are read without the bucket");
    }
    assert_eq!(home.figures().failed, 3);
    assert!(home.store.drain().damaged.is_empty());
    home.is(Mood::Well);
    home.reads_all();
}

#[test]
fn segments_in_the_bucket_outlive_restarts_and_lost_disks() {
    let mut home = Home::full();
    let evicted = home.figures().remote_bytes;
    home.store.abandon();
    let mut bucket = home.begun().lock().expect("one thread").1.clone();
    for is_lost in [false, true] {
        if is_lost {
            home.dir = directory();
        }
        let found = prepare_home(
            &mut bucket,
            home.dir.path(),
            (Some("one"), "one"),
            None,
            true,
            &mut |_| {},
        );
        let Ok(Prepared::Bucket(restored)) = found else {
            panic!("{found:?}");
        };
        let options = keeping(requests(&home.world, &home.mood));
        let opened = Store::open_stepped(home.dir.path(), &options).expect("it opens");
        opened.keep_local(&[]).expect("nothing is read");
        home.store = Arc::new(opened);
        assert!(home.figures().remote_bytes >= evicted, "{is_lost}");
        assert!(
            is_lost || restored.read.segments <= 3,
            "the others are known: {restored:?}"
        );
        home.reads_all();
        home.store.abandon();
    }
    // without its bucket the directory says what it lacks, and reads no zeros
    let Home { dir, store, .. } = home;
    drop(store);
    let error = survey(dir.path(), &mut |_, _| {}).expect_err("it is elsewhere");
    assert!(error.to_string().contains("only the bucket"), "{error}");
    let store = Store::look(dir.path(), 0).expect("it opens");
    let refusal = read(&store, 0).expect_err("it is elsewhere");
    assert!(
        refusal
            .to_string()
            .contains("only the bucket has its batches"),
        "{refusal}"
    );
}

#[test]
fn without_the_bound_evicted_segments_are_fetched_in_full() {
    let mut home = Home::full();
    home.store.abandon();
    let mut bucket = home.begun().lock().expect("one thread").1.clone();
    let cluster = (Some("one"), "one");
    let found = prepare(&mut bucket, home.dir.path(), cluster, None);
    let Ok(Prepared::Bucket(restored)) = found else {
        panic!("{found:?}");
    };
    assert!(restored.read.segments > 10, "{restored:?}");
    let opened = Store::open_stepped(home.dir.path(), &options(1)).expect("it opens");
    home.store = Arc::new(opened);
    home.reads_all();
    home.store.abandon();
    // all of it is local: the next start fetches nothing again
    let found = prepare(&mut bucket, home.dir.path(), cluster, None);
    let Ok(Prepared::Bucket(again)) = found else {
        panic!("{found:?}");
    };
    assert!(again.read.segments <= 3, "{again:?}");
}

impl Home {
    fn begun(&self) -> &Surroundings {
        self.world.get().expect("it has begun")
    }
}

#[test]
fn what_was_answered_outlives_kills_with_little_on_the_disk() {
    let mut evicted = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        evicted += run(seed, 150, true);
    }
    assert!(evicted > 200, "{evicted} segments left the disk");
}

#[test]
fn a_segment_that_leaves_before_the_bucket_has_it_is_found() {
    assert!(first_found(Mistake::EvictedUnshipped, true).is_some());
}

impl Home {
    /// Let copying, committing and maintenance go on.
    fn goes_on(&self) {
        for _ in 0..60 {
            (self.tick)();
            while self.store.step() {}
            while self.store.maintain() {}
        }
    }

    /// Start again on the same directory, or on an empty one.
    fn starts_again(&mut self, is_lost: bool) {
        self.store.abandon();
        let mut bucket = self.begun().lock().expect("one thread").1.clone();
        if is_lost {
            self.dir = directory();
        }
        let cluster = (Some("one"), "one");
        let dir = self.dir.path();
        let found = prepare_home(&mut bucket, dir, cluster, None, true, &mut |_| {});
        assert!(matches!(found, Ok(Prepared::Bucket(_))), "{found:?}");
        let options = keeping_large(requests(&self.world, &self.mood));
        let opened = Store::open_stepped(self.dir.path(), &options).expect("it opens");
        self.store = Arc::new(opened);
    }

    fn reads_internal(&self) {
        for offset in 0..20 {
            read_of(&self.store, INTERNAL, offset).expect("it is on the disk");
        }
    }
}

#[test]
fn internal_logs_are_read_without_the_bucket() {
    let mut home = Home::large();
    let figures = home.figures();
    assert!(figures.evicted > 5, "{figures:?}");
    assert!(figures.local_bytes <= LARGE_BOUND, "{figures:?}");
    let internal = figures.internal_bytes;
    assert!((1..LARGE_BOUND / 2).contains(&internal), "{figures:?}");
    for is_lost in [false, true] {
        home.is(Mood::Silent);
        home.reads_internal();
        assert!(read(&home.store, 10).is_err(), "others need the bucket");
        home.is(Mood::Well);
        home.starts_again(is_lost);
        if is_lost {
            home.is(Mood::Silent);
            let error = home
                .store
                .keep_local(&[INTERNAL])
                .expect_err("it must be fetched");
            assert!(error.to_string().contains("503 SlowDown"), "{error}");
            home.is(Mood::Well);
        }
        home.store
            .keep_local(&[INTERNAL])
            .expect("the bucket answers");
        let kept = home.figures().internal_bytes;
        assert!(
            (internal..LARGE_BOUND / 2).contains(&kept),
            "{is_lost}: {kept}"
        );
    }
    home.is(Mood::Silent);
    home.reads_internal();
    home.is(Mood::Well);
    home.reads_all();
}

#[test]
fn nothing_is_evicted_before_it_is_known_what_must_stay() {
    let dir = directory();
    let (world, mood) = (Arc::default(), Arc::new(Mutex::new(Mood::Well)));
    let options = keeping(requests(&world, &mood));
    let store = Arc::new(Store::open_stepped(dir.path(), &options).expect("it opens"));
    let (begun, tick) = pumped(&store);
    world.set(begun).expect("once");
    store.change(vec![Change::CreateLog(1)]).expect("room");
    let fill = || {
        for _ in 0..60 {
            store.append(1, &PLAIN.bytes(), 1000).expect("room");
            while store.step() {}
            tick();
            while store.maintain() {}
        }
    };
    let figures = || store.evicted_figures().expect("it has a bound");
    while figures().local_bytes < 2 * BOUND {
        fill();
    }
    assert_eq!(figures().evicted, 0);
    store.keep_local(&[]).expect("nothing is read");
    fill();
    assert!(figures().evicted > 0);
    store.abandon();
}

#[test]
fn a_segment_that_must_stay_may_leave_once_its_internal_records_are_deleted() {
    let home = Home::filled(directory(), keeping, 250, |n| 300 + n % 200, true);
    // nearly every small segment has some of them
    let before = home.figures();
    assert!(before.local_bytes > BOUND, "{before:?}");
    home.store
        .delete_records(INTERNAL, -1)
        .expect("it takes writes");
    let mut n = 0;
    while home.figures().local_bytes > BOUND {
        n += 1;
        assert!(n < 200, "{:?}", home.figures());
        let client = Client {
            value_bytes: 1200,
            ..PLAIN
        };
        home.store.append(1, &client.bytes(), 1000).expect("room");
        home.goes_on();
    }
    assert_eq!(home.figures().work_failed, 0);
    home.reads_all();
}

#[test]
fn a_missing_object_is_not_asked_for_again_and_again() {
    let home = Home::full();
    home.is(Mood::Lost);
    // a segment of which most is deleted is rewritten
    let mut start = 20;
    while home.figures().work_failed == 0 {
        start += 1;
        assert!(start < 40, "{:?}", home.figures());
        home.store
            .delete_records(1, start)
            .expect("it takes writes");
        home.goes_on();
    }
    for _ in 0..20 {
        home.goes_on();
    }
    let figures = home.figures();
    let error = figures.work_error.as_deref().unwrap_or_default();
    assert!(error.contains("is missing in the bucket"), "{figures:?}");
    assert!((1..5).contains(&figures.work_failed), "{figures:?}");
    // the next checkpoints bring the next attempt
    home.is(Mood::Well);
    for _ in 0..40 {
        home.store.append(1, &PLAIN.bytes(), 1000).expect("room");
        home.goes_on();
    }
    assert_eq!(home.figures().work_error, None);
}
