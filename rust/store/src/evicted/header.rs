//! The file of an evicted segment: what it keeps, and the checksums of what the bucket has.
//!
//! A mark replaces the segment's own header. Then come the kept ranges at the positions they have in the segment, with
//! holes between them, and behind the segment's last byte a table: kept ranges and checksums.

use std::{
    io::{self, IoSlice},
    ops::Range,
    path::Path,
};

use sharecore_bucket::{Manifest, Segment};

use super::PIECE;
use crate::{files::File, frame::Fields, segment::SEGMENT_HEADER};

const MAGIC: &[u8; 8] = b"SCevt-1\n";
const MARK: usize = 24;
const _: () = assert!(
    MARK as u64 <= SEGMENT_HEADER,
    "the mark takes the place of a header"
);
/// Copied at a time.
const CHUNK: u64 = 1 << 20;

/// Where the bytes of an evicted segment are.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) segment: Segment,
    /// Bytes of the segment.
    pub(super) size: u64,
    pub(super) part_bytes: u64,
    pub(super) piece_bytes: u64,
    /// Where the index begins.
    pub(super) index_from: u64,
    /// Checksums of the pieces.
    pub(super) crcs: Vec<u32>,
    /// What the file has, ascending, with holes between them. The last range ends with the index.
    pub(super) kept: Vec<Range<u64>>,
}

impl Header {
    pub(super) fn new(segment: Segment, manifest: &Manifest, index_from: u64) -> Self {
        let part_bytes = manifest.part_bytes;
        Self {
            segment,
            size: manifest.size,
            part_bytes,
            piece_bytes: if part_bytes.is_multiple_of(PIECE) {
                PIECE
            } else {
                part_bytes
            },
            index_from,
            crcs: Vec::new(),
            kept: std::iter::once(index_from..manifest.size).collect(),
        }
    }

    /// The bytes of the segment that a piece has.
    pub(super) fn range_of(&self, piece: u64) -> Range<u64> {
        let from = piece * self.piece_bytes;
        from..(from + self.piece_bytes).min(self.size)
    }

    /// Whether the file has all of a range.
    pub(super) fn keeps(&self, range: &Range<u64>) -> bool {
        let at = self.kept.partition_point(|it| it.end < range.end);
        self.kept.get(at).is_some_and(|it| it.start <= range.start)
    }

    /// Keep more.
    pub(super) fn keep(&mut self, more: Vec<Range<u64>>) {
        let kept = std::mem::take(&mut self.kept);
        self.kept = merged(kept.into_iter().chain(more).collect());
    }

    /// Bytes of batches in the file.
    pub(super) fn kept_bytes(&self) -> u64 {
        let ends = self.kept.iter().map(|it| it.end.min(self.index_from));
        let starts = self.kept.iter().map(|it| it.start);
        ends.zip(starts)
            .map(|(end, start)| end.saturating_sub(start))
            .sum()
    }

    fn table(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.segment.id.to_le_bytes());
        out.extend_from_slice(&self.segment.epoch.to_le_bytes());
        out.extend_from_slice(&u32::from(self.segment.is_compact).to_le_bytes());
        for field in [self.part_bytes, self.piece_bytes, self.index_from] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&(self.crcs.len() as u32).to_le_bytes());
        for crc in &self.crcs {
            out.extend_from_slice(&crc.to_le_bytes());
        }
        out.extend_from_slice(&(self.kept.len() as u32).to_le_bytes());
        for range in &self.kept {
            out.extend_from_slice(&range.start.to_le_bytes());
            out.extend_from_slice(&range.end.to_le_bytes());
        }
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// The header of an open file; `None` if it is an ordinary segment.
    pub(super) fn read(file: &File, path: &Path) -> io::Result<Option<Self>> {
        let mut mark = [0; MARK];
        let length = file.len()?;
        if length < MARK as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut mark[..8], 0)?;
        if &mark[..8] != MAGIC {
            return Ok(None);
        }
        let broken = || {
            let what = format!(
                "{}: the header of an evicted segment is damaged",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        file.read_exact_at(&mut mark, 0)?;
        let mut fields = Fields { rest: &mark[8..] };
        let size = fields.u64().ok_or_else(broken)?;
        let table_bytes = u64::from(fields.u32().ok_or_else(broken)?);
        let is_right = fields.u32() == Some(crc32c::crc32c(&mark[..20]))
            && size.checked_add(table_bytes) == Some(length)
            && table_bytes >= 4;
        if !is_right {
            return Err(broken());
        }
        let mut table = vec![0; table_bytes as usize];
        file.read_exact_at(&mut table, size)?;
        let (table, crc) = table.split_at(table.len() - 4);
        if crc != crc32c::crc32c(table).to_le_bytes() {
            return Err(broken());
        }
        let found = Self::from_table(table, size).filter(Self::is_consistent);
        found.ok_or_else(broken).map(Some)
    }

    fn from_table(table: &[u8], size: u64) -> Option<Self> {
        let mut fields = Fields { rest: table };
        let segment = Segment {
            id: fields.u64()?,
            epoch: fields.u32()?,
            is_compact: fields.u32()? == 1,
        };
        let (part_bytes, piece_bytes) = (fields.u64()?, fields.u64()?);
        let index_from = fields.u64()?;
        let mut crcs = Vec::new();
        for _ in 0..fields.u32()? {
            crcs.push(fields.u32()?);
        }
        let mut kept = Vec::new();
        for _ in 0..fields.u32()? {
            kept.push(fields.u64()?..fields.u64()?);
        }
        Some(Self {
            segment,
            size,
            part_bytes,
            piece_bytes,
            index_from,
            crcs,
            kept,
        })
    }

    fn is_consistent(&self) -> bool {
        self.piece_bytes > 0
            && self.part_bytes > 0
            && self.crcs.len() as u64 == self.size.div_ceil(self.piece_bytes)
            && self.kept.is_sorted_by(|a, b| a.end < b.start)
            && self
                .kept
                .iter()
                .all(|it| it.start < it.end && it.end <= self.size)
    }
}

/// Write the file of an evicted segment; `read` returns bytes of the segment.
pub(super) fn write(
    path: &Path,
    header: &Header,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    debug_assert!(header.is_consistent(), "a file that cannot be read");
    let file = File::create(path)?;
    let table = header.table();
    let mut mark = MAGIC.to_vec();
    mark.extend_from_slice(&header.size.to_le_bytes());
    mark.extend_from_slice(&(table.len() as u32).to_le_bytes());
    mark.extend_from_slice(&crc32c::crc32c(&mark).to_le_bytes());
    debug_assert_eq!(mark.len(), MARK, "the mark is read by its length");
    file.write_all_at(&mut [IoSlice::new(&mark)], 0)?;
    let mut bytes = Vec::new();
    for range in &header.kept {
        let mut at = range.start;
        while at < range.end {
            bytes.resize(CHUNK.min(range.end - at) as usize, 0);
            read(&mut bytes, at)?;
            file.write_all_at(&mut [IoSlice::new(&bytes)], at)?;
            at += bytes.len() as u64;
        }
    }
    file.write_all_at(&mut [IoSlice::new(&table)], header.size)?;
    file.sync_data()
}

/// Write the file of a segment of which only the index was fetched.
pub(crate) fn write_fetched(
    path: &Path,
    segment: Segment,
    manifest: &Manifest,
    index: &[u8],
) -> io::Result<()> {
    let from = manifest.size - index.len() as u64;
    let mut header = Header::new(segment, manifest, from);
    header.piece_bytes = manifest.part_bytes;
    header.crcs.clone_from(&manifest.parts);
    write(path, &header, |out, at| {
        let at = (at - from) as usize;
        out.copy_from_slice(&index[at..at + out.len()]);
        Ok(())
    })
}

/// Whole pages around batches, without overlaps, up to the index.
pub(super) fn pages(batches: &[Range<u64>], index_from: u64, page: u64) -> Vec<Range<u64>> {
    let pages = batches.iter().map(|it| {
        let from = (it.start / page * page).max(SEGMENT_HEADER);
        from..it.end.next_multiple_of(page).min(index_from)
    });
    merged(pages.collect())
}

/// Ranges with gaps between them.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|it| it.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}
