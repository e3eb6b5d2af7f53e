//! Batches of records with keys, and a reader that sees a log like a consumer.

use std::collections::HashSet;

use sharecore_records::{
    Batches, Header, compress,
    layout::{HEADER, seal},
    put_varint,
};
use sharecore_store::{LogId, Store};

use super::ALL;

/// Key and value of a record, each of which may be missing.
pub(crate) type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// A client's batch; `producer` is id, epoch and base sequence, `attributes` the compression and the transactional bit.
pub(crate) fn keyed_batch(
    pairs: &[Pair],
    timestamp: i64,
    attributes: i16,
    producer: (i64, i16, i32),
) -> Vec<u8> {
    let mut records = Vec::new();
    for (delta, (key, value)) in pairs.iter().enumerate() {
        let mut body = vec![0];
        put_varint(&mut body, delta as i64);
        put_varint(&mut body, delta as i64);
        for field in [key, value] {
            put_varint(&mut body, field.as_ref().map_or(-1, |f| f.len() as i64));
            body.extend(field.iter().flatten());
        }
        body.push(0);
        put_varint(&mut records, body.len() as i64);
        records.extend(body);
    }
    let mut header = Header {
        base_offset: 0,
        size: 0,
        leader_epoch: -1,
        attributes,
        last_offset_delta: pairs.len() as i32 - 1,
        base_timestamp: timestamp,
        max_timestamp: timestamp + pairs.len() as i64 - 1,
        producer_id: producer.0,
        producer_epoch: producer.1,
        base_sequence: producer.2,
        count: pairs.len() as i32,
    };
    let compression = header.compression().expect("a compression type");
    let records = compress(compression, &records).expect("compressed");
    header.size = HEADER + records.len();
    let mut out = vec![0; header.size];
    header.write(&mut out);
    out[HEADER..].copy_from_slice(&records);
    seal(&mut out);
    out
}

/// A record as a consumer gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) pair: Pair,
}

/// The records that a consumer of committed records gets from a log; panics if batches are damaged or out of order.
pub(crate) fn committed(store: &Store, log: LogId) -> Vec<Seen> {
    let offsets = store.offsets(log).expect("a log");
    let slice = store.read(log, offsets.start, ALL).expect("readable");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("readable");
    let mut aborted = store.aborted(log, 0, i64::MAX).expect("a log");
    aborted.sort_by_key(|a| a.first_offset);
    let mut aborted = aborted.into_iter().peekable();
    let mut aborting = HashSet::new();
    let mut seen = Vec::new();
    let mut last = -1;
    for batch in Batches::new(&bytes) {
        let header = batch.header;
        assert!(header.base_offset > last, "batches overlap at {last}");
        last = header.last_offset();
        while let Some(begun) = aborted.next_if(|a| a.first_offset <= last) {
            aborting.insert(begun.producer_id);
        }
        let expanded = batch.expand(1 << 20).expect("a whole batch");
        let records = batch
            .records(&expanded)
            .map(|record| record.expect("a record"));
        if header.is_control() {
            for record in records.filter(|record| record.key.is_some_and(|key| key[3] == 0)) {
                assert!(record.offset >= 0);
                aborting.remove(&header.producer_id);
            }
            continue;
        }
        if header.is_transactional() && aborting.contains(&header.producer_id)
            || header.base_offset >= offsets.last_stable
        {
            continue;
        }
        seen.extend(
            records
                .filter(|record| record.offset >= offsets.start)
                .map(|record| Seen {
                    offset: record.offset,
                    timestamp: record.timestamp,
                    pair: (
                        record.key.map(<[u8]>::to_vec),
                        record.value.map(<[u8]>::to_vec),
                    ),
                }),
        );
    }
    if offsets.high_watermark > offsets.start {
        assert_eq!(last + 1, offsets.high_watermark, "the last batch is there");
    }
    seen
}
