//! The format version of a directory: written, checked, and upgraded or refused.

mod common;

use std::{fs, path::Path};

use common::{PLAIN, batches, create_log, open, put, tiny};
use sharecore_store::{FORMAT, Options, Store, StoreError, salvage, survey};

fn format_of(dir: &Path) -> String {
    fs::read_to_string(dir.join("format")).expect("a format")
}

fn refusal(dir: &Path) -> StoreError {
    Store::open(dir, &Options::default())
        .map(drop)
        .expect_err("another format")
}

#[test]
fn a_new_directory_says_its_format() {
    let dir = tempfile::tempdir().expect("a directory");
    open(dir.path(), &tiny()).close();
    let release = env!("CARGO_PKG_VERSION");
    let lines = format!("format={FORMAT}\nrelease={release}\n");
    let crc = crc32c::crc32c(lines.as_bytes());
    assert_eq!(
        format_of(dir.path()),
        format!("{lines}checksum={crc:08x}\n")
    );
}

#[test]
fn a_newer_directory_is_refused_by_all_that_read_it_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let to = tempfile::tempdir().expect("a directory");
    open(dir.path(), &tiny()).close();
    let newer = format!("format={}\nrelease=9.8.7\n", FORMAT + 1);
    fs::write(dir.path().join("format"), &newer).expect("written");
    let refusals = [
        Some(refusal(dir.path())),
        Store::look(dir.path(), 0).err(),
        survey(dir.path(), &mut |_, _| ()).err(),
        salvage(dir.path(), to.path(), &mut |_, _| ()).err(),
    ];
    for refusal in refusals {
        let refusal = refusal.expect("refused");
        assert!(matches!(refusal, StoreError::Newer { .. }), "{refusal}");
        assert!(
            refusal.to_string().contains("run 9.8.7 or later"),
            "{refusal}"
        );
    }
    assert_eq!(format_of(dir.path()), newer);
    assert_eq!(fs::read_dir(to.path()).expect("there").count(), 0);
}

#[test]
fn a_directory_from_before_formats_were_written_down_is_served_and_marked() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    for _ in 0..100 {
        put(&store, log, PLAIN).expect("room");
    }
    let written = batches(&store, log, 0);
    store.close();
    fs::remove_file(dir.path().join("format")).expect("removed");
    assert_eq!(batches(&open(dir.path(), &tiny()), log, 0), written);
    assert!(format_of(dir.path()).starts_with(&format!("format={FORMAT}\n")));
}

#[test]
fn a_format_from_before_it_had_a_checksum_is_served_and_gets_one() {
    let dir = tempfile::tempdir().expect("a directory");
    open(dir.path(), &tiny()).close();
    let written = format_of(dir.path());
    let (lines, _) = written.split_once("checksum=").expect("a checksum");
    fs::write(dir.path().join("format"), lines).expect("written");
    open(dir.path(), &tiny()).close();
    assert_eq!(format_of(dir.path()), written);
}

#[test]
fn no_flipped_bit_makes_another_format_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    open(dir.path(), &tiny()).close();
    let written = format_of(dir.path()).into_bytes();
    for bit in 0..written.len() * 8 {
        let mut flipped = written.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(dir.path().join("format"), flipped).expect("written");
        let opened = Store::open(dir.path(), &Options::default());
        let refusal = opened.map(drop).err();
        // The checksum in its line may use capitals
        let is_reported = matches!(refusal, None | Some(StoreError::Damaged { .. }));
        assert!(is_reported, "bit {bit}: {refusal:?}");
        if bit / 8 < written.len() - "checksum=00000000\n".len() {
            assert!(refusal.is_some(), "bit {bit} went unseen");
        }
    }
}

/// A checkpoint from before compaction: a log's fields do not include the progress of compaction.
fn checkpoint_1(bytes: &[u8]) -> Vec<u8> {
    let mut old = bytes[..bytes.len() - 4].to_vec();
    old[..8].copy_from_slice(b"SCchk-1\n");
    // The log's progress precedes its counts of producers and aborted transactions
    let progress = old.len() - 8 - 24;
    old.drain(progress..progress + 24);
    let crc = crc32c::crc32c(&old);
    old.extend_from_slice(&crc.to_le_bytes());
    old
}

#[test]
fn a_checkpoint_from_before_logs_were_compacted_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    let is_checkpoint = |path: &Path| path.extension().is_some_and(|e| e == "checkpoint");
    let checkpoint = loop {
        put(&store, log, PLAIN).expect("room");
        let mut paths = fs::read_dir(dir.path())
            .expect("there")
            .map(|entry| entry.expect("an entry").path());
        if let Some(path) = paths.find(|path| is_checkpoint(path)) {
            break path;
        }
    };
    store.close();
    let newest = fs::read_dir(dir.path())
        .expect("there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| is_checkpoint(path))
        .max()
        .expect("a checkpoint");
    assert!(newest >= checkpoint);
    let written = fs::read(&newest).expect("a checkpoint");
    fs::write(&newest, checkpoint_1(&written)).expect("written");
    let store = open(dir.path(), &tiny());
    assert_eq!(batches(&store, log, 0).first(), Some(&(0, 0)));
    put(&store, log, PLAIN).expect("room");
}

#[test]
fn a_damaged_format_is_reported_and_can_be_saved_from() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    put(&store, log, PLAIN).expect("room");
    store.close();
    for text in [
        "",
        "format=\n",
        "format=0\nrelease=1\n",
        "format=1\n",
        "format=1\nrelease=\n",
        "format=1\nrelease=0.1.0",
        "format=1\nrelease=0.1.0\nchecksum=",
        "format=1\nrelease=0.1.0\nchecksum=00000000\n",
        "\u{fffd}",
    ] {
        fs::write(dir.path().join("format"), text).expect("written");
        let refusal = refusal(dir.path());
        assert!(matches!(refusal, StoreError::Damaged { .. }), "{refusal}");
    }
    let found = survey(dir.path(), &mut |_, _| ()).expect("readable");
    assert_eq!(found.problems.len(), 1);
    assert!(found.lost.is_empty());
    let to = tempfile::tempdir().expect("a directory");
    salvage(dir.path(), to.path(), &mut |_, _| ()).expect("saved");
    assert_eq!(batches(&open(to.path(), &tiny()), log, 0), [(0, 0)]);
    assert!(format_of(to.path()).starts_with("format="));
}
