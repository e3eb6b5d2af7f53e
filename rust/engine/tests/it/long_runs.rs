//! Windows far wider than any record batch: no count of offsets overflows.

use sharecore_engine::{
    AckBatch, AcquireOptions, Acquired, Config, OffsetRange, Partition, RecordState, StateBatch,
};

const LAST: i64 = (1 << 34) - 1;
const RELEASE: &[u8] = &[2];
const RENEW: &[u8] = &[4];

fn acquire(partition: &mut Partition, now_ms: i64) -> Vec<Acquired> {
    let options = AcquireOptions {
        fetch_offset: 0,
        max_fetch_records: i64::MAX,
        batch_size: i64::MAX,
        record_limit: false,
    };
    let mut out = Vec::new();
    let whole = [OffsetRange::new(0, LAST)];
    partition.acquire(now_ms, "member", &whole, options, &mut out);
    assert_eq!(partition.check(), Ok(()));
    out
}

fn acknowledge(partition: &mut Partition, first: i64, last: i64, types: &[u8]) {
    let batch = [AckBatch { first, last, types }];
    let write = partition
        .acknowledge(0, "member", &batch)
        .expect("leased to the member");
    let write = write.map(|write| write.id);
    assert_eq!(partition.check(), Ok(()));
    if let Some(write) = write {
        partition.commit(write).expect("open");
        assert_eq!(partition.check(), Ok(()));
    }
}

fn lease_release_and_lease_again(mut partition: Partition, delivery_count: u16) {
    let whole = |delivery_count| Acquired {
        first: 0,
        last: LAST,
        delivery_count,
    };
    assert_eq!(acquire(&mut partition, 0), [whole(delivery_count)]);
    // Part of the run gets a lock of its own, then both parts are one run again
    acknowledge(&mut partition, 1, LAST, RENEW);
    acknowledge(&mut partition, 0, 1 << 33, RELEASE);
    acknowledge(&mut partition, (1 << 33) + 1, LAST, RELEASE);
    assert_eq!(partition.runs(), 1);
    assert_eq!(acquire(&mut partition, 0), [whole(delivery_count + 1)]);
    let write = partition.advance(30_000).expect("locks have run out");
    assert_eq!(write.batches.len(), 1);
    let write = write.id;
    partition.commit(write).expect("open");
    assert_eq!(partition.check(), Ok(()));
    assert_eq!(partition.next_fetch_offset(), 0);
}

#[test]
fn a_window_that_was_loaded() {
    let state = [StateBatch {
        first: 0,
        last: LAST,
        state: RecordState::Available,
        delivery_count: 0,
    }];
    let partition = Partition::new(config(), 0, &state).expect("possible state");
    lease_release_and_lease_again(partition, 1);
}

#[test]
fn a_window_that_was_fetched() {
    let partition = Partition::new(config(), 0, &[]).expect("empty state");
    lease_release_and_lease_again(partition, 1);
}

fn config() -> Config {
    Config {
        max_inflight: i64::MAX,
        ..Config::default()
    }
}

#[test]
fn a_fetch_that_reaches_no_further_than_the_start() {
    const START: i64 = 1 << 45;
    let mut partition = Partition::new(config(), START, &[]).expect("empty state");
    let mut fetch = |first: i64, batches: &[OffsetRange]| {
        let options = AcquireOptions {
            fetch_offset: first,
            max_fetch_records: 5,
            batch_size: 5,
            record_limit: false,
        };
        let mut out = Vec::new();
        partition.acquire(0, "member", batches, options, &mut out);
        assert_eq!(partition.check(), Ok(()));
        assert_eq!(partition.start_offset(), START);
        out.len()
    };
    assert_eq!(fetch(START, &[OffsetRange::new(START, START + 4)]), 1);
    let far_apart = [
        OffsetRange::new(224, 342),
        OffsetRange::new(START + 10, START + 20),
    ];
    assert_eq!(fetch(START + 5, &far_apart), 0);
}
