//! How long a log remembers its producers, and how many.

mod common;

use common::{Client, PLAIN, TRANSACTIONAL, create_log, open, put, tiny};
use sharecore_store::Options;

#[test]
fn producers_are_remembered_over_a_restart_until_they_expire() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    let batch = |sequence| Client {
        value_bytes: 900,
        producer: (7, 0, sequence),
        ..PLAIN
    };
    for sequence in 0..20 {
        put(&store, log, batch(sequence)).expect("appended");
    }
    drop(store);
    let store = open(dir.path(), &tiny());
    assert_eq!(put(&store, log, batch(18)).expect("known").base_offset, 18);
    assert_eq!(put(&store, log, batch(22)).expect_err("a gap").code(), 45);
    store.expire_producers(999);
    assert_eq!(
        put(&store, log, batch(22)).expect_err("still known").code(),
        45
    );
    store.expire_producers(1000);
    assert_eq!(
        put(&store, log, batch(22)).expect("forgotten").base_offset,
        20
    );
}

#[test]
fn producers_are_bounded_where_they_come_in_and_who_fills_one_log_takes_nothing_from_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let few = Options {
        producer_bytes: 100 * 350,
        ..tiny()
    };
    let store = open(dir.path(), &few);
    let (log, crowded) = (create_log(&store), create_log(&store));
    let batch = |id, sequence| Client {
        producer: (id, 0, sequence),
        ..PLAIN
    };
    let open_transaction = Client {
        attributes: TRANSACTIONAL,
        ..batch(1, 0)
    };
    put(&store, crowded, open_transaction).expect("appended");
    put(&store, log, batch(2, 0)).expect("appended");
    for id in 1000..2000 {
        put(&store, crowded, batch(id, 0)).expect("appended");
        let known = |log| store.active_producers(log).expect("there").len();
        assert!(known(log) + known(crowded) <= 100, "{id}");
    }
    drop(store);
    for bound in [100, 20] {
        let options = Options {
            producer_bytes: bound * 350,
            ..tiny()
        };
        let store = open(dir.path(), &options);
        let known = |log| store.active_producers(log).expect("there");
        assert!(known(log).len() + known(crowded).len() <= bound);
        assert_eq!(known(log).len(), 1);
        assert_eq!(known(crowded)[0].producer_id, 1);
        assert!(known(crowded).len() > bound / 2);
        let (again, gap) = (batch(1999, 0), batch(2, 2));
        assert_eq!(
            put(&store, crowded, again).expect("known").base_offset,
            1000
        );
        assert_eq!(put(&store, log, gap).expect_err("a gap").code(), 45);
    }
}
