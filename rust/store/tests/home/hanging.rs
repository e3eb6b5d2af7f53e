//! Reads of evicted segments that the bucket never answers do not hold up the store.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use sharecore_bucket::{Bucket, MemoryBucket};
use sharecore_store::{CacheOptions, Change, EvictedRequests, Store};

use crate::{
    common::{Client, PLAIN},
    files::directory,
    world::options,
};

const SECONDS_MAX: Duration = Duration::from_secs(60);

/// Ends the bucket's thread, also if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < SECONDS_MAX, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_eviction_that_waits_for_the_bucket_holds_up_neither_deletes_nor_the_end() {
    let dir = directory();
    let asked = Arc::new(AtomicUsize::new(0));
    let replies = Arc::new(Mutex::new(Vec::new()));
    let mut options = options(1);
    let backup = options.bucket.as_mut().expect("it has one");
    let (counted, kept) = (Arc::clone(&asked), Arc::clone(&replies));
    backup.cache = Some(CacheOptions {
        bytes: 4000,
        page_bytes: 4096,
        requests: EvictedRequests(Arc::new(move |requests| {
            for (_, reply) in requests {
                counted.fetch_add(1, Ordering::Relaxed);
                kept.lock().expect("no panic").push(reply);
            }
        })),
    });
    let store = Store::open(dir.path(), &options).expect("it opens");
    store.keep_local(&[]).expect("nothing is read");
    let line = store.bucket_line().expect("it has a bucket");
    let has_ended = AtomicBool::new(false);
    thread::scope(|threads| {
        let _end = End(&has_ended);
        threads.spawn(|| {
            let mut bucket = MemoryBucket::default();
            while !has_ended.load(Ordering::Relaxed) {
                if let Some(call) = line.next(Duration::from_millis(10)) {
                    line.answer(call.id, bucket.ask(call.what));
                }
            }
        });
        store.wait(store.change(vec![Change::CreateLog(1)]).expect("room"));
        let client = Client {
            value_bytes: 400,
            ..PLAIN
        };
        let append = || {
            let appended = store.append(1, &client.bytes(), 1000).expect("room");
            store.wait(appended.sequence);
        };
        until("a segment is to be evicted", || {
            append();
            asked.load(Ordering::Relaxed) > 0
        });
        // segments are sealed and removed meanwhile
        for _ in 0..30 {
            append();
        }
        let figures = || store.evicted_figures().expect("it has a bound");
        store.wait(store.delete_records(1, -1).expect("it takes writes"));
        until("deleted segments leave the disk", || {
            figures().local_bytes == 0
        });
        assert_eq!(figures().evicted, 0, "nobody has answered");
        store.close();
    });
    assert!(!replies.lock().expect("no panic").is_empty());
}
