//! Readers that may not wait for the bucket, or not even for the disk.

use std::mem::MaybeUninit;

use sharecore_store::{ReadFrom, Slice, Want};

use crate::bounded::{Home, read};

#[test]
fn a_reader_that_may_not_wait_is_refused_until_the_piece_is_there() {
    // not all file systems report what is in memory
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let home = Home::full_in(dir);
    let cached = |offset| {
        let slice = home.store.read(1, offset, Want::ONE).expect("located");
        let mut bytes = vec![0; slice.size];
        assert!(!slice.is_in_memory(), "of a segment");
        slice.copy_cached(&mut bytes).expect("readable").is_some()
    };
    let local = cached(home.sent.len() as i64 - 4);
    assert!(!cached(3));
    assert_eq!(home.figures().reads, 0, "nothing was asked");
    read(&home.store, 3).expect("it is there");
    assert_eq!(cached(3), local);
}

#[test]
fn a_reader_that_waits_for_the_disk_alone_is_refused_if_a_piece_has_left_it_meanwhile() {
    let home = Home::full();
    let fill = |slice: &Slice, from| {
        let mut bytes = vec![MaybeUninit::new(0); slice.size];
        slice.fill(from, &mut bytes).expect("readable")
    };
    read(&home.store, 0).expect("it is there");
    let slice = home.store.read(1, 0, Want::ONE).expect("located");
    assert_eq!(slice.source(), ReadFrom::Disk);
    assert!(fill(&slice, ReadFrom::Disk));
    home.reads_all();
    assert_eq!(slice.source(), ReadFrom::Bucket, "others took its room");
    let reads = home.figures().reads;
    assert!(!fill(&slice, ReadFrom::Disk));
    assert_eq!(home.figures().reads, reads, "nothing was asked");
    assert!(fill(&slice, ReadFrom::Bucket));
    assert_eq!(home.figures().reads, reads + 1);
}
