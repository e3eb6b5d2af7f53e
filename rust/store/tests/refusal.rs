//! Everything that a start refuses is named by a survey, and a refused directory stays unchanged.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Client, PLAIN, create_log, open, put, tiny};
use sharecore_store::{Change, Store, StoreError, survey};

type Files = BTreeMap<String, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read(&path).expect("a file"))
        })
        .collect()
}

fn write(dir: &Path, files: &Files) {
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).expect("written");
    }
}

/// A directory with several segments and a checkpoint, as left by a killed process.
fn filled() -> Files {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    for number in 0..40_u8 {
        let client = Client {
            value_bytes: 400,
            ..PLAIN
        };
        put(&store, log, client).expect("appended");
        let entry = Change::Put(vec![number], vec![number; 30]);
        store.wait(store.change(vec![entry]).expect("room"));
    }
    store.close();
    files(dir.path())
}

fn problems(dir: &Path) -> Vec<String> {
    let found = survey(dir, &mut |_, _| {}).expect("data");
    let named = found.problems.iter();
    named
        .map(|problem| format!("{}: {}", problem.path.display(), problem.what))
        .collect()
}

/// True if a start refuses these files as damaged; checks the other properties.
fn is_refused(case: &str, damaged: &Files) -> bool {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), damaged);
    let named = problems(dir.path());
    match Store::open(dir.path(), &tiny()) {
        Ok(store) => {
            store.close();
            false
        }
        Err(StoreError::Damaged { .. }) => {
            assert_eq!(
                &files(dir.path()),
                damaged,
                "{case}: changed by the refusal"
            );
            assert!(
                !named.is_empty(),
                "{case}: refused, and a survey finds nothing"
            );
            assert_eq!(problems(dir.path()), named, "{case}");
            true
        }
        Err(other) => panic!("{case}: {other}"),
    }
}

#[test]
fn what_a_start_refuses_a_survey_names_and_nothing_is_changed() {
    let whole = filled();
    assert!(!is_refused("whole", &whole));
    let mut refused = 0;
    for (name, bytes) in &whole {
        let mut cases = vec![("emptied", Vec::new())];
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 12) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x11;
            cases.push(("flipped", flipped));
            cases.push(("cut", bytes[..at].to_vec()));
        }
        for (what, changed) in cases {
            let mut damaged = whole.clone();
            damaged.insert(name.clone(), changed);
            refused += u32::from(is_refused(&format!("{name} {what}"), &damaged));
        }
        let mut damaged = whole.clone();
        damaged.remove(name);
        refused += u32::from(is_refused(&format!("{name} is gone"), &damaged));
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn an_emptied_newest_segment_is_refused_each_time() {
    let mut damaged = filled();
    let mut journals = damaged.keys().filter(|name| name.ends_with(".journal"));
    let newest = journals.next_back().expect("a segment").clone();
    damaged.insert(newest.clone(), Vec::new());
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &damaged);
    for _ in 0..2 {
        assert!(problems(dir.path())[0].contains(&newest));
        assert!(Store::open(dir.path(), &tiny()).is_err());
        assert_eq!(files(dir.path()), damaged);
    }
}

#[test]
fn files_that_are_not_named_as_the_stores_own_are_left_alone() {
    let mut whole = filled();
    let strangers = [
        "ffffffffffffffff.journal",
        "ffffffffffffffff.compact",
        "ffffffffffffffff.checkpoint",
        "8000000000000000.journal",
        "12.journal",
        "000000000000001G.journal",
        "00000000000000FF.journal",
        "+00000000000000f.journal",
        "notes.journal",
        ".journal",
    ];
    for (number, name) in strangers.iter().enumerate() {
        let content = if number % 2 == 0 {
            &b""[..]
        } else {
            b"a stranger's"
        };
        whole.insert((*name).into(), content.to_vec());
    }
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &whole);
    assert_eq!(problems(dir.path()), [""; 0]);
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    put(&store, log, PLAIN).expect("appended");
    store.close();
    let left = files(dir.path());
    assert!(strangers.iter().all(|name| left.contains_key(*name)));
    assert_eq!(problems(dir.path()), [""; 0]);
}
