//! sharecore's store beside fjall 3 on what a broker does: the figures of `docs/decisions/embedded-store.md`.
//!
//! Each workload runs in a process of its own (this program again), so that CPU time and memory are that workload's alone.

mod fjall_log;
mod own_log;

use std::time::{Duration, Instant};
use std::{env, fs, path::Path, process::Command};

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
        peak_mb()
    );
}

fn micros(time: &Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// A record batch v2 of about `size` bytes with one record that does not compress.
fn batch(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let value: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(size - 80)
    .collect();
    let mut body = vec![0, 0, 0];
    varint(&mut body, -1);
    varint(&mut body, value.len() as i64);
    body.extend_from_slice(&value);
    varint(&mut body, 0);
    let mut record = Vec::new();
    varint(&mut record, body.len() as i64);
    record.extend_from_slice(&body);
    let mut out = Vec::new();
    out.extend_from_slice(&0_i64.to_be_bytes());
    out.extend_from_slice(&(49 + record.len() as i32).to_be_bytes());
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out.push(2);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&0_i16.to_be_bytes());
    out.extend_from_slice(&0_i32.to_be_bytes());
    out.extend_from_slice(&1000_i64.to_be_bytes());
    out.extend_from_slice(&1000_i64.to_be_bytes());
    out.extend_from_slice(&(-1_i64).to_be_bytes());
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&record);
    let crc = crc32c::crc32c(&out[21..]);
    out[17..21].copy_from_slice(&crc.to_be_bytes());
    out
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kb = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}
