//! Builds batches: records of internal topics and transaction markers.

use crate::{
    batch::Header,
    layout::{CONTROL, HEADER, TRANSACTIONAL, seal},
    varint::{put_varint, varint_len},
};

/// A record to write: key and value, each of which may be null.
pub type LocalRecord<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Header names and values; values may be null.
pub type LocalHeaders<'a> = &'a [(&'a str, Option<&'a [u8]>)];

/// The producer fields of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Producer {
    /// The producer ID; -1 for none.
    pub id: i64,
    /// The producer epoch; -1 without a producer ID.
    pub epoch: i16,
    /// Sequence number of the first record; -1 without sequence numbers.
    pub sequence: i32,
    /// Whether the batch is transactional.
    pub transactional: bool,
}

impl Producer {
    /// No producer ID.
    pub const NONE: Self = Self {
        id: -1,
        epoch: -1,
        sequence: -1,
        transactional: false,
    };

    /// The broker itself, on behalf of a transactional producer.
    pub fn in_transaction((id, epoch): (i64, i16)) -> Self {
        Self {
            id,
            epoch,
            sequence: -1,
            transactional: true,
        }
    }
}

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

fn put_record(
    out: &mut Vec<u8>,
    offset_delta: i64,
    (key, value): LocalRecord<'_>,
    headers: LocalHeaders<'_>,
) {
    let named: usize = headers
        .iter()
        .map(|(name, held)| field_len(Some(name.as_bytes())) + field_len(*held))
        .sum();
    // attributes and timestamp delta take one byte each
    let counts = 2 + varint_len(offset_delta) + varint_len(headers.len() as i64);
    let body = counts + field_len(key) + field_len(value) + named;
    put_varint(out, body as i64);
    out.push(0);
    put_varint(out, 0);
    put_varint(out, offset_delta);
    put_field(out, key);
    put_field(out, value);
    put_varint(out, headers.len() as i64);
    for (name, held) in headers {
        put_field(out, Some(name.as_bytes()));
        put_field(out, *held);
    }
}

fn finish(
    mut out: Vec<u8>,
    control: bool,
    producer: Producer,
    count: usize,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let control = if control { CONTROL } else { 0 };
    let transactional = if producer.transactional {
        TRANSACTIONAL
    } else {
        0
    };
    let header = Header {
        base_offset: 0,
        size: out.len(),
        leader_epoch: 0,
        attributes: control | transactional,
        last_offset_delta: count as i32 - 1,
        base_timestamp: now_ms,
        max_timestamp: now_ms,
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: producer.sequence,
        count: count as i32,
    };
    header.write(&mut out);
    seal(&mut out);
    (out, header)
}

/// An uncompressed batch of one or more records, all with the same timestamp.
pub fn local_batch(
    records: &[LocalRecord<'_>],
    producer: Producer,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let size: usize = records
        .iter()
        .map(|(k, v)| k.map_or(0, <[u8]>::len) + v.map_or(0, <[u8]>::len) + 24)
        .sum();
    let mut out = Vec::with_capacity(HEADER + size);
    out.resize(HEADER, 0);
    for (delta, record) in records.iter().enumerate() {
        put_record(&mut out, delta as i64, *record, &[]);
    }
    finish(out, false, producer, records.len(), now_ms)
}

/// As [`local_batch`], of records with headers and without a producer ID.
pub fn headed_batch(records: &[(LocalRecord<'_>, LocalHeaders<'_>)], now_ms: i64) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    for (delta, (record, headers)) in records.iter().enumerate() {
        put_record(&mut out, delta as i64, *record, headers);
    }
    finish(out, false, Producer::NONE, records.len(), now_ms).0
}

/// The control batch that ends a transaction.
pub fn marker_batch(
    producer: (i64, i16),
    coordinator_epoch: i32,
    commit: bool,
    now_ms: i64,
) -> (Vec<u8>, Header) {
    let key = [0, 0, 0, u8::from(commit)];
    let mut value = [0; 6];
    value[2..].copy_from_slice(&coordinator_epoch.to_be_bytes());
    let mut out = vec![0; HEADER];
    put_record(&mut out, 0, (Some(&key), Some(&value)), &[]);
    finish(out, true, Producer::in_transaction(producer), 1, now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batches, layout};

    #[test]
    fn a_batch_names_its_producer_and_can_be_read() {
        let producer = Producer {
            id: 7,
            epoch: 3,
            sequence: 40,
            transactional: false,
        };
        let records: [LocalRecord<'_>; 2] = [(Some(b"k"), Some(b"one")), (None, None)];
        let (bytes, header) = local_batch(&records, producer, 1_000);
        let batch = Batches::new(&bytes).next().expect("one batch");
        assert_eq!(batch.check(), Ok(()));
        assert_eq!(header, batch.header);
        assert_eq!((header.producer_id, header.producer_epoch), (7, 3));
        assert_eq!((header.base_sequence, header.last_sequence()), (40, 41));
        assert_eq!((header.attributes, header.max_timestamp), (0, 1_000));
        let expanded = batch.expand(1 << 20).expect("it is not compressed");
        let values: Vec<_> = batch
            .records(&expanded)
            .map(|record| record.expect("whole").value)
            .collect();
        assert_eq!(values, [Some(b"one".as_slice()), None]);
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let headers: LocalHeaders<'_> = &[("a", Some(b"1")), ("a", None)];
        let long = [7; 300];
        let records = [
            ((Some(b"k".as_slice()), None), headers),
            ((None, Some(long.as_slice())), &[]),
        ];
        let bytes = headed_batch(&records, 5);
        let batch = Batches::new(&bytes).next().expect("one batch");
        assert_eq!(batch.check(), Ok(()));
        let expanded = batch.expand(1 << 20).expect("it is not compressed");
        let read: Vec<_> = batch
            .records(&expanded)
            .map(|record| record.expect("whole"))
            .collect();
        assert_eq!((read[0].key, read[0].value), (Some(b"k".as_slice()), None));
        let own: Vec<_> = read[0].headers.clone().map(Result::unwrap).collect();
        assert_eq!(
            own,
            [("a".into(), Some(b"1".as_slice())), ("a".into(), None)]
        );
        assert_eq!(read[1].value, Some(long.as_slice()));
    }

    #[test]
    fn a_marker_is_a_control_batch_of_a_transaction() {
        let (bytes, header) = marker_batch((7, 3), 1, true, 1_000);
        assert_eq!(header.attributes, layout::CONTROL | layout::TRANSACTIONAL);
        assert_eq!(header.base_sequence, -1);
        assert!(
            Batches::new(&bytes)
                .next()
                .expect("one batch")
                .check()
                .is_ok()
        );
    }
}
