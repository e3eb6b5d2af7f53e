//! Memory of the in-flight records, as counted by the allocator: `cargo bench -p sharecore-engine --bench memory`.
//!
//! Prints one JSON line: bytes per leased batch of 500 records, and bytes per run when every record is a run of its
//! own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use sharecore_engine::{AckBatch, AcquireOptions, Config, OffsetRange, Partition};

const BATCH: i64 = 500;
const LEASED: i64 = 20_000;
const SPLIT: i64 = 2_000;

/// The system's allocator, with a count of the bytes held.
struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: promised by the caller
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: promised by the caller
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn held() -> isize {
    HELD.load(Ordering::Relaxed)
}

fn leased(batches: i64) -> Partition {
    let config = Config {
        max_inflight: batches * BATCH,
        ..Config::default()
    };
    let mut partition = Partition::new(config, 0, &[]).expect("empty state");
    for first in (0..batches * BATCH).step_by(BATCH as usize) {
        let range = OffsetRange::new(first, first + BATCH - 1);
        let options = AcquireOptions {
            fetch_offset: first,
            max_fetch_records: BATCH,
            batch_size: BATCH,
            record_limit: false,
        };
        partition.acquire(0, "member", &[range], options, &mut Vec::new());
    }
    partition
}

#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn main() {
    let before = held();
    let partition = leased(LEASED);
    let batch = (held() - before) as f64 / LEASED as f64;
    drop(partition);

    let types: Vec<u8> = [1, 2].repeat(BATCH as usize / 2);
    let before = held();
    let mut partition = leased(SPLIT);
    for first in (0..SPLIT * BATCH).step_by(BATCH as usize) {
        let batch = [AckBatch {
            first,
            last: first + BATCH - 1,
            types: &types,
        }];
        let write = partition.acknowledge(0, "member", &batch);
        let write = write.expect("leased").expect("a change").id;
        partition.commit(write).expect("open");
    }
    let runs = partition.runs();
    let run = (held() - before) as f64 / runs as f64;
    println!(
        "{{\"bytes_a_leased_batch\":{batch:.1},\"runs\":{runs},\"bytes_a_run\":{run:.1},\"bytes_as_the_engine_counts\":{:.1}}}",
        partition.memory_bytes() as f64 / runs as f64
    );
}
