//! How late records are acquired after their back-off or delivery time.

use std::sync::Arc;

use sharecore_engine::{
    AckBatch, AcquireOptions, Backoff, Config, Engine, Entry, Key, OffsetRange, Order, Rules, Spec,
};

const RELEASE: u8 = 2;
const ACCEPT: u8 = 1;

fn engine(spec: Option<Spec>) -> Engine {
    let rules = Rules {
        backoff: Backoff {
            first_ms: 1000,
            max_ms: 1000,
            multiplier: 1.0,
            jitter: 0.0,
            on_release: true,
            on_timeout: true,
        },
        order: Order::None,
        run_max: 1,
        max_waiting: 1000,
        spec: spec.map(Arc::new),
        expired_letters: false,
    };
    Engine::new(Config::default(), 0, &[], Some(rules), 0).expect("an empty state")
}

/// The offsets that a fetch of one batch acquires.
fn take(engine: &mut Engine, now_ms: i64, wanted: i64, batch: OffsetRange) -> Vec<i64> {
    let options = AcquireOptions {
        fetch_offset: engine.next_ready_from(batch.first).unwrap_or(batch.first),
        max_fetch_records: wanted,
        batch_size: 500,
        record_limit: true,
    };
    let mut out = Vec::new();
    engine.acquire(now_ms, "m", &[batch], options, &mut out);
    engine.check().expect("sound");
    out.iter().flat_map(|each| each.first..=each.last).collect()
}

fn settle(engine: &mut Engine, now_ms: i64, first: i64, last: i64, kind: u8) {
    let types = [kind];
    let batch = AckBatch {
        first,
        last,
        types: &types,
    };
    let write = engine.acknowledge(now_ms, "m", &[batch]);
    let id = write.expect("allowed").expect("a write").id;
    engine.commit(id, now_ms).expect("open");
    engine.check().expect("sound");
}

#[test]
fn a_back_off_is_over_when_its_time_has_come_and_not_when_that_is_noticed() {
    let mut engine = engine(None);
    let batch = OffsetRange::new(0, 3);
    assert_eq!(take(&mut engine, 0, 4, batch), [0, 1, 2, 3]);
    assert_eq!(engine.lateness(), (0, 0), "nothing waited");
    settle(&mut engine, 0, 0, 3, RELEASE);
    engine.advance(999, 0);
    assert_eq!(take(&mut engine, 999, 4, batch), [0_i64; 0]);
    engine.advance(1007, 0);
    assert_eq!(take(&mut engine, 1010, 1, batch), [0]);
    assert_eq!(engine.lateness(), (1, 10));
    assert_eq!(take(&mut engine, 1015, 4, batch), [1, 2, 3]);
    assert_eq!(engine.lateness(), (4, 55));
    settle(&mut engine, 1015, 0, 3, ACCEPT);
    engine.set_rules(None);
    assert_eq!(engine.lateness(), (0, 0), "without rules nothing waits");
}

#[test]
fn a_delivery_time_counts_by_the_wall_clock_and_others_of_the_key_do_not() {
    let spec = Spec {
        id: 1,
        key: Some(Key::Own),
        ..Spec::default()
    };
    let mut engine = engine(Some(spec.clone()));
    let wall_ms = 1_700_000_000_000;
    let entry = |offset, digest, not_before_ms| Entry {
        offset,
        not_before_ms,
        expires_ms: Entry::NEVER,
        digest,
    };
    let entries = [
        entry(0, 7, wall_ms + 50),
        entry(1, 7, wall_ms + 20),
        entry(2, 0, Entry::AT_ONCE),
        entry(3, 0, wall_ms - 900),
    ];
    let batch = OffsetRange::new(0, 3);
    assert!(engine.admit((100, wall_ms), &spec, 0, &[batch], &entries, 500));
    assert_eq!(take(&mut engine, 100, 4, batch), [2, 3]);
    assert_eq!(engine.lateness(), (0, 0), "neither was waited for");
    engine.advance(130, wall_ms + 30);
    assert_eq!(
        take(&mut engine, 130, 4, batch),
        [0_i64; 0],
        "1 waits for 0"
    );
    engine.advance(153, wall_ms + 53);
    assert_eq!(take(&mut engine, 155, 4, batch), [0]);
    assert_eq!(engine.lateness(), (1, 5));
    settle(&mut engine, 400, 0, 0, ACCEPT);
    assert_eq!(take(&mut engine, 400, 4, batch), [1]);
    assert_eq!(
        engine.lateness(),
        (1, 5),
        "1 waited for its key, not for its time"
    );
}

#[test]
fn records_that_come_up_in_front_keep_nobody_behind_them_waiting() {
    let spec = Spec {
        id: 1,
        deliver_at_header: b"at".to_vec(),
        ..Spec::default()
    };
    let mut engine = engine(Some(spec.clone()));
    let all = OffsetRange::new(0, 99);
    // each is due one millisecond after the one behind it
    let entries: Vec<_> = (0..100)
        .map(|offset| Entry {
            offset,
            not_before_ms: 1000 + 99 - offset,
            expires_ms: Entry::NEVER,
            digest: 0,
        })
        .collect();
    assert!(engine.admit((0, 0), &spec, 0, &[all], &entries, 500));
    let mut came = Vec::new();
    for wall_ms in 1004..1010 {
        engine.advance(wall_ms, wall_ms);
        let next = engine.next_ready().expect("one is due");
        came.extend(take(&mut engine, wall_ms, 1, OffsetRange::new(next, 99)));
    }
    assert_eq!(came, [95, 96, 97, 98, 99, 90]);
}

/// Rules with delivery times that begin while members hold records 0 to 3; the window has been looked at since.
fn times_begin(backoff_ms: i64) -> Engine {
    let mut engine = engine(None);
    let batch = OffsetRange::new(0, 3);
    assert_eq!(take(&mut engine, 0, 4, batch), [0, 1, 2, 3]);
    let spec = Spec {
        id: 1,
        deliver_at_header: b"at".to_vec(),
        ..Spec::default()
    };
    let mut rules = engine.rules().expect("it has rules");
    rules.backoff.first_ms = backoff_ms;
    rules.spec = Some(Arc::new(spec.clone()));
    engine.set_rules(Some(rules));
    let entries = [0, 1, 2, 3].map(|offset| Entry {
        offset,
        not_before_ms: if offset == 0 { Entry::AT_ONCE } else { 5000 },
        expires_ms: Entry::NEVER,
        digest: 0,
    });
    assert!(engine.admit((0, 3000), &spec, 0, &[batch], &entries, 500));
    engine.check().expect("sound");
    engine
}

/// What can be acquired once all has come up.
fn ready(engine: &mut Engine, now_ms: i64, wall_ms: i64) -> Vec<i64> {
    engine.come_up(now_ms, wall_ms);
    take(engine, now_ms, 4, OffsetRange::new(0, 3))
}

#[test]
fn records_that_members_hold_as_delivery_times_begin_do_not_come_again_before_theirs() {
    let mut engine = times_begin(0);
    settle(&mut engine, 100, 1, 1, ACCEPT);
    settle(&mut engine, 100, 0, 0, RELEASE);
    settle(&mut engine, 100, 2, 2, RELEASE);
    assert_eq!(ready(&mut engine, 100, 4999), [0]);
    assert_eq!(ready(&mut engine, 101, 5000), [2]);
    settle(&mut engine, 101, 3, 3, RELEASE);
    assert_eq!(
        ready(&mut engine, 101, 5000),
        [3],
        "its time came while it was held"
    );
}

#[test]
fn such_records_wait_for_their_back_off_too() {
    let mut engine = times_begin(1000);
    settle(&mut engine, 0, 0, 3, RELEASE);
    assert_eq!(ready(&mut engine, 999, 6000), [0_i64; 0]);
    assert_eq!(ready(&mut engine, 1000, 6000), [0, 1, 2, 3]);
    let mut engine = times_begin(1000);
    settle(&mut engine, 0, 0, 3, RELEASE);
    assert_eq!(ready(&mut engine, 2000, 4999), [0]);
    assert_eq!(ready(&mut engine, 2000, 5000), [1, 2, 3]);
}
