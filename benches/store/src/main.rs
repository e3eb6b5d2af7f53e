//! sharecore's store beside fjall 3 on what a broker does: the figures of `docs/decisions/embedded-store.md`.
//!
//! Each workload runs in a process of its own (this program again), so that CPU time and memory are that workload's alone.

mod fjall_log;
mod own_log;

// what the store's own tests and bench use
#[path = "../../../rust/store/tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};
use std::{env, fs, path::Path, process::Command};

use common::process::{cpu_s, memory_mb};
use common::{Client, PLAIN, seal};

/// What both stores must do.
trait Log {
    /// Hands a record batch over for one of [`LOGS`] logs; its ticket. Waits while too much is under way.
    fn append(&self, log: usize, batch: &[u8]) -> u64;
    /// Returns when the ticket's batch is as durable as was asked for.
    fn wait(&self, ticket: u64);
    /// Reads a log from its start, about a megabyte at a time; the bytes seen.
    fn scan(&self, log: usize) -> usize;
}

const LOGS: usize = 4;
const BYTES: usize = 400_000_000;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match &args[..] {
        [store, sync, work, size, dir] => measure(
            store,
            sync == "fsync",
            work,
            size.parse().expect("bytes"),
            Path::new(dir),
        ),
        [dir] => all(Path::new(dir)),
        _ => all(&env::temp_dir()),
    }
}

fn all(root: &Path) {
    println!(
        "| workload | store | throughput | p50 | p99 | CPU s | peak MB |\n|---|---|---|---|---|---|---|"
    );
    let works = [
        ("append", 16 << 10),
        ("append", 64 << 10),
        ("commit", 1 << 10),
        ("scan", 64 << 10),
    ];
    for sync in ["fsync", "os"] {
        for (work, size) in works
            .into_iter()
            .filter(|(work, _)| *work != "scan" || sync == "os")
        {
            for store in ["sharecore", "fjall"] {
                let dir = root.join(format!("store-choice-{}", std::process::id()));
                fs::create_dir_all(&dir).expect("a directory");
                let itself = env::current_exe().expect("this program");
                let size = size.to_string();
                let status = Command::new(itself)
                    .args([store, sync, work, &size])
                    .arg(&dir)
                    .status();
                assert!(
                    status.is_ok_and(|status| status.success()),
                    "{store} {work} failed"
                );
                fs::remove_dir_all(&dir).expect("removed");
            }
        }
    }
}

fn measure(store: &str, sync: bool, work: &str, size: usize, dir: &Path) {
    let log: Box<dyn Log> = match store {
        "fjall" => Box::new(fjall_log::FjallLog::open(dir, sync)),
        _ => Box::new(own_log::OwnLog::open(dir, sync)),
    };
    let batch = batch(size);
    let (count, bytes) = if work == "commit" {
        (3000, 3000 * batch.len())
    } else {
        (BYTES / size, BYTES / size * batch.len())
    };
    let mut times = Vec::new();
    let (mut began, mut cpu, mut last) = (Instant::now(), cpu_s(), 0);
    for i in 0..count {
        let at = Instant::now();
        last = log.append(i % LOGS, &batch);
        if work == "commit" {
            log.wait(last);
        }
        times.push(at.elapsed());
    }
    log.wait(last);
    if work == "scan" {
        (began, cpu) = (Instant::now(), cpu_s());
        times.clear();
        let seen: usize = (0..LOGS).map(|index| log.scan(index)).sum();
        assert!(seen >= bytes, "{seen} of {bytes} bytes were read");
    }
    let wall = began.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |q: f64| {
        times
            .get((times.len() as f64 * q) as usize)
            .map_or("".into(), micros)
    };
    let sync = if sync { "fsync" } else { "os" };
    println!(
        "| {work} {} KB, {sync} | {store} | {:.0} MB/s | {} | {} | {:.2} | {:.0} |",
        size >> 10,
        bytes as f64 / 1e6 / wall,
        at(0.5),
        at(0.99),
        cpu_s() - cpu,
        memory_mb("VmHWM")
    );
}

fn micros(time: &Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// A record batch v2 of about `size` bytes with one record that does not compress.
fn batch(size: usize) -> Vec<u8> {
    let value_bytes = size - 80;
    let mut batch = Client {
        value_bytes,
        ..PLAIN
    }
    .bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // a byte behind the value says that there are no headers
    let end = batch.len() - 1;
    for byte in &mut batch[end - value_bytes..end] {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    seal(&mut batch);
    batch
}
