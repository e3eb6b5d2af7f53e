//! When a standby may claim.

use std::time::Duration;

use sharecore_bucket::{
    Answer, Bucket, Claimant, Claimed, Claiming, Frames, HOME_WINDOW, MemoryBucket, Walk, What,
    names,
};
use sharecore_store::{BackupState, Change, FORMAT, Led, Options, Standby, Store};

use crate::{files::directory, world::options};

pub(crate) const SILENCE_MS: u64 = 6500;

struct Down;

impl Bucket for Down {
    fn ask(&mut self, _: What) -> Answer {
        Answer::Unknown("503".into())
    }
}

pub(crate) struct Leader {
    pub(crate) store: Store,
    pub(crate) bucket: MemoryBucket,
    _dir: tempfile::TempDir,
}

impl Leader {
    /// Run a leader for a second.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        let line = self.store.bucket_line().expect("it has a bucket");
        for _ in 0..20 {
            self.store.step_bucket(now_ms, now_ms as i64);
            while let Some(call) = line.next(Duration::ZERO) {
                line.answer(call.id, self.bucket.ask(call.what));
            }
            while self.store.step() {}
        }
    }
}

pub(crate) fn leader() -> Leader {
    with_window(HOME_WINDOW)
}

fn with_window(window: u32) -> Leader {
    let mut options = options(1);
    options.bucket.as_mut().expect("it has a bucket").window = window;
    with(&options)
}

/// The default interval of heartbeats.
pub(crate) const BEAT_MS: u64 = 2000;

/// Return a leader with heartbeats and checkpoints as often as by default.
pub(crate) fn with_defaults() -> Leader {
    let mut options = options(1);
    let bucket = options.bucket.as_mut().expect("it has a bucket");
    (bucket.objects_max, bucket.beat_ms) = (4096, BEAT_MS);
    bucket.window = HOME_WINDOW;
    with(&options)
}

fn with(options: &Options) -> Leader {
    let dir = directory();
    let store = Store::open_stepped(dir.path(), options).expect("it opens");
    let mut leader = Leader {
        store,
        bucket: MemoryBucket::default(),
        _dir: dir,
    };
    leader.tick(0);
    leader
        .store
        .change(vec![Change::CreateLog(1)])
        .expect("room");
    leader.tick(1);
    leader
}

/// Time after which a standby claims from a silent leader, given how often it looks.
fn claims_after(every_ms: u64) -> Option<u64> {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    let looks = (1..=60_000 / every_ms).map(|n| 1000 + n * every_ms);
    let mut found = None;
    for now_ms in looks {
        let led = standby
            .look(&mut leader.bucket, || now_ms)
            .expect("it answers");
        if led == Led::Free {
            found = Some(now_ms - 1000 - every_ms);
            break;
        }
        assert_eq!(led, Led::By(0, 1));
    }
    leader.store.abandon();
    found
}

#[test]
fn a_home_that_nobody_leads_is_claimed_at_once_and_so_is_its_own() {
    let mut bucket = MemoryBucket::default();
    let free = Ok(Led::Free);
    assert_eq!(Standby::new(7, SILENCE_MS).look(&mut bucket, || 0), free);
    let mut leader = leader();
    assert_eq!(
        Standby::new(0, SILENCE_MS).look(&mut leader.bucket, || 0),
        free
    );
    let led = Ok(Led::By(0, 1));
    assert_eq!(
        Standby::new(7, SILENCE_MS).look(&mut leader.bucket, || 0),
        led
    );
    leader.store.abandon();
}

#[test]
fn a_leader_is_left_alone_while_it_gives_signs_of_life() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    for second in 1..60 {
        leader.tick(second * 1000);
        let led = standby.look(&mut leader.bucket, || second * 1000);
        assert_eq!(led, Ok(Led::By(0, 1)), "second {second}");
    }
    leader.store.abandon();
}

#[test]
fn a_silent_leader_is_followed_after_the_silence_that_was_seen() {
    assert_eq!(claims_after(1000), Some(7000));
    assert_eq!(claims_after(100), Some(6500));
    // Events between two looks are unknown
    assert_eq!(claims_after(3500), None);
}

#[test]
fn a_silence_that_could_not_be_seen_does_not_count() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    for second in 1..60 {
        let now_ms = second * 1000;
        if second % 5 == 0 {
            assert!(standby.look(&mut Down, || now_ms).is_err());
        } else {
            let led = standby.look(&mut leader.bucket, || now_ms);
            assert_eq!(led, Ok(Led::By(0, 1)), "second {second}");
        }
    }
    leader.store.abandon();
}

#[test]
fn a_copy_is_not_claimed_however_long_it_is_silent() {
    let mut leader = with_window(4);
    let mut standby = Standby::new(7, SILENCE_MS);
    for second in 1..60 {
        let led = standby.look(&mut leader.bucket, || second * 1000);
        assert_eq!(led, Ok(Led::Copied(0, 1)), "second {second}");
    }
    leader.store.abandon();
}

/// Counts list requests, as a walk from the newest checkpoint begins with one, and objects of the journal that are read.
pub(crate) struct Counting<'a> {
    bucket: &'a mut MemoryBucket,
    lists: u64,
    /// Objects of the journal that were read, and those that were asked for.
    pub(crate) read: u64,
    pub(crate) asked: u64,
    pub(crate) is_down: bool,
}

impl<'a> Counting<'a> {
    pub(crate) fn new(bucket: &'a mut MemoryBucket) -> Self {
        Self {
            bucket,
            lists: 0,
            read: 0,
            asked: 0,
            is_down: false,
        }
    }
}

impl Bucket for Counting<'_> {
    fn ask(&mut self, what: What) -> Answer {
        self.lists += u64::from(matches!(what, What::List { .. }));
        if self.is_down {
            return Answer::Unknown("503".into());
        }
        let is_get = matches!(what, What::Get { .. });
        let is_journal = is_get && what.name().starts_with(names::JOURNAL);
        self.asked += u64::from(is_journal);
        let answer = self.bucket.ask(what);
        self.read += u64::from(is_journal && matches!(answer, Answer::Bytes(_)));
        answer
    }
}

#[test]
fn a_look_after_a_failure_goes_on_where_the_journal_was_read_to() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    let mut bucket = Counting::new(&mut leader.bucket);
    assert_eq!(standby.look(&mut bucket, || 1000), Ok(Led::By(0, 1)));
    let (lists, place) = (bucket.lists, standby.silence(1000).0);
    bucket.is_down = true;
    assert!(standby.look(&mut bucket, || 2000).is_err());
    assert_eq!(standby.silence(2000), (place, 0));
    bucket.is_down = false;
    assert_eq!(standby.look(&mut bucket, || 3000), Ok(Led::By(0, 1)));
    assert_eq!(bucket.lists, lists);
    leader.store.abandon();
}

#[test]
fn the_silence_begins_when_the_place_was_seen_free() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    let clock = std::cell::Cell::new(0);
    // A look that takes two seconds
    let slow = || clock.replace(2000);
    assert_eq!(standby.look(&mut leader.bucket, slow), Ok(Led::By(0, 1)));
    assert_eq!(standby.silence(3000).1, 1000);
    leader.store.abandon();
}

#[test]
fn the_journal_of_a_newer_release_is_not_followed() {
    let mut bucket = MemoryBucket::default();
    let claimant = Claimant {
        window: HOME_WINDOW,
        format: FORMAT + 1,
        ..claimant(1, false)
    };
    let created = bucket.ask(Claiming::new(Walk::default(), &claimant).call());
    assert_eq!(created, Answer::Done);
    let looked = Standby::new(7, SILENCE_MS).look(&mut bucket, || 0);
    let why = looked.expect_err("it could not take over");
    assert!(why.contains("is from a newer release"), "{why}");
}

fn claimant(writer: u8, is_base: bool) -> Claimant {
    Claimant {
        writer: [writer; 16],
        node: i32::from(writer),
        window: 4,
        next: Frames {
            segment: 1,
            at: 16,
            first: 1,
            count: 0,
        },
        is_base,
        format: FORMAT,
        about: Vec::new(),
        ms: 0,
    }
}

fn claimed(bucket: &mut MemoryBucket, walk: Walk, claimant: &Claimant) -> Walk {
    let mut claiming = Claiming::new(walk, claimant);
    loop {
        let answer = bucket.ask(claiming.call());
        if let Claimed::Ours(walk) = claiming.answer(&answer) {
            return walk;
        }
    }
}

#[test]
fn a_copy_is_promoted_and_its_writer_fenced() {
    let mut leader = with_window(4);
    let mut standby = Standby::new(7, SILENCE_MS);
    assert!(standby.promote(&mut leader.bucket, [9; 16], 0).is_err());
    let led = standby.look(&mut leader.bucket, || 1000);
    assert_eq!(led, Ok(Led::Copied(0, 1)));
    let promoted = standby.promote(&mut leader.bucket, [9; 16], 0);
    assert_eq!(promoted, Ok(()));
    leader
        .store
        .change(vec![Change::CreateLog(2)])
        .expect("room");
    leader.tick(5000);
    let status = leader.store.bucket_status().expect("it has a bucket");
    assert_eq!(status.state, BackupState::Fenced);
    // it is a copy still, of the other node
    let led = Standby::new(5, SILENCE_MS).look(&mut leader.bucket, || 1000);
    assert_eq!(led, Ok(Led::Copied(7, 2)));
    leader.store.abandon();
}

#[test]
fn a_copy_that_has_been_written_since_the_look_is_not_promoted() {
    let mut leader = with_window(4);
    let mut standby = Standby::new(7, SILENCE_MS);
    let led = standby.look(&mut leader.bucket, || 1000);
    assert_eq!(led, Ok(Led::Copied(0, 1)));
    leader
        .store
        .change(vec![Change::CreateLog(2)])
        .expect("room");
    leader.tick(5000);
    let promoted = standby.promote(&mut leader.bucket, [9; 16], 0);
    let why = promoted.expect_err("it is running");
    assert!(why.contains("it is running"), "{why}");
    leader.store.abandon();
}

#[test]
fn a_copy_with_a_gap_is_not_promoted() {
    for behind in [2, 6] {
        let mut leader = with_window(4);
        for log in 2..12 {
            leader
                .store
                .change(vec![Change::CreateLog(log)])
                .expect("room");
            leader.tick(log * 5000);
        }
        let place = leader.store.bucket_status().expect("a bucket").place - behind;
        let lost = names::journal(place);
        leader.bucket.set(&lost, None);
        let mut standby = Standby::new(7, SILENCE_MS);
        let led = standby.look(&mut leader.bucket, || 1000);
        assert_eq!(led, Ok(Led::Copied(0, 1)));
        let promoted = standby.promote(&mut leader.bucket, [9; 16], 0);
        let why = promoted.expect_err("its end is not known");
        assert!(why.contains(&lost) && why.contains("is lost"), "{why}");
        assert_eq!(leader.bucket.get(&lost), None, "nothing took its place");
        leader.store.abandon();
    }
}

#[test]
fn a_copy_that_was_being_restarted_is_not_promoted() {
    let mut bucket = MemoryBucket::default();
    let walk = claimed(&mut bucket, Walk::default(), &claimant(1, false));
    claimed(&mut bucket, walk, &claimant(2, true));
    let mut standby = Standby::new(7, SILENCE_MS);
    assert_eq!(standby.look(&mut bucket, || 0), Ok(Led::Copied(2, 2)));
    let promoted = standby.promote(&mut bucket, [9; 16], 0);
    let why = promoted.expect_err("nothing could be restored");
    assert!(why.contains("was being restarted"), "{why}");
}

#[test]
fn a_standby_knows_the_segment_at_the_end_of_the_journal() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    assert_eq!(standby.segment(), 0);
    let mut seen = Vec::new();
    for log in 2..4 {
        // a look may end at a beat
        for _ in 0..2 {
            let led = standby.look(&mut leader.bucket, || log * 1000);
            assert_eq!(led, Ok(Led::By(0, 1)));
        }
        seen.push(standby.segment());
        leader.store.roll().expect("room");
        let change = vec![Change::CreateLog(log)];
        leader.store.change(change).expect("room");
        leader.tick(log * 1000);
    }
    assert_eq!(seen, [1, 2]);
    leader.store.abandon();
}
