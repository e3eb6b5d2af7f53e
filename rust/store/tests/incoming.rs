//! Records of clients' batches are checked before they are appended.

mod common;

use common::{create_log, open, seal, tiny};
use sharecore_records::{Batches, Codec, Compression, compress};
use sharecore_store::{LogConfig, RecordFault, Refusal, Store, Want};

const NOW: i64 = 1_000_000_000;
const HEADER: usize = 61;

/// A record without a key.
fn record(delta: i32, time: i64, value: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    sharecore_records::put_varint(&mut body, time);
    sharecore_records::put_varint(&mut body, i64::from(delta));
    body.push(1);
    sharecore_records::put_varint(&mut body, value.len() as i64);
    body.extend_from_slice(value);
    body.push(0);
    let mut whole = Vec::new();
    sharecore_records::put_varint(&mut whole, body.len() as i64);
    whole.extend_from_slice(&body);
    whole
}

fn batch(payload: &[u8], count: i32, attributes: i16) -> Vec<u8> {
    let header = sharecore_records::Header {
        base_offset: 0,
        size: HEADER + payload.len(),
        leader_epoch: -1,
        attributes,
        last_offset_delta: count.wrapping_sub(1),
        base_timestamp: NOW,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count,
    };
    let mut bytes = vec![0; HEADER];
    header.write(&mut bytes);
    bytes.extend_from_slice(payload);
    seal(&mut bytes);
    bytes
}

fn compressed(compression: Compression, records: &[u8], count: i32) -> Vec<u8> {
    let payload = compress(compression, records).expect("memory");
    batch(&payload, count, compression as i16)
}

const COMPRESSIONS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn with_store(test: impl FnOnce(&Store, u64)) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path(), &tiny());
    let log = create_log(&store);
    test(&store, log);
    store.close();
}

#[test]
fn a_batch_whose_count_is_wrong_is_refused_however_it_is_compressed() {
    with_store(|store, log| {
        let records = [record(0, 0, b"a"), record(1, 0, b"b"), record(2, 0, b"c")].concat();
        for compression in COMPRESSIONS {
            for count in [1, 2, 4, 1_000_000, i32::MAX] {
                let refused = store.append(log, &compressed(compression, &records, count), NOW);
                assert!(
                    matches!(refused, Err(Refusal::InvalidRecord(_))),
                    "{compression:?} {count}: {refused:?}"
                );
            }
            let taken = store.append(log, &compressed(compression, &records, 3), NOW);
            assert!(taken.is_ok(), "{compression:?}: {taken:?}");
        }
    });
}

#[test]
fn the_time_of_a_compressed_batch_is_that_of_its_newest_record() {
    with_store(|store, log| {
        let records = [record(0, 5, b"a"), record(1, 700, b"b"), record(2, 3, b"c")].concat();
        for compression in COMPRESSIONS {
            let appended = store.append(log, &compressed(compression, &records, 3), NOW);
            store.wait(appended.expect("appended").sequence);
            assert_eq!(
                store.max_timestamp(log),
                Ok(Some(NOW + 700)),
                "{compression:?}"
            );
        }
    });
}

#[test]
fn records_of_the_wrong_time_and_without_a_key_are_named() {
    with_store(|store, log| {
        let config = LogConfig {
            needs_keys: true,
            before_max_ms: 1000,
            ..LogConfig::default()
        };
        store.configure(log, config).expect("a log");
        let records = [record(0, 0, b"a"), record(1, -5000, b"b")].concat();
        for compression in COMPRESSIONS {
            let refused = store.append(log, &compressed(compression, &records, 2), NOW);
            let Err(Refusal::Records(refused)) = refused else {
                panic!("{compression:?}: {refused:?}");
            };
            let no_key = RecordFault::NoKey;
            assert_eq!(refused.first, [(0, no_key), (1, no_key)], "{compression:?}");
        }
        let config = LogConfig {
            needs_keys: false,
            ..config
        };
        store.configure(log, config).expect("a log");
        let refused = store.append(log, &compressed(Compression::Zstd, &records, 2), NOW);
        let Err(refusal @ Refusal::Records(_)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refusal.code(), 32);
    });
}

#[test]
fn a_batch_that_expands_without_end_is_refused_and_takes_no_memory() {
    with_store(|store, log| {
        let config = LogConfig {
            max_batch_bytes: 8 << 20,
            ..LogConfig::default()
        };
        store.configure(log, config).expect("a log");
        let value = vec![0; 1 << 20];
        let frames = (0..300).flat_map(|delta| {
            let records = record(delta, 0, &value);
            compress(Compression::Zstd, &records)
                .expect("memory")
                .into_owned()
        });
        let payload: Vec<u8> = frames.collect();
        let refused = store.append(log, &batch(&payload, 300, Compression::Zstd as i16), NOW);
        assert!(
            matches!(refused, Err(Refusal::ExpandsTooFar { .. })),
            "{refused:?}"
        );
        assert_eq!(refused.map_err(|refusal| refusal.code()), Err(10));
    });
}

#[test]
fn work_is_cut_into_turns_and_gives_what_is_found_at_once() {
    with_store(|store, log| {
        let records: Vec<u8> = (0..40_000).flat_map(|n| record(n, 0, b"value")).collect();
        for compression in COMPRESSIONS {
            let bytes = compressed(compression, &records, 40_000);
            let mut incoming = store.receive(log, &bytes, NOW).expect("a header");
            let mut turns = 0;
            while !incoming.check(&mut 100_000).expect("right records") {
                turns += 1;
                assert!(turns < 1000, "{compression:?}");
            }
            assert!(turns >= 5, "{compression:?}: {turns}");
            let appended = store.append_checked(log, incoming).expect("appended");
            assert_eq!(appended.last_offset - appended.base_offset, 39_999);
        }
    });
}

/// The batches of a log as stored.
fn kept(store: &Store, log: u64) -> Vec<u8> {
    let want = Want {
        max_bytes: usize::MAX,
        max_records: i64::MAX,
        limit: None,
        at_least_one: true,
    };
    let slice = store.read(log, 0, want).expect("an offset of the log");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("a readable disk");
    bytes
}

#[test]
fn batches_are_kept_as_the_log_compresses_them() {
    let records: Vec<u8> = (0..3000)
        .flat_map(|n| record(n, i64::from(n), b"a value"))
        .collect();
    let few = [record(0, 1, b"a"), record(1, 2, b"b")].concat();
    for wanted in COMPRESSIONS {
        for level in [None, Some(1), Some(9)] {
            with_store(|store, log| {
                let config = LogConfig {
                    codec: Some(Codec {
                        compression: wanted,
                        level,
                    }),
                    ..LogConfig::default()
                };
                store.configure(log, config).expect("a log");
                for compression in COMPRESSIONS {
                    let sent = [(&records, 3000), (&few, 2)]
                        .map(|(records, count)| compressed(compression, records, count));
                    for bytes in &sent {
                        let appended = store.append(log, bytes, NOW).expect("appended");
                        store.wait(appended.sequence);
                    }
                    let kept = kept(store, log);
                    let batches: Vec<_> = Batches::new(&kept).collect();
                    for (batch, (records, count)) in
                        batches.iter().rev().zip([(&few, 2), (&records, 3000)])
                    {
                        assert_eq!(batch.check(), Ok(()));
                        assert_eq!(batch.header.compression(), Ok(wanted));
                        assert_eq!(
                            (batch.header.count, batch.header.base_timestamp),
                            (count, NOW)
                        );
                        assert_eq!(
                            batch.header.max_timestamp,
                            NOW + if count == 2 { 2 } else { 2999 }
                        );
                        assert_eq!(batch.expand(1 << 20).expect("whole"), *records);
                    }
                }
            });
        }
    }
}

#[test]
fn a_batch_that_is_too_large_for_the_log_once_it_is_not_compressed_is_refused() {
    with_store(|store, log| {
        let config = LogConfig {
            codec: Some(Compression::None.into()),
            max_batch_bytes: 100_000,
            ..LogConfig::default()
        };
        store.configure(log, config).expect("a log");
        let bomb = compressed(Compression::Zstd, &record(0, 0, &vec![0; 64 << 20]), 1);
        let mut incoming = store.receive(log, &bomb, NOW).expect("a header");
        let mut work = 32 << 20;
        let refused = incoming.check(&mut work);
        assert!(
            matches!(refused, Err(Refusal::TooLarge { .. })),
            "{refused:?}"
        );
        assert!(
            work > 31 << 20,
            "{work} left: nothing is expanded further than the log takes"
        );
    });
}
