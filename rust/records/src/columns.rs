//! Records as columns in Arrow's memory layout, which a columnar reader can use without copying each record.
//!
//! Numbers are in this machine's byte order; validity is one bit per row, least significant bit first. An unreadable
//! batch adds no rows.

use crate::{
    batch::{Batch, Batches, TimestampType},
    fault::Fault,
    record::Record,
};

/// Rows of bytes: `offsets` has one more entry than there are rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Start of each row in `data`, as `i32`.
    pub offsets: Vec<u8>,
    /// The rows' bytes, concatenated.
    pub data: Vec<u8>,
    /// Which rows are not null.
    pub validity: Validity,
}

/// One bit per row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    bits: Vec<u8>,
    rows: usize,
    /// Rows whose bit is not set.
    pub nulls: usize,
}

impl Validity {
    /// Adds a row.
    pub fn push(&mut self, valid: bool) {
        if self.rows.is_multiple_of(8) {
            self.bits.push(0);
        }
        if valid {
            self.bits[self.rows / 8] |= 1 << (self.rows % 8);
        } else {
            self.nulls += 1;
        }
        self.rows += 1;
    }

    fn truncate(&mut self, rows: usize) {
        while self.rows > rows {
            self.rows -= 1;
            let (at, bit) = (self.rows / 8, 1 << (self.rows % 8));
            if self.bits[at] & bit == 0 {
                self.nulls -= 1;
            }
            self.bits[at] &= !bit;
        }
        self.bits.truncate(rows.div_ceil(8));
    }

    /// Rows whose bit is set.
    pub fn valid(&self) -> usize {
        self.rows - self.nulls
    }

    /// The bits, or `None` if no row is null.
    pub fn bits(&self) -> Option<&[u8]> {
        (self.nulls > 0).then_some(&self.bits)
    }
}

impl Default for Binary {
    fn default() -> Self {
        Self {
            offsets: 0_i32.to_ne_bytes().to_vec(),
            data: Vec::new(),
            validity: Validity::default(),
        }
    }
}

impl Binary {
    /// Adds a row; all rows together must stay below 2 GiB.
    pub fn push(&mut self, field: Option<&[u8]>) {
        self.data.extend_from_slice(field.unwrap_or_default());
        self.offsets
            .extend_from_slice(&(self.data.len() as i32).to_ne_bytes());
        self.validity.push(field.is_some());
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate((rows + 1) * 4);
        self.data.truncate(last_i32(&self.offsets));
        self.validity.truncate(rows);
    }
}

fn last_i32(offsets: &[u8]) -> usize {
    let last = offsets
        .last_chunk::<4>()
        .expect("there is one more offset than rows");
    usize::try_from(i32::from_ne_bytes(*last)).expect("offsets ascend from 0")
}

/// The headers of all records: rows of `offsets` index `keys` and `values`; null without headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderColumn {
    /// Start of each row's headers, as `i32`.
    pub offsets: Vec<u8>,
    /// Which rows have headers.
    pub validity: Validity,
    /// Names, UTF-8.
    pub keys: Binary,
    /// Contents.
    pub values: Binary,
    count: i32,
}

/// Records as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Number of rows.
    pub rows: usize,
    /// Keys.
    pub keys: Binary,
    /// Values.
    pub values: Binary,
    /// Offsets, `i64`.
    pub offsets: Vec<u8>,
    /// Microseconds since the epoch, `i64`.
    pub timestamps: Vec<u8>,
    /// 0 for the producer's clock, 1 for the broker's, `i32`.
    pub timestamp_types: Vec<u8>,
    /// The tag of the range that contains the offset, `i32`.
    pub tags: Vec<u8>,
    /// Headers, if requested.
    pub headers: Option<HeaderColumn>,
}

/// The result of `read`.
#[derive(Debug)]
pub struct Read {
    /// The records.
    pub columns: Columns,
    /// The offset after the last whole batch, if there is one.
    pub next: Option<i64>,
    /// Unreadable batches, as (first, last) offset.
    pub faults: Vec<(i64, i64, Fault)>,
}

impl Columns {
    fn new(headers: bool) -> Self {
        Self {
            rows: 0,
            keys: Binary::default(),
            values: Binary::default(),
            offsets: Vec::new(),
            timestamps: Vec::new(),
            timestamp_types: Vec::new(),
            tags: Vec::new(),
            headers: headers.then(|| HeaderColumn {
                offsets: 0_i32.to_ne_bytes().to_vec(),
                validity: Validity::default(),
                keys: Binary::default(),
                values: Binary::default(),
                count: 0,
            }),
        }
    }

    fn push(&mut self, record: &Record<'_>, append_time: bool, tag: i32) -> Result<(), Fault> {
        if let Some(headers) = &mut self.headers {
            headers.push(record)?;
        }
        self.keys.push(record.key);
        self.values.push(record.value);
        self.offsets.extend_from_slice(&record.offset.to_ne_bytes());
        self.timestamps
            .extend_from_slice(&record.timestamp.saturating_mul(1000).to_ne_bytes());
        self.timestamp_types
            .extend_from_slice(&i32::from(append_time).to_ne_bytes());
        self.tags.extend_from_slice(&tag.to_ne_bytes());
        self.rows += 1;
        Ok(())
    }

    fn truncate(&mut self, rows: usize) {
        self.keys.truncate(rows);
        self.values.truncate(rows);
        self.offsets.truncate(rows * 8);
        self.timestamps.truncate(rows * 8);
        self.timestamp_types.truncate(rows * 4);
        self.tags.truncate(rows * 4);
        if let Some(headers) = &mut self.headers {
            headers.truncate(rows);
        }
        self.rows = rows;
    }
}

impl HeaderColumn {
    fn push(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        let before = self.count;
        for header in record.headers.clone() {
            match header {
                Ok((name, value)) => {
                    self.keys.push(Some(name.as_bytes()));
                    self.values.push(value);
                    self.count += 1;
                }
                Err(fault) => {
                    self.count = before;
                    self.cut_entries();
                    return Err(fault);
                }
            }
        }
        self.offsets.extend_from_slice(&self.count.to_ne_bytes());
        self.validity.push(self.count > before);
        Ok(())
    }

    fn cut_entries(&mut self) {
        let entries = usize::try_from(self.count).expect("a count is not negative");
        self.keys.truncate(entries);
        self.values.truncate(entries);
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate((rows + 1) * 4);
        self.validity.truncate(rows);
        self.count = last_i32(&self.offsets) as i32;
        self.cut_entries();
    }
}

/// Reads the records of `data` whose offsets lie in `ranges`: (first, last, tag), ascending, without overlaps.
///
/// A truncated last batch is ignored. At most `limit` bytes are decompressed in total, which must be below 2 GiB.
pub fn read(data: &[u8], ranges: &[(i64, i64, i32)], headers: bool, limit: usize) -> Read {
    let limit = limit.min(i32::MAX as usize);
    let mut columns = Columns::new(headers);
    let mut faults = Vec::new();
    let mut next = None;
    let mut left = limit;
    for batch in Batches::new(data) {
        let (first, last) = (batch.header.base_offset, batch.header.last_offset());
        next = Some(last.saturating_add(1));
        let from = ranges.partition_point(|(_, to, _)| *to < first);
        if batch.header.is_control() || ranges.get(from).is_none_or(|(start, _, _)| *start > last) {
            continue;
        }
        let before = columns.rows;
        match read_batch(&batch, &ranges[from..], left, &mut columns) {
            Ok(expanded) => left -= expanded.min(left),
            Err(fault) => {
                columns.truncate(before);
                faults.push((first, last, fault));
            }
        }
    }
    Read {
        columns,
        next,
        faults,
    }
}

fn read_batch(
    batch: &Batch<'_>,
    ranges: &[(i64, i64, i32)],
    limit: usize,
    columns: &mut Columns,
) -> Result<usize, Fault> {
    let expanded = batch.expand(limit)?;
    if expanded.len() > limit {
        return Err(Fault::Malformed("more bytes than are allowed at once"));
    }
    let append_time = batch.header.timestamp_type() == TimestampType::LogAppendTime;
    let mut at = 0;
    for record in batch.records(&expanded) {
        let record = record?;
        while ranges.get(at).is_some_and(|(_, to, _)| *to < record.offset) {
            at += 1;
        }
        match ranges.get(at) {
            Some((from, _, tag)) if *from <= record.offset => {
                columns.push(&record, append_time, *tag)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(expanded.len())
}

/// Batches with an offset in `ranges` whose format or checksum is wrong, as (first, last) offset; nothing is
/// decompressed.
pub fn damaged(data: &[u8], ranges: &[(i64, i64)]) -> Vec<(i64, i64, Fault)> {
    Batches::new(data)
        .filter_map(|batch| {
            let (first, last) = (batch.header.base_offset, batch.header.last_offset());
            let from = ranges.partition_point(|(_, to)| *to < first);
            ranges.get(from).filter(|(start, _)| *start <= last)?;
            batch.check().err().map(|fault| (first, last, fault))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset delta, value, headers.
    type Given<'a> = (u8, &'a [u8], &'a [(&'a str, &'a [u8])]);

    /// A batch of records without keys.
    fn batch(base: i64, records: &[Given<'_>]) -> Vec<u8> {
        let mut body = Vec::new();
        for (delta, value, headers) in records {
            let mut record = vec![0, 0, delta * 2, 1, value.len() as u8 * 2];
            record.extend_from_slice(value);
            record.push(headers.len() as u8 * 2);
            for (name, content) in *headers {
                record.push(name.len() as u8 * 2);
                record.extend_from_slice(name.as_bytes());
                record.push(content.len() as u8 * 2);
                record.extend_from_slice(content);
            }
            body.push(record.len() as u8 * 2);
            body.extend_from_slice(&record);
        }
        let last = records.last().map_or(0, |(delta, _, _)| *delta);
        let mut checked = vec![0, 0];
        checked.extend_from_slice(&i32::from(last).to_be_bytes());
        checked.extend_from_slice(&1000_i64.to_be_bytes());
        checked.extend_from_slice(&1000_i64.to_be_bytes());
        checked.extend_from_slice(&(-1_i64).to_be_bytes());
        checked.extend_from_slice(&(-1_i16).to_be_bytes());
        checked.extend_from_slice(&(-1_i32).to_be_bytes());
        checked.extend_from_slice(&(records.len() as i32).to_be_bytes());
        checked.extend_from_slice(&body);
        let mut out = base.to_be_bytes().to_vec();
        out.extend_from_slice(&(checked.len() as i32 + 9).to_be_bytes());
        out.extend_from_slice(&0_i32.to_be_bytes());
        out.push(2);
        out.extend_from_slice(&crc32c::crc32c(&checked).to_be_bytes());
        out.extend_from_slice(&checked);
        out
    }

    fn numbers(bytes: &[u8]) -> Vec<i64> {
        bytes
            .chunks_exact(8)
            .map(|chunk| i64::from_ne_bytes(chunk.try_into().unwrap()))
            .collect()
    }

    #[test]
    fn only_what_lies_in_the_ranges_becomes_rows() {
        let data = [
            batch(0, &[(0, b"a", &[]), (1, b"bb", &[]), (2, b"c", &[])]),
            batch(3, &[(0, b"d", &[("h", b"1")]), (2, b"f", &[])]),
        ]
        .concat();
        let read = read(&data, &[(1, 3, 1), (5, 9, 7)], true, 1 << 20);
        assert!(read.faults.is_empty());
        assert_eq!(read.next, Some(6));
        assert_eq!(numbers(&read.columns.offsets), [1, 2, 3, 5]);
        assert_eq!(numbers(&read.columns.timestamps), [1_000_000; 4]);
        assert_eq!(read.columns.values.data, b"bbcdf");
        assert_eq!(read.columns.keys.validity.nulls, 4);
        assert_eq!(read.columns.tags[12..], 7_i32.to_ne_bytes());
        let headers = read.columns.headers.unwrap();
        assert_eq!(headers.validity.bits(), Some(&[0b0100_u8][..]));
        assert_eq!(headers.keys.data, b"h");
    }

    #[test]
    fn a_batch_that_cannot_be_read_leaves_no_row() {
        let mut broken = batch(3, &[(0, b"x", &[]), (1, b"y", &[("h", b"v")])]);
        let at = broken.len() - 1;
        broken[at] ^= 1;
        let good = batch(0, &[(0, b"a", &[("k", b"w")])]);
        let data = [good.clone(), broken, batch(5, &[(0, b"z", &[])])].concat();
        let read = read(&data, &[(0, 9, 1)], true, 1 << 20);
        assert_eq!(read.faults, [(3, 4, Fault::Checksum)]);
        assert_eq!(numbers(&read.columns.offsets), [0, 5]);
        assert_eq!(read.columns.values.data, b"az");
        assert_eq!(damaged(&data, &[(4, 4)]), [(3, 4, Fault::Checksum)]);
        assert_eq!(damaged(&data, &[(0, 2)]), []);
    }

    #[test]
    fn rows_are_taken_back_to_the_bit() {
        let mut columns = Columns::new(true);
        let data = batch(0, &[(0, b"a", &[("k", b"w")]), (1, b"b", &[])]);
        let first = read(&data, &[(0, 0, 1)], true, 1 << 20).columns;
        let both = Batches::new(&data).next().unwrap();
        read_batch(&both, &[(0, 1, 1)], 1 << 20, &mut columns).unwrap();
        columns.truncate(1);
        assert_eq!(columns, first);
    }

    #[test]
    fn a_batch_that_is_cut_off_is_left_for_the_next_read() {
        let data = [batch(0, &[(0, b"a", &[])]), batch(1, &[(0, b"b", &[])])].concat();
        let read = read(&data[..data.len() - 1], &[(0, 9, 1)], false, 1 << 20);
        assert_eq!((read.columns.rows, read.next), (1, Some(1)));
    }
}
