//! A bucket that was set back to an earlier state is not served by a broker that knows better.

use std::{fs, path::Path, time::Duration};

use sharecore_bucket::{Bucket, MemoryBucket};
use sharecore_store::{BackupState, BucketError, Change, Prepared, Store};

use crate::{files::directory, prepare, world::options};

/// Serve the home in a directory for some seconds, and write to it in each; return the bucket as it was in the middle.
fn serve(dir: &Path, bucket: &mut MemoryBucket, (writer, from_s): (u8, u64)) -> MemoryBucket {
    let store = Store::open_stepped(dir, &options(writer)).expect("it opens");
    let line = store.bucket_line().expect("it has a bucket");
    let mut middle = None;
    for second in from_s..from_s + 10 {
        let change = Change::Put(second.to_be_bytes().to_vec(), vec![writer]);
        store.change(vec![change]).expect("room");
        for step in 0..20 {
            let now_ms = second * 1000 + step * 50;
            store.step_bucket(now_ms, now_ms as i64);
            while let Some(call) = line.next(Duration::ZERO) {
                line.answer(call.id, bucket.ask(call.what));
            }
            while store.step() {}
        }
        if second == from_s + 5 {
            middle = Some(bucket.clone());
        }
    }
    let status = store.bucket_status().expect("it has a bucket");
    assert_eq!(status.state, BackupState::Leading, "{:?}", status.stopped);
    store.abandon();
    middle.expect("it was reached")
}

fn names(dir: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(dir).expect("readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("readable"))
        .map(|it| {
            let size = it.metadata().expect("readable").len();
            (it.file_name().to_string_lossy().into_owned(), size)
        })
        .collect();
    names.sort();
    names
}

fn refused(bucket: &mut MemoryBucket, dir: &Path, says: &str) {
    let before = names(dir);
    match prepare(bucket, dir, (Some("one"), "one"), None) {
        Err(BucketError::Nothing(why)) => {
            assert!(why.contains(says), "{why}");
            assert!(why.contains("start with an empty data directory"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(names(dir), before, "nothing was changed");
}

fn taken(bucket: &mut MemoryBucket, dir: &Path) {
    let found = prepare(bucket, dir, (Some("one"), "one"), None).expect("it is whole");
    assert!(matches!(found, Prepared::Bucket(_)), "{found:?}");
}

#[test]
fn a_bucket_that_was_set_back_is_refused() {
    let (own, others) = (directory(), directory());
    let mut bucket = MemoryBucket::default();
    let mut earlier = serve(own.path(), &mut bucket, (1, 0));
    refused(&mut earlier, own.path(), "the bucket lacks journal/");
    // what a start has read counts, too
    taken(&mut bucket, others.path());
    refused(&mut earlier, others.path(), "the bucket lacks journal/");
    // the directory of a broker that knows nothing
    let new = directory();
    taken(&mut earlier, new.path());
    let mut forked = earlier.clone();
    serve(new.path(), &mut forked, (2, 100));
    refused(
        &mut forked,
        own.path(),
        "the bucket has another object as journal/",
    );
    // its own bucket, with what others have written since
    serve(others.path(), &mut bucket, (3, 200));
    taken(&mut bucket, own.path());
}
