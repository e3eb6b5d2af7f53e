//! Values of the records, in version 0, the only one that Kafka 4.2 to 4.4 and sharecore write.

use sharecore_engine::{StateBatch, state_batch};

use crate::fault::RecordFault;

const VERSION: i16 = 0;
/// The tag of the delivery-complete count (KIP-1226).
const COUNT_TAG: u64 = 0;
/// Means unknown or unchanged.
const UNINITIALIZED: i32 = -1;
/// Bytes of a state batch without tagged fields: two offsets, state, delivery count, number of tagged fields.
const BATCH: usize = 8 + 8 + 1 + 2 + 1;
const VARINT_BYTES_MAX: u32 = 5;

const TOO_EARLY: RecordFault = RecordFault::Value("it ends too early");

/// The kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The whole state.
    Snapshot,
    /// Changes.
    Update,
}

impl Kind {
    pub(crate) fn from_id(id: i16) -> Option<Self> {
        match id {
            0 => Some(Self::Snapshot),
            1 => Some(Self::Update),
            _ => None,
        }
    }
}

/// The numbers of a value; -1 means unknown or, for an update's start offset, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Grows with each snapshot.
    pub snapshot_epoch: i32,
    /// Grows when the state is reset; not in an update.
    pub state_epoch: Option<i32>,
    /// Of the last leader that wrote.
    pub leader_epoch: i32,
    /// All records before it are finished.
    pub start_offset: i64,
    /// Acknowledged and archived records from the start offset.
    pub delivery_complete_count: i32,
    /// Creation and write time of the state, in milliseconds; not in an update.
    pub times: Option<(i64, i64)>,
}

/// A state batch as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// First offset.
    pub first: i64,
    /// Last offset, included.
    pub last: i64,
    /// The delivery state.
    pub state: i8,
    /// How often the records were delivered.
    pub delivery_count: i16,
}

/// Reads a value; its state batches replace what is in `batches`.
pub fn read_value(kind: Kind, bytes: &[u8], batches: &mut Vec<Batch>) -> Result<Head, RecordFault> {
    batches.clear();
    let mut cursor = Cursor(bytes);
    let version = i16::from_be_bytes(cursor.take()?);
    if version != VERSION {
        return Err(RecordFault::Version(version));
    }
    let snapshot = kind == Kind::Snapshot;
    let mut head = Head {
        snapshot_epoch: cursor.int()?,
        state_epoch: if snapshot { Some(cursor.int()?) } else { None },
        leader_epoch: cursor.int()?,
        start_offset: cursor.long()?,
        delivery_complete_count: UNINITIALIZED,
        times: None,
    };
    if snapshot {
        head.times = Some((cursor.long()?, cursor.long()?));
    }
    read_batches(&mut cursor, batches)?;
    cursor.tagged(|tag, content| {
        if let (COUNT_TAG, Ok(count)) = (tag, content.try_into()) {
            head.delivery_complete_count = i32::from_be_bytes(count);
        }
    })?;
    if cursor.0.is_empty() {
        Ok(head)
    } else {
        Err(RecordFault::Value("there are bytes behind its end"))
    }
}

/// Encodes a value: a snapshot if `head` has the fields that only snapshots have, else an update.
pub fn write_value(head: &Head, batches: &[StateBatch]) -> Vec<u8> {
    let encoded = batches.len() * BATCH;
    let mut out = Vec::with_capacity(64 + encoded);
    out.extend(VERSION.to_be_bytes());
    out.extend(head.snapshot_epoch.to_be_bytes());
    if let Some(epoch) = head.state_epoch {
        out.extend(epoch.to_be_bytes());
    }
    out.extend(head.leader_epoch.to_be_bytes());
    out.extend(head.start_offset.to_be_bytes());
    if let Some((created, written)) = head.times {
        out.extend(created.to_be_bytes());
        out.extend(written.to_be_bytes());
    }
    let mut length = batches.len() + 1;
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    let at = out.len();
    out.resize(at + encoded, 0);
    state_batch::encode(batches, &mut out[at..]);
    if head.delivery_complete_count == UNINITIALIZED {
        out.push(0);
    } else {
        out.extend([1, COUNT_TAG as u8, 4]);
        out.extend(head.delivery_complete_count.to_be_bytes());
    }
    out
}

fn read_batches(cursor: &mut Cursor<'_>, batches: &mut Vec<Batch>) -> Result<(), RecordFault> {
    let count = cursor
        .varint()?
        .checked_sub(1)
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| *count <= cursor.0.len() / BATCH)
        .ok_or(RecordFault::Value("the state batches reach past the end"))?;
    batches.reserve(count);
    for _ in 0..count {
        let bytes: [u8; BATCH] = cursor.take()?;
        batches.push(Batch {
            first: i64::from_be_bytes(part(&bytes, 0)),
            last: i64::from_be_bytes(part(&bytes, 8)),
            state: bytes[16].cast_signed(),
            delivery_count: i16::from_be_bytes(part(&bytes, 17)),
        });
        let tags = bytes[BATCH - 1];
        if tags != 0 {
            cursor.tagged_after(tags, |_, _| {})?;
        }
    }
    Ok(())
}

fn part<const N: usize>(bytes: &[u8; BATCH], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// Reads numbers from the front of a value.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordFault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(TOO_EARLY)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn int(&mut self) -> Result<i32, RecordFault> {
        self.take().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Result<i64, RecordFault> {
        self.take().map(i64::from_be_bytes)
    }

    fn varint(&mut self) -> Result<u64, RecordFault> {
        let [byte] = self.take()?;
        self.varint_after(byte)
    }

    /// Reads an unsigned varint after its first byte.
    fn varint_after(&mut self, first: u8) -> Result<u64, RecordFault> {
        let mut value = u64::from(first & 0x7f);
        let mut byte = first;
        for position in 1..=VARINT_BYTES_MAX {
            if byte < 0x80 {
                return Ok(value);
            }
            if position < VARINT_BYTES_MAX {
                [byte] = self.take()?;
                value |= u64::from(byte & 0x7f) << (7 * position);
            }
        }
        Err(RecordFault::Value("a number is too long"))
    }

    /// A section of tagged fields.
    fn tagged(&mut self, take: impl FnMut(u64, &'a [u8])) -> Result<(), RecordFault> {
        let [first] = self.take()?;
        self.tagged_after(first, take)
    }

    /// Reads a section of tagged fields after its first byte.
    fn tagged_after(
        &mut self,
        first: u8,
        mut take: impl FnMut(u64, &'a [u8]),
    ) -> Result<(), RecordFault> {
        for _ in 0..self.varint_after(first)? {
            let (tag, size) = (self.varint()?, self.varint()?);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let (content, rest) = self.0.split_at_checked(size).ok_or(TOO_EARLY)?;
            self.0 = rest;
            take(tag, content);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(tail: &[u8]) -> Vec<u8> {
        let mut value = vec![0, 0, 0, 0, 0, 7, 0, 0, 0, 3];
        value.extend(42_i64.to_be_bytes());
        value.extend(tail);
        value
    }

    #[test]
    fn fields_that_are_not_known_are_passed_over() {
        let mut tail = vec![2];
        tail.extend(5_i64.to_be_bytes());
        tail.extend(6_i64.to_be_bytes());
        tail.extend([4, 0, 2, 1, 9, 2, 0xaa, 0xbb]);
        tail.extend([2, 0, 4, 0, 0, 0, 8, 5, 1, 0xcc]);
        let mut batches = vec![];
        let head = read_value(Kind::Update, &update(&tail), &mut batches).unwrap();
        assert_eq!((head.snapshot_epoch, head.leader_epoch), (7, 3));
        assert_eq!((head.start_offset, head.delivery_complete_count), (42, 8));
        assert_eq!((head.state_epoch, head.times), (None, None));
        let only = Batch {
            first: 5,
            last: 6,
            state: 4,
            delivery_count: 2,
        };
        assert_eq!(batches, [only]);
    }

    #[test]
    fn lengths_out_of_nothing_are_refused() {
        let mut batches = vec![];
        let mut read = |tail: &[u8]| read_value(Kind::Update, &update(tail), &mut batches);
        assert!(read(&[1, 0]).is_ok());
        for tail in [
            &[0, 0][..],
            &[1],
            &[2, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 0],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0],
            &[1, 0, 0],
            &[1, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f],
        ] {
            assert!(matches!(read(tail), Err(RecordFault::Value(_))), "{tail:?}");
        }
        let mut later = update(&[1, 0]);
        later[1] = 1;
        assert_eq!(
            read_value(Kind::Update, &later, &mut batches),
            Err(RecordFault::Version(1))
        );
    }
}
