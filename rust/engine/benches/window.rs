//! What an operation costs as the in-flight window grows: `cargo bench -p sharecore-engine --bench window`.
//!
//! Prints one JSON line per window: nanoseconds of CPU time per operation. Window sizes can be given: `-- 2000 100000`.

use std::env;
use std::time::Duration;

use cpu_time::ThreadTime;
use sharecore_engine::{AckBatch, AcquireOptions, Config, OffsetRange, Partition};

const WINDOWS: [i64; 5] = [2_000, 10_000, 100_000, 1_000_000, 10_000_000];
const BATCH: i64 = 500;
const MEMBERS: [&str; 8] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"];
const TIMES: u32 = 20_000;
const ACCEPT: &[u8] = &[1];
const RELEASE: &[u8] = &[2];

/// A window of leased records, one batch per millisecond, so that their locks run out in that order.
struct Window {
    partition: Partition,
    size: i64,
    now_ms: i64,
    next: i64,
    random: u64,
}

impl Window {
    fn filled(size: i64) -> Self {
        let batches = size / BATCH;
        let config = Config {
            max_delivery_count: u16::MAX,
            max_inflight: size + BATCH,
            lock_ms: batches + 1,
            renew_enabled: true,
            dead_letters: false,
        };
        let mut window = Self {
            partition: Partition::new(config, 0, &[]).expect("empty state"),
            size,
            now_ms: 0,
            next: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        };
        for _ in 0..batches {
            window.acquire_next();
        }
        window
    }

    /// Every other record is released, so that each record is a run of its own.
    fn broken_up(size: i64) -> Self {
        let mut window = Self::filled(size);
        for first in (0..size).step_by(BATCH as usize) {
            let acks: Vec<_> = (first + 1..first + BATCH)
                .step_by(2)
                .map(|offset| ack(offset, offset, RELEASE))
                .collect();
            let member = member(first);
            let write = window.partition.acknowledge(0, member, &acks);
            let write = write.expect("leased").map(|write| write.id);
            window.commit(write);
        }
        window
    }

    fn commit(&mut self, write: Option<u64>) {
        let write = write.expect("something changed");
        self.partition.commit(write).expect("open");
    }

    fn acquire(&mut self, first: i64) {
        let range = OffsetRange::new(first, first + BATCH - 1);
        let options = AcquireOptions {
            fetch_offset: first,
            max_fetch_records: BATCH,
            batch_size: BATCH,
            record_limit: false,
        };
        let mut out = Vec::with_capacity(4);
        let member = member(first);
        self.partition
            .acquire(self.now_ms, member, &[range], options, &mut out);
        assert_eq!(out.len(), 1);
    }

    fn acquire_next(&mut self) {
        self.acquire(self.next);
        self.next += BATCH;
        self.now_ms += 1;
    }

    /// A member accepts the oldest batch and gets a new one.
    fn turn_over(&mut self) {
        let first = self.partition.start_offset();
        let batch = [ack(first, first + BATCH - 1, ACCEPT)];
        let member = member(first);
        let write = self.partition.acknowledge(self.now_ms, member, &batch);
        let write = write.expect("leased").map(|write| write.id);
        self.commit(write);
        self.acquire_next();
    }

    /// A member accepts one record somewhere, and the write fails: the window stays as it is.
    fn acknowledge_one(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let start = self.partition.start_offset();
        let offset = start + (self.random >> 1) as i64 % (self.size / 2) * 2;
        let member = member(offset);
        let batch = [ack(offset, offset, ACCEPT)];
        let write = self.partition.acknowledge(self.now_ms, member, &batch);
        let write = write.expect("leased").expect("a change").id;
        self.partition.rollback(write, self.now_ms).expect("open");
    }

    /// The oldest lock runs out, and the batch is leased again.
    fn expire(&mut self) {
        self.now_ms = self.partition.next_deadline_ms().expect("leases");
        let write = self.partition.advance(self.now_ms);
        let write = write.map(|write| write.id);
        self.commit(write);
        self.acquire(self.partition.next_fetch_offset());
    }

    /// Nanoseconds per operation, averaged over many.
    fn time(&mut self, operation: impl Fn(&mut Self)) -> f64 {
        let started = ThreadTime::now();
        for _ in 0..TIMES {
            operation(self);
        }
        let took: Duration = started.elapsed();
        took.as_secs_f64() * 1e9 / f64::from(TIMES)
    }
}

fn ack(first: i64, last: i64, types: &[u8]) -> AckBatch<'_> {
    AckBatch { first, last, types }
}

fn member(offset: i64) -> &'static str {
    MEMBERS[(offset / BATCH) as usize % MEMBERS.len()]
}

fn main() {
    let named: Vec<i64> = env::args().filter_map(|arg| arg.parse().ok()).collect();
    for &size in if named.is_empty() {
        &WINDOWS[..]
    } else {
        &named
    } {
        let mut window = Window::filled(size);
        let single = window.time(Window::acknowledge_one);
        let expiry = window.time(Window::expire);
        drop(window);
        let turn = Window::filled(size).time(Window::turn_over);
        let mut window = Window::broken_up(size);
        let broken = window.time(Window::acknowledge_one);
        println!(
            "{{\"window\":{size},\"turn_over_ns\":{turn:.0},\"acknowledge_one_ns\":{single:.0},\"expire_ns\":{expiry:.0},\
             \"broken_runs\":{},\"broken_acknowledge_one_ns\":{broken:.0}}}",
            window.partition.runs()
        );
    }
}
