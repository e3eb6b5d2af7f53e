//! Space that a journal writes ahead of its frames, so that syncing them does not change the size of its file.

mod common;

use std::{fs, path::Path};

use common::{Client, PLAIN, batches, create_log, open, put};
use sharecore_store::{Durability, Options, Store, survey};

const COUNT: i64 = 20;

fn journal_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).expect("a directory");
    let journals = files.filter_map(|file| {
        let file = file.expect("a file");
        let is_journal = file.path().extension().is_some_and(|it| it == "journal");
        is_journal.then(|| file.metadata().expect("a file").len())
    });
    journals.sum()
}

fn filled(dir: &Path, options: &Options, client: Client) -> (Store, u64) {
    let store = open(dir, options);
    let log = create_log(&store);
    for _ in 0..COUNT {
        put(&store, log, client).expect("appended");
    }
    (store, log)
}

/// Copies the directory as a killed process would leave it.
fn copy(dir: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().expect("a directory");
    for file in fs::read_dir(dir).expect("a directory") {
        let path = file.expect("a file").path();
        fs::copy(&path, left.path().join(path.file_name().expect("a name"))).expect("a copy");
    }
    left
}

#[test]
fn syncs_lie_within_the_file_and_a_closed_store_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, log) = filled(dir.path(), &Options::default(), PLAIN);
    let ahead = journal_bytes(dir.path());
    assert!(ahead > Options::default().ahead_bytes, "{ahead}");
    for _ in 0..COUNT {
        put(&store, log, PLAIN).expect("appended");
    }
    assert_eq!(journal_bytes(dir.path()), ahead, "the file has not grown");
    store.close();
    assert!(journal_bytes(dir.path()) < 10_000);
    let store = open(dir.path(), &Options::default());
    assert_eq!(batches(&store, log, 0).len() as i64, 2 * COUNT);
}

#[test]
fn a_killed_store_is_found_whole_and_goes_on_where_it_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_store, log) = filled(dir.path(), &Options::default(), PLAIN);
    let left = copy(dir.path());
    let found = survey(left.path(), &mut |_, _| ()).expect("readable");
    assert_eq!(found.problems.len(), 0);
    let looked = Store::look(left.path(), 0).expect("readable");
    assert_eq!(batches(&looked, log, 0).len() as i64, COUNT);
    let store = open(left.path(), &Options::default());
    assert!(journal_bytes(left.path()) < 10_000, "it is given back");
    let next = put(&store, log, PLAIN).expect("appended");
    assert_eq!(next.base_offset, COUNT);
    assert_eq!(batches(&store, log, 0).len() as i64, COUNT + 1);
}

#[test]
fn nothing_is_written_ahead_where_nothing_is_synced_or_frames_are_large() {
    let unsynced = Options {
        durability: Durability::Os,
        ..Options::default()
    };
    let large = Client {
        value_bytes: 200_000,
        ..PLAIN
    };
    for (options, client) in [(unsynced, PLAIN), (Options::default(), large)] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), &options);
        let log = create_log(&store);
        store.close();
        let before = journal_bytes(dir.path());
        let store = open(dir.path(), &options);
        for _ in 0..COUNT {
            put(&store, log, client).expect("appended");
        }
        let value_bytes = client.value_bytes as u64 * COUNT as u64;
        let grown = journal_bytes(dir.path()) - before;
        assert!(grown < value_bytes + 10_000, "{grown}");
    }
}

#[test]
fn no_more_is_written_ahead_than_a_segment_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        segment_bytes: 64 << 10,
        ..Options::default()
    };
    let _store = filled(dir.path(), &options, PLAIN);
    assert_eq!(journal_bytes(dir.path()), 64 << 10);
}
