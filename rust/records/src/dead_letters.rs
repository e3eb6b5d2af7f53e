//! Builds a batch of dead-letter records (KIP-1191): one for each record that a share group rejected or failed to
//! process, with headers that identify it and, on request, its content.

use std::borrow::Cow;
use std::iter::Peekable;

use crate::{
    batch::{Batch, Batches, Header},
    compression::Compression,
    layout::HEADER,
    record::{Record, Records},
    rewrite::assembled,
    varint::{put_varint, varint_len},
};

/// Prefix of the header names.
const PREFIX: &str = "__dlq.errors.";

const REJECTED: &str = "Offset rejected by client.";
const GIVEN_UP: &str = "Offset delivery count exceeded the threshold.";
/// Not in Apache Kafka, whose records do not expire.
const EXPIRED: &str = "Record expired.";

/// The share partition of the dead letters.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The share group.
    pub group: String,
    /// Topic of the records.
    pub topic: String,
    /// Partition of the topic.
    pub partition: i32,
}

/// Why records are dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// They reached their delivery limit.
    DeliveryLimit = 0,
    /// A member rejected them.
    Rejected = 1,
    /// Their time to live ended.
    Expired = 2,
}

impl Cause {
    /// The cause with this ID.
    pub fn from_id(id: u8) -> Self {
        match id {
            1 => Self::Rejected,
            2 => Self::Expired,
            _ => Self::DeliveryLimit,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::DeliveryLimit => GIVEN_UP,
            Self::Rejected => REJECTED,
            Self::Expired => EXPIRED,
        }
    }
}

/// Neighboring records with the same cause.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First offset.
    pub first: i64,
    /// Last offset, included.
    pub last: i64,
    /// How often they were delivered.
    pub delivery_count: u16,
    /// The cause.
    pub cause: Cause,
}

/// A batch that grows record by record, up to a size.
#[derive(Debug)]
pub struct DeadLetters {
    origin: Origin,
    copy: bool,
    limit: usize,
    now: i64,
    records: Vec<u8>,
    count: i32,
}

impl DeadLetters {
    /// Creates an empty batch with timestamp `now` (milliseconds since the epoch) and at most `limit` bytes; with
    /// `copy` it contains the original records.
    pub fn new(origin: Origin, copy: bool, now: i64, limit: usize) -> Self {
        Self {
            origin,
            copy,
            limit,
            now,
            records: Vec::new(),
            count: 0,
        }
    }

    /// The number of dead-letter records.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Adds dead-letter records for `ranges`, as many as fit. Returns how many ranges are done and the first offset of
    /// the next range that is not (0 if all are).
    ///
    /// Control batches are skipped. A record that is missing from `source`, is larger than the limit, or has a
    /// compressed batch that expands beyond the limit, gets a dead-letter record without key, value and original
    /// headers; one that is too large only together with the added headers first loses its own headers. An empty batch
    /// accepts a record of any size.
    ///
    /// `source` holds whole record batches of the log, ascending, and everything that the log has from the first range
    /// to before `read_to`. A range out of order ends the walk.
    pub fn add(&mut self, ranges: &[Range], source: &[u8], read_to: i64) -> (usize, i64) {
        let held = self.held(ranges, source);
        let mut readers: Vec<_> = held
            .iter()
            .map(|(batch, expanded)| {
                expanded
                    .as_deref()
                    .map(|bytes| batch.records(bytes).peekable())
            })
            .collect();
        let mut frame = None;
        let mut before = i64::MIN;
        for (done, range) in ranges.iter().enumerate() {
            if range.first <= before {
                return (done, range.first);
            }
            before = range.last;
            let equal = (range.delivery_count, range.cause);
            let frame = match &mut frame {
                Some((of, frame)) if *of == equal => &*frame,
                other => &other.insert((equal, Frame::new(&self.origin, range))).1,
            };
            let end = range.last.saturating_add(1).min(read_to);
            let mut next = range.first;
            let from = held.partition_point(|(batch, _)| batch.header.last_offset() < next);
            for ((batch, _), reader) in held[from..].iter().zip(&mut readers[from..]) {
                let header = batch.header;
                if header.base_offset >= end {
                    break;
                }
                if !self.bare_to(frame, &mut next, header.base_offset) {
                    return (done, next);
                }
                let behind = header.last_offset().saturating_add(1);
                if header.is_control() {
                    next = behind;
                } else if !self.batch(frame, &mut next, behind.min(end), reader.as_mut()) {
                    return (done, next); // the rest must fit as it is, rather than lose its content
                }
            }
            if !self.bare_to(frame, &mut next, end) || next <= range.last {
                return (done, next);
            }
        }
        (ranges.len(), 0)
    }

    /// The batches of `source` that overlap `ranges`, decompressed if their records are to be copied.
    fn held<'s>(
        &self,
        ranges: &[Range],
        source: &'s [u8],
    ) -> Vec<(Batch<'s>, Option<Cow<'s, [u8]>>)> {
        let mut held = Vec::new();
        for batch in Batches::new(source) {
            let (first, last) = (batch.header.base_offset, batch.header.last_offset());
            if !ranges
                .iter()
                .any(|range| range.first <= last && range.last >= first)
            {
                continue;
            }
            let wanted = self.copy && !batch.header.is_control();
            let limit = match batch.header.compression() {
                Ok(Compression::None) => usize::MAX,
                _ => self.limit,
            };
            let expanded = wanted.then(|| batch.expand(limit).ok()).flatten();
            held.push((batch, expanded));
        }
        held
    }

    /// The dead-letter records of one source batch, up to `end`; false if this batch fills up first.
    fn batch(
        &mut self,
        frame: &Frame,
        next: &mut i64,
        end: i64,
        mut reader: Option<&mut Peekable<Records<'_>>>,
    ) -> bool {
        while let Some(Some(Ok(record))) = reader.as_mut().map(|reader| reader.peek()) {
            if record.offset >= end {
                break;
            }
            if record.offset >= *next {
                if !self.bare_to(frame, next, record.offset) || !self.copied(frame, record) {
                    return false;
                }
                *next = record.offset + 1;
            }
            if let Some(reader) = reader.as_mut() {
                reader.next();
            }
        }
        self.bare_to(frame, next, end)
    }

    /// Returns the whole batch, and resets this one to empty.
    pub fn finish(&mut self) -> Vec<u8> {
        let header = Header {
            base_offset: 0,
            size: 0,
            leader_epoch: -1,
            attributes: 0,
            last_offset_delta: self.count - 1,
            base_timestamp: self.now,
            max_timestamp: self.now,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: self.count,
        };
        self.count = 0;
        assembled(header, &std::mem::take(&mut self.records))
    }

    /// Dead-letter records without content for `*next..end`; false if the batch fills up first.
    fn bare_to(&mut self, frame: &Frame, next: &mut i64, end: i64) -> bool {
        while *next < end {
            if !self.push(&frame.letter(self.count, *next, None, &[])) {
                return false;
            }
            *next += 1;
        }
        true
    }

    /// The dead-letter record of a record, with as much of its content as a batch may hold.
    fn copied(&mut self, frame: &Frame, record: &Record<'_>) -> bool {
        let whole = record.bytes.len() + varint_len(record.bytes.len() as i64);
        if whole > self.limit {
            return self.push(&frame.letter(self.count, record.offset, None, &[]));
        }
        let own = own_headers(record);
        let content = Some((record.key, record.value));
        let mut letter = frame.letter(self.count, record.offset, content, &own);
        if !own.is_empty() && self.too_large(&letter) {
            letter = frame.letter(self.count, record.offset, content, &[]);
        }
        if self.too_large(&letter) {
            letter = frame.letter(self.count, record.offset, None, &[]);
        }
        self.push(&letter)
    }

    fn too_large(&self, letter: &[u8]) -> bool {
        HEADER + letter.len() + varint_len(letter.len() as i64) > self.limit
    }

    fn push(&mut self, letter: &[u8]) -> bool {
        let size = letter.len() + varint_len(letter.len() as i64);
        if self.count > 0 && HEADER + self.records.len() + size > self.limit {
            return false;
        }
        put_varint(&mut self.records, letter.len() as i64);
        self.records.extend_from_slice(letter);
        self.count += 1;
        true
    }
}

type Content<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);
type Own<'a> = Vec<(String, Option<&'a [u8]>)>;

/// The headers of a record, except those of an earlier dead-letter record.
fn own_headers<'a>(record: &Record<'a>) -> Own<'a> {
    let headers = record.headers.clone();
    headers
        .map_while(Result::ok)
        .filter(|(name, _)| !name.starts_with(PREFIX))
        .collect()
}

/// The headers common to a range: those before and those after the offset header.
struct Frame {
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Frame {
    fn new(origin: &Origin, range: &Range) -> Self {
        let mut frame = Self {
            before: Vec::new(),
            behind: Vec::new(),
        };
        put_error(&mut frame.before, "topic", &origin.topic);
        let partition = origin.partition.to_string();
        put_error(&mut frame.before, "partition", &partition);
        put_error(&mut frame.behind, "group", &origin.group);
        let count = range.delivery_count.to_string();
        put_error(&mut frame.behind, "delivery.count", &count);
        put_error(&mut frame.behind, "message", range.cause.message());
        frame
    }

    /// Encodes a record, without its length.
    fn letter(
        &self,
        delta: i32,
        offset: i64,
        content: Option<Content<'_>>,
        own: &[(String, Option<&[u8]>)],
    ) -> Vec<u8> {
        let (key, value) = content.unwrap_or_default();
        let held = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
        let mut out = Vec::with_capacity(self.before.len() + self.behind.len() + held + 64);
        out.extend_from_slice(&[0, 0]);
        put_varint(&mut out, i64::from(delta));
        put_field(&mut out, key);
        put_field(&mut out, value);
        put_varint(&mut out, 6 + own.len() as i64);
        out.extend_from_slice(&self.before);
        put_error(&mut out, "offset", &offset.to_string());
        out.extend_from_slice(&self.behind);
        for (name, value) in own {
            put_field(&mut out, Some(name.as_bytes()));
            put_field(&mut out, *value);
        }
        out
    }
}

fn put_error(out: &mut Vec<u8>, name: &str, text: &str) {
    put_varint(out, (PREFIX.len() + name.len()) as i64);
    out.extend_from_slice(PREFIX.as_bytes());
    out.extend_from_slice(name.as_bytes());
    put_field(out, Some(text.as_bytes()));
}

fn put_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        Some(bytes) => {
            put_varint(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}

#[cfg(test)]
mod tests;
