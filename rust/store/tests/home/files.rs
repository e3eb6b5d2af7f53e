//! Files of directories and buckets, to inspect and to damage.

use std::{fs, path::Path};

use sharecore_bucket::{MemoryBucket, read};
use sharecore_store::Store;

use crate::common::ALL;

/// A directory in memory, if possible.
pub(crate) fn directory() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory
        .or_else(|_| tempfile::tempdir())
        .expect("a directory")
}

/// The objects of a journal, to inspect.
pub(crate) fn journal(bucket: &MemoryBucket) -> String {
    let objects = bucket.objects().filter_map(|(name, body)| {
        let header = read(body).ok()?.header;
        let about = (header.kind, header.epoch, header.writer[0], header.frames);
        Some(format!("{name} {about:?}\n"))
    });
    objects.collect()
}

/// The sequences of a log's batches.
pub(crate) fn numbers(store: &Store, log: u64) -> Vec<i32> {
    let start = store.offsets(log).expect("a log").start;
    let slice = store.read(log, start, ALL).expect("readable");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("readable");
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let number = |from: usize| {
            let four = bytes[at + from..at + from + 4].try_into().expect("four");
            i32::from_be_bytes(four)
        };
        found.push(number(53));
        at += 12 + number(8) as usize;
    }
    found
}

/// Shorten the newest file of the journal.
pub(crate) fn cut_journal(dir: &Path, bytes: u64) {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut journals: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|it| it == "journal"))
        .collect();
    journals.sort();
    if let Some(path) = journals.last() {
        let file = fs::File::options().write(true).open(path).expect("there");
        let size = file.metadata().expect("there").len();
        file.set_len(size.saturating_sub(bytes)).expect("shorter");
    }
}
