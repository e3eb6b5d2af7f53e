//! The positions of a log's batches in one segment, packed: some eight bytes per batch, both in memory and in a
//! segment's index.
//!
//! A batch's fields are stored as differences from the previous batch, seven bits per byte. Every [`STRIDE`] batches a
//! mark holds the absolute values, so that a batch is found without unpacking all before it:
//!
//! ```text
//! marks                        |                   |
//! bytes    e e e e e e e e e e e e e e e e e e e e e e e e
//! ```

use crate::{
    batch::Header,
    varint::{put_varint, take_varint},
};

/// Batches from one mark to the next.
const STRIDE: usize = 32;

const _: () = assert!(STRIDE > 0, "a mark is no batch");

/// The position of a batch in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) base: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) last_delta: u32,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Entry {
    pub(crate) fn new(header: &Header, at: u32) -> Self {
        Self {
            base: header.base_offset,
            max_timestamp: header.max_timestamp,
            last_delta: header.last_offset_delta as u32,
            at,
            len: header.size as u32,
        }
    }

    pub(crate) fn last(&self) -> i64 {
        self.base + i64::from(self.last_delta)
    }
}

/// The batches of a log in one segment, in offset order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    count: usize,
    /// After the last batch.
    end: Before,
}

/// The base of a batch's differences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Before {
    /// The offset after the previous batch.
    offset: i64,
    /// The position after it.
    at: i64,
    timestamp: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    before: Before,
    place: usize,
}

impl Before {
    fn after(entry: &Entry) -> Self {
        Self {
            offset: entry.last() + 1,
            at: i64::from(entry.at) + i64::from(entry.len),
            timestamp: entry.max_timestamp,
        }
    }

    fn put(&self, out: &mut Vec<u8>, entry: &Entry) {
        put_varint(out, entry.base - self.offset);
        put_varint(out, i64::from(entry.last_delta));
        put_varint(out, i64::from(entry.at) - self.at);
        put_varint(out, i64::from(entry.len));
        put_varint(out, entry.max_timestamp.wrapping_sub(self.timestamp));
    }

    /// Takes a batch from the front; `None` if the bytes are invalid.
    fn take(&self, bytes: &mut &[u8]) -> Option<Entry> {
        let entry = Entry {
            base: self.offset.checked_add(take_varint(bytes)?)?,
            last_delta: u32::try_from(take_varint(bytes)?).ok()?,
            at: u32::try_from(self.at.checked_add(take_varint(bytes)?)?).ok()?,
            len: u32::try_from(take_varint(bytes)?).ok()?,
            max_timestamp: self.timestamp.wrapping_add(take_varint(bytes)?),
        };
        entry.base.checked_add(i64::from(entry.last_delta) + 1)?;
        Some(entry)
    }
}

impl Entries {
    /// Adds the next batch of the log.
    pub(crate) fn push(&mut self, entry: &Entry) {
        self.mark(self.bytes.len());
        let place = self.bytes.len();
        self.end.put(&mut self.bytes, entry);
        debug_assert_eq!(
            self.end.take(&mut &self.bytes[place..]),
            Some(*entry),
            "a batch is unpacked as it was packed"
        );
        self.count += 1;
        self.end = Before::after(entry);
        debug_assert_eq!(
            self.marks.len(),
            (self.count - 1) / STRIDE,
            "a mark every {STRIDE} batches"
        );
    }

    /// Validates the packed form; `None` if `bytes` are invalid.
    pub(crate) fn unpack(bytes: Vec<u8>) -> Option<Self> {
        let mut entries = Self::default();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            entries.mark(bytes.len() - rest.len());
            let entry = entries.end.take(&mut rest)?;
            entries.count += 1;
            entries.end = Before::after(&entry);
        }
        entries.marks.shrink_to_fit();
        entries.bytes = bytes;
        debug_assert_eq!(
            entries.iter().count(),
            entries.count,
            "bytes that were unpacked once cannot be unpacked again"
        );
        Some(entries)
    }

    fn mark(&mut self, place: usize) {
        if self.count > 0 && self.count.is_multiple_of(STRIDE) {
            let before = self.end;
            self.marks.push(Mark { before, place });
        }
    }

    /// The packed form, as in a segment's index.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.bytes
    }

    /// Size in memory.
    pub(crate) fn footprint(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of_val(self.marks.as_slice())
    }

    /// The offset after the last batch; `None` if there is none.
    pub(crate) fn end(&self) -> Option<i64> {
        (self.count > 0).then_some(self.end.offset)
    }

    /// The last batch.
    pub(crate) fn last(&self) -> Option<Entry> {
        self.behind(self.marks.last()).last()
    }

    /// All batches.
    pub(crate) fn iter(&self) -> Iter<'_> {
        self.behind(None)
    }

    /// The batches that end at or after an offset.
    pub(crate) fn from(&self, offset: i64) -> impl Iterator<Item = Entry> {
        let before = |mark: &Mark| mark.before.offset <= offset;
        let marks = &self.marks[..self.marks.partition_point(before)];
        self.behind(marks.last())
            .skip_while(move |entry| entry.last() < offset)
    }

    /// The batches after a mark; all without one.
    fn behind(&self, mark: Option<&Mark>) -> Iter<'_> {
        let place = mark.map_or(0, |mark| mark.place);
        Iter {
            rest: &self.bytes[place..],
            before: mark.map(|mark| mark.before).unwrap_or_default(),
        }
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<T: IntoIterator<Item = Entry>>(batches: T) -> Self {
        let mut entries = Self::default();
        for entry in batches {
            entries.push(&entry);
        }
        entries
    }
}

/// Unpacks one batch after the other.
#[derive(Debug, Clone)]
pub(crate) struct Iter<'a> {
    rest: &'a [u8],
    before: Before,
}

impl Iterator for Iter<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.before.take(&mut self.rest);
        let entry = entry.expect("batches are packed here, or were unpacked once");
        self.before = Before::after(&entry);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batches() -> impl Strategy<Value = Vec<Entry>> {
        let one = (
            0..5_i64,
            any::<i64>(),
            0..1000_u32,
            0..100_u32,
            61..100_000_u32,
        );
        prop::collection::vec(one, 0..150).prop_map(|drawn| {
            let (mut end, mut at) = (7, 32);
            let place = |(gap, max_timestamp, last_delta, hole, len)| {
                let entry = Entry {
                    base: end + gap,
                    max_timestamp,
                    last_delta,
                    at: at + hole,
                    len,
                };
                end = entry.last() + 1;
                at = entry.at + entry.len;
                entry
            };
            drawn.into_iter().map(place).collect()
        })
    }

    proptest! {
        #[test]
        fn batches_come_out_as_they_went_in(batches in batches(), offset in -1..200_000_i64) {
            let entries: Entries = batches.iter().copied().collect();
            prop_assert_eq!(&entries.iter().collect::<Vec<_>>(), &batches);
            prop_assert_eq!(entries.last(), batches.last().copied());
            prop_assert_eq!(entries.end(), batches.last().map(|last| last.last() + 1));
            // from any offset, and from the first and the last of each batch
            let near = batches.iter().flat_map(|e| [e.base - 1, e.base, e.last(), e.last() + 1]);
            for from in near.chain([i64::MIN, offset, i64::MAX]) {
                let first = batches.partition_point(|e| e.last() < from);
                prop_assert_eq!(&entries.from(from).collect::<Vec<_>>(), &batches[first..]);
            }
        }

        #[test]
        fn the_packed_form_is_unpacked_to_the_same(batches in batches()) {
            let entries: Entries = batches.into_iter().collect();
            prop_assert_eq!(Entries::unpack(entries.packed().to_vec()), Some(entries));
        }

        #[test]
        fn other_bytes_are_refused_or_are_batches(bytes: Vec<u8>) {
            if let Some(entries) = Entries::unpack(bytes) {
                prop_assert_eq!(entries.iter().count(), entries.count);
            }
        }
    }

    #[test]
    fn a_batch_that_is_cut_off_is_refused() {
        let entry = Entry {
            base: 1_000,
            max_timestamp: 1_700_000_000_000,
            last_delta: 99,
            at: 32,
            len: 6_100,
        };
        let packed = [entry].into_iter().collect::<Entries>().packed().to_vec();
        for length in 1..packed.len() {
            assert_eq!(Entries::unpack(packed[..length].to_vec()), None);
        }
    }
}
