//! Positions of the fields of a record batch v2 (KIP-98): base offset (8), length (4), leader epoch (4), magic (1),
//! CRC-32C of the rest (4), attributes (2), last offset delta (4), base timestamp (8), max timestamp (8), producer id
//! (8), producer epoch (2), base sequence (4), record count (4), records.

/// Size of the header.
pub const HEADER: usize = 61;
/// Bytes that the length field does not count.
pub const PREFIX: usize = 12;
/// Position of the magic byte.
pub const MAGIC_AT: usize = 16;
/// The magic byte of the only supported format.
pub const MAGIC: u8 = 2;
/// Position of the checksum.
pub const CRC_AT: usize = 17;
/// Start of the checksummed part.
pub const CHECKED_FROM: usize = 21;
/// Position of the attributes, two bytes.
pub const ATTRIBUTES_AT: usize = 21;

/// Bits of the attributes: the compression type.
pub const COMPRESSION_MASK: i16 = 0x07;
/// Bit of the attributes: `LogAppendTime`.
pub const LOG_APPEND_TIME: i16 = 0x08;
/// Bit of the attributes: transactional.
pub const TRANSACTIONAL: i16 = 0x10;
/// Bit of the attributes: a control batch.
pub const CONTROL: i16 = 0x20;
/// Bit of the attributes: the base timestamp is the delete horizon (KIP-534).
pub const DELETE_HORIZON: i16 = 0x40;

/// Reads a number; `bytes` must be long enough.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// The attributes of the batch at the start of `bytes`; None if they are too short for a header.
pub fn attributes(bytes: &[u8]) -> Option<i16> {
    (bytes.len() >= HEADER).then(|| i16::from_be_bytes(number(bytes, ATTRIBUTES_AT)))
}

/// Writes the attributes; `batch` must have a header, whose checksum the caller updates.
pub fn put_attributes(batch: &mut [u8], attributes: i16) {
    batch[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&attributes.to_be_bytes());
}

/// The checksum that a batch carries; `batch` must have a header.
pub fn checksum(batch: &[u8]) -> u32 {
    u32::from_be_bytes(number(batch, CRC_AT))
}

/// The checksum that a batch should carry.
pub fn computed_checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[CHECKED_FROM..])
}

/// Writes the checksum; `batch` must have a header.
pub fn seal(batch: &mut [u8]) {
    let crc = computed_checksum(batch);
    batch[CRC_AT..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
}
