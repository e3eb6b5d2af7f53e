//! Walks over records that arrive piece by piece, without buffering them: a record's end follows from its fields.

use crate::{
    batch::{Header, TimestampType},
    fault::Fault,
};

/// Most bytes of a 32-bit varint, and of a 64-bit one.
const INT_BYTES: u32 = 5;
const LONG_BYTES: u32 = 10;

/// A record, as seen by the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its index in the batch.
    pub index: i32,
    /// Its offset, relative to that of the batch.
    pub offset_delta: i32,
    /// Milliseconds since the epoch, by the clock of the batch's timestamp type.
    pub timestamp: i64,
    /// Whether it has a key.
    pub has_key: bool,
}

/// The field that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Size,
    Attributes,
    Time,
    Offset,
    Key,
    Value,
    Headers,
    Name,
    HeaderValue,
}

/// A walk over the records of one batch.
#[derive(Debug)]
pub struct Walk {
    base_timestamp: i64,
    append_time: Option<i64>,
    count: i32,
    index: i32,
    field: Field,
    /// Remaining bytes of the current record.
    left: usize,
    /// Of those, bytes of a key, a name or a value to skip.
    skip: usize,
    headers: i32,
    /// The current number, and how many of its bytes were read.
    number: u64,
    number_bytes: u32,
    seen: Seen,
}

impl Walk {
    /// Starts a walk over the records that `header` announces.
    pub fn new(header: &Header) -> Self {
        Self {
            base_timestamp: header.base_timestamp,
            append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
            count: header.count,
            index: 0,
            field: Field::Size,
            left: 0,
            skip: 0,
            headers: 0,
            number: 0,
            number_bytes: 0,
            seen: Seen {
                index: 0,
                offset_delta: 0,
                timestamp: 0,
                has_key: false,
            },
        }
    }

    /// How many records were walked.
    pub fn walked(&self) -> i32 {
        self.index
    }

    /// Continues over `piece`, and calls `see` at the end of each record.
    ///
    /// # Errors
    ///
    /// Fails if a field does not fit its record, or bytes follow the last record.
    pub fn feed(&mut self, mut piece: &[u8], mut see: impl FnMut(Seen)) -> Result<(), Fault> {
        while !piece.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(piece.len());
                piece = &piece[skipped..];
                self.skip -= skipped;
                self.left -= skipped;
            } else if self.field == Field::Size {
                if self.index == self.count {
                    return Err(Fault::Malformed("bytes follow the batch's last record"));
                }
                let Some(size) = self.int(&mut piece)? else {
                    return Ok(());
                };
                self.left = usize::try_from(size)
                    .map_err(|_| Fault::Malformed("a record has a negative length"))?;
                self.field = Field::Attributes;
            } else {
                self.record(&mut piece)?;
            }
            self.end_record(&mut see)?;
        }
        Ok(())
    }

    /// Checks that the last record was whole and the last one announced.
    ///
    /// # Errors
    ///
    /// Fails if records are missing.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.field == Field::Size && self.number_bytes == 0 && self.index == self.count {
            Ok(())
        } else {
            Err(Fault::Malformed("the batch has fewer records than it says"))
        }
    }

    /// Reads a field of the current record, or a part of it.
    fn record(&mut self, piece: &mut &[u8]) -> Result<(), Fault> {
        let available = piece.len().min(self.left);
        let mut fields = &piece[..available];
        if fields.is_empty() {
            return Err(Fault::Malformed(
                "a length in a record reaches past its end",
            ));
        }
        self.fields(&mut fields)?;
        let taken = available - fields.len();
        *piece = &piece[taken..];
        self.left -= taken;
        if self.skip > self.left {
            return Err(Fault::Malformed(
                "a length in a record reaches past its end",
            ));
        }
        Ok(())
    }

    fn fields(&mut self, fields: &mut &[u8]) -> Result<(), Fault> {
        match self.field {
            Field::Size => unreachable!("a size is no field of its record"),
            Field::Attributes => {
                *fields = &fields[1..];
                self.field = Field::Time;
            }
            Field::Time => {
                if let Some(delta) = self.number(fields, LONG_BYTES)? {
                    let time = self.base_timestamp.saturating_add(delta);
                    self.seen.timestamp = self.append_time.unwrap_or(time);
                    self.field = Field::Offset;
                }
            }
            Field::Offset => {
                if let Some(delta) = self.int(fields)? {
                    self.seen.offset_delta = delta;
                    self.field = Field::Key;
                }
            }
            Field::Key => {
                if let Some(size) = self.int(fields)? {
                    self.seen.has_key = size >= 0;
                    self.skip = usize::try_from(size).unwrap_or(0);
                    self.field = Field::Value;
                }
            }
            Field::Value => {
                if let Some(size) = self.int(fields)? {
                    self.skip = usize::try_from(size).unwrap_or(0);
                    self.field = Field::Headers;
                }
            }
            Field::Headers => {
                if let Some(count) = self.int(fields)? {
                    if count < 0 {
                        return Err(Fault::Malformed(
                            "a record has a negative number of headers",
                        ));
                    }
                    self.headers = count;
                    self.field = Field::Name;
                }
            }
            Field::Name => {
                if self.headers == 0 {
                    return Err(Fault::Malformed("a record is longer than what it holds"));
                }
                if let Some(size) = self.int(fields)? {
                    self.skip = usize::try_from(size)
                        .map_err(|_| Fault::Malformed("a header has no name"))?;
                    self.field = Field::HeaderValue;
                }
            }
            Field::HeaderValue => {
                if let Some(size) = self.int(fields)? {
                    self.skip = usize::try_from(size).unwrap_or(0);
                    self.headers -= 1;
                    self.field = Field::Name;
                }
            }
        }
        Ok(())
    }

    /// Ends the current record if it is complete.
    fn end_record(&mut self, see: &mut impl FnMut(Seen)) -> Result<(), Fault> {
        if self.field == Field::Size || self.left > 0 {
            return Ok(());
        }
        if self.field != Field::Name || self.headers > 0 || self.number_bytes > 0 {
            return Err(Fault::Malformed("a record ends too early"));
        }
        self.seen.index = self.index;
        see(self.seen);
        self.index += 1;
        self.field = Field::Size;
        Ok(())
    }

    fn int(&mut self, bytes: &mut &[u8]) -> Result<Option<i32>, Fault> {
        let number = self.number(bytes, INT_BYTES)?;
        number
            .map(i32::try_from)
            .transpose()
            .map_err(|_| Fault::Malformed("a number in a record is too large"))
    }

    /// The next number; `None` if some of its bytes are still missing.
    fn number(&mut self, bytes: &mut &[u8], bytes_max: u32) -> Result<Option<i64>, Fault> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.number |= u64::from(byte & 0x7f) << (7 * self.number_bytes);
            self.number_bytes += 1;
            if byte < 0x80 {
                let value = (self.number >> 1).cast_signed() ^ -(self.number & 1).cast_signed();
                self.number = 0;
                self.number_bytes = 0;
                return Ok(Some(value));
            }
            if self.number_bytes == bytes_max {
                return Err(Fault::Malformed("a number in a record is too long"));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::varint::put_varint;

    fn header(count: i32) -> Header {
        Header {
            base_offset: 0,
            size: 0,
            leader_epoch: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: 1000,
            max_timestamp: 1000,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count,
        }
    }

    /// A record with headers, whose fields have multi-byte lengths.
    fn record(delta: i32, key: Option<&[u8]>) -> Vec<u8> {
        let mut body = vec![0];
        put_varint(&mut body, i64::from(delta) * 1_000_000);
        put_varint(&mut body, i64::from(delta));
        match key {
            Some(key) => {
                put_varint(&mut body, key.len() as i64);
                body.extend_from_slice(key);
            }
            None => put_varint(&mut body, -1),
        }
        put_varint(&mut body, 300);
        body.resize(body.len() + 300, 7);
        put_varint(&mut body, 2);
        for name in [&b"first"[..], b""] {
            put_varint(&mut body, name.len() as i64);
            body.extend_from_slice(name);
            put_varint(&mut body, -1);
        }
        let mut whole = Vec::new();
        put_varint(&mut whole, body.len() as i64);
        whole.extend_from_slice(&body);
        whole
    }

    fn walked(bytes: &[u8], count: i32, piece: usize) -> Result<Vec<Seen>, Fault> {
        let mut walk = Walk::new(&header(count));
        let mut seen = Vec::new();
        for part in bytes.chunks(piece) {
            walk.feed(part, |record| seen.push(record))?;
        }
        walk.finish().map(|()| seen)
    }

    #[test]
    fn records_are_seen_alike_wherever_they_are_cut() {
        let bytes = [record(0, Some(b"k")), record(1, None), record(2, Some(b""))].concat();
        let expected = [(0, true), (1, false), (2, true)].map(|(index, has_key)| Seen {
            index,
            offset_delta: index,
            timestamp: 1000 + i64::from(index) * 1_000_000,
            has_key,
        });
        for piece in 1..=bytes.len() {
            assert_eq!(
                walked(&bytes, 3, piece).as_deref(),
                Ok(&expected[..]),
                "{piece}"
            );
        }
    }

    #[test]
    fn records_are_read_as_those_are_that_lie_in_memory() {
        let bytes = [record(0, Some(b"k")), record(1, None)].concat();
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let whole = crate::rewrite::assembled(header(2), &changed);
                let batch = crate::Batches::new(&whole).next().expect("a batch");
                let mut records = batch.records(&changed);
                let all = records.by_ref().collect::<Result<Vec<_>, _>>();
                let all = all.and_then(|all| {
                    let checked = all.iter().try_for_each(|each| each.headers.clone().check());
                    checked.map(|()| all.iter().map(|each| each.timestamp).collect::<Vec<_>>())
                });
                let all = all.ok().filter(|_| records.is_at_end());
                let seen = walked(&changed, 2, 17).ok();
                let seen = seen.map(|seen| seen.iter().map(|each| each.timestamp).collect());
                assert_eq!(seen, all, "byte {at} is {value:#x}");
            }
        }
    }

    #[test]
    fn more_or_fewer_records_than_announced_are_a_fault() {
        let bytes = [record(0, None), record(1, None), record(2, None)].concat();
        for (count, piece) in [(2, 1), (2, 5000), (4, 1), (4, 5000), (i32::MAX, 64)] {
            assert!(walked(&bytes, count, piece).is_err(), "{count}");
        }
        for cut in 1..bytes.len() {
            assert!(walked(&bytes[..cut], 3, 100).is_err(), "{cut}");
        }
        assert!(walked(&[&bytes[..], &[0]].concat(), 3, 100).is_err());
    }

    #[test]
    fn a_number_takes_no_more_bytes_than_its_kind_needs() {
        let padded = |bytes: &[u8]| {
            let mut body = vec![0, 0];
            body.extend_from_slice(bytes);
            body.extend_from_slice(&[1, 1, 0]);
            let mut whole = Vec::new();
            put_varint(&mut whole, body.len() as i64);
            whole.extend_from_slice(&body);
            walked(&whole, 1, 100)
        };
        assert!(padded(&[0x80, 0x80, 0x80, 0x80, 0]).is_ok());
        assert!(padded(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).is_err());
        assert!(padded(&[0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }
}
