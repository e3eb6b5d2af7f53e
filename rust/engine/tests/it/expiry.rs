//! Expiry times are kept for unfinished records, however long the time to live is.

use std::sync::Arc;

use sharecore_engine::{
    AckBatch, AcquireOptions, Backoff, Config, Engine, Entry, OffsetRange, Order, Rules, Spec,
};

const RECORDS: i64 = 1000;
const ROUNDS: i64 = 100;
const TTL_MS: i64 = 86_400_000;

fn engine(spec: &Arc<Spec>) -> Engine {
    let rules = Rules {
        order: Order::None,
        run_max: 1,
        backoff: Backoff::NONE,
        max_waiting: 1_000_000,
        spec: Some(spec.clone()),
        expired_letters: false,
    };
    let config = Config {
        max_inflight: 10_000,
        ..Config::default()
    };
    Engine::new(config, 0, &[], Some(rules), 0).expect("an empty state")
}

/// Admits records that expire one after the other, and acquires all except the log's first.
fn admit(engine: &mut Engine, spec: &Spec, first: i64) {
    let batch = OffsetRange::new(first, first + RECORDS - 1);
    let entries: Vec<_> = (batch.first..=batch.last)
        .map(|offset| Entry {
            offset,
            not_before_ms: if offset == 0 {
                TTL_MS / 2
            } else {
                Entry::AT_ONCE
            },
            expires_ms: TTL_MS + offset,
            digest: 0,
        })
        .collect();
    assert!(engine.admit((0, 0), spec, first, &[batch], &entries, 500));
    let options = AcquireOptions {
        fetch_offset: first,
        max_fetch_records: RECORDS,
        batch_size: 500,
        record_limit: false,
    };
    let mut out = Vec::new();
    engine.acquire(0, "member", &[batch], options, &mut out);
    let acquired: i64 = out.iter().map(|each| each.last - each.first + 1).sum();
    assert_eq!(acquired, RECORDS - i64::from(first == 0));
}

fn accept(engine: &mut Engine, first: i64, last: i64) {
    let batch = AckBatch {
        first,
        last,
        types: &[1],
    };
    let write = engine.acknowledge(0, "member", &[batch]).expect("its own");
    let id = write.expect("a change").id;
    engine.commit(id, 0).expect("it is open");
}

#[test]
fn times_of_settled_records_are_dropped() {
    let spec = Arc::new(Spec::default());
    let mut engine = engine(&spec);
    for round in 0..ROUNDS {
        let first = round * RECORDS;
        admit(&mut engine, &spec, first);
        // The first record of the log waits, which holds the start offset
        accept(&mut engine, first.max(1), first + RECORDS - 1);
    }
    assert_eq!(engine.start_offset(), 0);
    let bytes = engine.memory_bytes();
    assert!(bytes < 200_000, "{bytes} bytes for one open record");
}

#[test]
fn records_that_came_back_expire_all_the_same() {
    let spec = Arc::new(Spec::default());
    let mut engine = engine(&spec);
    admit(&mut engine, &spec, 0);
    // They are being released while times of other records are dropped
    let write = engine.release("member").expect("it holds some");
    let id = write.id;
    for round in 1..4 {
        admit(&mut engine, &spec, round * RECORDS);
        accept(&mut engine, round * RECORDS, (round + 1) * RECORDS - 1);
    }
    engine.commit(id, 0).expect("it is open");
    let write = engine
        .advance(0, TTL_MS + RECORDS)
        .expect("they have expired");
    let given_up: i64 = write
        .batches
        .iter()
        .map(|batch| batch.last - batch.first + 1)
        .sum();
    assert_eq!(given_up, RECORDS);
}
