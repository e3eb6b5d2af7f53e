//! A home that keeps little on the disk: segments that the bucket has leave it, and are read from the bucket.

use std::sync::{Arc, Mutex, OnceLock};

use sharecore_bucket::{Answer, Bucket, What, mistakes::Mistake};
use sharecore_store::{
    Asking, CacheOptions, Change, ColdFigures, Prepared, Refusal, Store, Want, prepare_home, survey,
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
        ask: Asking(Arc::new(move |what| {
            network.lock().expect("one thread").bucket.ask(what)
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
fn asking(world: &Arc<OnceLock<Surroundings>>, mood: &Moods) -> Asking {
    let (world, mood) = (Arc::clone(world), Arc::clone(mood));
    Asking(Arc::new(move |what: What| {
        let world = world.get().expect("it has begun");
        let answer = world.lock().expect("one thread").1.ask(what);
        match (*mood.lock().expect("one thread"), answer) {
            (Mood::Silent, _) => Answer::Unknown("503 SlowDown".into()),
            (Mood::Lost, _) => Answer::Absent,
            (Mood::Rotten, Answer::Bytes(mut bytes)) => {
                bytes[0] ^= 1;
                Answer::Bytes(bytes)
            }
            (_, answer) => answer,
        }
    }))
}

struct Home {
    dir: tempfile::TempDir,
    store: Arc<Store>,
    world: Arc<OnceLock<Surroundings>>,
    mood: Moods,
    sent: Vec<Vec<u8>>,
}

const BOUND: u64 = 12_000;

fn keeping(ask: Asking) -> sharecore_store::Options {
    let mut options = options(1);
    let bucket = options.bucket.as_mut().expect("it has one");
    bucket.beat_ms = 0;
    bucket.cache = Some(CacheOptions { bytes: BOUND, ask });
    options
}

impl Home {
    /// A home that was sent some ten times its bound.
    fn full() -> Self {
        Self::full_in(directory())
    }

    fn full_in(dir: tempfile::TempDir) -> Self {
        let (world, mood) = (Arc::default(), Arc::new(Mutex::new(Mood::Well)));
        let options = keeping(asking(&world, &mood));
        let store = Arc::new(Store::open_stepped(dir.path(), &options).expect("it opens"));
        let (begun, tick) = pumped(&store);
        world.set(begun).expect("once");
        store.change(vec![Change::CreateLog(1)]).expect("room");
        let mut sent = Vec::new();
        for n in 0..250 {
            let client = Client {
                value_bytes: 300 + n % 200,
                ..PLAIN
            };
            let mut bytes = client.bytes();
            store.append(1, &bytes, 1000).expect("room");
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
        }
    }

    fn figures(&self) -> ColdFigures {
        self.store.cold_figures().expect("it has a bound")
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock().expect("one thread") = mood;
    }

    /// Check that all that was sent is there, byte for byte.
    fn reads_all(&self) {
        for (n, sent) in self.sent.iter().enumerate() {
            assert_eq!(&read(&self.store, n as i64).expect("it is there"), sent);
        }
    }
}

fn read(store: &Store, offset: i64) -> Result<Vec<u8>, Refusal> {
    let slice = store.read(1, offset, Want::ONE)?;
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
fn a_reader_that_may_not_wait_is_told_so_until_the_piece_is_there() {
    // not all file systems can tell what is in memory
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let home = Home::full_in(dir);
    let cached = |offset| {
        let slice = home.store.read(1, offset, Want::ONE).expect("located");
        let mut bytes = vec![0; slice.size];
        assert!(!slice.is_in_memory(), "of a segment");
        slice.copy_cached(&mut bytes).expect("readable").is_some()
    };
    let local = cached(home.sent.len() as i64 - 4);
    assert!(!cached(3));
    assert_eq!(home.figures().reads, 0, "nothing was asked");
    read(&home.store, 3).expect("it is there");
    assert_eq!(cached(3), local);
}

#[test]
fn a_bucket_that_fails_a_reader_is_named_and_may_be_asked_again() {
    let home = Home::full();
    let newest = home.sent.len() as i64 - 1;
    for (mood, told) in [
        (Mood::Silent, "503 SlowDown"),
        (Mood::Lost, "is missing in the bucket"),
        (Mood::Rotten, "does not match its checksum"),
    ] {
        home.is(mood);
        let refusal = read(&home.store, 0).expect_err("it cannot be read");
        assert_eq!(refusal.code(), 56, "the client tries again: {refusal}");
        let why = refusal.to_string();
        assert!(why.contains(told) && why.contains("segments/"), "{why}");
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
        let options = keeping(asking(&home.world, &home.mood));
        let opened = Store::open_stepped(home.dir.path(), &options).expect("it opens");
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
    let told = survey(dir.path(), &mut |_, _| {}).expect_err("it is elsewhere");
    assert!(told.to_string().contains("only the bucket"), "{told}");
    let store = Store::look(dir.path(), 0).expect("it opens");
    let refusal = read(&store, 0).expect_err("it is elsewhere");
    assert!(
        refusal.to_string().contains("in the bucket alone"),
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
