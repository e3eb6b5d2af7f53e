//! A process that writes is killed at any moment; whatever it reported durable exists afterwards.

mod common;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use common::{ALL, Client, PLAIN, create_log, open, tiny};
use sharecore_store::{Durability, Options};

const DIRECTORY: &str = "SHARECORE_STORE_CRASH_TEST";
const LOGS: u64 = 4;

fn options(durability: Durability) -> Options {
    Options {
        durability,
        ..tiny()
    }
}

/// Not a test, but the process to kill: appends, deletes, and prints what is durable.
#[test]
fn writer() {
    let Ok(directory) = env::var(DIRECTORY) else {
        return;
    };
    let (directory, durability) = directory
        .rsplit_once(':')
        .expect("directory and durability");
    let durability = if durability == "os" {
        Durability::Os
    } else {
        Durability::Fsync
    };
    let store = open(Path::new(directory), &options(durability));
    let mut out = std::io::stdout().lock();
    for i in 0_i64.. {
        let log = 1 + (i * 7 % 11).cast_unsigned() % LOGS;
        let value_bytes = (i * 37 % 700) as usize;
        let client = Client {
            value_bytes,
            timestamp: i,
            ..PLAIN
        };
        let appended = store.append(log, &client.bytes(), 0).expect("appended");
        let deleted = if i % 50 == 49 {
            let before = store.offsets(log).expect("a log").high_watermark - 20;
            store.delete_records(log, before.max(0)).expect("deleted")
        } else {
            0
        };
        if i % 3 == 0 {
            store.wait(appended.sequence.max(deleted));
            let offsets = store.offsets(log).expect("a log");
            writeln!(out, "{log} {} {}", offsets.start, appended.last_offset).expect("a reader");
            out.flush().expect("a reader");
        }
    }
}

fn torture(durability: Durability, name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &options(durability));
    for expected in 1..=LOGS {
        assert_eq!(create_log(&store), expected);
    }
    drop(store);
    let mut known = [(0, -1); LOGS as usize + 1];
    for round in 0..12 {
        let mut child = Command::new(env::current_exe().expect("this test"))
            .args(["--exact", "writer", "--nocapture"])
            .env(DIRECTORY, format!("{}:{name}", dir.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = output.lines().map_while(Result::ok);
        let begun = lines.by_ref().find(|line| line.split(' ').count() == 3);
        assert!(begun.is_some(), "the child ended by itself");
        let reader = thread::spawn(move || lines.collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(5 + 23 * round));
        child.kill().expect("killed");
        child.wait().expect("gone");
        for line in reader.join().expect("no panic") {
            let fields: Vec<i64> = line.split(' ').filter_map(|f| f.parse().ok()).collect();
            if let [log, start, last] = fields[..] {
                let known = &mut known[log as usize];
                *known = (known.0.max(start), known.1.max(last));
            }
        }
        let store = open(dir.path(), &options(durability));
        for log in 1..=LOGS {
            let (start, last) = known[log as usize];
            let offsets = store.offsets(log).expect("a log");
            assert!(
                offsets.start >= start && offsets.high_watermark > last,
                "log {log}: {offsets:?}"
            );
            let slice = store.read(log, offsets.start, ALL).expect("readable");
            let expected: Vec<_> = (offsets.start..offsets.end).map(|o| (o, o)).collect();
            assert_eq!(slice.batches, expected);
            let mut bytes = vec![0; slice.size];
            slice.copy_to(&mut bytes).expect("readable");
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let size =
                    12 + u32::from_be_bytes(rest[8..12].try_into().expect("4 bytes")) as usize;
                let crc = u32::from_be_bytes(rest[17..21].try_into().expect("4 bytes"));
                assert_eq!(crc32c::crc32c(&rest[21..size]), crc);
                rest = &rest[size..];
            }
        }
    }
    assert!(
        known.iter().skip(1).all(|(_, last)| *last > 10),
        "{known:?}"
    );
}

#[test]
fn nothing_answered_is_lost_with_fsync() {
    torture(Durability::Fsync, "fsync");
}

#[test]
fn nothing_answered_is_lost_with_the_durability_of_the_operating_system() {
    torture(Durability::Os, "os");
}
