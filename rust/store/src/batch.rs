//! Validating clients' record batches, and setting the fields that the broker assigns.

use sharecore_records::Compression;
pub(crate) use sharecore_records::layout::HEADER;
use sharecore_records::layout::{
    COMPRESSION_MASK, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, MAGIC_AT, PREFIX, TRANSACTIONAL,
    attributes, checksum, computed_checksum, put_attributes, seal,
};
pub(crate) use sharecore_records::{Header, TimestampType};

use crate::error::Refusal;

/// Reads the header of a batch that was validated before.
///
/// Returns `None` if the batch is incomplete or the format is not v2.
pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
    Header::read(bytes).filter(|_| bytes[MAGIC_AT] == 2)
}

/// Whether a batch matches its checksum.
pub(crate) fn matches_checksum(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER && computed_checksum(bytes) == checksum(bytes)
}

/// Whether a batch's leader epoch, which its checksum does not cover, is the one that this broker writes.
pub(crate) fn has_no_epoch(bytes: &[u8]) -> bool {
    bytes[12..16] == [0; 4]
}

/// Bytes of the oldest format after the length field.
const OLDEST: i32 = 14;
const ZSTD: i16 = 4;

/// The size of the first batch in `bytes`, of any format; None if it is incomplete.
fn size_of_next(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
    let corrupt = |what: &str| Err(Refusal::CorruptBatch(what.into()));
    let Some(length) = bytes.get(8..PREFIX) else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
    if length < OLDEST {
        return corrupt("the batch's length field is less than that of any batch");
    }
    let Some(magic) = bytes.get(MAGIC_AT) else {
        return Ok(None);
    };
    if *magic > 2 {
        return corrupt("the batch has an unknown format");
    }
    let size = length as usize + PREFIX;
    debug_assert!(size > PREFIX, "an empty batch");
    Ok((size <= bytes.len()).then_some(size))
}

/// Checks a partition's part of a produce request, before the log's own limits are known: whether it begins with a
/// whole batch v2.
///
/// `zstd`: whether the request's version allows zstd.
pub fn check_request(bytes: &[u8], zstd: bool) -> Result<(), Refusal> {
    let invalid = |what: &str| Err(Refusal::InvalidRecord(what.into()));
    let Some(size) = size_of_next(bytes)? else {
        return invalid("there is no whole record batch");
    };
    if bytes[MAGIC_AT] != 2 {
        return invalid("only record batches of format 2 are served");
    }
    let attributes = attributes(&bytes[..size]).unwrap_or_default();
    if zstd {
        return Ok(()); // the log checks it, after the checksum
    }
    check_compression(attributes)?;
    if attributes & COMPRESSION_MASK == ZSTD {
        return Err(Refusal::UnsupportedCompression);
    }
    Ok(())
}

fn check_compression(attributes: i16) -> Result<(), Refusal> {
    if attributes & COMPRESSION_MASK > ZSTD {
        return Err(Refusal::InvalidRecord("unknown compression type".into()));
    }
    Ok(())
}

/// Checks the bytes of a produce request: exactly one intact batch that a client may write. A trailing incomplete batch
/// is ignored.
pub(crate) fn check(bytes: &[u8], limit: usize) -> Result<Header, Refusal> {
    let mut found: Option<Header> = None;
    let mut rest = bytes;
    while let Some(size) = size_of_next(rest)? {
        let (batch, behind) = rest.split_at(size);
        let header = check_one(batch, limit)?;
        if found.replace(header).is_some() {
            return Err(Refusal::InvalidRecord(
                "a produce request carries exactly one batch a partition".into(),
            ));
        }
        rest = behind;
    }
    let header = found.ok_or_else(|| Refusal::InvalidRecord("there is no record batch".into()))?;
    check_client_fields(&header)?;
    debug_assert!(
        header.size <= limit.min(bytes.len()),
        "a batch larger than its bytes, or than allowed"
    );
    debug_assert!(
        header.base_offset == 0 && header.last_offset() >= 0,
        "offsets count from the one that the log assigns"
    );
    Ok(header)
}

fn check_one(batch: &[u8], limit: usize) -> Result<Header, Refusal> {
    let Some(header) = read(batch) else {
        return Err(Refusal::CorruptBatch(format!(
            "{} bytes are no record batch of format 2",
            batch.len()
        )));
    };
    if header.base_offset != 0 {
        return Err(Refusal::InvalidRecord(
            "the base offset of a produced batch must be 0".into(),
        ));
    }
    if header.size > limit {
        return Err(Refusal::TooLarge {
            size: header.size,
            limit,
        });
    }
    if computed_checksum(batch) != checksum(batch) {
        return Err(Refusal::CorruptBatch(
            "the batch's checksum does not match its bytes".into(),
        ));
    }
    Ok(header)
}

fn check_client_fields(header: &Header) -> Result<(), Refusal> {
    let invalid = |what: &str| Err(Refusal::InvalidRecord(what.into()));
    if header.is_control() {
        return invalid("clients may not write control batches");
    }
    if header.count <= 0 || header.last_offset_delta.checked_add(1) != Some(header.count) {
        return invalid("the number of records does not fit the last offset delta");
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return invalid("a batch with a producer id needs a base sequence");
    }
    check_compression(header.attributes)
}

/// Sets a batch's offset. The checksum does not cover these fields.
pub(crate) fn assign_offset(batch: &mut [u8], base_offset: i64) {
    debug_assert!(base_offset >= 0, "no record has a negative offset");
    batch[0..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&0_i32.to_be_bytes());
}

/// Sets a batch's length and compression, after its records were recompressed.
pub(crate) fn recompressed(batch: &mut [u8], header: &mut Header, compression: Compression) {
    header.size = batch.len();
    header.attributes &= LOG_APPEND_TIME | TRANSACTIONAL | CONTROL;
    header.attributes |= compression.id();
    let length = (batch.len() - PREFIX) as i32;
    batch[8..PREFIX].copy_from_slice(&length.to_be_bytes());
    put_attributes(batch, header.attributes);
    seal(batch);
    debug_assert_eq!(
        Header::read(batch).map(|read| (read.size, read.attributes)),
        Some((header.size, header.attributes)),
        "the batch and its header disagree"
    );
}

/// Sets the timestamp type of a batch, and its latest time.
pub(crate) fn assign_time(batch: &mut [u8], header: &mut Header, kind: TimestampType, latest: i64) {
    if header.timestamp_type() == kind && header.max_timestamp == latest {
        return;
    }
    header.attributes &= COMPRESSION_MASK | TRANSACTIONAL | CONTROL | DELETE_HORIZON;
    if kind == TimestampType::LogAppendTime {
        header.attributes |= LOG_APPEND_TIME;
    }
    header.max_timestamp = latest;
    put_attributes(batch, header.attributes);
    batch[35..43].copy_from_slice(&latest.to_be_bytes());
    seal(batch);
    debug_assert_eq!(
        Header::read(batch).map(|read| (read.timestamp_type(), read.max_timestamp)),
        Some((kind, latest)),
        "the batch has another time"
    );
    debug_assert!(matches_checksum(batch), "its checksum was not updated");
}
