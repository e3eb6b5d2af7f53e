//! The records of one decompressed batch.

use crate::{
    batch::{Batch, Header, TimestampType},
    fault::Fault,
    varint::Cursor,
};

/// One record; keys, values and headers point into the decompressed batch.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since the epoch, by the clock of the batch's timestamp type.
    pub timestamp: i64,
    /// `None` if the record has no key.
    pub key: Option<&'a [u8]>,
    /// `None` if the record has no value.
    pub value: Option<&'a [u8]>,
    /// The headers, parsed on demand.
    pub headers: Headers<'a>,
    /// The encoded record, without its length.
    pub bytes: &'a [u8],
}

/// One record, of which only the beginning was read: what it takes to pass it on, or over it.
#[derive(Debug, Clone, Copy)]
pub struct Outline<'a> {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since the epoch, by the clock of the batch's timestamp type.
    pub timestamp: i64,
    /// The encoded record, without its length.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// What [`Records::outlines`] returns for it.
    pub fn outline(&self) -> Outline<'a> {
        Outline {
            offset: self.offset,
            timestamp: self.timestamp,
            bytes: self.bytes,
        }
    }
}

impl Batch<'_> {
    /// The records in the result of `expand`.
    pub fn records<'b>(&self, expanded: &'b [u8]) -> Records<'b> {
        Records::new(&self.header, expanded)
    }
}

/// Iterates over the records of a batch; ends after the first fault.
#[derive(Debug)]
pub struct Records<'a> {
    cursor: Cursor<'a>,
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
}

impl<'a> Records<'a> {
    fn new(header: &Header, expanded: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(expanded),
            left: header.count,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
        }
    }

    /// The beginning of the next record, and the rest of it.
    #[inline]
    fn read_outline(&mut self) -> Result<(Outline<'a>, Cursor<'a>), Fault> {
        let size = usize::try_from(self.cursor.varint()?)
            .map_err(|_| Fault::Malformed("a record has a negative length"))?;
        let bytes = self.cursor.take(size)?;
        let mut record = Cursor::new(bytes);
        record.byte()?;
        let timestamp_delta = record.varlong()?;
        let offset_delta = record.varint()?;
        let outline = Outline {
            offset: self.base_offset.saturating_add(i64::from(offset_delta)),
            timestamp: self
                .append_time
                .unwrap_or_else(|| self.base_timestamp.saturating_add(timestamp_delta)),
            bytes,
        };
        Ok((outline, record))
    }

    fn read(&mut self) -> Result<Record<'a>, Fault> {
        let (outline, mut record) = self.read_outline()?;
        Ok(Record {
            offset: outline.offset,
            timestamp: outline.timestamp,
            key: record.field()?,
            value: record.field()?,
            headers: Headers::new(record)?,
            bytes: outline.bytes,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let record = self.read();
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

impl<'a> Records<'a> {
    /// Calls `see` for the outline of each record left; stops at the first fault.
    ///
    /// A third of the cost of reading whole records.
    ///
    /// # Errors
    ///
    /// Fails if a record's beginning cannot be read, or bytes follow the last record.
    pub fn outlines(mut self, mut see: impl FnMut(Outline<'a>)) -> Result<(), Fault> {
        for _ in 0..self.left {
            see(self.read_outline()?.0);
        }
        if self.is_at_end() {
            Ok(())
        } else {
            Err(Fault::Malformed("bytes follow the batch's last record"))
        }
    }

    /// Whether no bytes follow the last record read.
    pub fn is_at_end(&self) -> bool {
        self.cursor.rest.is_empty()
    }
}

/// Iterates over a record's headers; invalid UTF-8 in a name is replaced.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    cursor: Cursor<'a>,
    left: i32,
}

impl<'a> Headers<'a> {
    fn new(mut cursor: Cursor<'a>) -> Result<Self, Fault> {
        let left = cursor.varint()?;
        if left < 0 {
            return Err(Fault::Malformed(
                "a record has a negative number of headers",
            ));
        }
        Ok(Self { cursor, left })
    }

    /// Checks that every header can be read, and that the record ends after the last one.
    pub fn check(mut self) -> Result<(), Fault> {
        for _ in 0..self.left {
            self.read_raw()?;
        }
        if self.cursor.rest.is_empty() {
            Ok(())
        } else {
            Err(Fault::Malformed("a record is longer than what it holds"))
        }
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The value of the last header with this name; `Some(None)` if it is null.
    ///
    /// # Errors
    ///
    /// Fails if the headers cannot be read.
    pub fn last_value(&self, name: &[u8]) -> Result<Option<Option<&'a [u8]>>, Fault> {
        let mut headers = self.clone();
        let mut found = None;
        for _ in 0..headers.left {
            let (each, value) = headers.read_raw()?;
            if each == name {
                found = Some(value);
            }
        }
        Ok(found)
    }

    fn read_raw(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>), Fault> {
        let name = self
            .cursor
            .field()?
            .ok_or(Fault::Malformed("a header has no name"))?;
        Ok((name, self.cursor.field()?))
    }

    fn read(&mut self) -> Result<(String, Option<&'a [u8]>), Fault> {
        let (name, value) = self.read_raw()?;
        Ok((String::from_utf8_lossy(name).into_owned(), value))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Result<(String, Option<&'a [u8]>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let header = self.read();
        if header.is_err() {
            self.left = 0;
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batches, headed_batch};

    #[test]
    fn outlines_are_those_of_the_records() {
        let long = vec![7; 300];
        let header: &[(&str, Option<&[u8]>)] = &[("name", Some(b"value")), ("none", None)];
        let records = [
            ((Some(&b"key"[..]), Some(&long[..])), header),
            ((None, None), &[][..]),
            ((Some(&long[..]), Some(&b"value"[..])), header),
        ];
        let bytes = headed_batch(&records, 1000);
        let batch = Batches::new(&bytes).next().unwrap();
        let wanted: Vec<_> = batch
            .records(batch.payload())
            .map(|record| record.unwrap().outline())
            .map(|record| (record.offset, record.timestamp, record.bytes))
            .collect();
        let mut found = Vec::new();
        let see = |record: super::Outline<'_>| {
            found.push((record.offset, record.timestamp, record.bytes.to_vec()));
        };
        assert_eq!(batch.records(batch.payload()).outlines(see), Ok(()));
        assert_eq!(found.len(), records.len());
        let found = found
            .iter()
            .map(|(offset, time, bytes)| (*offset, *time, &bytes[..]));
        assert!(found.eq(wanted));
    }

    #[test]
    fn outlines_end_where_the_records_do() {
        let record = ((Some(&b"key"[..]), Some(&b"value"[..])), &[][..]);
        let bytes = headed_batch(&[record, record], 1000);
        let batch = Batches::new(&bytes).next().unwrap();
        let payload = batch.payload();
        let longer = [payload, &[0]].concat();
        for wrong in [&payload[..payload.len() - 1], &longer] {
            assert!(batch.records(wrong).outlines(|_| {}).is_err());
        }
        let mut negative = payload.to_vec();
        negative[0] = 1;
        assert!(batch.records(&negative).outlines(|_| {}).is_err());
    }
}
