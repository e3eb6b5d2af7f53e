//! Rewrites batches without some of their records: base offset, last offset and the producer fields stay (KIP-98,
//! KIP-534).

use std::io;

use crate::{
    batch::{Header, TimestampType},
    compression::compress,
    layout::{
        COMPRESSION_MASK, CONTROL, DELETE_HORIZON, HEADER, LOG_APPEND_TIME, TRANSACTIONAL, seal,
    },
    record::Outline,
    varint::{Cursor, put_varint, varint_len},
};

/// A batch being rewritten from some of its records.
#[derive(Debug)]
pub struct Rewrite {
    header: Header,
    base_timestamp: i64,
    records: Vec<u8>,
    count: i32,
    max_timestamp: i64,
}

impl Rewrite {
    /// Starts a batch with the offsets, producer and compression of `header`; `horizon` is used if it has no delete
    /// horizon.
    pub fn new(header: &Header, horizon: Option<i64>) -> Self {
        Self::with_capacity(header, horizon, header.size)
    }

    /// As [`new`](Self::new), with room for records of about this many bytes.
    pub fn with_capacity(header: &Header, horizon: Option<i64>, bytes: usize) -> Self {
        let mut header = *header;
        let base_timestamp = header.base_timestamp;
        if let Some(horizon) = horizon.filter(|_| header.delete_horizon().is_none()) {
            header.base_timestamp = horizon;
            header.attributes |= DELETE_HORIZON;
        }
        Self {
            header,
            base_timestamp,
            records: Vec::with_capacity(bytes),
            count: 0,
            max_timestamp: -1,
        }
    }

    /// Adds a record of the batch, in order.
    pub fn push(&mut self, record: Outline<'_>) {
        self.count += 1;
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        let moved = self.base_timestamp.wrapping_sub(self.header.base_timestamp);
        if moved == 0 {
            put_varint(&mut self.records, record.bytes.len() as i64);
            self.records.extend_from_slice(record.bytes);
            return;
        }
        let mut cursor = Cursor::new(record.bytes);
        let (Ok(attributes), Ok(delta)) = (cursor.byte(), cursor.varlong()) else {
            unreachable!("a record that was read has both");
        };
        let delta = delta.wrapping_add(moved);
        let size = 1 + varint_len(delta) + cursor.rest.len();
        put_varint(&mut self.records, size as i64);
        self.records.push(attributes);
        put_varint(&mut self.records, delta);
        self.records.extend_from_slice(cursor.rest);
    }

    /// The whole batch, with its original compression.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be compressed.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.finish_compressing(0)
    }

    /// The whole batch; records of fewer than `least_bytes` stay uncompressed.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be compressed.
    pub fn finish_compressing(self, least_bytes: usize) -> io::Result<Vec<u8>> {
        let mut header = self.header;
        if self.records.len() < least_bytes {
            header.attributes &= !COMPRESSION_MASK;
        }
        header.count = self.count;
        if header.timestamp_type() == TimestampType::CreateTime {
            header.max_timestamp = self.max_timestamp;
        }
        let compression = header.compression().map_err(io::Error::other)?;
        Ok(assembled(header, &compress(compression, &self.records)?))
    }
}

/// The batch without any records, which keeps only its producer's last sequence number.
pub fn without_records(header: &Header) -> Vec<u8> {
    let kept = !COMPRESSION_MASK & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL);
    let empty = Header {
        attributes: header.attributes & kept,
        base_timestamp: -1,
        count: 0,
        ..*header
    };
    assembled(empty, &[])
}

pub(crate) fn assembled(mut header: Header, records: &[u8]) -> Vec<u8> {
    header.size = HEADER + records.len();
    let mut out = vec![0; header.size];
    header.write(&mut out);
    out[HEADER..].copy_from_slice(records);
    seal(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batches;

    const ATTRIBUTES: [i16; 5] = [0, 1, 2, 3, 4];

    /// Records with keys `k0`, `k1`, ... a second apart.
    fn batch(attributes: i16, count: i32) -> Vec<u8> {
        let mut records = Vec::new();
        for delta in 0..count {
            let mut body = vec![0];
            put_varint(&mut body, i64::from(delta) * 1000);
            put_varint(&mut body, i64::from(delta));
            let key = format!("k{delta}");
            put_varint(&mut body, key.len() as i64);
            body.extend_from_slice(key.as_bytes());
            put_varint(&mut body, -1);
            body.push(0);
            put_varint(&mut records, body.len() as i64);
            records.extend_from_slice(&body);
        }
        let header = Header {
            base_offset: 70,
            size: 0,
            leader_epoch: 3,
            attributes,
            last_offset_delta: count - 1,
            base_timestamp: 5_000_000,
            max_timestamp: 5_000_000 + i64::from(count - 1) * 1000,
            producer_id: 9,
            producer_epoch: 2,
            base_sequence: 40,
            count,
        };
        let compression = header.compression().unwrap();
        assembled(header, &compress(compression, &records).unwrap())
    }

    fn every_second(bytes: &[u8], horizon: Option<i64>) -> Vec<u8> {
        every_second_from(bytes, horizon, 0)
    }

    fn every_second_from(bytes: &[u8], horizon: Option<i64>, least_bytes: usize) -> Vec<u8> {
        let whole = Batches::new(bytes).next().unwrap();
        let expanded = whole.expand(1 << 20).unwrap();
        let mut rewrite = Rewrite::new(&whole.header, horizon);
        for record in whole.records(&expanded).map(Result::unwrap).step_by(2) {
            rewrite.push(record.outline());
        }
        rewrite.finish_compressing(least_bytes).unwrap()
    }

    #[test]
    fn few_records_are_not_compressed() {
        for attributes in ATTRIBUTES {
            let whole = batch(attributes, 7);
            for (least_bytes, expected) in [(1, attributes), (1000, 0)] {
                let bytes = every_second_from(&whole, None, least_bytes);
                let left = Batches::new(&bytes).next().unwrap();
                assert_eq!(left.header.attributes, expected);
                let expanded = left.expand(1 << 20).unwrap();
                let offsets: Vec<_> = left
                    .records(&expanded)
                    .map(|each| each.unwrap().offset)
                    .collect();
                assert_eq!(offsets, [70, 72, 74, 76]);
            }
        }
    }

    #[test]
    fn what_stays_reads_as_before() {
        for attributes in ATTRIBUTES {
            for horizon in [None, Some(9_000_000_000), Some(1)] {
                let bytes = every_second(&batch(attributes, 7), horizon);
                let left = Batches::new(&bytes).next().unwrap();
                let header = left.header;
                assert_eq!((header.base_offset, header.last_offset()), (70, 76));
                assert_eq!((header.producer_id, header.producer_epoch), (9, 2));
                assert_eq!((header.base_sequence, header.last_sequence()), (40, 46));
                assert_eq!((header.count, header.leader_epoch), (4, 3));
                assert_eq!(header.delete_horizon(), horizon);
                assert_eq!(header.max_timestamp, 5_006_000);
                let expanded = left.expand(1 << 20).unwrap();
                let read: Vec<_> = left
                    .records(&expanded)
                    .map(|record| record.map(|r| (r.offset, r.timestamp, r.key.unwrap().to_vec())))
                    .collect::<Result<_, _>>()
                    .unwrap();
                let expected = [0, 2, 4, 6].map(|n| {
                    let key = format!("k{n}").into_bytes();
                    (70 + n, 5_000_000 + n * 1000, key)
                });
                assert_eq!(read, expected);
            }
        }
    }

    #[test]
    fn a_delete_horizon_is_set_once() {
        let once = every_second(&batch(0, 3), Some(77));
        let twice = every_second(&once, Some(99));
        let header = Batches::new(&twice).next().unwrap().header;
        assert_eq!((header.delete_horizon(), header.count), (Some(77), 1));
    }

    #[test]
    fn a_batch_without_records_keeps_offsets_and_producer() {
        let bytes = batch(4 | TRANSACTIONAL, 5);
        let whole = Batches::new(&bytes).next().unwrap().header;
        let left = without_records(&whole);
        assert_eq!(left.len(), HEADER);
        let batch = Batches::new(&left).next().unwrap();
        let expanded = batch.expand(10).unwrap();
        assert_eq!(batch.records(&expanded).count(), 0);
        let header = batch.header;
        assert_eq!((header.base_offset, header.last_offset()), (70, 74));
        assert_eq!((header.producer_id, header.last_sequence()), (9, 44));
        assert!(header.is_transactional());
    }
}
