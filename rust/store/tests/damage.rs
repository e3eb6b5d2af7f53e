//! Files that are torn, corrupt, missing or locked.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{Client, PLAIN, batches, create_log, open, put, tiny};
use sharecore_store::{Change, Durability, FaultPoint, Options, Store, StoreError};

const ENOSPC: i32 = 28;

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .expect("a directory")
        .map(|e| e.expect("an entry").path());
    let mut found: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == suffix))
        .collect();
    found.sort();
    found
}

fn filled(dir: &Path, options: &Options, count: i64) -> u64 {
    let store = open(dir, options);
    let log = create_log(&store);
    for _ in 0..count {
        put(
            &store,
            log,
            Client {
                value_bytes: 300,
                ..PLAIN
            },
        )
        .expect("appended");
    }
    log
}

fn refusal(dir: &Path, options: &Options) -> String {
    match Store::open(dir, options) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_second_process_learns_that_the_directory_is_in_use() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    assert!(matches!(
        Store::open(dir.path(), &Options::default()),
        Err(StoreError::Locked(_))
    ));
    store.close();
    open(dir.path(), &Options::default());
}

#[test]
fn a_frame_torn_at_any_byte_is_forgotten_and_the_rest_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path(), &Options::default(), 3);
    let path = files(dir.path(), "journal").remove(0);
    let whole = fs::read(&path).expect("the journal");
    let last_frame = 32
        + 1
        + 8
        + 8
        + 4
        + Client {
            value_bytes: 300,
            ..PLAIN
        }
        .bytes()
        .len();
    // A truncated write was not confirmed
    fs::remove_file(dir.path().join("synced")).expect("the mark");
    for cut in 1..=last_frame {
        fs::write(&path, &whole[..whole.len() - cut]).expect("written");
        let store = open(dir.path(), &Options::default());
        assert_eq!(
            batches(&store, log, 0),
            [(0, 0), (1, 1)],
            "{cut} bytes cut off"
        );
    }
    let store = open(dir.path(), &Options::default());
    assert_eq!(put(&store, log, PLAIN).expect("appended").base_offset, 2);
}

#[test]
fn a_broken_frame_before_whole_ones_is_damage_when_it_had_been_synced() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), &Options::default(), 3);
    let path = files(dir.path(), "journal").remove(0);
    let mut bytes = fs::read(&path).expect("the journal");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let text = refusal(dir.path(), &Options::default());
    assert!(
        text.contains(path.to_str().expect("a path")) && text.contains("is whole"),
        "{text}"
    );
}

#[test]
fn without_sync_a_hole_before_whole_frames_is_a_power_loss() {
    let options = Options {
        durability: Durability::Os,
        ..Options::default()
    };
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path(), &options, 3);
    let path = files(dir.path(), "journal").remove(0);
    let mut bytes = fs::read(&path).expect("the journal");
    let at = bytes.len() - 500;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).expect("written");
    assert_eq!(batches(&open(dir.path(), &options), log, 0), [(0, 0)]);
}

#[test]
fn a_damaged_or_missing_file_is_named() {
    for suffix in ["checkpoint", "journal"] {
        for missing in [false, true] {
            let dir = tempfile::tempdir().expect("a directory");
            filled(dir.path(), &tiny(), 60);
            let path = files(dir.path(), suffix).remove(0);
            if missing && suffix == "checkpoint" {
                continue; // then the journal does not begin where it should; see below
            }
            if missing {
                fs::remove_file(&path).expect("removed");
            } else {
                let mut bytes = fs::read(&path).expect("a file");
                let at = bytes.len() - 10;
                bytes[at] ^= 1;
                fs::write(&path, &bytes).expect("written");
            }
            let text = refusal(dir.path(), &tiny());
            assert!(
                text.contains(path.to_str().expect("a path")),
                "{suffix} {missing}: {text}"
            );
        }
    }
}

#[test]
fn an_index_block_that_is_damaged_fails_its_readers_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path(), &tiny(), 60);
    let path = files(dir.path(), "journal").remove(0);
    let mut bytes = fs::read(&path).expect("a file");
    let at = bytes.len() - 32 - 52 - 3;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let store = open(dir.path(), &tiny());
    let error = store
        .read(log, 0, common::ALL)
        .expect_err("a damaged index");
    assert_eq!(error.code(), 56);
    assert!(
        error.to_string().contains(path.to_str().expect("a path")),
        "{error}"
    );
    assert!(store.read(log, 59, common::ALL).is_ok());
}

#[test]
fn what_lies_before_an_index_block_that_is_damaged_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path(), &tiny(), 60);
    let path = files(dir.path(), "journal").remove(1);
    let mut bytes = fs::read(&path).expect("a file");
    let at = bytes.len() - 32 - 52 - 3;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let store = open(dir.path(), &tiny());
    let slice = store.read(log, 0, common::ALL).expect("the first segment");
    let (_, last) = *slice.batches.last().expect("a batch");
    let error = store
        .read(log, last + 1, common::ALL)
        .expect_err("a damaged index");
    assert_eq!(error.code(), 56);
}

#[test]
fn a_failed_write_or_sync_takes_everything_staged_back_and_later_writes_go_on() {
    for point in [FaultPoint::Write, FaultPoint::Sync] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), &tiny());
        let log = create_log(&store);
        let sequenced = |sequence| Client {
            producer: (1, 0, sequence),
            ..PLAIN
        };
        put(&store, log, sequenced(0)).expect("appended");
        store.drain();
        store.fault().plan(point, ENOSPC, 0, 2);
        for _ in 0..2 {
            put(&store, log, sequenced(1)).expect("staged");
            let outcome = store.drain().outcomes.pop().expect("an outcome");
            assert!(outcome.error.expect("a failure").contains("No space left"));
            assert_eq!(store.offsets(log).expect("a log").end, 1);
        }
        let failing = store.new_log_id();
        store.fault().plan(point, ENOSPC, 0, 1);
        store.wait(
            store
                .change(vec![Change::CreateLog(failing), Change::DropLog(log)])
                .expect("staged"),
        );
        assert_eq!(store.logs(), [log]);
        let refused = put(&store, log, sequenced(1)).expect_err("built on what was taken back");
        assert!(refused.to_string().contains("No space left"), "{refused}");
        store.drain();
        let retried = put(&store, log, sequenced(1)).expect("appended");
        assert_eq!(
            retried.base_offset, 1,
            "the sequence was taken back as well"
        );
        assert!(
            store
                .drain()
                .outcomes
                .pop()
                .expect("an outcome")
                .error
                .is_none()
        );
        store.close();
        let store = open(dir.path(), &tiny());
        assert_eq!(batches(&store, log, 0), [(0, 0), (1, 1)]);
    }
}

/// The position at which the journal's last frames begin, counted from the newest.
fn frames_from(bytes: &[u8], newest: usize) -> usize {
    let mut starts = bytes.windows(4).enumerate();
    let starts: Vec<usize> = starts
        .by_ref()
        .filter(|(_, window)| window == b"SCfr")
        .map(|(at, _)| at)
        .collect();
    starts[starts.len() - newest]
}

#[test]
fn damage_in_the_confirmed_end_of_the_journal_is_no_torn_write() {
    for newest in [1, 2, 5] {
        let dir = tempfile::tempdir().expect("a directory");
        filled(dir.path(), &Options::default(), 8);
        let path = files(dir.path(), "journal").remove(0);
        let mut bytes = fs::read(&path).expect("the journal");
        let from = frames_from(&bytes, newest);
        let end = bytes.len();
        for byte in &mut bytes[from + 40..] {
            *byte ^= 0x55;
        }
        for (case, left) in [
            ("garbled", bytes.clone()),
            ("cut off", bytes[..from].to_vec()),
            ("zeros", [&bytes[..from], &vec![0; end - from]].concat()),
        ] {
            fs::write(&path, &left).expect("written");
            let said = refusal(dir.path(), &Options::default());
            assert!(said.contains("were confirmed"), "{case}: {said}");
            assert!(said.contains(&format!("at byte {from}")), "{case}: {said}");
            assert!(
                said.contains(&format!("{} bytes", end - from)),
                "{case}: {said}"
            );
            let found = sharecore_store::survey(dir.path(), &mut |_, _| {}).expect("data");
            assert_eq!(found.problems[0].at, from as u64, "{case}");
            assert!(found.history_lost);
            assert!(Store::look(dir.path(), 0).is_err());
            assert_eq!(fs::read(&path).expect("the journal"), left, "{case}");
        }
    }
}

#[test]
fn a_write_that_was_cut_short_is_forgotten_and_said_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = filled(dir.path(), &Options::default(), 3);
    let path = files(dir.path(), "journal").remove(0);
    let whole = fs::read(&path).expect("the journal");
    let torn = [&whole[..], b"SCfr, and some of a frame", &[0; 500]].concat();
    fs::write(&path, &torn).expect("written");
    let found = sharecore_store::survey(dir.path(), &mut |_, _| {}).expect("data");
    assert_eq!(found.problems, []);
    for store in [
        Store::look(dir.path(), 0).expect("data"),
        open(dir.path(), &Options::default()),
    ] {
        let torn = store.torn().expect("bytes that do not count");
        assert_eq!((torn.at, torn.bytes), (whole.len() as u64, 25));
        assert_eq!(torn.path, path);
        assert_eq!(Some(torn), found.torn);
        assert_eq!(batches(&store, log, 0).len(), 3);
        store.close();
    }
    let store = open(dir.path(), &Options::default());
    assert_eq!(store.torn(), None);
    store.close();
}

#[test]
fn a_mark_that_is_behind_lost_or_of_no_use_refuses_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), &Options::default(), 3);
    let path = dir.path().join("synced");
    let older = fs::read(&path).expect("the mark");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    put(&store, log, PLAIN).expect("appended");
    store.close();
    for content in [&older[..], b"", b"nonsense", &older[..20]] {
        fs::write(&path, content).expect("written");
        open(dir.path(), &Options::default()).close();
    }
    fs::remove_file(&path).expect("removed");
    open(dir.path(), &Options::default()).close();
}

#[test]
fn without_syncs_nothing_is_confirmed_beyond_a_power_loss() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        durability: Durability::Os,
        ..Options::default()
    };
    filled(dir.path(), &options, 3);
    let path = files(dir.path(), "journal").remove(0);
    let bytes = fs::read(&path).expect("the journal");
    fs::write(&path, &bytes[..frames_from(&bytes, 2)]).expect("written");
    open(dir.path(), &options).close();
}
