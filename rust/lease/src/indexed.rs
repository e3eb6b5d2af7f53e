//! A record batch whose records can be found by their offsets.

use std::borrow::Cow;

use sharecore_engine::{Acquired, OffsetRange};
use sharecore_records::{Batch, Header, Outline};

use crate::{EXPANDED_BYTES_MAX, missing::is_trusted};

/// A copy of a batch with an index of its records.
#[derive(Debug)]
pub(crate) struct IndexedBatch {
    offsets: OffsetRange,
    header: Header,
    /// The batch as it is in the log.
    bytes: Vec<u8>,
    /// The decompressed records, if it is compressed.
    expanded: Option<Vec<u8>>,
    /// Ascending by offset.
    records: Vec<Place>,
    record_bytes: usize,
}

/// Where a record is in the decompressed batch.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: i64,
    timestamp: i64,
    start: u32,
    size: u32,
}

/// Passes each record of a batch, and where it starts, to `see`; returns the decompressed records. `None` if the batch is
/// damaged, expands too far, has no records for clients, or contradicts its header: then some may have been passed.
pub(crate) fn outlined<'a>(
    batch: &Batch<'a>,
    offsets: OffsetRange,
    mut see: impl FnMut(Outline<'_>, usize),
) -> Option<Cow<'a, [u8]>> {
    if batch.header.is_control() || !is_trusted(offsets, batch.bytes().len()) {
        return None;
    }
    let expanded = batch.expand(EXPANDED_BYTES_MAX).ok()?;
    let (mut is_in_order, mut next) = (true, offsets.first);
    let begin = expanded.as_ptr() as usize;
    let walked = batch.records(&expanded).outlines(|record| {
        is_in_order &= (next..=offsets.last).contains(&record.offset);
        next = record.offset.saturating_add(1);
        see(record, record.bytes.as_ptr() as usize - begin);
    });
    (walked.is_ok() && is_in_order).then_some(expanded)
}

impl IndexedBatch {
    /// Expands a batch; `None` as of [`outlined`].
    pub(crate) fn new(batch: &Batch<'_>, offsets: OffsetRange) -> Option<Self> {
        let count = i64::from(batch.header.count).clamp(0, offsets.count());
        let mut records = Vec::with_capacity(usize::try_from(count).ok()?.min(batch.bytes().len()));
        let mut record_bytes = 0;
        let expanded = outlined(batch, offsets, |record, start| {
            record_bytes += record.bytes.len();
            records.push(Place {
                offset: record.offset,
                timestamp: record.timestamp,
                start: start as u32,
                size: record.bytes.len() as u32,
            });
        })?;
        debug_assert!(u32::try_from(expanded.len()).is_ok(), "places have 32 bits");
        Some(Self {
            offsets,
            header: batch.header,
            bytes: batch.bytes().to_vec(),
            expanded: match expanded {
                Cow::Borrowed(_) => None,
                Cow::Owned(bytes) => Some(bytes),
            },
            records,
            record_bytes,
        })
    }

    /// The offsets of the batch.
    pub(crate) fn offsets(&self) -> OffsetRange {
        self.offsets
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The batch as it is in the log.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many records it has.
    pub(crate) fn count(&self) -> usize {
        self.records.len()
    }

    /// The bytes of all its records.
    pub(crate) fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// How many bytes were decompressed.
    pub(crate) fn expanded_bytes(&self) -> usize {
        self.expanded.as_ref().map_or(self.bytes.len(), Vec::len)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let expanded = self.expanded.as_ref().map_or(0, Vec::capacity);
        size_of::<Self>()
            + self.bytes.capacity()
            + expanded
            + self.records.capacity() * size_of::<Place>()
    }

    /// The records in these ranges, which are ascending.
    pub(crate) fn records_in<'a>(&'a self, acquired: &[Acquired]) -> Vec<Outline<'a>> {
        let payload = match &self.expanded {
            Some(bytes) => bytes,
            None => &self.bytes[sharecore_records::layout::HEADER..],
        };
        let mut found = Vec::new();
        for range in acquired {
            let these = self.at(range.first)..self.at(range.last.saturating_add(1));
            let these = &self.records[these];
            found.extend(these.iter().map(|each| Outline {
                offset: each.offset,
                timestamp: each.timestamp,
                bytes: &payload[each.start as usize..][..each.size as usize],
            }));
        }
        found
    }

    /// The number of the first record from `offset` on.
    fn at(&self, offset: i64) -> usize {
        // most batches have a record at each offset
        let guess = usize::try_from(offset - self.offsets.first).unwrap_or(0);
        if self
            .records
            .get(guess)
            .is_some_and(|each| each.offset == offset)
        {
            return guess;
        }
        self.records.partition_point(|each| each.offset < offset)
    }
}
