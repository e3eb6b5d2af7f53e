//! Where the fields of a record batch v2 stand, after KIP-98: base offset (8), length (4), leader epoch (4), magic (1),
//! CRC-32C of all that follows (4), attributes (2), last offset delta (4), base timestamp (8), max timestamp (8), producer
//! id (8), producer epoch (2), base sequence (4), record count (4), records.

/// Bytes before the records.
pub const HEADER: usize = 61;
/// Bytes that the length field does not count.
pub const PREFIX: usize = 12;
/// Where the format's number stands.
pub const MAGIC_AT: usize = 16;
/// What stands there, of the only format that is written and taken.
pub const MAGIC: u8 = 2;
/// Where the checksum stands.
pub const CRC_AT: usize = 17;
/// Where what the checksum covers begins.
pub const CHECKED_FROM: usize = 21;
/// Where the attributes stand, two bytes.
pub const ATTRIBUTES_AT: usize = 21;

/// Bits of the attributes: the compression type.
pub const COMPRESSION_MASK: i16 = 0x07;
/// Bit of the attributes: timestamps are the broker's.
pub const LOG_APPEND_TIME: i16 = 0x08;
/// Bit of the attributes: part of a transaction.
pub const TRANSACTIONAL: i16 = 0x10;
/// Bit of the attributes: a marker for the brokers.
pub const CONTROL: i16 = 0x20;
/// Bit of the attributes: the base timestamp is the time after which tombstones and markers may go (KIP-534).
pub const DELETE_HORIZON: i16 = 0x40;

/// The bytes of a number; `bytes` must be long enough.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// The attributes of the batch that `bytes` begin with; None where they are too few for a header.
pub fn attributes(bytes: &[u8]) -> Option<i16> {
    (bytes.len() >= HEADER).then(|| i16::from_be_bytes(number(bytes, ATTRIBUTES_AT)))
}

/// Writes the attributes; `batch` must have a header, whose checksum is the caller's to renew.
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
