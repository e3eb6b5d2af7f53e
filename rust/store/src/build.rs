//! Batches of our own: records of internal topics and transaction markers.

use crate::{
    batch::{HEADER, Header, MARKER_ATTRIBUTES, TRANSACTIONAL, seal},
    varint::{put_varint, varint_len},
};

/// A record to be written: key and value, each of which may be null.
pub type LocalRecord<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

fn put_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

fn field_len(field: Option<&[u8]>) -> usize {
    field.map_or(1, |bytes| varint_len(bytes.len() as i64) + bytes.len())
}

fn put_record(out: &mut Vec<u8>, offset_delta: i64, (key, value): LocalRecord<'_>) {
    // attributes, timestamp delta and header count take a byte each
    let body = 3 + varint_len(offset_delta) + field_len(key) + field_len(value);
    put_varint(out, body as i64);
    out.push(0);
    put_varint(out, 0);
    put_varint(out, offset_delta);
    put_field(out, key);
    put_field(out, value);
    put_varint(out, 0);
}

fn finish(
    mut out: Vec<u8>,
    attributes: i16,
    producer: (i64, i16),
    count: usize,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let header = Header {
        base_offset: 0,
        size: out.len(),
        leader_epoch: 0,
        attributes,
        last_offset_delta: count as i32 - 1,
        base_timestamp: now_ms,
        max_timestamp: now_ms,
        producer_id: producer.0,
        producer_epoch: producer.1,
        base_sequence: -1,
        count: count as i32,
    };
    header.write(&mut out);
    seal(&mut out);
    (out, header)
}

/// One uncompressed batch of the given records, all with the same timestamp; part of a transaction when it has a producer.
pub(crate) fn local_batch(
    records: &[LocalRecord<'_>],
    producer: Option<(i64, i16)>,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let size: usize = records
        .iter()
        .map(|(k, v)| k.map_or(0, <[u8]>::len) + v.map_or(0, <[u8]>::len) + 24)
        .sum();
    let mut out = Vec::with_capacity(HEADER + size);
    out.resize(HEADER, 0);
    for (delta, record) in records.iter().enumerate() {
        put_record(&mut out, delta as i64, *record);
    }
    let attributes = if producer.is_some() { TRANSACTIONAL } else { 0 };
    finish(
        out,
        attributes,
        producer.unwrap_or((-1, -1)),
        records.len(),
        now_ms,
    )
}

/// The control batch that ends a transaction.
pub(crate) fn marker_batch(
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    commit: bool,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let key = [0, 0, 0, u8::from(commit)];
    let mut value = [0; 6];
    value[2..].copy_from_slice(&coordinator_epoch.to_be_bytes());
    let mut out = vec![0; HEADER];
    put_record(&mut out, 0, (Some(&key), Some(&value)));
    finish(
        out,
        MARKER_ATTRIBUTES,
        (producer_id, producer_epoch),
        1,
        now_ms,
    )
}
