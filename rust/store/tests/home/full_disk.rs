//! A leader whose disk is full for a while leaves segments without frames behind: its home can be served elsewhere.

use std::{collections::VecDeque, sync::Arc};

use sharecore_bucket::MemoryBucket;
use sharecore_store::{Change, FaultPoint, Moment, Prepared, Store, restore};

use crate::{common::tiny, files::directory, prepare, pumped, world::options};

const ENOSPC: i32 = 28;

/// Write so many entries while the disk refuses some; return the bucket and the entries that were confirmed.
fn led(entries: u64, refuses: &[u64]) -> (MemoryBucket, Vec<u64>) {
    let dir = directory();
    let store = Arc::new(Store::open_stepped(dir.path(), &options(1)).expect("it opens"));
    let (world, tick) = pumped(&store);
    let (mut asked, mut confirmed) = (VecDeque::new(), Vec::new());
    for entry in 0..entries {
        if refuses.contains(&entry) {
            store.fault().plan(FaultPoint::Write, ENOSPC, 0, 1);
        }
        let change = Change::Put(entry.to_be_bytes().to_vec(), vec![7; 300]);
        asked.push_back((store.change(vec![change]).expect("room"), entry));
        for _ in 0..10 {
            tick();
            while store.step() {}
            store.maintain();
        }
        for outcome in store.drain().outcomes {
            while asked.front().is_some_and(|it| it.0 <= outcome.sequence) {
                let (_, entry) = asked.pop_front().expect("there is a first");
                if outcome.error.is_none() {
                    confirmed.push(entry);
                }
            }
        }
    }
    store.abandon();
    let bucket = world.lock().expect("one thread").1.clone();
    (bucket, confirmed)
}

#[test]
fn a_home_is_served_elsewhere_after_its_disk_was_full() {
    for refuses in [
        vec![0],
        vec![0, 1],
        vec![20, 21, 22],
        (0..40).step_by(2).collect(),
        (30..60).collect(),
        (0..60).filter(|it| it % 7 < 4).collect(),
    ] {
        let (mut bucket, confirmed) = led(60, &refuses);
        assert!(
            confirmed.len() + refuses.len() > 50,
            "{refuses:?}: {confirmed:?}"
        );
        let dir = directory();
        let found = prepare(&mut bucket, dir.path(), (None, "one"), None).expect("it is whole");
        assert!(matches!(found, Prepared::Bucket(_)), "{found:?}");
        let store = Store::open_stepped(dir.path(), &options(2)).expect("it opens");
        for entry in &confirmed {
            assert_eq!(
                store.entries(&entry.to_be_bytes()).len(),
                1,
                "{refuses:?}: {entry}"
            );
        }
        store.abandon();
        for ms in [5000, 25_500, 45_500, 59_000] {
            let target = directory();
            let moment = Moment::At(ms);
            if restore(&mut bucket, target.path(), moment, &mut |_| {}).is_ok() {
                Store::open_stepped(target.path(), &tiny()).expect("it opens");
            }
        }
    }
}
