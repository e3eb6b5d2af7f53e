//! How many requests a start with a bound makes one after the other.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use sharecore_bucket::{Answer, Bucket, MemoryBucket, What, names};
use sharecore_store::{EvictedRequests, Prepared, Store, prepare_home};

use super::{Home, INTERNAL, Mood, keeping_large, requests};
use crate::files::directory;

/// Counts how often something was asked for below `segments/`, where requests that are made at once count as one. Each
/// fails at first.
struct Rounds {
    bucket: MemoryBucket,
    failed: BTreeSet<String>,
    asked: usize,
}

impl Bucket for Rounds {
    fn ask(&mut self, what: What) -> Answer {
        self.ask_all(vec![what]).remove(0)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        let is_round = whats
            .iter()
            .any(|it| it.name().starts_with(names::SEGMENTS));
        self.asked += usize::from(is_round);
        let asked = whats.into_iter().map(|what| {
            if self.failed.insert(what.name().into()) {
                return Answer::Unknown("503 SlowDown".into());
            }
            self.bucket.ask(what)
        });
        asked.collect()
    }

    fn pause(&mut self, _: Duration) {}
}

#[test]
fn a_start_on_an_empty_disk_fetches_many_segments_at_a_time() {
    let mut home = Home::large();
    home.store.abandon();
    let mut bucket = Rounds {
        bucket: home.begun().lock().expect("one thread").1.clone(),
        failed: BTreeSet::new(),
        asked: 0,
    };
    home.dir = directory();
    let (cluster, dir) = ((Some("one"), "one"), home.dir.path());
    let found = prepare_home(&mut bucket, dir, cluster, None, true, &mut |_| {});
    let Ok(Prepared::Bucket(restored)) = found else {
        panic!("{found:?}");
    };
    assert!(restored.read.segments > 10, "{restored:?}");
    // manifests and ends, each of them twice; a segment after the checkpoint by itself
    assert!(bucket.asked <= 8, "{} rounds", bucket.asked);

    let asked = Arc::new(Mutex::new(Vec::new()));
    let (counted, inner) = (Arc::clone(&asked), requests(&home.world, &home.mood));
    let requests = EvictedRequests(Arc::new(move |requests| {
        counted.lock().expect("one thread").push(requests.len());
        (inner.0)(requests);
    }));
    let opened = Store::open_stepped(home.dir.path(), &keeping_large(requests));
    home.store = Arc::new(opened.expect("it opens"));
    home.store
        .keep_local(&[INTERNAL])
        .expect("the bucket answers");
    let asked = asked.lock().expect("one thread").clone();
    let pieces: usize = asked.iter().sum();
    assert!(pieces > 10, "{asked:?}");
    assert_eq!(asked.len(), pieces.div_ceil(32), "{asked:?}");
    home.is(Mood::Silent);
    home.reads_internal();
}
