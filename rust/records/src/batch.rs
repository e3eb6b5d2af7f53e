//! Batches one after the other, and the header before the records of each.
//!
//! Layout after KIP-98: base offset (8), length (4), leader epoch (4), magic (1), CRC-32C of all that follows (4),
//! attributes (2), last offset delta (4), base timestamp (8), max timestamp (8), producer id (8), producer epoch (2),
//! base sequence (4), record count (4), records.

use std::borrow::Cow;

use crate::{
    compression::{Compression, decompress},
    fault::Fault,
    record::Records,
};

const HEADER: usize = 61;
/// Bytes that the length field does not count.
const PREFIX: usize = 12;
const MAGIC_AT: usize = 16;
const CHECKED_FROM: usize = 21;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

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
    /// Epoch of the leader that wrote the batch.
    pub leader_epoch: i32,
    /// CRC-32C of what follows.
    pub crc: u32,
    /// Compression, timestamp type, transactional and control bits.
    pub attributes: i16,
    /// Offset of the last record, counted from the first.
    pub last_offset_delta: i32,
    /// Timestamp that record deltas count from.
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

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

impl Header {
    fn read(bytes: &[u8]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(number(bytes, 0)),
            leader_epoch: i32::from_be_bytes(number(bytes, 12)),
            crc: u32::from_be_bytes(number(bytes, 17)),
            attributes: i16::from_be_bytes(number(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(number(bytes, 23)),
            base_timestamp: i64::from_be_bytes(number(bytes, 27)),
            max_timestamp: i64::from_be_bytes(number(bytes, 35)),
            producer_id: i64::from_be_bytes(number(bytes, 43)),
            producer_epoch: i16::from_be_bytes(number(bytes, 51)),
            base_sequence: i32::from_be_bytes(number(bytes, 53)),
            count: i32::from_be_bytes(number(bytes, 57)),
        }
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta.max(0)))
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

    /// Whether the batch holds a marker for the brokers instead of records.
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

    /// Checks format and checksum.
    pub fn check(&self) -> Result<(), Fault> {
        if self.magic != 2 {
            return Err(Fault::Magic(self.magic));
        }
        if crc32c::crc32c(&self.bytes[CHECKED_FROM..]) != self.header.crc {
            return Err(Fault::Checksum);
        }
        Ok(())
    }

    /// Checks format and checksum and expands the records, to at most `limit` bytes.
    pub fn expand(&self, limit: usize) -> Result<Cow<'a, [u8]>, Fault> {
        self.check()?;
        decompress(self.header.compression()?, &self.bytes[HEADER..], limit)
    }

    /// The records in what `expand` returned.
    pub fn records<'b>(&self, expanded: &'b [u8]) -> Records<'b> {
        Records::new(&self.header, expanded)
    }
}

/// The whole batches at the front of a slice; a last one that is cut off ends the iteration.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Batches in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What no batch was found in: empty after a whole last batch.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Batch<'a>;

    fn next(&mut self) -> Option<Batch<'a>> {
        if self.rest.len() < HEADER {
            return None;
        }
        let length = usize::try_from(i32::from_be_bytes(number(self.rest, 8))).ok()?;
        let size = length.checked_add(PREFIX).filter(|size| *size >= HEADER)?;
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(Batch {
            header: Header::read(bytes),
            magic: bytes[MAGIC_AT],
            bytes,
        })
    }
}
