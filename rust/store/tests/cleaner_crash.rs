//! A process that writes and compacts is killed at any moment: afterwards the newest durable record of each key exists exactly
//! once.

mod common;

use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use common::{
    create_log,
    keyed::{committed, keyed_batch},
    open, tiny,
};
use sharecore_store::{CleanOptions, Durability, Options, Store};

const DIRECTORY: &str = "SHARECORE_STORE_CLEANER_CRASH_TEST";
const KEYS: i64 = 23;
const LOG: u64 = 1;

fn options(durability: Durability) -> Options {
    Options {
        durability,
        ..tiny()
    }
}

fn durability(name: &str) -> Durability {
    if name == "os" {
        Durability::Os
    } else {
        Durability::Fsync
    }
}

fn key_of(offset: i64) -> i64 {
    offset * offset % KEYS
}

fn write(store: &Store) {
    for offset in store.offsets(LOG).expect("a log").end.. {
        let pair = (
            Some(key_of(offset).to_be_bytes().to_vec()),
            Some(vec![offset as u8; 40 + (offset % 100) as usize]),
        );
        let batch = keyed_batch(&[pair], offset, (offset % 5) as i16, (-1, -1, -1));
        let appended = store.append(LOG, &batch, offset).expect("appended");
        assert_eq!(appended.base_offset, offset);
        if offset % 3 == 0 {
            store.wait(appended.sequence);
            println!("durable {offset}");
        }
        if offset % 50 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn compact(store: &Store) {
    let options = CleanOptions {
        now_ms: 0,
        newest_ms: i64::MAX,
        delete_retention_ms: 1000,
        keys_bytes: 1 << 20,
        keys_load: 0.9,
        read_bytes: 4 << 10,
        bytes_per_second: f64::MAX,
    };
    for round in 0.. {
        if round % 3 == 0 {
            store.roll().expect("open");
        }
        if let Some(cleaned) = store.clean(LOG, &options).expect("compacted") {
            println!("compacted {}", cleaned.end);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test, but the process to kill.
#[test]
fn writer() {
    let Ok(directory) = env::var(DIRECTORY) else {
        return;
    };
    let (directory, name) = directory.rsplit_once(':').expect("directory, durability");
    let store = open(Path::new(directory), &options(durability(name)));
    thread::scope(|scope| {
        scope.spawn(|| compact(&store));
        write(&store);
    });
}

/// Starts the writer and kills it a while after it has compacted something. Returns the last offset that it reported durable.
fn killed(dir: &Path, name: &str, after: Duration) -> i64 {
    let mut child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "writer", "--nocapture"])
        .env(DIRECTORY, format!("{}:{name}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    let offset = |line: &str| line.strip_prefix("durable ")?.parse::<i64>().ok();
    let mut last = -1;
    loop {
        let line = lines.next().expect("the child ended by itself");
        last = offset(&line).unwrap_or(last);
        if line.starts_with("compacted") {
            break;
        }
    }
    let reader = thread::spawn(move || lines.filter_map(|line| offset(&line)).last());
    thread::sleep(after);
    child.kill().expect("killed");
    child.wait().expect("gone");
    reader.join().expect("no panic").unwrap_or(last)
}

fn torture(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(durability(name)));
    assert_eq!(create_log(&store), LOG);
    drop(store);
    let mut gone_most = 0;
    for round in 0..6 {
        let durable = killed(dir.path(), name, Duration::from_millis(17 * round));
        let store = open(dir.path(), &options(durability(name)));
        let end = store.offsets(LOG).expect("a log").high_watermark;
        assert!(end > durable);
        let seen = committed(&store, LOG);
        let mut newest = HashMap::new();
        for record in &seen {
            let (offset, pair) = (record.offset, &record.pair);
            assert_eq!(pair.0, Some(key_of(offset).to_be_bytes().to_vec()));
            let value = vec![offset as u8; 40 + (offset % 100) as usize];
            assert_eq!((record.timestamp, &pair.1), (offset, &Some(value)));
            newest.insert(key_of(offset), offset);
        }
        for offset in 0..end {
            let newer = newest.get(&key_of(offset));
            assert!(
                newer.is_some_and(|newer| *newer >= offset),
                "{offset} is lost"
            );
        }
        gone_most = gone_most.max(end - seen.len() as i64);
    }
    assert!(gone_most > 50, "hardly anything was compacted: {gone_most}");
}

#[test]
fn the_newest_record_of_each_key_outlives_the_process_with_fsync() {
    torture("fsync");
}

#[test]
fn the_newest_record_of_each_key_outlives_the_process_with_the_durability_of_the_operating_system()
{
    torture("os");
}
