//! Damage in sealed segments: intact batches before it are served, and it is reported once.

mod common;

use std::{fs, path::Path};

use common::{ALL, Client, PLAIN, create_log, open, put, tiny};
use sharecore_store::{Damage, LogId, Refusal, Store, survey};

const BATCHES: i64 = 30;

/// A directory of several sealed segments; only the last one's batches are in memory.
fn filled(dir: &Path) -> LogId {
    let store = open(dir, &tiny());
    let log = create_log(&store);
    for _ in 0..BATCHES {
        let client = Client {
            records: 2,
            value_bytes: 200,
            ..PLAIN
        };
        put(&store, log, client).expect("appended");
    }
    // A segment without a later checkpoint is replayed, and damage in it is refused
    while !has_newest_checkpoint(dir) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    store.close();
    log
}

/// True if the checkpoint at the beginning of the newest segment exists.
fn has_newest_checkpoint(dir: &Path) -> bool {
    let newest = |suffix: &str| {
        let entries = fs::read_dir(dir).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let stems = paths.filter(|path| path.extension().is_some_and(|e| e == suffix));
        stems
            .filter_map(|path| Some(path.file_stem()?.to_owned()))
            .max()
    };
    newest("checkpoint") == newest("journal")
}

/// Changes a byte of the batch at an offset, `at` bytes after its beginning.
fn damage(dir: &Path, offset: i64, at: usize) {
    let mut wanted = offset.to_be_bytes().to_vec();
    wanted.extend_from_slice(&[0, 0, 1]);
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|suffix| suffix != "journal") {
            continue;
        }
        let mut bytes = fs::read(&path).expect("a segment");
        let found = bytes.windows(wanted.len()).position(|part| part == wanted);
        if let Some(found) = found {
            bytes[found + at] ^= 1;
            fs::write(&path, bytes).expect("written");
            return;
        }
    }
    panic!("no batch at {offset}");
}

/// First offsets of the batches that a read returns, or its error.
fn read(store: &Store, log: LogId, offset: i64) -> Result<Vec<i64>, Refusal> {
    let slice = store.read(log, offset, ALL)?;
    let mut bytes = vec![0; slice.size];
    let intact = slice.copy_to(&mut bytes)?;
    let whole = &slice.batches[..intact.batches];
    Ok(whole.iter().map(|(first, _)| *first).collect())
}

fn damaged(store: &Store) -> Vec<Damage> {
    store.drain().damaged
}

#[test]
fn batches_before_and_behind_a_damaged_one_are_served() {
    // In the offset, the leader epoch, the checksum, the header, a record
    for at in [7, 15, 18, 30, 70, 300] {
        let dir = tempfile::tempdir().expect("a directory");
        let log = filled(dir.path());
        damage(dir.path(), 8, at);
        let store = open(dir.path(), &tiny());
        assert_eq!(read(&store, log, 0), Ok(vec![0, 2, 4, 6]), "byte {at}");
        let refused = read(&store, log, 8);
        assert!(matches!(refused, Err(Refusal::Damaged(_))), "{refused:?}");
        let behind = read(&store, log, 10).expect("whole batches");
        assert_eq!(behind, (10..2 * BATCHES).step_by(2).collect::<Vec<_>>());
        store.close();
    }
}

#[test]
fn damage_is_named_once_with_file_and_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path());
    damage(dir.path(), 8, 70);
    let problems = survey(dir.path(), &mut |_, _| {}).expect("data").problems;
    let store = open(dir.path(), &tiny());
    for _ in 0..3 {
        let _ = read(&store, log, 0);
        let _ = read(&store, log, 8);
    }
    let [found] = &damaged(&store)[..] else {
        panic!("named once");
    };
    assert_eq!((found.log, found.offsets), (log, (8, 9)));
    assert_eq!(found.path, problems[0].path);
    let bytes = fs::read(&found.path).expect("the file");
    assert_eq!(bytes[found.at as usize..][..8], 8_i64.to_be_bytes());
    assert_eq!(damaged(&store), []);
    store.close();
}

#[test]
fn all_damage_of_a_log_is_found_when_it_is_read_through() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path());
    let wanted = [0, 2, 10, 30];
    for offset in wanted {
        damage(dir.path(), offset, 90);
    }
    for store in [
        Store::look(dir.path(), 0).expect("data"),
        open(dir.path(), &tiny()),
    ] {
        store.verify(log).expect("a disk that reads");
        let found: Vec<i64> = damaged(&store).iter().map(|each| each.offsets.0).collect();
        assert_eq!(found, wanted);
        store.close();
    }
}
