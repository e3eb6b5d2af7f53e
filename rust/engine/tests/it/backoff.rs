//! Released records wait before they are redelivered.

use sharecore_engine::{
    AckBatch, AcquireOptions, Acquired, Backoff, Config, Engine, OffsetRange, Order, RecordState,
    Rules, StateBatch,
};

const ACCEPT: u8 = 1;
const RELEASE: u8 = 2;

const RULES: Rules = Rules {
    backoff: Backoff {
        first_ms: 1000,
        max_ms: 3000,
        multiplier: 2.0,
        jitter: 0.0,
        on_release: true,
        on_timeout: true,
    },
    order: Order::None,
    run_max: 1,
    max_waiting: 16_000,
    spec: None,
    expired_letters: false,
};

fn engine_with(rules: Rules) -> Engine {
    let engine = Engine::new(Config::default(), 0, &[], Some(rules), 0);
    engine.expect("an empty state")
}

/// Offsets that a fetch acquires at `now_ms` from a log that ends at `end`.
fn take(
    engine: &mut Engine,
    now_ms: i64,
    member: &str,
    wanted: i64,
    end: i64,
) -> Vec<(i64, i64, u16)> {
    let mut out = Vec::new();
    if engine.can_acquire() && engine.next_fetch_offset() < end {
        let from = engine.next_fetch_offset();
        let options = AcquireOptions {
            fetch_offset: from,
            max_fetch_records: wanted,
            batch_size: 500,
            record_limit: true,
        };
        let batches: Vec<_> = (from..end)
            .map(|each| OffsetRange::new(each, each))
            .collect();
        engine.acquire(now_ms, member, &batches, options, &mut out);
    }
    engine.check().expect("sound");
    let spans = out.iter();
    spans
        .map(
            |Acquired {
                 first,
                 last,
                 delivery_count,
             }| (*first, *last, *delivery_count),
        )
        .collect()
}

/// Acknowledges and commits.
fn settle(engine: &mut Engine, now_ms: i64, member: &str, first: i64, last: i64, kind: u8) {
    let types = [kind];
    let batch = AckBatch {
        first,
        last,
        types: &types,
    };
    let write = engine.acknowledge(now_ms, member, &[batch]);
    let id = write.expect("allowed").expect("a write").id;
    engine.commit(id, now_ms).expect("open");
    engine.check().expect("sound");
}

#[test]
fn a_released_record_waits_longer_each_time_and_comes_at_its_time() {
    let mut engine = engine_with(RULES);
    let mut now_ms = 0;
    for (count, wait_ms) in [(1, 1000), (2, 2000), (3, 3000), (4, 3000)] {
        assert_eq!(take(&mut engine, now_ms, "m", 10, 1), [(0, 0, count)]);
        settle(&mut engine, now_ms, "m", 0, 0, RELEASE);
        assert_eq!(engine.next_time_ms(), Some(now_ms + wait_ms));
        engine.advance(now_ms + wait_ms - 1, 0);
        assert_eq!(take(&mut engine, now_ms + wait_ms - 1, "m", 10, 1), []);
        now_ms += wait_ms;
        assert!(engine.advance(now_ms, 0).is_none());
    }
    // At its limit it does not wait but is archived
    assert_eq!(take(&mut engine, now_ms, "m", 10, 1), [(0, 0, 5)]);
    settle(&mut engine, now_ms, "m", 0, 0, RELEASE);
    assert_eq!((engine.start_offset(), engine.next_time_ms()), (1, None));
}

#[test]
fn others_pass_what_waits_and_the_wait_begins_when_the_release_is_durable() {
    let mut engine = engine_with(RULES);
    assert_eq!(take(&mut engine, 0, "m", 3, 10), [(0, 2, 1)]);
    let batch = AckBatch {
        first: 0,
        last: 1,
        types: &[RELEASE],
    };
    let id = engine.acknowledge(0, "m", &[batch]).unwrap().unwrap().id;
    engine.commit(id, 400).unwrap();
    assert_eq!(engine.waiting(), (2, false));
    assert_eq!(take(&mut engine, 400, "n", 3, 10), [(3, 5, 1)]);
    engine.advance(1399, 0);
    assert_eq!(engine.waiting(), (2, false));
    engine.advance(1400, 0);
    assert_eq!(take(&mut engine, 1400, "n", 3, 10), [(0, 1, 2), (6, 6, 1)]);
}

#[test]
fn locks_that_run_out_make_records_wait_and_sessions_that_end_do_not() {
    let mut engine = engine_with(RULES);
    take(&mut engine, 0, "m", 2, 2);
    let id = engine.advance(30_000, 0).unwrap().id;
    assert_eq!(take(&mut engine, 30_000, "m", 2, 2), []);
    engine.commit(id, 30_500).unwrap();
    engine.advance(31_000, 0);
    assert_eq!(take(&mut engine, 31_000, "m", 2, 2), [(0, 1, 2)]);
    let id = engine.release("m").unwrap().id;
    engine.commit(id, 31_000).unwrap();
    assert_eq!(take(&mut engine, 31_000, "n", 2, 2), [(0, 1, 3)]);
}

#[test]
fn each_of_release_and_timeout_may_be_left_out() {
    let backoff = Backoff {
        on_release: false,
        ..RULES.backoff
    };
    let mut engine = engine_with(Rules { backoff, ..RULES });
    take(&mut engine, 0, "m", 1, 1);
    settle(&mut engine, 0, "m", 0, 0, RELEASE);
    assert_eq!(take(&mut engine, 0, "m", 1, 1), [(0, 0, 2)]);
    engine.advance(30_000, 0);
    assert_eq!(take(&mut engine, 30_000, "m", 1, 1), []);
    let backoff = Backoff {
        on_timeout: false,
        ..RULES.backoff
    };
    let mut engine = engine_with(Rules { backoff, ..RULES });
    take(&mut engine, 0, "m", 1, 1);
    engine.advance(30_000, 0);
    assert_eq!(take(&mut engine, 30_000, "m", 1, 1), [(0, 0, 2)]);
}

#[test]
fn a_write_that_fails_after_the_lock_ran_out_leaves_its_records_waiting() {
    let mut engine = engine_with(RULES);
    take(&mut engine, 0, "m", 1, 1);
    let batch = AckBatch {
        first: 0,
        last: 0,
        types: &[ACCEPT],
    };
    let id = engine.acknowledge(0, "m", &[batch]).unwrap().unwrap().id;
    assert!(engine.advance(30_000, 0).is_none());
    engine.rollback(id, 30_000).unwrap();
    assert_eq!(take(&mut engine, 30_000, "m", 1, 1), []);
    engine.advance(31_000, 0);
    assert_eq!(take(&mut engine, 31_000, "m", 1, 1), [(0, 0, 2)]);
}

#[test]
fn what_is_loaded_waits_once_more_and_what_was_never_delivered_does_not() {
    let batch = |first, last, state, delivery_count| StateBatch {
        first,
        last,
        state,
        delivery_count,
    };
    let state = [
        batch(0, 1, RecordState::Available, 2),
        batch(2, 2, RecordState::Acknowledged, 1),
        batch(4, 4, RecordState::Available, 1),
    ];
    let engine = Engine::new(Config::default(), 0, &state, Some(RULES), 50);
    let mut engine = engine.unwrap();
    assert_eq!(engine.waiting(), (3, false));
    assert_eq!(take(&mut engine, 50, "m", 9, 6), [(3, 3, 1), (5, 5, 1)]);
    engine.advance(1050, 0);
    assert_eq!(take(&mut engine, 1050, "m", 9, 6), [(4, 4, 2)]);
    engine.advance(2050, 0);
    assert_eq!(take(&mut engine, 2050, "m", 9, 6), [(0, 1, 3)]);
}

#[test]
fn the_limit_of_locks_counts_what_is_leased_and_the_window_what_waits() {
    let config = Config {
        max_inflight: 10,
        ..Config::default()
    };
    let rules = Rules {
        max_waiting: 25,
        ..RULES
    };
    let mut engine = Engine::new(config, 0, &[], Some(rules), 0).unwrap();
    for round in 0..3 {
        let first = round * 10;
        assert_eq!(
            take(&mut engine, 0, "m", 100, 1000),
            [(first, first + 9, 1)]
        );
        assert_eq!(
            take(&mut engine, 0, "m", 100, 1000),
            [],
            "all locks are taken"
        );
        settle(&mut engine, 0, "m", first, first + 9, RELEASE);
    }
    assert_eq!(engine.waiting(), (30, true));
    assert_eq!(
        take(&mut engine, 999, "m", 100, 1000),
        [],
        "the window is full"
    );
    engine.advance(1000, 0);
    assert_eq!(take(&mut engine, 1000, "m", 100, 1000), [(0, 9, 2)]);
    settle(&mut engine, 1000, "m", 0, 9, ACCEPT);
    assert_eq!(engine.start_offset(), 10);
    assert_eq!(take(&mut engine, 1000, "m", 4, 1000), [(10, 13, 2)]);
}

#[test]
fn records_that_the_log_loses_while_they_wait_are_gone() {
    let mut engine = engine_with(RULES);
    take(&mut engine, 0, "m", 3, 3);
    settle(&mut engine, 0, "m", 0, 2, RELEASE);
    engine.move_log_start(2);
    engine.check().unwrap();
    assert_eq!(engine.waiting().0, 1);
    engine.advance(1000, 0);
    assert_eq!(take(&mut engine, 1000, "m", 3, 3), [(2, 2, 2)]);
}

#[test]
fn rules_may_come_and_go_while_records_are_in_flight() {
    let mut engine = Engine::new(Config::default(), 0, &[], None, 0).unwrap();
    take(&mut engine, 0, "m", 2, 2);
    engine.set_rules(Some(RULES));
    settle(&mut engine, 0, "m", 0, 0, RELEASE);
    assert_eq!(engine.waiting(), (1, false));
    engine.set_rules(None);
    engine.check().unwrap();
    assert_eq!(take(&mut engine, 0, "n", 2, 2), [(0, 0, 2)]);
    settle(&mut engine, 0, "m", 1, 1, ACCEPT);
    settle(&mut engine, 0, "n", 0, 0, ACCEPT);
    assert_eq!(engine.start_offset(), 2);
}
