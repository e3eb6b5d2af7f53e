//! Encoded values: the bytes that Kafka writes, and the state after a restart.

use std::fmt::Write as _;

use proptest::prelude::*;
use sharecore_engine::{RecordState, StateBatch};
use sharecore_state::{Change, Content, Head, Kind, write_value};

fn batch(first: i64, last: i64, state: u8, delivery_count: u16) -> StateBatch {
    let state = RecordState::from_id(state).expect("a known state");
    StateBatch {
        first,
        last,
        state,
        delivery_count,
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        write!(out, "{byte:02x}").expect("a string takes everything");
    }
    out
}

#[test]
fn values_are_the_bytes_that_kafka_writes() {
    // printed by ShareCoordinatorRecordSerde of Apache Kafka 4.3.1
    let head = "0000000000030000000400000005000000000000000600000000000000070000000000000008";
    let body = "030000000000000000000000000000000902000100000000000000000a000001000000000000000300";
    let batches = [batch(0, 9, 2, 1), batch(10, 1 << 40, 0, 3)];
    let mut said = Head {
        snapshot_epoch: 3,
        state_epoch: Some(4),
        leader_epoch: 5,
        start_offset: 6,
        delivery_complete_count: -1,
        times: Some((7, 8)),
    };
    assert_eq!(
        hex(&write_value(&said, &batches)),
        format!("{head}{body}00")
    );
    said.delivery_complete_count = 300;
    let whole = hex(&write_value(&said, &batches));
    assert_eq!(whole, format!("{head}{body}0100040000012c"));
    let update = Head {
        state_epoch: None,
        times: None,
        start_offset: -1,
        delivery_complete_count: 0,
        ..said
    };
    let value = hex(&write_value(&update, &[batch(1, 2, 4, 2); 200]));
    assert!(value.starts_with("00000000000300000005ffffffffffffffffc901"));
    assert!(value.ends_with("01000400000000"));
}

/// Compares the state after a restart with the state in memory.
fn assert_same(read: &Content, memory: &Content) {
    let (mut read, mut memory) = (read.clone(), memory.clone());
    assert_eq!(read.batches(), memory.batches());
    assert_eq!(read.head(), memory.head());
    assert_eq!(read.fence_epoch(), memory.fence_epoch());
}

#[test]
fn what_waits_is_available_and_was_delivered_so_often() {
    let mut content = Content::default();
    assert_eq!(content.waiting(1), 0);
    content.begin(1, 10, 5, 500);
    let batches = [batch(8, 11, 0, 3), batch(12, 13, 2, 4), batch(14, 14, 0, 2)];
    let change = Change {
        start_offset: 10,
        delivery_complete_count: 2,
        leader_epoch: None,
        batches: &batches,
    };
    content.write(&change, 6, 500);
    assert_eq!(
        [1, 2, 3, 4].map(|often| content.waiting(often)),
        [3, 3, 2, 0]
    );
}

proptest! {
    #[test]
    fn memory_is_what_a_restart_finds(
        changes in prop::collection::vec(
            (0_i64..40, 0_i32..9, prop::option::weighted(0.1, 0_i32..5), 0_u8..3, 0_i64..9, 0_i64..4), 1..60
        ),
        updates_per_snapshot in 0_u32..9,
    ) {
        let (mut memory, mut read) = (Content::default(), Content::default());
        let begun = memory.begin(1, 0, 5, updates_per_snapshot);
        read.replay(Kind::Snapshot, &begun).expect("what was written");
        let mut highest = 0;
        for (now, (start, count, leader_epoch, kind, first, length)) in changes.into_iter().enumerate() {
            let before = memory.head().start_offset;
            highest = highest.max(leader_epoch.unwrap_or_default());
            let first = start.max(before) + first;
            let batches = [batch(first, first + length, [0, 2, 4][usize::from(kind)], 1)];
            let change = Change {
                start_offset: start,
                delivery_complete_count: count,
                leader_epoch: leader_epoch.map(|_| highest),
                batches: &batches,
            };
            let (kind, value) = memory.write(&change, now as i64, updates_per_snapshot);
            read.replay(kind, &value).expect("what was written");
            assert_same(&read, &memory);
            prop_assert!(memory.head().start_offset >= before, "it never falls");
            prop_assert!(memory.updates() <= updates_per_snapshot);
        }
        let whole = memory.snapshot(99, 7);
        read.replay(Kind::Snapshot, &whole).expect("what was written");
        assert_same(&read, &memory);
        prop_assert_eq!(memory.head().times, Some((7, 99)));
    }
}
