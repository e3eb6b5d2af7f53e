//! Writes that end in any order: the others keep their batches.

use std::collections::BTreeMap;

use sharecore_engine::{AckBatch, AcquireOptions, Config, OffsetRange, Partition, StateBatch};

const RECORDS: i64 = 600;

/// A partition with this many records acquired by one member, under one lock.
fn leased(records: i64) -> Partition {
    let config = Config {
        max_inflight: records,
        ..Config::default()
    };
    let mut partition = Partition::new(config, 0, &[]).expect("empty state");
    let options = AcquireOptions {
        fetch_offset: 0,
        max_fetch_records: records,
        batch_size: records,
        record_limit: false,
    };
    let range = OffsetRange::new(0, records - 1);
    partition.acquire(0, "member", &[range], options, &mut Vec::new());
    partition
}

/// A window of records, each accepted by its own write or, every fifth, rejected together with its neighbor.
fn begun() -> (Partition, BTreeMap<u64, Vec<StateBatch>>) {
    let mut partition = leased(RECORDS);
    let mut open = BTreeMap::new();
    for first in (0..RECORDS).step_by(2) {
        let last = first + i64::from(first % 5 == 0);
        let types: &[u8] = if last > first { &[1, 3] } else { &[1] };
        let batch = [AckBatch { first, last, types }];
        let write = partition.acknowledge(0, "member", &batch);
        let write = write.expect("leased").expect("a change");
        open.insert(write.id, write.batches.to_vec());
    }
    (partition, open)
}

/// Ends all writes in the order of `key`, every third by a rollback; checks the others now and then.
fn end_by<K: Ord>(key: impl Fn(u64) -> K) {
    let (mut partition, mut open) = begun();
    let mut order: Vec<u64> = open.keys().copied().collect();
    order.sort_by_key(|&id| key(id));
    let most = partition.memory_bytes();
    for (index, id) in order.into_iter().enumerate() {
        let ended = if index % 3 == 0 {
            partition.rollback(id, 0)
        } else {
            partition.commit(id)
        };
        ended.expect("open");
        open.remove(&id);
        assert!(partition.write_batches(id).is_err(), "a write ends once");
        if index % 7 == 0 {
            for (&id, batches) in &open {
                assert_eq!(partition.write_batches(id), Ok(&batches[..]));
            }
        }
        partition.check().expect("invariants");
    }
    assert!(partition.memory_bytes() <= most);
}

#[test]
fn oldest_first() {
    end_by(|id| id);
}

#[test]
fn newest_first() {
    end_by(std::cmp::Reverse);
}

#[test]
fn in_no_order() {
    end_by(|id| id * 7919 % 1009);
}

#[test]
fn all_but_one_that_hangs() {
    end_by(|id| (id == 3, id));
}

#[test]
fn room_does_not_grow_while_one_hangs() {
    let (mut partition, open) = begun();
    let ids: Vec<u64> = open.into_keys().skip(1).collect();
    for id in ids {
        partition.rollback(id, 0).expect("open");
    }
    let before = partition.memory_bytes();
    for _ in 0..10_000 {
        let batch = [AckBatch {
            first: 300,
            last: 300,
            types: &[1],
        }];
        let write = partition.acknowledge(0, "member", &batch);
        let id = write.expect("leased").expect("a change").id;
        partition.rollback(id, 0).expect("open");
    }
    assert!(partition.memory_bytes() <= before);
}

#[test]
fn room_is_given_back() {
    const MANY: i64 = 100_000;
    let mut partition = leased(MANY);
    let types = [1, 3].repeat(MANY as usize / 2);
    let batch = [AckBatch {
        first: 0,
        last: MANY - 1,
        types: &types,
    }];
    let write = partition.acknowledge(0, "member", &batch);
    let id = write.expect("leased").expect("a change").id;
    let open = partition.memory_bytes();
    partition.rollback(id, 0).expect("open");
    let kept = open - partition.memory_bytes();
    assert!(kept > MANY as usize * 23, "{kept} bytes were given back");
}
