//! An open file of an evicted segment: reads go to what it has kept, or to pieces.

use std::{
    io,
    ops::{Range, RangeInclusive},
    path::Path,
    sync::{Arc, Weak},
};

use super::{EvictedSegments, OPEN, elsewhere, header::Header, hold};
use crate::{disk::Source, files::File, segment::Kind};

/// An open file of an evicted segment.
#[derive(Debug)]
pub(crate) struct EvictedFile {
    own: File,
    pub(super) header: Header,
    segments: Option<Arc<EvictedSegments>>,
}

impl EvictedFile {
    /// A file that was opened, as it is to be read.
    pub(crate) fn around(own: File, path: &Path) -> io::Result<File> {
        let suffix = path.extension().and_then(|it| it.to_str());
        let is_segment =
            suffix == Some(Kind::Journal.suffix()) || suffix == Some(Kind::Compact.suffix());
        if !is_segment {
            return Ok(own);
        }
        let Some(header) = Header::read(&own, path)? else {
            return Ok(own);
        };
        let dir = path.parent().unwrap_or(Path::new(""));
        let segments = hold(&OPEN).get(dir).and_then(Weak::upgrade);
        Ok(File::Evicted(Box::new(Self {
            own,
            header,
            segments,
        })))
    }

    /// Bytes of the segment.
    pub(crate) fn len(&self) -> u64 {
        self.header.size
    }

    /// Bytes of batches in the local file.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.header.kept_bytes()
    }

    /// Whether the local file has all of a range.
    pub(crate) fn keeps(&self, range: &Range<u64>) -> bool {
        self.header.keeps(range)
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.own.sync_data()
    }

    /// Whether a read waits for the bucket.
    pub(crate) fn waits(&self, range: &Range<u64>) -> bool {
        !self.keeps(range)
            && self.segments.as_ref().is_none_or(|segments| {
                !segments.has_all(self.header.segment, self.pieces_of(range))
            })
    }

    pub(super) fn pieces_of(&self, range: &Range<u64>) -> RangeInclusive<u64> {
        range.start / self.header.piece_bytes..=(range.end - 1) / self.header.piece_bytes
    }

    pub(crate) fn read(&self, source: Source, out: &mut [u8], at: u64) -> io::Result<()> {
        self.read_with(source, out, at, |head, at| {
            let segments = self.segments.as_ref().ok_or_else(elsewhere)?;
            let wanted = self.pieces_of(&(at..at + head.len() as u64));
            let file = segments.pieces(&self.header, wanted, source)?;
            source.read(&file, head, at)
        })
    }

    /// As `read`; what the file has not kept is read by `elsewhere`.
    pub(super) fn read_with(
        &self,
        source: Source,
        mut out: &mut [u8],
        mut at: u64,
        mut elsewhere: impl FnMut(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        while !out.is_empty() {
            let kept = &self.header.kept;
            let next = kept.get(kept.partition_point(|it| it.end <= at));
            let end = match next {
                Some(next) if next.start <= at => next.end,
                Some(next) => next.start,
                None => u64::MAX,
            };
            let length = (end - at).min(out.len() as u64);
            let (head, tail) = out.split_at_mut(length as usize);
            if next.is_some_and(|it| it.start <= at) {
                source.read(&self.own, head, at)?;
            } else if at + length > self.header.size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            } else {
                elsewhere(head, at)?;
            }
            out = tail;
            at += length;
        }
        Ok(())
    }
}
