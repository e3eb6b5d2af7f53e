//! One log: which batches it accepts and refuses, and what it returns.

mod common;

use common::{ALL, Client, PLAIN, TRANSACTIONAL, batches, create_log, open, put, seal, tiny};
use sharecore_store::{LogConfig, Options, Refusal, Store, TimestampType, Want};

fn with_log(run: impl FnOnce(&Store, u64)) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &Options::default());
    let log = create_log(&store);
    run(&store, log);
}

#[test]
fn offsets_are_assigned_one_after_the_other() {
    with_log(|store, log| {
        let first = put(
            store,
            log,
            Client {
                records: 3,
                ..PLAIN
            },
        )
        .expect("appended");
        let second = put(store, log, PLAIN).expect("appended");
        assert_eq!((first.base_offset, first.last_offset), (0, 2));
        assert_eq!((second.base_offset, second.last_offset), (3, 3));
        assert_eq!(batches(store, log, 1), [(0, 2), (3, 3)]);
        assert_eq!(batches(store, log, 4), []);
        let offsets = store.offsets(log).expect("a log");
        assert_eq!(
            (offsets.high_watermark, offsets.last_stable, offsets.end),
            (4, 4, 4)
        );
    });
}

#[test]
fn what_is_read_is_what_was_written_but_for_offset_and_epoch() {
    with_log(|store, log| {
        put(store, log, PLAIN).expect("appended");
        let sent = Client {
            records: 2,
            value_bytes: 70,
            ..PLAIN
        }
        .bytes();
        store.wait(store.append(log, &sent, 0).expect("appended").sequence);
        let slice = store.read(log, 1, ALL).expect("readable");
        let mut bytes = vec![0; slice.size];
        slice.copy_to(&mut bytes).expect("readable");
        assert_eq!(bytes[0..8], 1_i64.to_be_bytes());
        assert_eq!(bytes[12..16], [0; 4]);
        assert_eq!((&bytes[8..12], &bytes[16..]), (&sent[8..12], &sent[16..]));
    });
}

#[test]
fn a_reader_gets_whole_batches_within_its_limits() {
    with_log(|store, log| {
        for _ in 0..5 {
            put(
                store,
                log,
                Client {
                    records: 2,
                    ..PLAIN
                },
            )
            .expect("appended");
        }
        let read = |offset, want| store.read(log, offset, want).expect("readable").batches;
        let size = PLAIN.bytes().len() + 20;
        assert_eq!(
            read(
                0,
                Want {
                    max_bytes: 2 * size,
                    ..ALL
                }
            )
            .len(),
            2
        );
        assert_eq!(
            read(
                3,
                Want {
                    max_bytes: 0,
                    ..ALL
                }
            ),
            [(2, 3)]
        );
        assert_eq!(
            read(
                3,
                Want {
                    max_bytes: 0,
                    at_least_one: false,
                    ..ALL
                }
            ),
            []
        );
        assert_eq!(
            read(
                0,
                Want {
                    limit: Some(5),
                    ..ALL
                }
            ),
            [(0, 1), (2, 3)]
        );
        assert_eq!(
            read(
                1,
                Want {
                    max_records: 2,
                    ..ALL
                }
            ),
            [(0, 1), (2, 3)]
        );
        assert_eq!(
            read(
                1,
                Want {
                    max_records: 1,
                    ..ALL
                }
            ),
            [(0, 1)]
        );
        assert!(matches!(
            store.read(log, 11, ALL),
            Err(Refusal::OffsetOutOfRange(_))
        ));
        assert!(matches!(
            store.read(log, -1, ALL),
            Err(Refusal::OffsetOutOfRange(_))
        ));
    });
}

#[test]
fn what_is_no_intact_single_batch_is_refused() {
    with_log(|store, log| {
        let refused = |bytes: &[u8]| store.append(log, bytes, 1000).expect_err("refused").code();
        let good = Client {
            records: 2,
            ..PLAIN
        }
        .bytes();
        let with = |at: usize, byte: u8, resealed: bool| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            if resealed {
                seal(&mut bytes);
            }
            bytes
        };
        assert_eq!(refused(b""), 87);
        assert_eq!(refused(&[0; 12]), 2, "no length");
        assert_eq!(refused(&good[..60]), 87);
        assert_eq!(refused(&good[..good.len() - 1]), 87);
        assert_eq!(refused(&with(11, 40, false)), 2, "shorter than a header");
        assert_eq!(refused(&with(70, 7, false)), 2, "checksum");
        assert_eq!(refused(&with(16, 1, true)), 2, "an older format");
        assert_eq!(refused(&with(16, 3, true)), 2, "no format");
        assert_eq!(refused(&with(61, 2, true)), 87, "a record's length");
        assert_eq!(refused(&[&good[..], &[0; 12]].concat()), 2, "behind it");
        assert_eq!(refused(&with(7, 1, true)), 87, "base offset");
        assert_eq!(refused(&with(60, 3, true)), 87, "record count");
        assert_eq!(refused(&with(22, 0x20, true)), 87, "control");
        assert_eq!(refused(&with(22, 5, true)), 87, "compression");
        assert_eq!(
            refused(&[good.clone(), good.clone()].concat()),
            87,
            "two batches"
        );
        assert_eq!(store.offsets(log).expect("a log").end, 0);
        let limit = LogConfig {
            max_batch_bytes: good.len() - 1,
            ..LogConfig::default()
        };
        store.configure(log, limit).expect("a log");
        assert_eq!(refused(&good), 10);
        assert_eq!(store.append(99, &good, 0).expect_err("refused").code(), 3);
    });
}

#[test]
fn timestamps_far_from_now_are_refused_and_the_brokers_time_replaces_them_when_wanted() {
    with_log(|store, log| {
        let config = LogConfig {
            before_max_ms: 500,
            after_max_ms: 100,
            ..LogConfig::default()
        };
        store.configure(log, config).expect("a log");
        let at =
            |timestamp| put(store, log, Client { timestamp, ..PLAIN }).map(|a| a.append_time_ms);
        assert_eq!(at(1100), Ok(-1));
        assert_eq!(at(500), Ok(-1));
        assert_eq!(at(1101).expect_err("refused").code(), 32);
        assert_eq!(at(499).expect_err("refused").code(), 32);
        let config = LogConfig {
            timestamp_type: TimestampType::LogAppendTime,
            ..config
        };
        store.configure(log, config).expect("a log");
        assert_eq!(at(5), Ok(1000));
        assert_eq!(store.offset_for(log, 600), Ok(Some((0, 1100))));
        let slice = store.read(log, 2, ALL).expect("readable");
        let mut bytes = vec![0; slice.size];
        slice.copy_to(&mut bytes).expect("readable");
        assert_eq!(bytes[22] & 8, 8);
        assert_eq!(bytes[17..21], crc32c::crc32c(&bytes[21..]).to_be_bytes());
    });
}

/// Kafka's broker answers the same batches of an idempotent producer like this, in order.
#[test]
fn sequences_of_idempotent_producers() {
    #[derive(Debug, PartialEq)]
    enum Answer {
        At(i64),
        Error(i16),
    }
    use Answer::{At, Error};
    let batch = |epoch, sequence, records| Client {
        records,
        producer: (7, epoch, sequence),
        ..PLAIN
    };
    let table = [
        (
            batch(0, 5, 2),
            At(0),
            "an unknown producer may begin anywhere",
        ),
        (batch(0, 5, 2), At(0), "sent twice"),
        (batch(0, 8, 1), Error(45), "a gap"),
        (batch(0, 6, 1), Error(45), "half of what was sent before"),
        (batch(0, 7, 1), At(2), "the next"),
        (batch(0, 8, 1), At(3), "the next"),
        (batch(0, 9, 1), At(4), "the next"),
        (batch(0, 10, 1), At(5), "the next"),
        (batch(0, 5, 2), At(0), "the fifth last is still known"),
        (batch(0, 11, 1), At(6), "the next"),
        (batch(0, 5, 2), Error(45), "the sixth last is not"),
        (batch(2, 3, 1), Error(45), "a new epoch begins with 0"),
        (batch(2, 0, 3), At(7), "a new epoch"),
        (batch(1, 0, 1), Error(47), "an old epoch"),
        (batch(2, 3, 1), At(10), "the next"),
    ];
    with_log(|store, log| {
        for (client, answer, why) in table {
            let found = match put(store, log, client) {
                Ok(appended) => At(appended.base_offset),
                Err(refusal) => Error(refusal.code()),
            };
            assert_eq!(found, answer, "{why}");
        }
        let max = i32::MAX;
        let wrapping = |sequence, records| Client {
            records,
            producer: (8, 0, sequence),
            ..PLAIN
        };
        assert!(
            put(store, log, wrapping(max - 1, 3)).is_ok(),
            "sequences wrap within a batch"
        );
        assert!(put(store, log, wrapping(1, 1)).is_ok());
        assert!(put(store, log, wrapping(max - 1, 3)).is_ok_and(|a| a.base_offset == 11));
        let no_sequence = Client {
            producer: (9, 0, -1),
            ..PLAIN
        };
        assert_eq!(
            put(store, log, no_sequence).expect_err("refused").code(),
            87
        );
    });
}

#[test]
fn transactions_hold_back_and_mark_what_was_aborted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut store = open(dir.path(), &tiny());
    let log = create_log(&store);
    let batch = |id, sequence| Client {
        attributes: TRANSACTIONAL,
        producer: (id, 0, sequence),
        ..PLAIN
    };
    put(&store, log, PLAIN).expect("appended");
    put(&store, log, batch(1, 0)).expect("appended");
    put(&store, log, batch(2, 0)).expect("appended");
    put(&store, log, PLAIN).expect("appended");
    for _ in 0..2 {
        assert_eq!(store.offsets(log).expect("a log").last_stable, 1);
        store.close();
        store = open(dir.path(), &tiny());
    }
    let mark = |store: &Store, id, epoch, coordinator, commit| {
        let marker = store.append_marker(log, (id, epoch), coordinator, commit, 1000)?;
        store.wait(marker.sequence);
        Ok::<_, Refusal>(marker.base_offset)
    };
    assert_eq!(mark(&store, 2, 0, 5, false), Ok(4));
    assert_eq!(store.offsets(log).expect("a log").last_stable, 1);
    assert_eq!(mark(&store, 1, 0, 5, true), Ok(5));
    assert_eq!(store.offsets(log).expect("a log").last_stable, 6);
    assert_eq!(mark(&store, 1, 0, 4, true).expect_err("refused").code(), 52);
    assert_eq!(
        mark(&store, 1, -1, 6, true).expect_err("refused").code(),
        47
    );
    let own = store
        .append_local(log, &[(Some(b"k"), None)], Some((3, 0)), 1000, false)
        .expect("appended");
    store.wait(own.sequence);
    for _ in 0..2 {
        let aborted = store.aborted(log, 0, 10).expect("a log");
        assert_eq!(
            aborted
                .iter()
                .map(|a| (a.producer_id, a.first_offset))
                .collect::<Vec<_>>(),
            [(2, 2)]
        );
        assert_eq!(store.aborted(log, 5, 10), Ok(vec![]));
        assert_eq!(
            store.offsets(log).expect("a log").last_stable,
            6,
            "our own transaction is open"
        );
        store.close();
        store = open(dir.path(), &tiny());
    }
}

#[test]
fn offsets_are_found_by_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    let batch = |timestamp| Client {
        timestamp,
        value_bytes: 700,
        records: 2,
        ..PLAIN
    };
    for timestamp in [10, 30, 20, 40, 40, 35] {
        put(&store, log, batch(timestamp)).expect("appended");
    }
    assert_eq!(store.offset_for(log, 0), Ok(Some((0, 10))));
    assert_eq!(store.offset_for(log, 11), Ok(Some((2, 30))));
    assert_eq!(store.offset_for(log, 40), Ok(Some((6, 40))));
    assert_eq!(store.offset_for(log, 41), Ok(None));
    assert_eq!(store.max_timestamp(log), Ok(Some(40)));
    store.wait(store.delete_records(log, 9).expect("deleted"));
    assert_eq!(store.offset_for(log, 0), Ok(Some((9, 40))));
    store.wait(store.delete_records(log, 10).expect("deleted"));
    assert_eq!(store.offset_for(log, 36), Ok(None));
    assert_eq!(store.max_timestamp(log), Ok(Some(35)));
}

#[test]
fn retention_keeps_what_is_young_and_within_the_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    for timestamp in 0..20 {
        put(
            &store,
            log,
            Client {
                timestamp,
                value_bytes: 900,
                ..PLAIN
            },
        )
        .expect("appended");
    }
    let start = |sequence: Option<u64>| {
        sequence.inspect(|sequence| store.wait(*sequence));
        store.offsets(log).expect("a log").start
    };
    let size = Client {
        value_bytes: 900,
        ..PLAIN
    }
    .bytes()
    .len() as u64;
    assert_eq!(store.retain(log, Some(0), None), Ok(None));
    assert_eq!(start(store.retain(log, Some(7), None).expect("a log")), 7);
    assert_eq!(store.retain(log, None, Some(13 * size)), Ok(None));
    assert_eq!(
        start(store.retain(log, None, Some(5 * size)).expect("a log")),
        15
    );
    assert_eq!(
        start(store.retain(log, Some(i64::MAX), None).expect("a log")),
        20
    );
    assert_eq!(store.log_bytes(log), Ok(0));
}

#[test]
fn a_store_that_is_behind_refuses_and_recovers() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(
        dir.path(),
        &Options {
            staging_bytes: 1,
            ..Options::default()
        },
    );
    let log = store.new_log_id();
    store.wait(
        store
            .change(vec![sharecore_store::Change::CreateLog(log)])
            .expect("room"),
    );
    let mut refused = 0;
    for _ in 0..1000 {
        match store.append(log, &PLAIN.bytes(), 0) {
            Ok(_) => {}
            Err(Refusal::Busy) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0);
    let end = store.offsets(log).expect("a log").end;
    assert_eq!(end, 1000 - refused);
}
