//! Records are acquired alike whether partly acquired batches are cached or read again.

use std::convert::Infallible;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use sharecore_engine::{AckBatch, Backoff, Config, Engine, Key, Order, Partition, Rules};
use sharecore_records::{
    Batches, Compression, Header, LocalRecord, Producer, compress, headed_batch,
    layout::{HEADER, seal},
    local_batch,
};
use smallvec::smallvec;

use super::*;

const ACCEPT: u8 = 1;
const RELEASE: u8 = 2;

/// A log in memory that counts its reads.
struct Recorded {
    batches: Vec<(OffsetRange, Vec<u8>)>,
    reads: usize,
    /// Producer ID and first offset of aborted transactions.
    aborted: Vec<(i64, i64)>,
}

impl Log for Recorded {
    type Bytes = Vec<u8>;
    type Error = Infallible;

    fn read(&mut self, want: Want) -> Result<Option<Part<Vec<u8>>>, Infallible> {
        self.reads += 1;
        let mut part = Part {
            bytes: Vec::new(),
            batches: smallvec![],
        };
        for (offsets, bytes) in &self.batches {
            let is_first = part.batches.is_empty();
            let size = (part.bytes.len() + bytes.len()) as i64;
            if offsets.last < want.offset {
                continue;
            }
            let is_over = !is_first && offsets.first >= want.offset + want.max_records;
            if is_over || size > want.max_bytes && !(is_first && want.at_least_one) {
                break;
            }
            part.bytes.extend(bytes);
            part.batches.push(*offsets);
        }
        Ok(Some(part))
    }

    fn aborted(&mut self, offsets: OffsetRange) -> Result<Vec<(i64, i64)>, Infallible> {
        let ends = self.batches.last().map_or(0, |(offsets, _)| offsets.last);
        let overlaps = self
            .aborted
            .iter()
            .filter(|(_, first)| *first <= offsets.last.min(ends));
        Ok(overlaps.copied().collect())
    }

    fn leased(&mut self, _: &[Acquired]) {}
}

/// A batch with a record of each of these keys.
fn batch(first: i64, keys: &[u8], compression: i16) -> (OffsetRange, Vec<u8>) {
    let keys: Vec<_> = keys.iter().map(|key| [*key; 20]).collect();
    let records: Vec<LocalRecord<'_>> = keys
        .iter()
        .map(|key| (Some(&key[..]), Some(&key[..])))
        .collect();
    let (whole, header) = local_batch(&records, Producer::NONE, 5000);
    let kind = Compression::from_id(compression).unwrap();
    let payload = compress(kind, &whole[HEADER..]).unwrap();
    let header = Header {
        base_offset: first,
        size: HEADER + payload.len(),
        attributes: compression,
        ..header
    };
    let mut bytes = vec![0; HEADER];
    header.write(&mut bytes);
    bytes.extend_from_slice(&payload);
    seal(&mut bytes);
    (OffsetRange::new(first, header.last_offset()), bytes)
}

fn ordered(run_max: i64) -> Guarded {
    let spec = Spec {
        key: Some(Key::Own),
        ..Spec::default()
    };
    managed(run_max, 1000, spec)
}

fn managed(run_max: i64, max_waiting: i64, spec: Spec) -> Guarded {
    let rules = Rules {
        order: Order::None,
        run_max,
        backoff: Backoff::NONE,
        max_waiting,
        spec: Some(Arc::new(spec)),
        expired_letters: false,
    };
    let mut engine = Engine::from(Partition::new(Config::default(), 0, &[]).unwrap());
    engine.set_rules(Some(rules));
    Guarded::new(engine)
}

/// The acquired ranges, and the offsets and keys of the records in the answer.
type Answer = (Vec<(i64, i64, u16)>, Vec<(i64, u8)>);

fn request(cache: &ExpandedCache, end: i64, max_records: i64) -> AcquireRequest<'_> {
    AcquireRequest {
        now_ms: 0,
        wall_ms: 0,
        member: "m",
        log_start: 0,
        end,
        max_bytes: 1 << 20,
        max_records,
        batch_size: 500,
        record_limit: false,
        at_least_one: true,
        log_cache: Some(LogCache {
            cache,
            log: ([1; 16], 0),
            is_read: true,
        }),
    }
}

/// Fetches until nothing is left; each number says how many records a fetch wants and what is released of them.
fn answers(
    log: &mut Recorded,
    (run_max, max_bytes): (i64, i64),
    is_read: bool,
    wanted: &[(i64, bool)],
) -> Vec<Answer> {
    let engine = ordered(run_max);
    let cache = ExpandedCache::new(1 << 20);
    let mut all = Vec::new();
    let mut wanted = wanted.iter().copied();
    loop {
        let (max_records, releases) = wanted.next().unwrap_or((7, false));
        let end = log.batches.last();
        let end = end.map_or(0, |(offsets, _)| offsets.last + 1);
        let mut request = request(&cache, end, max_records);
        request.max_bytes = max_bytes;
        request.log_cache.as_mut().expect("a cache").is_read = is_read;
        let leased = lease(&engine, log, &request);
        assert!(leased.stopped.is_none());
        if leased.acquired.is_empty() {
            if leased.admitted.is_some_and(|admitted| admitted.goes_on) {
                continue;
            }
            assert!(cache.bytes() < 10_000, "delivered batches are dropped");
            return all;
        }
        let mut records = Vec::new();
        for (source, ranges) in &leased.parts {
            for range in ranges {
                for batch in Batches::new(&source.as_ref()[range.clone()]) {
                    let expanded = batch.expand(1 << 20).unwrap();
                    let of_batch = batch.records(&expanded).map(Result::unwrap);
                    records.extend(of_batch.map(|record| (record.offset, record.key.unwrap()[0])));
                }
            }
        }
        let ranges: Vec<_> = leased
            .acquired
            .iter()
            .map(|each| (each.first, each.last, each.delivery_count))
            .collect();
        let kind = if releases { RELEASE } else { ACCEPT };
        let batches: Vec<_> = ranges
            .iter()
            .map(|&(first, last, _)| AckBatch {
                first,
                last,
                types: std::slice::from_ref(&kind),
            })
            .collect();
        let done = engine.with(|engine| {
            let write = engine
                .acknowledge(0, "m", &batches)
                .unwrap()
                .expect("a change")
                .id;
            engine.commit(write, 0).unwrap();
            engine.check().unwrap();
        });
        done.unwrap();
        records.retain(|(offset, _)| {
            ranges
                .iter()
                .any(|(first, last, _)| first <= offset && offset <= last)
        });
        all.push((ranges, records));
    }
}

fn log_of(keys: &[Vec<u8>], compression: i16) -> Recorded {
    let mut next = 0;
    let batches = keys.iter().map(|keys| {
        let made = batch(next, keys, compression);
        next = made.0.last + 1;
        made
    });
    Recorded {
        batches: batches.collect(),
        reads: 0,
        aborted: Vec::new(),
    }
}

/// A log of batches of ten records; one of each 200 has a delivery time that comes before those of the others.
fn timed_log(batches: i64, (soon, late): (&[u8], &[u8])) -> Recorded {
    let record: LocalRecord<'_> = (None, Some(b"value"));
    let (soon, late) = ([("at", Some(soon))], [("at", Some(late))]);
    let of_batch = |number: i64| {
        let is_soon = |each| (number * 10 + each) % 200 == 7;
        let at = |each| if is_soon(each) { &soon } else { &late };
        let records: Vec<_> = (0..10).map(|each| (record, &at(each)[..])).collect();
        let mut bytes = headed_batch(&records, 1000);
        let first = number * 10;
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        (OffsetRange::new(first, first + 9), bytes)
    };
    Recorded {
        batches: (0..batches).map(of_batch).collect(),
        reads: 0,
        aborted: Vec::new(),
    }
}

#[test]
fn a_fetch_gets_all_records_that_are_due_though_each_lies_in_another_batch() {
    let spec = Spec {
        deliver_at_header: b"at".to_vec(),
        ..Spec::default()
    };
    let engine = managed(1, 100_000, spec);
    let mut log = timed_log(2000, (b"5000", b"9000"));
    let cache = ExpandedCache::new(1 << 20);
    let mut fetched = |wall_ms, max_records| {
        let mut request = request(&cache, 20_000, max_records);
        request.wall_ms = wall_ms;
        log.reads = 0;
        let leased = lease(&engine, &mut log, &request);
        let ranges = leased.acquired.iter();
        let offsets: Vec<_> = ranges.flat_map(|each| each.first..=each.last).collect();
        (offsets, log.reads)
    };
    assert_eq!(fetched(4999, 500).0, [0; 0]);
    let due: Vec<_> = (0..100).map(|each| each * 200 + 7).collect();
    let (first, reads) = fetched(5000, 60);
    assert_eq!(first, due[..60]);
    assert_eq!(reads, 60, "a batch each");
    assert_eq!(fetched(5000, 500).0, due[60..]);
}

proptest! {
    #[test]
    fn cached_batches_give_what_the_log_gives(
        keys in vec(vec(0_u8..6, 1..40), 1..8),
        compression in 0_i16..5,
        run_max in 1_i64..4,
        max_bytes in 500_i64..5000,
        wanted in vec((1_i64..12, prop_oneof![4 => Just(false), 1 => Just(true)]), 0..40),
    ) {
        let mut log = log_of(&keys, compression);
        let found = answers(&mut log, (run_max, max_bytes), true, &wanted);
        for (ranges, records) in &found {
            let offsets: Vec<_> = ranges.iter().flat_map(|(first, last, _)| *first..=*last).collect();
            let all: Vec<_> = keys.concat();
            let right: Vec<_> = offsets.iter().map(|offset| (*offset, all[*offset as usize])).collect();
            prop_assert_eq!(records, &right, "each acquired record is in the answer, once");
        }
        let mut delivered: Vec<_> = found.iter().flat_map(|(_, records)| records.clone()).collect();
        delivered.sort_unstable();
        delivered.dedup();
        prop_assert_eq!(delivered.len(), keys.concat().len(), "every record comes");
    }
}

#[test]
fn a_batch_that_is_delivered_in_parts_is_read_once_or_twice() {
    let keys: Vec<_> = (0..8).map(|_| (0..40).map(|at| at % 4).collect()).collect();
    let mut log = log_of(&keys, 0);
    let found = answers(&mut log, (1, 1 << 20), true, &[]);
    assert!(
        found.len() >= 80,
        "four keys, one record each: {}",
        found.len()
    );
    // to learn the keys, and for the first part
    assert!(log.reads <= 2 * 8 + 1, "{} reads", log.reads);
    log.reads = 0;
    answers(&mut log, (1, 1 << 20), false, &[]);
    assert!(log.reads >= 80, "{} reads", log.reads);
}

#[test]
fn runs_are_as_long_as_from_the_log() {
    let keys: Vec<_> = (0..8).map(|_| (0..40).map(|at| at % 3).collect()).collect();
    let mut log = log_of(&keys, 0);
    let wanted = [(30, false); 100];
    let found = answers(&mut log, (8, 1 << 20), true, &wanted);
    let again = answers(&mut log, (8, 1 << 20), false, &wanted);
    assert_eq!(found, again);
}

#[test]
fn a_log_with_aborted_transactions_is_read() {
    let keys: Vec<_> = (0..2).map(|_| (0..40).map(|at| at % 4).collect()).collect();
    let mut log = log_of(&keys, 0);
    log.aborted = vec![(9, 0)];
    let found = answers(&mut log, (1, 1 << 20), true, &[]);
    assert!(log.reads >= found.len(), "{} reads", log.reads);
}
