//! Locks that are extended while their member is connected.

use sharecore_engine::{
    AckBatch, AcquireOptions, Acquired, Config, OffsetRange, Partition, RecordState,
};

const LOCK_MS: i64 = 10_000;

fn partition() -> Partition {
    let config = Config {
        lock_ms: LOCK_MS,
        ..Config::default()
    };
    Partition::new(config, 0, &[]).expect("empty state")
}

fn acquire(partition: &mut Partition, now_ms: i64, member: &str, last: i64) -> Vec<Acquired> {
    let options = AcquireOptions {
        fetch_offset: partition.next_fetch_offset(),
        max_fetch_records: 100,
        batch_size: 100,
        record_limit: false,
    };
    let mut out = Vec::new();
    let batches = [OffsetRange::new(0, last)];
    partition.acquire(now_ms, member, &batches, options, &mut out);
    out
}

fn acknowledge(partition: &mut Partition, now_ms: i64, first: i64, last: i64, kind: u8) {
    let batch = AckBatch {
        first,
        last,
        types: &[kind],
    };
    let write = partition.acknowledge(now_ms, "a", &[batch]);
    let id = write.expect("it holds them").map(|write| write.id);
    if let Some(id) = id {
        partition.commit(id).expect("it is open");
    }
}

/// Records that `advance` releases after the locks of connected members were extended.
fn advance(partition: &mut Partition, now_ms: i64, connected: &[&str], max_ms: i64) -> Vec<i64> {
    partition.keep_locks(now_ms, connected, max_ms);
    let write = partition.advance(now_ms);
    let freed = write.map(|write| (write.id, write.batches.to_vec()));
    partition.check().expect("invariants");
    let Some((id, batches)) = freed else {
        return vec![];
    };
    partition.commit(id).expect("it is open");
    let each = batches.iter().flat_map(|batch| batch.first..=batch.last);
    each.collect()
}

#[test]
fn a_lock_goes_on_while_its_member_is_connected() {
    let mut partition = partition();
    acquire(&mut partition, 0, "a", 4);
    for round in 1..=20 {
        assert_eq!(partition.next_deadline_ms(), Some(round * LOCK_MS));
        assert_eq!(partition.running_out(round * LOCK_MS), ["a"]);
        assert_eq!(
            advance(&mut partition, round * LOCK_MS, &["b", "a"], i64::MAX),
            []
        );
        assert_eq!(partition.kept(), 5);
    }
    let now_ms = 21 * LOCK_MS;
    assert_eq!(partition.inflight()[0].delivery_count, 1);
    assert_eq!(
        advance(&mut partition, now_ms, &["b"], i64::MAX),
        [0, 1, 2, 3, 4]
    );
    assert_eq!(partition.kept(), 0);
}

#[test]
fn a_lock_is_kept_no_longer_than_allowed() {
    let mut partition = partition();
    acquire(&mut partition, 1000, "a", 0);
    let max_ms = 25_000;
    assert_eq!(advance(&mut partition, 11_000, &["a"], max_ms), []);
    assert_eq!(partition.next_deadline_ms(), Some(21_000));
    // Noticed late, but the lock does not last longer because of that
    assert_eq!(advance(&mut partition, 23_000, &["a"], max_ms), []);
    assert_eq!(partition.next_deadline_ms(), Some(26_000));
    assert_eq!(advance(&mut partition, 25_999, &["a"], max_ms), []);
    assert_eq!(advance(&mut partition, 26_000, &["a"], max_ms), [0]);
}

#[test]
fn a_renewal_begins_the_time_anew_for_what_was_renewed() {
    let mut partition = partition();
    acquire(&mut partition, 0, "a", 3);
    let max_ms = 15_000;
    assert_eq!(advance(&mut partition, 10_000, &["a"], max_ms), []);
    acknowledge(&mut partition, 12_000, 2, 3, 4);
    assert_eq!(partition.kept(), 2);
    assert_eq!(advance(&mut partition, 15_000, &["a"], max_ms), [0, 1]);
    assert_eq!(partition.next_deadline_ms(), Some(22_000));
    assert_eq!(advance(&mut partition, 22_000, &["a"], max_ms), []);
    assert_eq!(advance(&mut partition, 27_000, &["a"], max_ms), [2, 3]);
}

#[test]
fn the_next_delivery_has_all_its_time_although_its_lease_has_the_same_number() {
    let mut partition = partition();
    acquire(&mut partition, 0, "a", 0);
    let max_ms = 15_000;
    assert_eq!(advance(&mut partition, 10_000, &["a"], max_ms), []);
    acknowledge(&mut partition, 10_000, 0, 0, 2);
    assert_eq!(acquire(&mut partition, 10_000, "a", 0)[0].delivery_count, 2);
    assert_eq!(partition.kept(), 0);
    assert_eq!(advance(&mut partition, 20_000, &["a"], max_ms), []);
    assert_eq!(partition.next_deadline_ms(), Some(25_000));
}

#[test]
fn what_is_being_written_is_still_held_if_the_write_fails() {
    let mut partition = partition();
    acquire(&mut partition, 0, "a", 1);
    let batch = AckBatch {
        first: 0,
        last: 0,
        types: &[1],
    };
    let write = partition.acknowledge(5000, "a", &[batch]);
    let id = write.expect("it holds it").expect("a change").id;
    assert_eq!(advance(&mut partition, 10_000, &["a"], 60_000), []);
    partition.rollback(id, 12_000).expect("it is open");
    let runs = partition.inflight();
    assert_eq!((runs.len(), runs[0].state), (1, RecordState::Acquired));
    assert_eq!(advance(&mut partition, 20_000, &[], 60_000), [0, 1]);
}

#[test]
fn only_members_are_asked_for_whose_locks_have_run_out() {
    let mut partition = partition();
    acquire(&mut partition, 0, "b", 0);
    acquire(&mut partition, 0, "a", 1);
    acquire(&mut partition, 0, "b", 2);
    acquire(&mut partition, 1, "c", 3);
    assert!(partition.running_out(LOCK_MS - 1).is_empty());
    assert_eq!(partition.running_out(LOCK_MS), ["a", "b"]);
    assert_eq!(advance(&mut partition, LOCK_MS, &["b"], 60_000), [1]);
    assert!(partition.running_out(LOCK_MS).is_empty());
}
