//! The figures of `docs/decisions/embedded-store.md`: `cargo bench -p sharecore-store [-- DIRECTORY]`.
//!
//! Each line is one workload in a directory of its own; times are wall clock, CPU is the whole process.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{
    env, fs,
    hint::black_box,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sharecore_store::{Change, Durability, LogConfig, Options, Store, Want};

#[path = "../tests/common/mod.rs"]
mod common;

use common::process::{cpu_s, memory_mb};
use common::{Client, PLAIN, create_log};

const MB: f64 = 1e6;

fn main() {
    let root = env::args()
        .skip(1)
        .find(|arg| !arg.starts_with('-'))
        .map_or_else(env::temp_dir, PathBuf::from);
    let dir = root.join(format!("sharecore-store-bench-{}", std::process::id()));
    println!("start: {}", memory());
    for durability in [Durability::Os, Durability::Fsync] {
        for size in [16 << 10, 64 << 10] {
            produce(&fresh(&dir), durability, size, 200_000_000);
        }
        commit_latency(&fresh(&dir), durability);
        share_state(&fresh(&dir), durability);
    }
    calls(&fresh(&dir));
    records_of_100_bytes(&fresh(&dir));
    open_times(&fresh(&dir));
    fs::remove_dir_all(&dir).expect("removed");
}

fn fresh(dir: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("a directory");
    dir.to_path_buf()
}

fn open(dir: &Path, durability: Durability) -> Store {
    Store::open(
        dir,
        &Options {
            durability,
            ..Options::default()
        },
    )
    .expect("a store")
}

fn memory() -> String {
    format!(
        "resident {:.0} MB, peak {:.0} MB",
        memory_mb("VmRSS"),
        memory_mb("VmHWM")
    )
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize].as_secs_f64() * 1e6;
    format!(
        "p50 {:.1} us, p99 {:.1} us, worst {:.0} us",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// Appends like a producer that does not wait: as much as the store has room for.
fn append(store: &Store, log: u64, batch: &[u8]) -> u64 {
    loop {
        match store.append(log, batch, 1000) {
            Ok(appended) => return appended.sequence,
            Err(_) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn produce(dir: &Path, durability: Durability, size: usize, bytes: usize) {
    let store = open(dir, durability);
    let logs: Vec<u64> = (0..4).map(|_| create_log(&store)).collect();
    let batch = Client {
        records: 1,
        value_bytes: size - 80,
        ..PLAIN
    }
    .bytes();
    let (began, cpu) = (Instant::now(), cpu_s());
    let mut last = 0;
    for i in 0..bytes / size {
        last = append(&store, logs[i % 4], &batch);
    }
    store.wait(last);
    let wall = began.elapsed().as_secs_f64();
    store.close();
    println!(
        "append {durability:?} {} KB: {:.0} MB/s, CPU {:.2} s for {:.0} MB; {}",
        size >> 10,
        bytes as f64 / MB / wall,
        cpu_s() - cpu,
        bytes as f64 / MB,
        memory()
    );
}

fn commit_latency(dir: &Path, durability: Durability) {
    let store = open(dir, durability);
    let log = create_log(&store);
    let batch = Client {
        value_bytes: 1000,
        ..PLAIN
    }
    .bytes();
    let times = (0..3000).map(|_| {
        let began = Instant::now();
        store.wait(append(&store, log, &batch));
        began.elapsed()
    });
    println!(
        "commit of one 1 KB batch {durability:?}: {}",
        quantiles(times.collect())
    );
}

/// Updates of share state: 300 bytes to one of 50 logs, 20 in a round; the log's start follows.
fn share_state(dir: &Path, durability: Durability) {
    let store = open(dir, durability);
    let logs: Vec<u64> = (0..50).map(|_| create_log(&store)).collect();
    let value = [7; 300];
    let (began, cpu) = (Instant::now(), cpu_s());
    let rounds = 5000;
    for round in 0..rounds {
        let mut last = 0;
        for i in 0..20 {
            let log = logs[(round * 7 + i) % 50];
            last = store
                .append_local(log, &[(Some(b"key"), Some(&value))], None, 1, false)
                .expect("room")
                .sequence;
            if round % 50 == 49 {
                let end = store.offsets(log).expect("a log").high_watermark;
                last = store.delete_records(log, end).expect("deleted");
            }
        }
        store.wait(last);
    }
    let wall = began.elapsed().as_secs_f64();
    println!(
        "share state {durability:?}: {:.0} updates/s, CPU {:.1} us each, {:.0} us a round of 20",
        f64::from(rounds as u32) * 20.0 / wall,
        (cpu_s() - cpu) * 1e6 / (rounds as f64 * 20.0),
        wall * 1e6 / rounds as f64
    );
}

fn calls(dir: &Path) {
    let store = open(dir, Durability::Os);
    let log = create_log(&store);
    let batch = Client {
        value_bytes: (64 << 10) - 80,
        ..PLAIN
    }
    .bytes();
    let mut appends = Vec::new();
    for _ in 0..4000 {
        let began = Instant::now();
        let sequence = store.append(log, &batch, 0).expect("room").sequence;
        appends.push(began.elapsed());
        store.wait(sequence);
    }
    println!("append call of 64 KB: {}", quantiles(appends));
    let mut out = vec![0; 64 << 10];
    let want = |bytes| Want {
        max_bytes: bytes,
        max_records: i64::MAX,
        limit: None,
        at_least_one: true,
    };
    for (name, from) in [("tail", 3900), ("from the disk", 0)] {
        let times = (0..2000).map(|i| {
            let began = Instant::now();
            let slice = store
                .read(log, from + i % 90, want(64 << 10))
                .expect("readable");
            slice.copy_to(&mut out[..slice.size]).expect("readable");
            black_box(&out);
            began.elapsed()
        });
        println!("read of 64 KB, {name}: {}", quantiles(times.collect()));
    }
    let (began, mut offset, mut bytes) = (Instant::now(), 0, 0);
    let mut out = vec![0; 1 << 20];
    loop {
        let slice = store.read(log, offset, want(1 << 20)).expect("readable");
        let Some((_, last)) = slice.batches.last() else {
            break;
        };
        slice.copy_to(&mut out[..slice.size]).expect("readable");
        (offset, bytes) = (last + 1, bytes + slice.size);
    }
    println!(
        "read of a whole log, 1 MB at a time: {:.0} MB/s",
        bytes as f64 / MB / began.elapsed().as_secs_f64()
    );
}

/// 2,000,000 records of 100 bytes in batches of 16 KB over four logs, read to the end as they come.
fn records_of_100_bytes(dir: &Path) {
    let store = open(dir, Durability::Os);
    let logs: Vec<u64> = (0..4).map(|_| create_log(&store)).collect();
    let batch = Client {
        records: 150,
        value_bytes: 100,
        ..PLAIN
    }
    .bytes();
    let (began, cpu) = (Instant::now(), cpu_s());
    let mut out = vec![0; 1 << 20];
    let want = Want {
        max_bytes: 1 << 20,
        max_records: i64::MAX,
        limit: None,
        at_least_one: true,
    };
    let mut offsets = [0; 4];
    let (mut written, mut read) = (0, 0);
    while read < 2_000_000 {
        for (log, offset) in logs.iter().zip(&mut offsets) {
            if written < 2_000_000 {
                append(&store, *log, &batch);
                written += 150;
            }
            let slice = store.read(*log, *offset, want).expect("readable");
            slice.copy_to(&mut out[..slice.size]).expect("readable");
            if let Some((_, last)) = slice.batches.last() {
                read += last + 1 - *offset;
                *offset = last + 1;
            }
        }
    }
    println!(
        "2,000,000 records of 100 bytes written and read: {:.2} s, CPU {:.2} s; {}",
        began.elapsed().as_secs_f64(),
        cpu_s() - cpu,
        memory()
    );
}

fn open_times(dir: &Path) {
    let time = |name: &str| {
        let began = Instant::now();
        let store = open(dir, Durability::Os);
        println!(
            "open {name}: {:.1} ms; {}",
            began.elapsed().as_secs_f64() * 1e3,
            memory()
        );
        store
    };
    let store = time("an empty directory");
    let logs: Vec<u64> = (0..1000).map(|_| store.new_log_id()).collect();
    store.wait(
        store
            .change(logs.iter().map(|id| Change::CreateLog(*id)).collect())
            .expect("room"),
    );
    drop(store);
    let store = time("1,000 empty logs");
    store
        .configure(logs[0], LogConfig::default())
        .expect("a log");
    let batch = Client {
        value_bytes: 900,
        ..PLAIN
    }
    .bytes();
    let mut last = 0;
    for i in 0..1_000_000 {
        last = append(&store, logs[i % 1000], &batch);
    }
    store.wait(last);
    drop(store);
    drop(time("1,000 logs with 1,000,000 batches, 1 GB"));
}
