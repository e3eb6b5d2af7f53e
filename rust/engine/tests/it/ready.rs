//! How far a fetch with order by key searches for records.

use sharecore_engine::{AcquireOptions, Config, Engine, OffsetRange, RecordState, StateBatch};

#[test]
fn records_are_looked_for_as_far_as_there_is_room_to_acquire_them() {
    let batch = |first, last, state| StateBatch {
        first,
        last,
        state,
        delivery_count: 1,
    };
    let config = Config {
        max_inflight: 12,
        ..Config::default()
    };
    let new = |state: &[StateBatch]| {
        let engine = Engine::new(config, 0, state, None, 0);
        engine.expect("a valid state")
    };
    let scattered: Vec<_> = (0..40)
        .map(|at| match at % 2 {
            0 => batch(at, at, RecordState::Available),
            _ => batch(at, at, RecordState::Acknowledged),
        })
        .collect();
    let mut engine = new(&scattered);
    assert_eq!(engine.last_ready(0, 5), 4);
    assert_eq!(engine.last_ready(0, i64::from(i32::MAX)), 22);
    let options = AcquireOptions {
        fetch_offset: 0,
        max_fetch_records: 3,
        batch_size: 1,
        record_limit: true,
    };
    engine.acquire(0, "m", &[OffsetRange::new(0, 39)], options, &mut Vec::new());
    assert_eq!(engine.leased(), 3);
    assert_eq!(engine.last_ready(6, i64::from(i32::MAX)), 22);
    let engine = new(&[batch(0, 39, RecordState::Available)]);
    assert_eq!(engine.last_ready(0, i64::from(i32::MAX)), 11);
    assert_eq!(engine.last_ready(5, 7), 7);
    assert_eq!(engine.last_ready(30, i64::from(i32::MAX)), 39);
}
