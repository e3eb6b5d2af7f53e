//! What a home costs that is hardly used: objects in the bucket, and requests.

use std::sync::Arc;

use sharecore_bucket::{MemoryBucket, names};
use sharecore_store::{Change, Led, Moment, Standby, Store, restore};

use crate::{
    common::tiny,
    files::directory,
    kinds, pumped,
    standby::{Counting, SILENCE_MS, leader},
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
    let mut leader = leader();
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
