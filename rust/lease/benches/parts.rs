//! Delivers batches in parts, one share partition in memory: `cargo bench -p sharecore-lease --bench parts -- keys 250 1`
//! (keys, run length) or `-- times 16700` (records due per second). Under callgrind it counts instructions per record.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;

use sharecore_engine::{
    AckBatch, Acquired, Backoff, Config, Engine, Key, OffsetRange, Order, Partition, Rules, Spec,
};
use sharecore_guard::Guarded;
use sharecore_lease::{AcquireRequest, ExpandedCache, Log, LogCache, Part, Want, lease};
use sharecore_records::{LocalRecord, headed_batch, layout::seal};
use smallvec::SmallVec;

const RECORDS: usize = 100_000;
const OF_BATCH: usize = 113;
const OF_FETCH: i64 = 500;
const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];
const ACCEPT: u8 = 1;
/// Time between two fetches of records with delivery times, and when the first are due.
const TICK_MS: i64 = 30;
const DUE_MS: i64 = 1_000_000;

/// A log in memory.
struct Memory {
    batches: Vec<(OffsetRange, Vec<u8>)>,
    reads: usize,
}

impl Log for Memory {
    type Bytes = Vec<u8>;
    type Error = Infallible;

    fn read(&mut self, want: Want) -> Result<Option<Part<Vec<u8>>>, Infallible> {
        self.reads += 1;
        let from = self
            .batches
            .partition_point(|(offsets, _)| offsets.last < want.offset);
        let mut part = Part {
            bytes: Vec::new(),
            batches: SmallVec::new(),
        };
        for (offsets, bytes) in &self.batches[from..] {
            let is_first = part.batches.is_empty();
            let is_over = !is_first && offsets.first >= want.offset + want.max_records;
            let size = (part.bytes.len() + bytes.len()) as i64;
            if is_over || size > want.max_bytes && !(is_first && want.at_least_one) {
                break;
            }
            part.bytes.extend_from_slice(bytes);
            part.batches.push(*offsets);
        }
        Ok(Some(part))
    }

    fn aborted(&mut self, _: OffsetRange) -> Result<Vec<(i64, i64)>, Infallible> {
        Ok(Vec::new())
    }

    fn leased(&mut self, _: &[Acquired]) {}
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % below as u64) as usize
    }
}

fn log(keys: usize, span_ms: usize) -> Memory {
    let mut numbers = Numbers(7);
    let value = [b'v'; 100];
    let batches = (0..RECORDS).step_by(OF_BATCH).map(|first| {
        let count = OF_BATCH.min(RECORDS - first);
        let texts: Vec<_> = (0..count)
            .map(|_| {
                (
                    format!("key-{}", numbers.next(keys)),
                    format!("{}", DUE_MS as usize + numbers.next(span_ms)),
                )
            })
            .collect();
        let headers: Vec<_> = texts
            .iter()
            .map(|(_, at)| [("deliver-at", Some(at.as_bytes()))])
            .collect();
        let records: Vec<_> = texts
            .iter()
            .zip(&headers)
            .map(|((key, _), headers)| {
                let record: LocalRecord<'_> = (Some(key.as_bytes()), Some(&value));
                (record, &headers[..])
            })
            .collect();
        let mut bytes = headed_batch(&records, 1000);
        bytes[..8].copy_from_slice(&(first as i64).to_be_bytes());
        seal(&mut bytes);
        (
            OffsetRange::new(first as i64, (first + count - 1) as i64),
            bytes,
        )
    });
    Memory {
        batches: batches.collect(),
        reads: 0,
    }
}

fn engine(run_max: i64, spec: Spec) -> Guarded {
    let rules = Rules {
        order: Order::None,
        run_max,
        backoff: Backoff::NONE,
        max_waiting: 1_000_000,
        spec: Some(Arc::new(spec)),
        expired_letters: false,
    };
    let mut engine = Engine::from(Partition::new(Config::default(), 0, &[]).unwrap());
    engine.set_rules(Some(rules));
    Guarded::new(engine)
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let number = |at: usize, or: usize| {
        words
            .get(at)
            .map_or(or, |word| word.parse().expect("a number"))
    };
    let has_times = words.first().is_some_and(|word| word == "times");
    let (mut log, spec, run_max) = if has_times {
        let spec = Spec {
            deliver_at_header: b"deliver-at".to_vec(),
            ..Spec::default()
        };
        (log(1000, RECORDS * 1000 / number(1, 4175)), spec, 1)
    } else {
        let spec = Spec {
            key: Some(Key::Own),
            ..Spec::default()
        };
        (log(number(1, 250), 1000), spec, number(2, 1) as i64)
    };
    let guarded = engine(run_max, spec);
    let cache = ExpandedCache::new(16 << 20);
    let (mut left, mut fetches, mut wall_ms) = (RECORDS as i64, 0, 0);
    let mut held: Vec<(&str, Vec<Acquired>)> =
        MEMBERS.iter().map(|member| (*member, Vec::new())).collect();
    while left > 0 {
        let at = fetches % MEMBERS.len();
        let (member, acquired) = &mut held[at];
        if !acquired.is_empty() {
            let batches: Vec<_> = acquired
                .iter()
                .map(|each| AckBatch {
                    first: each.first,
                    last: each.last,
                    types: std::slice::from_ref(&ACCEPT),
                })
                .collect();
            let done = guarded.with(|engine| {
                let write = engine
                    .acknowledge(0, member, &batches)
                    .unwrap()
                    .expect("a change")
                    .id;
                engine.commit(write, 0).unwrap();
            });
            done.unwrap();
        }
        let request = AcquireRequest {
            now_ms: wall_ms,
            wall_ms,
            member,
            log_start: 0,
            end: RECORDS as i64,
            max_bytes: 5 << 20,
            max_records: OF_FETCH,
            batch_size: OF_FETCH,
            record_limit: false,
            at_least_one: true,
            log_cache: Some(LogCache {
                cache: &cache,
                log: ([1; 16], 0),
                is_read: true,
            }),
        };
        let leased = lease(&guarded, &mut log, &request);
        assert!(leased.stopped.is_none());
        black_box(&leased.parts);
        left -= leased.total;
        *acquired = leased.acquired;
        fetches += 1;
        if has_times && leased.admitted.is_none() {
            wall_ms = wall_ms.max(DUE_MS) + TICK_MS;
        }
    }
    println!("{fetches} fetches, {} reads of the log", log.reads);
}
