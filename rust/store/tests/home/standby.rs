//! When a standby may claim.

use std::time::Duration;

use sharecore_bucket::{Answer, Bucket, MemoryBucket, What};
use sharecore_store::{Change, Led, Standby, Store};

use crate::{files::directory, world::options};

const SILENCE_MS: u64 = 6500;

struct Down;

impl Bucket for Down {
    fn ask(&mut self, _: What) -> Answer {
        Answer::Unknown("503".into())
    }
}

struct Leader {
    store: Store,
    bucket: MemoryBucket,
    _dir: tempfile::TempDir,
}

impl Leader {
    /// Let a leader live for a second.
    fn tick(&mut self, now_ms: u64) {
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

fn leader() -> Leader {
    let dir = directory();
    let store = Store::open_stepped(dir.path(), &options(1)).expect("it opens");
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

/// After how long a standby may claim that looks so often at a leader that is silent.
fn claims_after(every_ms: u64) -> Option<u64> {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    let looks = (1..=60_000 / every_ms).map(|n| 1000 + n * every_ms);
    let mut found = None;
    for now_ms in looks {
        let led = standby
            .look(&mut leader.bucket, now_ms)
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
    assert_eq!(Standby::new(7, SILENCE_MS).look(&mut bucket, 0), free);
    let mut leader = leader();
    assert_eq!(
        Standby::new(0, SILENCE_MS).look(&mut leader.bucket, 0),
        free
    );
    let led = Ok(Led::By(0, 1));
    assert_eq!(Standby::new(7, SILENCE_MS).look(&mut leader.bucket, 0), led);
    leader.store.abandon();
}

#[test]
fn a_leader_is_left_alone_while_it_gives_signs_of_life() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    for second in 1..60 {
        leader.tick(second * 1000);
        let led = standby.look(&mut leader.bucket, second * 1000);
        assert_eq!(led, Ok(Led::By(0, 1)), "second {second}");
    }
    leader.store.abandon();
}

#[test]
fn a_silent_leader_is_followed_after_the_silence_that_was_seen() {
    assert_eq!(claims_after(1000), Some(7000));
    assert_eq!(claims_after(100), Some(6500));
    // what happened between two looks is not known
    assert_eq!(claims_after(3500), None);
}

#[test]
fn a_silence_that_could_not_be_seen_does_not_count() {
    let mut leader = leader();
    let mut standby = Standby::new(7, SILENCE_MS);
    for second in 1..60 {
        let now_ms = second * 1000;
        if second % 5 == 0 {
            assert!(standby.look(&mut Down, now_ms).is_err());
        } else {
            let led = standby.look(&mut leader.bucket, now_ms);
            assert_eq!(led, Ok(Led::By(0, 1)), "second {second}");
        }
    }
    leader.store.abandon();
}
