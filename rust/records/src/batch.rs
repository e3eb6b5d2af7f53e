//! Concatenated batches, and the header of each.

use std::borrow::Cow;

use crate::{
    compression::{Compression, decompress},
    fault::Fault,
    layout::{
        ATTRIBUTES_AT, COMPRESSION_MASK, CONTROL, DELETE_HORIZON, HEADER, LOG_APPEND_TIME, MAGIC,
        MAGIC_AT, PREFIX, TRANSACTIONAL, checksum, computed_checksum, number, put_attributes,
    },
};

/// What the timestamps of a batch mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's clock.
    CreateTime,
    /// The broker's clock at the append.
    LogAppendTime,
}

/// The fields before the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Size of the whole batch.
    pub size: usize,
    /// Epoch of the leader that wrote the batch.
    pub leader_epoch: i32,
    /// Compression, timestamp type, transactional and control bits.
    pub attributes: i16,
    /// Offset of the last record, relative to the first.
    pub last_offset_delta: i32,
    /// Base of the record timestamp deltas.
    pub base_timestamp: i64,
    /// Largest timestamp of the batch.
    pub max_timestamp: i64,
    /// -1 for a producer that is not idempotent.
    pub producer_id: i64,
    /// Epoch of the producer id.
    pub producer_epoch: i16,
    /// Sequence number of the first record.
    pub base_sequence: i32,
    /// Number of records.
    pub count: i32,
}

impl Header {
    /// Reads the header of the first batch in `bytes`; None if the batch is incomplete. Neither format nor checksum is
    /// checked.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER {
            return None;
        }
        let length = usize::try_from(i32::from_be_bytes(number(bytes, 8))).ok()?;
        let size = length.checked_add(PREFIX)?;
        (HEADER..=bytes.len()).contains(&size).then(|| Self {
            base_offset: i64::from_be_bytes(number(bytes, 0)),
            size,
            leader_epoch: i32::from_be_bytes(number(bytes, 12)),
            attributes: i16::from_be_bytes(number(bytes, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(number(bytes, 23)),
            base_timestamp: i64::from_be_bytes(number(bytes, 27)),
            max_timestamp: i64::from_be_bytes(number(bytes, 35)),
            producer_id: i64::from_be_bytes(number(bytes, 43)),
            producer_epoch: i16::from_be_bytes(number(bytes, 51)),
            base_sequence: i32::from_be_bytes(number(bytes, 53)),
            count: i32::from_be_bytes(number(bytes, 57)),
        })
    }

    /// Writes the header to the front of `out`, except the checksum; the caller must set `size` correctly.
    pub fn write(&self, out: &mut [u8]) {
        out[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        out[8..12].copy_from_slice(&((self.size - PREFIX) as i32).to_be_bytes());
        out[12..16].copy_from_slice(&self.leader_epoch.to_be_bytes());
        out[MAGIC_AT] = MAGIC;
        put_attributes(out, self.attributes);
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.count.to_be_bytes());
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta.max(0)))
    }

    /// Sequence number of the last record; sequences wrap from `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last % (i64::from(i32::MAX) + 1)) as i32
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Result<Compression, Fault> {
        Compression::from_id(self.attributes & COMPRESSION_MASK)
    }

    /// Whose clock the timestamps come from.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// When the batch's tombstones or marker may be removed, in milliseconds since the epoch; `None` until compaction
    /// has set it.
    pub fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Whether the batch holds a control record.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }
}

/// One batch: its header and its bytes, not yet checked.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The fields before the records.
    pub header: Header,
    magic: u8,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// All of the batch's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The encoded records.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }

    /// Checks the format and the checksum.
    pub fn check(&self) -> Result<(), Fault> {
        if self.magic != MAGIC {
            return Err(Fault::Magic(self.magic));
        }
        if computed_checksum(self.bytes) != checksum(self.bytes) {
            return Err(Fault::Checksum);
        }
        Ok(())
    }

    /// Checks the format and the checksum, and decompresses the records to at most `limit` bytes.
    pub fn expand(&self, limit: usize) -> Result<Cow<'a, [u8]>, Fault> {
        self.check()?;
        decompress(self.header.compression()?, self.payload(), limit)
    }
}

/// The whole batches at the front of a slice; a truncated last one ends the iteration.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Batches in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes after the last whole batch.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Batch<'a>;

    fn next(&mut self) -> Option<Batch<'a>> {
        let header = Header::read(self.rest)?;
        let (bytes, rest) = self.rest.split_at(header.size);
        self.rest = rest;
        Some(Batch {
            header,
            magic: bytes[MAGIC_AT],
            bytes,
        })
    }
}
