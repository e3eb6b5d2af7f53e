//! What a home costs that is hardly used: objects in the bucket, and requests.

use std::sync::Arc;

use sharecore_bucket::{MemoryBucket, names};
use sharecore_store::{Change, Led, Moment, Standby, Store, restore};

use crate::{
    common::tiny,
    files::directory,
    kinds, pumped,
    standby::{BEAT_MS, Counting, Leader, SILENCE_MS, with_defaults},
    world::options,
};

/// Longer than the test.
const HISTORY_MS: i64 = 125_000;

fn entries_at(bucket: &mut MemoryBucket, ms: i64) -> usize {
    let target = directory();
    restore(bucket, target.path(), Moment::At(ms), &mut |_| {}).expect("it is whole");
    let store = Store::open_stepped(target.path(), &tiny()).expect("it opens");
    store.entries(b"").len()
}

/// The journal of a leader that commits an entry each four seconds: how many objects it has now and then, and when each
/// entry was committed.
fn idles() -> (Vec<usize>, MemoryBucket, Vec<i64>) {
    let dir = directory();
    let mut options = options(1);
    options.bucket.as_mut().expect("it has a bucket").history_ms = HISTORY_MS;
    let store = Arc::new(Store::open_stepped(dir.path(), &options).expect("it opens"));
    let (world, tick) = pumped(&store);
    let (mut objects, mut committed) = (Vec::new(), Vec::new());
    for put in 0..30_u64 {
        let change = Change::Put(put.to_be_bytes().to_vec(), vec![8; 20]);
        store.change(vec![change]).expect("room");
        for _ in 0..40 {
            tick();
            while store.step() {}
            store.maintain();
            objects.push(kinds(&world.lock().expect("one thread").1).len());
        }
        committed.push(world.lock().expect("one thread").0 as i64);
    }
    let bucket = world.lock().expect("one thread").1.clone();
    store.abandon();
    (objects, bucket, committed)
}

#[test]
fn objects_do_not_pile_up_within_the_history_and_all_of_it_is_restored() {
    let (objects, mut bucket, committed) = idles();
    let most = objects.iter().max().copied().expect("it was looked at");
    // those of ten seconds, for restores that have begun, and up to two times `objects_max` of 20
    assert!((75..=140).contains(&most), "{most} objects of the journal");
    let made = bucket
        .objects()
        .filter_map(|(name, _)| names::parse_journal(name));
    let made = made.max().expect("it has a journal");
    assert!(made > 450, "{made} were made within the history");
    for (number, at_ms) in committed.iter().enumerate().step_by(3) {
        assert_eq!(entries_at(&mut bucket, *at_ms), number + 1, "at {at_ms} ms");
    }
}

#[test]
fn a_standby_of_an_idle_home_makes_one_request_a_look() {
    let mut leader = with_defaults();
    let mut standby = Standby::new(7, SILENCE_MS);
    let (mut asked, mut read) = (0, 0);
    for second in 1..60 {
        leader.tick(second * 1000);
        let mut bucket = Counting::new(&mut leader.bucket);
        let led = standby.look(&mut bucket, || second * 1000);
        assert_eq!(led, Ok(Led::By(0, 1)), "second {second}");
        if second > 10 {
            (asked, read) = (asked + bucket.asked, read + bucket.read);
        }
    }
    assert!(read > 20, "it reads each beat");
    assert_eq!(asked, 49, "a look a second");
    leader.store.abandon();
}

/// Let a leader write `beats` heartbeats from a time on, and return the time after them.
fn beaten(leader: &mut Leader, from_ms: u64, beats: u64) -> u64 {
    let place = |leader: &Leader| leader.store.bucket_status().expect("a bucket").place;
    let before = place(leader);
    for beat in 1..=beats {
        leader.tick(from_ms + beat * BEAT_MS);
    }
    assert_eq!(place(leader), before + beats, "each is an object");
    from_ms + beats * BEAT_MS + 1
}

/// Look once, and count the requests for objects of the journal.
fn look(standby: &mut Standby, leader: &mut Leader, now_ms: u64) -> (Led, u64) {
    let mut bucket = Counting::new(&mut leader.bucket);
    let led = standby.look(&mut bucket, || now_ms);
    (led.expect("it answers"), bucket.asked)
}

/// Let the leader fall silent, and return how long after `from_ms` the standby claims.
fn claims_after(standby: &mut Standby, leader: &mut Leader, from_ms: u64) -> Option<u64> {
    let mut after = (1..60).map(|second| second * 1000);
    after.find(|after| look(standby, leader, from_ms + after).0 == Led::Free)
}

#[test]
fn a_standby_reads_all_heartbeats_of_an_idle_leader_in_its_first_look() {
    let mut leader = with_defaults();
    // its walk begins at a checkpoint with heartbeats alone behind it
    leader.store.roll().expect("room");
    leader.tick(1000);
    assert!(leader.store.maintain(), "the first segment is sealed");
    leader.tick(1000);
    let mut objects = leader.bucket.objects();
    assert!(objects.any(|(name, _)| names::parse_checkpoint(name).is_some()));
    drop(objects);
    let now_ms = beaten(&mut leader, 1000, 200);
    let mut standby = Standby::new(7, SILENCE_MS);
    let (led, asked) = look(&mut standby, &mut leader, now_ms);
    assert_eq!(led, Led::By(0, 1));
    // reads double in size, and the last one may be of places that are free
    assert!((200..400).contains(&asked), "{asked} requests");
    let after_ms = claims_after(&mut standby, &mut leader, now_ms);
    assert_eq!(after_ms, Some(7000));
    // a claim that failed is followed by a look from the checkpoint on
    let (led, asked) = look(&mut standby, &mut leader, now_ms + 8000);
    assert_eq!(led, Led::By(0, 1));
    assert!((200..400).contains(&asked), "{asked} requests");
    leader.store.abandon();
}

#[test]
fn a_standby_that_was_suspended_reads_all_heartbeats_that_it_has_missed() {
    let mut leader = with_defaults();
    let mut standby = Standby::new(7, SILENCE_MS);
    let mut now_ms = 1000;
    for _ in 0..4 {
        look(&mut standby, &mut leader, now_ms);
        now_ms += 1000;
    }
    let now_ms = beaten(&mut leader, now_ms, 300);
    assert_eq!(look(&mut standby, &mut leader, now_ms).0, Led::By(0, 1));
    let after_ms = claims_after(&mut standby, &mut leader, now_ms);
    assert_eq!(after_ms, Some(7000));
    leader.store.abandon();
}

#[test]
fn a_standby_that_was_cut_off_reads_all_heartbeats_that_it_has_missed() {
    let mut leader = with_defaults();
    let mut standby = Standby::new(7, SILENCE_MS);
    let mut now_ms = 1000;
    look(&mut standby, &mut leader, now_ms);
    for _ in 0..300 {
        now_ms = beaten(&mut leader, now_ms, 1);
        let mut bucket = Counting::new(&mut leader.bucket);
        bucket.is_down = true;
        standby.look(&mut bucket, || now_ms).expect_err("cut off");
    }
    assert_eq!(look(&mut standby, &mut leader, now_ms).0, Led::By(0, 1));
    let after_ms = claims_after(&mut standby, &mut leader, now_ms);
    assert_eq!(after_ms, Some(7000));
    leader.store.abandon();
}

#[test]
fn a_standby_that_looks_less_often_than_its_leader_writes_does_not_fall_behind() {
    let mut leader = with_defaults();
    let mut standby = Standby::new(7, SILENCE_MS);
    let (mut now_ms, mut asked) = (0, 0);
    for _ in 0..200 {
        for _ in 0..5 {
            now_ms += BEAT_MS / 4;
            leader.tick(now_ms);
        }
        let (led, requests) = look(&mut standby, &mut leader, now_ms);
        assert_eq!(led, Led::By(0, 1));
        asked += requests;
    }
    let place = leader.store.bucket_status().expect("a bucket").place;
    let behind = place - standby.silence(now_ms).0;
    assert!(behind <= 2, "{behind} heartbeats are not read");
    assert!(asked < 500, "{asked} requests");
    leader.store.abandon();
}
