//! What a takeover reads, and which place it claims.

use std::{sync::Arc, time::Duration};

use sharecore_bucket::{Answer, Bucket, MemoryBucket, What, names};
use sharecore_store::{BackupState, Change, JournalCache, Led, Prepared, Standby, Store};
use tempfile::TempDir;

use crate::{
    files::directory,
    prepare, pumped,
    standby::{Counting, Leader, SILENCE_MS, leader},
    world::options,
};

/// Let a store claim its bucket; return how many objects of the journal it reads.
fn attach(store: &Store, bucket: &mut MemoryBucket) -> u64 {
    let read = step(store, bucket);
    let status = store.bucket_status().expect("it has a bucket");
    assert_eq!(status.state, BackupState::Leading, "{:?}", status.stopped);
    read
}

/// Let a store go on with its bucket; return how many objects of the journal it reads.
fn step(store: &Store, bucket: &mut MemoryBucket) -> u64 {
    let mut counting = Counting::new(bucket);
    let line = store.bucket_line().expect("it has a bucket");
    for now_ms in 0..100 {
        store.step_bucket(now_ms, 0);
        while let Some(call) = line.next(Duration::ZERO) {
            line.answer(call.id, counting.ask(call.what));
        }
    }
    counting.read
}

/// A leader whose newest checkpoint has this many objects of its journal behind it, and what a standby has read.
fn with_standby(objects: u64, value: u8) -> (Leader, Arc<JournalCache>, TempDir) {
    let mut leader = leader();
    for put in 0..objects {
        let change = Change::Put(put.to_be_bytes().to_vec(), vec![value; 20]);
        leader.store.change(vec![change]).expect("room");
        leader.tick(2 + put);
    }
    let dir = directory();
    let cache = Arc::new(JournalCache::new(dir.path()));
    let mut standby = Standby::new(7, SILENCE_MS);
    standby.keep(Arc::clone(&cache));
    let led = standby.look(&mut leader.bucket, || 1000);
    assert_eq!(led, Ok(Led::By(0, 1)));
    (leader, cache, dir)
}

#[test]
fn a_takeover_reads_no_object_of_the_journal_that_the_standby_has_read() {
    let (mut leader, cache, dir) = with_standby(15, 7);
    let place = |leader: &Leader| leader.store.bucket_status().expect("a bucket").place;
    let known = place(&leader);
    leader
        .store
        .change(vec![Change::CreateLog(2)])
        .expect("room");
    leader.tick(2000);
    let (new, all) = (place(&leader) - known, place(&leader) - 1);
    leader.store.abandon();
    let prepared = |bucket: &mut MemoryBucket, cache: Option<&JournalCache>| {
        let mut counting = Counting::new(bucket);
        let cluster = (Some("one"), "one");
        let prepared = prepare(&mut counting, dir.path(), cluster, cache);
        match prepared.expect("it is whole") {
            Prepared::Bucket(restored) => (restored, counting.read, counting.asked),
            other => panic!("{other:?}"),
        }
    };
    let (restored, read, asked) = prepared(&mut leader.bucket, Some(&cache));
    assert_eq!(
        read,
        new + 1,
        "and the last one that was known, to compare it"
    );
    // the leader had 8 in progress at most: 7 may lie behind the end
    assert!(asked <= 1 + 2 * (new + 1) + 7, "{asked}");
    let mut options = options(2);
    let mut bucket = leader.bucket.clone();
    for (end, read) in [(None, all), (restored.end, 0)] {
        options.bucket.as_mut().expect("it has one").restored = end;
        leader.bucket = bucket.clone();
        let store = Store::open_stepped(dir.path(), &options).expect("it opens");
        assert_eq!(store.logs().len(), 2);
        assert_eq!(store.entries(b"").len(), 15);
        assert_eq!(attach(&store, &mut leader.bucket), read);
        store.abandon();
    }
    // without a cache, all of them
    assert_eq!(prepared(&mut bucket, None).1, all);
}

#[test]
fn a_start_reads_the_journal_anew_behind_a_newer_checkpoint() {
    let (home, dir) = (directory(), directory());
    let store = Arc::new(Store::open_stepped(home.path(), &options(1)).expect("it opens"));
    let (world, tick) = pumped(&store);
    let mut restored = None;
    for put in 0..200_u64 {
        let change = Change::Put(put.to_be_bytes().to_vec(), vec![8; 20]);
        store.change(vec![change]).expect("room");
        for _ in 0..10 {
            tick();
            while store.step() {}
        }
        store.maintain();
        if put == 100 {
            let mut bucket = world.lock().expect("one thread").1.clone();
            let cluster = (Some("one"), "one");
            let prepared = prepare(&mut bucket, dir.path(), cluster, None);
            let Ok(Prepared::Bucket(found)) = prepared else {
                panic!("{prepared:?}");
            };
            restored = Some(found);
        }
    }
    store.abandon();
    let restored = restored.expect("it was restored");
    let mut bucket = world.lock().expect("one thread").1.clone();
    let place = names::journal(restored.place);
    assert_eq!(bucket.get(&place), None, "it was swept");
    // it takes the free place for the end, if it reads on from there
    let mut options = options(2);
    options.bucket.as_mut().expect("it has one").restored = restored.end;
    let store = Store::open_stepped(dir.path(), &options).expect("it opens");
    let line = store.bucket_line().expect("it has a bucket");
    for now_ms in 0..100 {
        store.step_bucket(now_ms, 0);
        while let Some(call) = line.next(Duration::ZERO) {
            let what = &call.what;
            assert!(
                !matches!(what, What::Create { .. }),
                "it claims {}",
                what.name()
            );
            line.answer(call.id, bucket.ask(call.what));
        }
    }
    let status = store.bucket_status().expect("it has a bucket");
    let why = status.stopped.expect("a reason");
    assert!(
        why.contains("has advanced since this broker started"),
        "{why}"
    );
    store.abandon();
}

/// A place that was free may be taken before the claim: whoever took it may lease records.
#[test]
fn a_broker_that_found_nobody_leading_claims_no_other_place() {
    let (mut leader, cache, dir) = with_standby(3, 7);
    let mut standby = Standby::new(7, SILENCE_MS);
    let mut led = Ok(Led::By(0, 1));
    for second in 1..9 {
        led = standby.look(&mut leader.bucket, || second * 1000);
    }
    assert_eq!(led, Ok(Led::Free));
    let free = standby.claims_at();
    assert_eq!(
        free.map(|free| (free.place, free.own_epoch)),
        Some((leader.store.bucket_status().expect("a bucket").place, None))
    );
    for is_late in [false, true] {
        let mut bucket = leader.bucket.clone();
        if is_late {
            leader.tick(60_000);
            bucket = leader.bucket.clone();
        }
        let cluster = (Some("one"), "one");
        let prepared = prepare(&mut bucket, dir.path(), cluster, Some(&cache));
        let Ok(Prepared::Bucket(restored)) = prepared else {
            panic!("{prepared:?}");
        };
        let mut options = options(2);
        let copy = options.bucket.as_mut().expect("it has one");
        (copy.restored, copy.claims_at) = (restored.end, free);
        let store = Store::open_stepped(dir.path(), &options).expect("it opens");
        step(&store, &mut bucket);
        let status = store.bucket_status().expect("it has a bucket");
        let expected = [BackupState::Leading, BackupState::Refused][usize::from(is_late)];
        assert_eq!(status.state, expected, "{:?}", status.stopped);
        store.abandon();
    }
    leader.store.abandon();
}

#[test]
fn a_journal_that_was_read_and_is_damaged_is_read_from_the_bucket() {
    let (mut leader, cache, dir) = with_standby(3, 7);
    leader.store.abandon();
    // of another journal, at the same places
    let (other, others, _) = with_standby(9, 8);
    other.store.abandon();
    for read in [&cache, &others] {
        let cluster = (Some("one"), "one");
        let prepared = prepare(&mut leader.bucket, dir.path(), cluster, Some(read));
        assert!(matches!(prepared, Ok(Prepared::Bucket(_))), "{prepared:?}");
        let store = Store::open_stepped(dir.path(), &options(2)).expect("it opens");
        assert_eq!(store.entries(b"").len(), 3);
        store.abandon();
    }
}

/// What an ended process had sent may arrive after the next one of its node has looked.
#[test]
fn a_node_leads_again_though_an_object_of_its_last_life_comes_late() {
    let mut leader = leader();
    leader.tick(2);
    let mut standby = Standby::new(0, SILENCE_MS);
    assert_eq!(standby.look(&mut leader.bucket, || 1000), Ok(Led::Free));
    leader
        .store
        .change(vec![Change::CreateLog(2)])
        .expect("room");
    leader.tick(60_000);
    leader.store.abandon();
    let dir = directory();
    let cluster = (Some("one"), "one");
    let prepared = prepare(&mut leader.bucket, dir.path(), cluster, None);
    let Ok(Prepared::Bucket(restored)) = prepared else {
        panic!("{prepared:?}");
    };
    let mut options = options(2);
    let copy = options.bucket.as_mut().expect("it has one");
    (copy.restored, copy.claims_at) = (restored.end, standby.claims_at());
    let store = Store::open_stepped(dir.path(), &options).expect("it opens");
    attach(&store, &mut leader.bucket);
    store.abandon();
}

#[test]
fn a_bucket_that_was_emptied_after_the_restore_gets_a_journal_from_its_beginning() {
    let (mut leader, _, dir) = with_standby(3, 7);
    let cluster = (Some("one"), "one");
    let prepared = prepare(&mut leader.bucket, dir.path(), cluster, None);
    let Ok(Prepared::Bucket(restored)) = prepared else {
        panic!("{prepared:?}");
    };
    leader.store.abandon();
    let mut options = options(2);
    options.bucket.as_mut().expect("it has one").restored = restored.end;
    let store = Store::open_stepped(dir.path(), &options).expect("it opens");
    let mut emptied = MemoryBucket::default();
    attach(&store, &mut emptied);
    store.abandon();
    let again = directory();
    let prepared = prepare(&mut emptied, again.path(), cluster, None);
    assert!(matches!(prepared, Ok(Prepared::Bucket(_))), "{prepared:?}");
}

/// A bucket that returns a damaged object `format` 50 times. Its leader writes and its standby looks at each list.
struct Damaged<'a> {
    leader: &'a mut Leader,
    standby: &'a mut Standby,
    lists: u64,
}

impl Bucket for Damaged<'_> {
    fn ask(&mut self, what: What) -> Answer {
        if what.name() == names::FORMAT && self.lists < 50 {
            return Answer::Bytes(b"damaged".to_vec());
        }
        if matches!(what, What::List { .. }) {
            self.lists += 1;
            let change = Change::Put(self.lists.to_be_bytes().to_vec(), vec![1; 20]);
            self.leader.store.change(vec![change]).expect("room");
            let now_ms = 3000 + self.lists * 100;
            self.leader.tick(now_ms);
            let led = self.standby.look(&mut self.leader.bucket, || now_ms);
            led.expect("it can be read");
        }
        self.leader.bucket.ask(what)
    }
}

#[test]
fn a_restore_of_a_damaged_bucket_ends_while_looks_go_on() {
    let mut leader = leader();
    let dir = directory();
    let cache = Arc::new(JournalCache::new(dir.path()));
    let mut standby = Standby::new(7, SILENCE_MS);
    standby.keep(Arc::clone(&cache));
    let led = standby.look(&mut leader.bucket, || 1000);
    assert_eq!(led, Ok(Led::By(0, 1)));
    let mut damaged = Damaged {
        leader: &mut leader,
        standby: &mut standby,
        lists: 0,
    };
    let cluster = (Some("one"), "one");
    let prepared = prepare(&mut damaged, dir.path(), cluster, Some(&cache));
    assert!(prepared.is_err(), "{prepared:?}");
    leader.store.abandon();
}
