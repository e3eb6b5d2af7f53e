//! A disk that reports operations as done that it did not do: what it lost is missing or reported as damage, and never replaced
//! by another record.

mod common;

use common::{Client, PLAIN, tiny};
use sharecore_records::layout::{CHECKED_FROM, HEADER, checksum, computed_checksum};
use sharecore_store::{Change, MemoryDisk, Options, Store, Want};

const ALL: Want = Want {
    max_bytes: 1 << 30,
    max_records: i64::MAX,
    limit: None,
    at_least_one: true,
};
const LIES: u64 = 3;

fn options() -> Options {
    Options {
        cache_bytes: 0,
        ..tiny()
    }
}

/// The batches that a reader gets from the log, with correct checksums; none if it cannot be read.
fn whole(store: &Store) -> Vec<Vec<u8>> {
    let Ok(slice) = store.read(1, 0, ALL) else {
        return Vec::new();
    };
    let mut bytes = vec![0; slice.size];
    let Ok(intact) = slice.copy_to(&mut bytes) else {
        return Vec::new();
    };
    let mut rest = &bytes[..intact.bytes];
    let mut found = Vec::new();
    while rest.len() >= HEADER {
        let size = 12 + i32::from_be_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        let (batch, next) = rest.split_at(size);
        assert_eq!(checksum(batch), computed_checksum(batch));
        found.push(batch.to_vec());
        rest = next;
    }
    found
}

/// Writes to a disk that lies about a part of it, crashes it, and reads; returns the error if opening was refused.
fn life(seed: u64, dir: &std::path::Path, disk: &MemoryDisk) -> Option<String> {
    let store = Store::open_stepped(dir, &options()).expect("an empty disk");
    let created = store.change(vec![Change::CreateLog(1)]).expect("staged");
    store.wait(created);
    match seed % LIES {
        0 => disk.lie(seed % 7, 1000),
        1 => disk.misdirect(seed % 11, 1 + seed % 2),
        _ => disk.set_rot(500),
    }
    let mut written = Vec::new();
    for i in 0..40_i64 {
        let client = Client {
            timestamp: i,
            value_bytes: 300,
            ..PLAIN
        };
        let bytes = client.bytes();
        let appended = store.append(1, &bytes, 0).expect("staged");
        assert_eq!(appended.base_offset, i);
        written.push(bytes);
        // Unsynced data may rot when the power fails
        if i < 35 || seed % LIES != 2 {
            store.step();
            while seed.is_multiple_of(2) && store.maintain() {}
        }
    }
    store.abandon();
    disk.crash();
    let store = match Store::open_stepped(dir, &options()) {
        Ok(store) => store,
        Err(error) => return Some(error.to_string()),
    };
    for batch in whole(&store) {
        let offset = i64::from_be_bytes(batch[..8].try_into().expect("eight bytes"));
        assert!(
            batch[CHECKED_FROM..] == written[offset as usize][CHECKED_FROM..],
            "seed {seed}: another record at offset {offset}"
        );
    }
    store.abandon();
    None
}

#[test]
fn a_disk_that_lies_is_found_out() {
    let (mut harmed, mut refused) = ([0; LIES as usize], 0);
    for seed in 0..150 {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = MemoryDisk::mount(dir.path(), seed);
        let refusal = life(seed, dir.path(), &disk);
        harmed[(seed % LIES) as usize] += disk.harmed();
        disk.unmount();
        if let Some(error) = refusal {
            refused += 1;
            assert!(
                disk.harmed() > 0,
                "seed {seed}: refused an honest disk: {error}"
            );
            assert!(
                error.contains("is damaged at byte"),
                "seed {seed}: the damage is not named: {error}"
            );
        }
    }
    assert!(
        harmed[0] > 5 && harmed[1] > 5,
        "nothing was lost: {harmed:?}"
    );
    assert_eq!(harmed[2], 0, "what was not synced was promised to nobody");
    assert!(refused > 5, "{refused} refusals");
}

#[test]
fn files_are_taken_out_and_put_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = MemoryDisk::mount(dir.path(), 1);
    let store = Store::open_stepped(dir.path(), &options()).expect("an empty disk");
    let created = store.change(vec![Change::CreateLog(1)]).expect("staged");
    store.wait(created);
    let appended = store.append(1, &PLAIN.bytes(), 0).expect("staged");
    store.wait(appended.sequence);
    let before = whole(&store);
    let files = disk.files();
    store.abandon();
    disk.replace(Vec::new());
    assert_eq!(disk.used(), 0);
    disk.replace(files);
    disk.crash();
    let store = Store::open_stepped(dir.path(), &options()).expect("as before");
    assert_eq!(whole(&store), before);
    assert_eq!(before.len(), 1);
    store.abandon();
    disk.unmount();
}
