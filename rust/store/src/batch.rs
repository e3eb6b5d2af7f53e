//! The header of a record batch v2: what is checked, what is read, what the broker may rewrite.
//!
//! Layout after KIP-98: base offset (8), length (4), leader epoch (4), magic (1), CRC-32C of all that follows (4),
//! attributes (2), last offset delta (4), base timestamp (8), max timestamp (8), producer id (8), producer epoch (2),
//! base sequence (4), record count (4), records.

use crate::error::Refusal;

/// Bytes before the records of a batch.
pub(crate) const HEADER: usize = 61;
/// Bytes that the length field does not count.
const PREFIX: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const CHECKED_FROM: usize = 21;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
pub(crate) const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

/// What the timestamps of a batch mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    /// The producer's clock.
    #[default]
    CreateTime,
    /// The broker's clock at the append.
    LogAppendTime,
}

/// The fields of a batch header that the store works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Size of the whole batch.
    pub size: usize,
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
    /// Reads the header of a batch that has been checked before.
    ///
    /// Returns `None` when the bytes are too few for the batch they announce or the format is not v2.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER || bytes[MAGIC_AT] != 2 {
            return None;
        }
        let size = usize::try_from(i32::from_be_bytes(number(bytes, 8)))
            .ok()?
            .checked_add(PREFIX)?;
        (HEADER..=bytes.len()).contains(&size).then(|| Self {
            base_offset: i64::from_be_bytes(number(bytes, 0)),
            size,
            attributes: i16::from_be_bytes(number(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(number(bytes, 23)),
            base_timestamp: i64::from_be_bytes(number(bytes, 27)),
            max_timestamp: i64::from_be_bytes(number(bytes, 35)),
            producer_id: i64::from_be_bytes(number(bytes, 43)),
            producer_epoch: i16::from_be_bytes(number(bytes, 51)),
            base_sequence: i32::from_be_bytes(number(bytes, 53)),
            count: i32::from_be_bytes(number(bytes, 57)),
        })
    }

    /// Checks the bytes of a produce request: exactly one intact batch that a client may write.
    pub fn check(bytes: &[u8], limit: usize) -> Result<Self, Refusal> {
        if bytes.len() <= MAGIC_AT {
            return Err(Refusal::CorruptBatch(format!(
                "{} bytes are no record batch",
                bytes.len()
            )));
        }
        if bytes[MAGIC_AT] != 2 {
            return Err(Refusal::UnsupportedFormat(bytes[MAGIC_AT].cast_signed()));
        }
        let Some(header) = Self::read(bytes) else {
            return Err(Refusal::CorruptBatch(
                "the batch's length field does not fit its bytes".into(),
            ));
        };
        if header.size < bytes.len() {
            return Err(Refusal::InvalidRecord(
                "a produce request carries exactly one batch a partition".into(),
            ));
        }
        if header.size > limit {
            return Err(Refusal::TooLarge {
                size: header.size,
                limit,
            });
        }
        if crc32c::crc32c(&bytes[CHECKED_FROM..]) != u32::from_be_bytes(number(bytes, CRC_AT)) {
            return Err(Refusal::CorruptBatch(
                "the batch's checksum does not match its bytes".into(),
            ));
        }
        header.check_client_fields()?;
        Ok(header)
    }

    fn check_client_fields(&self) -> Result<(), Refusal> {
        let invalid = |what: &str| Err(Refusal::InvalidRecord(what.into()));
        if self.is_control() {
            return invalid("clients may not write control batches");
        }
        if self.base_offset != 0 {
            return invalid("the base offset of a produced batch must be 0");
        }
        if self.count <= 0 || self.last_offset_delta.checked_add(1) != Some(self.count) {
            return invalid("the number of records does not fit the last offset delta");
        }
        if self.producer_id >= 0 && self.base_sequence < 0 {
            return invalid("a batch with a producer id needs a base sequence");
        }
        if self.attributes & COMPRESSION_MASK > 4 {
            return invalid("unknown compression type");
        }
        Ok(())
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Sequence number of the last record; sequences wrap from `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last % (i64::from(i32::MAX) + 1)) as i32
    }

    /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    pub fn compression(&self) -> i16 {
        self.attributes & COMPRESSION_MASK
    }

    /// Whether the timestamps are the broker's.
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

    /// Whether the batch holds a transaction marker instead of records.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }
}

/// Gives a batch its place in the log. The checksum does not cover these fields.
pub(crate) fn assign_offset(batch: &mut [u8], base_offset: i64) {
    batch[0..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&0_i32.to_be_bytes());
}

/// Replaces the producer's timestamps by the broker's: only the maximum is kept, and the bit that says so.
pub(crate) fn assign_append_time(batch: &mut [u8], header: &mut Header, now_ms: i64) {
    header.attributes |= LOG_APPEND_TIME;
    header.max_timestamp = now_ms;
    batch[21..23].copy_from_slice(&header.attributes.to_be_bytes());
    batch[35..43].copy_from_slice(&now_ms.to_be_bytes());
    seal(batch);
}

/// Writes the checksum.
pub(crate) fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[CHECKED_FROM..]);
    batch[CRC_AT..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
}

/// The header that `build` fills; `size` is left to the writer of the bytes.
pub(crate) fn write_header(out: &mut [u8], header: &Header) {
    out[0..8].copy_from_slice(&header.base_offset.to_be_bytes());
    out[8..12].copy_from_slice(&((header.size - PREFIX) as i32).to_be_bytes());
    out[12..16].copy_from_slice(&0_i32.to_be_bytes());
    out[MAGIC_AT] = 2;
    out[21..23].copy_from_slice(&header.attributes.to_be_bytes());
    out[23..27].copy_from_slice(&header.last_offset_delta.to_be_bytes());
    out[27..35].copy_from_slice(&header.base_timestamp.to_be_bytes());
    out[35..43].copy_from_slice(&header.max_timestamp.to_be_bytes());
    out[43..51].copy_from_slice(&header.producer_id.to_be_bytes());
    out[51..53].copy_from_slice(&header.producer_epoch.to_be_bytes());
    out[53..57].copy_from_slice(&header.base_sequence.to_be_bytes());
    out[57..61].copy_from_slice(&header.count.to_be_bytes());
}

/// Attributes of a control batch: transaction markers are always transactional.
pub(crate) const MARKER_ATTRIBUTES: i16 = CONTROL | TRANSACTIONAL;
