//! One batch of dead letters (KIP-1191): a record for each record that a share group gave up, with headers that tell
//! where it was, and on request with what it held.

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

/// What the names of the headers of letters begin with.
const PREFIX: &str = "__dlq.errors.";

const REJECTED: &str = "Offset rejected by client.";
const GIVEN_UP: &str = "Offset delivery count exceeded the threshold.";
/// Ours: Apache Kafka has no records that expire.
const EXPIRED: &str = "Record expired.";

/// The share partition whose records were given up.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The share group.
    pub group: String,
    /// Topic of the records.
    pub topic: String,
    /// Partition of the topic.
    pub partition: i32,
}

/// Why records were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// They reached their delivery limit.
    DeliveryLimit = 0,
    /// A member rejected them.
    Rejected = 1,
    /// Their time to live is over.
    Expired = 2,
}

impl Cause {
    /// The cause with this number.
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

/// Neighbouring records that were given up together.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First offset.
    pub first: i64,
    /// Last offset, included.
    pub last: i64,
    /// How often they were delivered.
    pub delivery_count: u16,
    /// Why.
    pub cause: Cause,
}

/// A batch that grows letter by letter, up to a size.
#[derive(Debug)]
pub struct Letters {
    origin: Origin,
    copy: bool,
    limit: usize,
    now: i64,
    records: Vec<u8>,
    count: i32,
}

impl Letters {
    /// An empty batch whose letters are written at `now` (milliseconds since the epoch) and that shall be no larger than
    /// `limit` bytes; with `copy` they carry the records.
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

    /// How many letters there are.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Adds letters for `ranges`, as many as fit, and returns how many ranges are done and the first offset of the next
    /// one that is not (0 where all are).
    ///
    /// Offsets of control batches get none. A record that is not in `source`, that is larger than the limit, or whose
    /// compressed batch expands to more than the limit, gets a letter without key, value and headers of its own; one
    /// that is too large only together with the letter's headers loses its own headers first. A batch without letters
    /// takes one of any size.
    ///
    /// `source` holds whole record batches of the log, ascending, and everything that the log has from the first range
    /// on of the offsets before `read_to`. A range that does not follow those before it ends the walk.
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
                    return (done, next); // what is left has to find room as it is, not without its content
                }
            }
            if !self.bare_to(frame, &mut next, end) || next <= range.last {
                return (done, next);
            }
        }
        (ranges.len(), 0)
    }

    /// The batches of `source` that hold any of `ranges`, with their records expanded where they are to be copied.
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

    /// The letters of one source batch, up to `end`; false where this batch is full before.
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

    /// Returns the whole batch, and leaves this one empty.
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

    /// Letters without content for `*next..end`; false where the batch is full before.
    fn bare_to(&mut self, frame: &Frame, next: &mut i64, end: i64) -> bool {
        while *next < end {
            if !self.push(&frame.letter(self.count, *next, None, &[])) {
                return false;
            }
            *next += 1;
        }
        true
    }

    /// The letter of a record, with as much of it as a batch may hold.
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

/// The headers of a record, except those of an earlier letter.
fn own_headers<'a>(record: &Record<'a>) -> Own<'a> {
    let headers = record.headers.clone();
    headers
        .map_while(Result::ok)
        .filter(|(name, _)| !name.starts_with(PREFIX))
        .collect()
}

/// What all letters of a range have in common: the headers before and after the offset.
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

    /// A record as it stands after its length.
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
