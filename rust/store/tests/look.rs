//! Reads a directory without changing it, also while its owner writes.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{ALL, Client, PLAIN, create_log, open, tiny};
use sharecore_store::{Refusal, Store, StoreError};

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into();
            (name, fs::read(&path).expect("a file"))
        })
        .collect()
}

fn offsets_read(store: &Store, log: u64) -> Vec<(i64, i64)> {
    store.read(log, 0, ALL).expect("readable").batches
}

#[test]
fn nothing_is_changed_and_everything_is_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    for i in 0..200 {
        let batch = Client {
            timestamp: i,
            value_bytes: 300,
            ..PLAIN
        };
        store.wait(
            store
                .append(log, &batch.bytes(), 0)
                .expect("appended")
                .sequence,
        );
    }
    let written = offsets_read(&store, log);
    store.close();
    // A crash leaves a torn frame behind
    let newest = files(dir.path())
        .into_keys()
        .filter(|name| name.ends_with("journal"))
        .max()
        .expect("a journal");
    let path = dir.path().join(newest);
    let mut bytes = fs::read(&path).expect("a journal");
    bytes.extend_from_slice(b"half a frame");
    fs::write(&path, bytes).expect("written");
    let before = files(dir.path());
    let seen = Store::look(dir.path(), 0).expect("readable");
    assert_eq!(offsets_read(&seen, log), written);
    assert!(matches!(
        seen.append(log, &PLAIN.bytes(), 0),
        Err(Refusal::Storage(_))
    ));
    assert!(matches!(
        seen.delete_records(log, 5),
        Err(Refusal::Storage(_))
    ));
    drop(seen);
    assert_eq!(files(dir.path()), before);
}

#[test]
fn an_owner_may_write_meanwhile() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for i in 0..3000_i64 {
                let batch = Client {
                    value_bytes: 200,
                    ..PLAIN
                };
                let appended = store.append(log, &batch.bytes(), 0).expect("appended");
                if i % 100 == 99 {
                    store.wait(appended.sequence);
                    store.delete_records(log, i - 90).expect("deleted");
                }
            }
        });
        let mut end = 0;
        while !writer.is_finished() {
            let seen = Store::look(dir.path(), 0).expect("readable");
            let offsets = seen
                .offsets(log)
                .map_or(0, |offsets| offsets.high_watermark);
            assert!(offsets >= end, "{offsets} after {end}");
            end = offsets;
        }
        writer.join().expect("no panic");
    });
}

#[test]
fn a_directory_without_a_store_is_reported_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = Store::look(dir.path(), 0)
        .map(drop)
        .expect_err("nothing there");
    assert!(error.to_string().contains("holds no data"), "{error}");
    assert!(matches!(
        Store::look(&dir.path().join("missing"), 0),
        Err(StoreError::Io { .. })
    ));
    assert!(files(dir.path()).is_empty());
}
