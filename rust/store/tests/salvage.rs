//! What salvage recovers from a damaged directory: everything intact, nothing else, and a list of what is lost.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use common::{ALL, Client, PLAIN, create_log, open, put, seal, tiny};
use proptest::prelude::*;
use sharecore_store::{Change, Findings, LogId, Options, Store, StoreError, salvage, survey};
use tempfile::TempDir;

type Logs = BTreeMap<LogId, BTreeMap<i64, Vec<u8>>>;
type Catalog = Vec<(Vec<u8>, Vec<u8>)>;

/// A directory, its original content, and the positions of that content.
struct Filled {
    dir: TempDir,
    logs: Logs,
    starts: BTreeMap<LogId, i64>,
    /// File name and position of each batch.
    places: BTreeMap<(LogId, i64), Vec<(String, usize)>>,
    catalog: Catalog,
}

fn quiet(_: u64, _: u64) {}

fn ends(dir: &Path) -> Findings {
    survey(dir, &mut quiet).expect("a directory that can be read")
}

/// Every batch of every log, by its first offset.
fn contents(store: &Store) -> Logs {
    let read = |log: LogId| {
        let start = store.offsets(log).expect("a log").start;
        let slice = store.read(log, start, ALL).expect("readable");
        let mut bytes = vec![0; slice.size];
        slice.copy_to(&mut bytes).expect("readable");
        let mut rest = bytes.as_slice();
        let mut found = BTreeMap::new();
        for (base, _) in &slice.batches {
            let size = 12 + i32::from_be_bytes(rest[8..12].try_into().expect("four")) as usize;
            let (batch, behind) = rest.split_at(size);
            found.insert(*base, batch.to_vec());
            rest = behind;
        }
        (log, found)
    };
    store.logs().into_iter().map(read).collect()
}

/// A unique batch, so that it can be found in the files.
fn unique(number: u32) -> Vec<u8> {
    let mut batch = Client {
        value_bytes: 200,
        ..PLAIN
    }
    .bytes();
    let at = batch.len() - 20;
    batch[at..at + 4].copy_from_slice(&number.to_be_bytes());
    seal(&mut batch);
    batch
}

fn append(store: &Store, log: LogId, number: u32) {
    let appended = store.append(log, &unique(number), 1000).expect("room");
    store.wait(appended.sequence);
}

fn note(store: &Store, key: &[u8], value: &[u8]) {
    let sequence = store.change(vec![Change::Put(key.to_vec(), value.to_vec())]);
    store.wait(sequence.expect("room"));
}

/// Three logs over many segments, one of them with its front deleted and one dropped, and a catalog.
fn filled() -> &'static Filled {
    static FILLED: OnceLock<Filled> = OnceLock::new();
    FILLED.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), &tiny());
        let logs: Vec<LogId> = (0..4).map(|_| create_log(&store)).collect();
        for number in 0..160_u32 {
            append(&store, logs[number as usize % 4], number);
            if number % 10 == 0 {
                note(&store, b"counted", &number.to_be_bytes());
                note(&store, format!("key {number}").as_bytes(), b"value");
            }
        }
        let dropped = store.change(vec![Change::DropLog(logs[3])]).expect("room");
        store.wait(dropped);
        store.wait(store.delete_records(logs[0], 25).expect("in range"));
        // Most content of the older segments is deleted; the rest is merged
        let deadline = Instant::now() + Duration::from_secs(20);
        while files(dir.path())
            .iter()
            .all(|path| path.extension().is_none_or(|e| e != "compact"))
        {
            assert!(Instant::now() < deadline, "no segments were rewritten");
            thread::sleep(Duration::from_millis(5));
        }
        for number in 160..200_u32 {
            append(&store, logs[number as usize % 3], number);
        }
        let logs = contents(&store);
        let starts = logs
            .keys()
            .map(|log| (*log, store.offsets(*log).expect("a log").start))
            .collect();
        let catalog = store.entries(b"");
        store.close();
        let places = logs
            .iter()
            .flat_map(|(log, batches)| batches.iter().map(|(base, batch)| ((*log, *base), batch)))
            .map(|(key, batch)| (key, places(dir.path(), batch)))
            .collect();
        Filled {
            dir,
            logs,
            starts,
            places,
            catalog,
        }
    })
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    to
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name != "lock"))
        .collect();
    files.sort();
    files
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Zero(usize, usize),
    Cut(usize),
    Remove,
}

impl Damage {
    /// Damages a file; returns the changed range.
    fn on(&self, path: &Path) -> std::ops::Range<usize> {
        let mut bytes = fs::read(path).expect("a file");
        let len = bytes.len().max(1);
        let hit = match *self {
            Self::Flip(at, bit) => {
                bytes[at % len] ^= 1 << bit;
                at % len..at % len + 1
            }
            Self::Zero(at, many) => {
                let hit = at % len..(at % len + many).min(len);
                bytes[hit.clone()].fill(0);
                hit
            }
            Self::Cut(at) => {
                bytes.truncate(at % len);
                at % len..usize::MAX
            }
            Self::Remove => {
                fs::remove_file(path).expect("removed");
                return 0..usize::MAX;
            }
        };
        fs::write(path, bytes).expect("written");
        hit
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (any::<usize>(), 1..2000_usize).prop_map(|(at, many)| Damage::Zero(at, many)),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => Just(Damage::Remove),
    ]
}

/// The positions of a batch in the files.
fn places(dir: &Path, batch: &[u8]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for path in files(dir) {
        let bytes = fs::read(&path).expect("a file");
        if let Some(at) = bytes
            .windows(batch.len())
            .position(|window| window == batch)
        {
            found.push((name(&path), at));
        }
    }
    found
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

fn touched(hit: &std::ops::Range<usize>, from: usize, to: usize) -> bool {
    hit.start < to && from < hit.end
}

/// How many bytes precede the batch in a frame with one batch.
const BEFORE_BATCH: usize = 32 + 21;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn salvage_keeps_what_was_whole_and_lists_the_rest(
        hits in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..4)
    ) {
        let original = filled();
        let broken = copy(original.dir.path());
        let all = files(broken.path());
        let mut hit: Vec<(PathBuf, std::ops::Range<usize>)> = Vec::new();
        for (which, damage) in &hits {
            let path = &all[which.index(all.len())];
            if path.exists() && fs::metadata(path).expect("a file").len() > 0 {
                hit.push((path.clone(), damage.on(path)));
            }
        }
        let before: Vec<_> = files(broken.path()).iter().map(|p| fs::read(p).expect("a file")).collect();
        let new = tempfile::tempdir().expect("a directory");
        let to = new.path().join("salvaged");
        let findings = match salvage(broken.path(), &to, &mut quiet) {
            Ok(findings) => findings,
            Err(error) => panic!("{hits:?}: {error}"),
        };
        let after: Vec<_> = files(broken.path()).iter().map(|p| fs::read(p).expect("a file")).collect();
        prop_assert!(before == after, "the damaged directory was changed");
        prop_assert_eq!(ends(&to).problems, vec![], "the new one is whole");

        let store = open(&to, &Options::default());
        let kept = contents(&store);
        let lost: BTreeSet<(LogId, i64)> = findings
            .lost
            .iter()
            .flat_map(|lost| (lost.first..=lost.last).map(|offset| (lost.log, offset)))
            .collect();
        // Its last frame may be taken for a truncated write
        let newest = all.iter().filter(|path| path.extension().is_some_and(|e| e == "journal")).max();
        let newest_hit = hit.iter().any(|(path, _)| Some(path) == newest);
        for (log, batches) in &original.logs {
            let found = kept.get(log);
            for (base, bytes) in batches {
                let is_kept = match found.and_then(|found| found.get(base)) {
                    Some(same) => {
                        prop_assert!(same == bytes, "offset {base} of log {log} is not what it was");
                        true
                    }
                    None => false,
                };
                let places = &original.places[&(*log, *base)];
                let is_safe = places.iter().any(|(path, at)| {
                    let mut hits = hit.iter().filter(|(damaged, _)| name(damaged) == *path);
                    if path.ends_with("journal") {
                        hits.all(|(_, hit)| !touched(hit, at - BEFORE_BATCH, at + bytes.len()))
                    } else {
                        hits.next().is_none()
                    }
                });
                prop_assert!(is_kept || !is_safe, "offset {base} of log {log} was whole: {:?}", findings);
                if !findings.problems.is_empty() && !is_kept {
                    // The newest records of a log, or a whole log, may be lost without any trace
                    let known = findings.kept.iter().find(|kept| kept.log == *log);
                    let listed = known.is_some_and(|kept| *base < kept.end && *base >= kept.start);
                    let listed = listed || !(findings.history_lost || newest_hit);
                    prop_assert!(!listed || lost.contains(&(*log, *base)), "offset {base} of log {log} is not listed: {:?}", findings);
                }
                prop_assert!(!(is_kept && lost.contains(&(*log, *base))), "offset {base} of log {log} is listed");
            }
            if !findings.history_lost {
                let start = store.offsets(*log).expect("a log").start;
                prop_assert_eq!(start, original.starts[log]);
            }
        }
        if !findings.history_lost && !findings.problems.is_empty() {
            prop_assert_eq!(store.entries(b""), original.catalog.clone());
        }
        if findings.problems.is_empty() {
            // The end of the newest segment counts as a truncated write
            let newest = newest.map(|path| name(path)).unwrap_or_default();
            for (log, batches) in &original.logs {
                for base in batches.keys().filter(|base| !kept[log].contains_key(base)) {
                    let places = &original.places[&(*log, *base)];
                    let in_newest = places.iter().all(|(path, _)| *path == newest);
                    prop_assert!(newest_hit && in_newest, "offset {base} of log {log} is gone unseen");
                }
            }
            open(broken.path(), &tiny());
        }
        let checkpoint_hit = hit.iter().any(|(path, _)| path.extension().is_some_and(|e| e == "checkpoint"));
        for log in store.logs() {
            prop_assert!(checkpoint_hit || original.logs.contains_key(&log), "log {log} was dropped");
            let end = store.offsets(log).expect("a log").high_watermark;
            let appended = put(&store, log, PLAIN).expect("it goes on");
            prop_assert_eq!(appended.base_offset, end);
        }
    }
}

#[test]
fn a_whole_store_has_no_problems_and_is_copied_as_it_is() {
    let original = filled();
    let findings = ends(original.dir.path());
    assert_eq!(findings.problems, []);
    assert_eq!(findings.lost, []);
    assert_eq!(findings.catalog, original.catalog);
    let new = tempfile::tempdir().expect("a directory");
    salvage(original.dir.path(), new.path(), &mut quiet).expect("an empty directory will do");
    let store = open(new.path(), &tiny());
    assert_eq!(contents(&store), original.logs);
    assert_eq!(store.entries(b""), original.catalog);
}

#[test]
fn a_store_in_use_and_a_directory_with_something_in_it_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let new = tempfile::tempdir().expect("a directory");
    assert!(matches!(
        survey(dir.path(), &mut quiet),
        Err(StoreError::Locked(_))
    ));
    assert!(matches!(
        salvage(dir.path(), new.path(), &mut quiet),
        Err(StoreError::Locked(_))
    ));
    store.close();
    fs::write(new.path().join("of mine"), b"x").expect("written");
    let refused = salvage(dir.path(), new.path(), &mut quiet).expect_err("not empty");
    assert!(refused.to_string().contains("is not empty"), "{refused}");
    let nothing = tempfile::tempdir().expect("a directory");
    assert!(survey(nothing.path(), &mut quiet).is_err());
}

#[test]
fn a_newest_segment_with_frames_is_not_thrown_away_for_its_header() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    append(&store, log, 1);
    store.close();
    let path = files(dir.path()).remove(0);
    Damage::Flip(9, 0).on(&path);
    assert!(Store::open(dir.path(), &Options::default()).is_err());
    assert!(path.exists());
    let findings = ends(dir.path());
    assert_eq!(findings.problems.len(), 1);
    assert_eq!((findings.kept[0].batches, findings.lost.len()), (1, 0));
}

#[test]
fn a_store_whose_newest_segment_is_gone_does_not_open_as_if_nothing_were_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut store = open(dir.path(), &tiny());
    let log = create_log(&store);
    let journals = |dir: &Path| {
        let journals = files(dir).into_iter();
        journals.filter(|path| path.extension().is_some_and(|e| e == "journal"))
    };
    for number in 0.. {
        append(&store, log, number);
        if journals(dir.path()).count() > 1 {
            break;
        }
    }
    // It is noticed as missing once the previous segment has its index, since the checkpoint written then names it
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        store.close();
        let broken = copy(dir.path());
        let newest = journals(broken.path()).max().expect("a journal");
        fs::remove_file(newest).expect("removed");
        if Store::open(broken.path(), &tiny()).is_err() {
            break;
        }
        assert!(Instant::now() < deadline, "nothing is missed");
        store = open(dir.path(), &tiny());
        thread::sleep(Duration::from_millis(5));
    }
}
