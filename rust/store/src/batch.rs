//! Record batches as the store takes them: what is checked, and what the broker writes.

pub(crate) use sharecore_records::layout::HEADER;
use sharecore_records::layout::{
    COMPRESSION_MASK, LOG_APPEND_TIME, MAGIC_AT, checksum, computed_checksum, put_attributes, seal,
};
pub(crate) use sharecore_records::{Header, TimestampType};

use crate::error::Refusal;

/// Reads the header of a batch that has been checked before.
///
/// Returns `None` when the bytes are too few for the batch they announce or the format is not v2.
pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
    Header::read(bytes).filter(|_| bytes[MAGIC_AT] == 2)
}

/// Whether a batch's checksum matches its bytes.
pub(crate) fn matches_checksum(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER && computed_checksum(bytes) == checksum(bytes)
}

/// Checks the bytes of a produce request: exactly one intact batch that a client may write.
pub(crate) fn check(bytes: &[u8], limit: usize) -> Result<Header, Refusal> {
    if bytes.len() <= MAGIC_AT {
        return Err(Refusal::CorruptBatch(format!(
            "{} bytes are no record batch",
            bytes.len()
        )));
    }
    if bytes[MAGIC_AT] != 2 {
        return Err(Refusal::UnsupportedFormat(bytes[MAGIC_AT].cast_signed()));
    }
    let Some(header) = read(bytes) else {
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
    if computed_checksum(bytes) != checksum(bytes) {
        return Err(Refusal::CorruptBatch(
            "the batch's checksum does not match its bytes".into(),
        ));
    }
    check_client_fields(&header)?;
    Ok(header)
}

fn check_client_fields(header: &Header) -> Result<(), Refusal> {
    let invalid = |what: &str| Err(Refusal::InvalidRecord(what.into()));
    if header.is_control() {
        return invalid("clients may not write control batches");
    }
    if header.base_offset != 0 {
        return invalid("the base offset of a produced batch must be 0");
    }
    if header.count <= 0 || header.last_offset_delta.checked_add(1) != Some(header.count) {
        return invalid("the number of records does not fit the last offset delta");
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return invalid("a batch with a producer id needs a base sequence");
    }
    if header.attributes & COMPRESSION_MASK > 4 {
        return invalid("unknown compression type");
    }
    Ok(())
}

/// Gives a batch its place in the log. The checksum does not cover these fields.
pub(crate) fn assign_offset(batch: &mut [u8], base_offset: i64) {
    batch[0..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&0_i32.to_be_bytes());
}

/// Puts the broker's time in place of the producer's: sets the maximum timestamp, and the bit that says so.
pub(crate) fn assign_append_time(batch: &mut [u8], header: &mut Header, now_ms: i64) {
    header.attributes |= LOG_APPEND_TIME;
    header.max_timestamp = now_ms;
    put_attributes(batch, header.attributes);
    batch[35..43].copy_from_slice(&now_ms.to_be_bytes());
    seal(batch);
}
