//! The four hot operations, each in its own function for callgrind to count: `make callgrind`.
//!
//! `hot acquire|acknowledge_batch|acknowledge_single|advance TIMES` runs an operation TIMES times on a window of 2,000
//! records; only the operation itself is counted.

use std::env;
use std::hint::black_box;

use sharecore_engine::{AckBatch, AcquireOptions, Acquired, Config, OffsetRange, Partition, Write};

const BATCH: i64 = 500;

#[unsafe(no_mangle)]
#[inline(never)]
extern "Rust" fn measured_acquire(partition: &mut Partition, now_ms: i64, out: &mut Vec<Acquired>) {
    let fetch_offset = partition.next_fetch_offset();
    let range = OffsetRange::new(fetch_offset, fetch_offset + BATCH - 1);
    let options = AcquireOptions {
        fetch_offset,
        max_fetch_records: BATCH,
        batch_size: BATCH,
        record_limit: false,
    };
    partition.acquire(now_ms, "member", &[range], options, out);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "Rust" fn measured_acknowledge(
    partition: &mut Partition,
    first: i64,
    last: i64,
) -> Option<Write<'_>> {
    let batch = [AckBatch {
        first,
        last,
        types: &[1],
    }];
    partition
        .acknowledge(0, "member", &batch)
        .expect("leased to the member")
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "Rust" fn measured_advance(partition: &mut Partition, now_ms: i64) -> Option<Write<'_>> {
    partition.advance(now_ms)
}

fn acquire(partition: &mut Partition, now_ms: i64) {
    let mut out = Vec::with_capacity(8);
    measured_acquire(partition, now_ms, &mut out);
    assert_eq!(black_box(out).len(), 1);
}

fn commit(partition: &mut Partition, write: u64) {
    partition.commit(write).expect("open");
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let (operation, times) = match args.as_slice() {
        [operation, times, ..] => (operation.as_str(), times.parse().expect("a number")),
        _ => ("acquire", 1), // as `cargo bench` starts it
    };
    let config = Config {
        max_delivery_count: u16::MAX,
        ..Config::default()
    };
    let mut partition = Partition::new(config, 0, &[]).expect("empty state");
    for now_ms in 0..4 {
        acquire(&mut partition, now_ms);
    }
    for time in 1..=times {
        let start = partition.start_offset();
        match operation {
            "acquire" | "acknowledge_batch" => {
                let write = measured_acknowledge(&mut partition, start, start + BATCH - 1);
                let write = write.expect("a change").id;
                commit(&mut partition, write);
                acquire(&mut partition, 0);
            }
            "acknowledge_single" => {
                let offset = start + time % BATCH * 2 + 1;
                let write = measured_acknowledge(&mut partition, offset, offset);
                let write = write.expect("a change").id;
                partition.rollback(write, 0).expect("open");
            }
            _ => {
                let now_ms = partition.next_deadline_ms().expect("leases");
                let write = measured_advance(&mut partition, now_ms);
                let write = write.expect("a change").id;
                commit(&mut partition, write);
                acquire(&mut partition, now_ms);
            }
        }
    }
}
