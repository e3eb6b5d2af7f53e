//! Reading: whole batches by offset, batches by time, and where a log begins after retention.

use std::{io, mem::MaybeUninit, sync::Arc};

use crate::{
    LogId, batch,
    disk::Source,
    entries::{Entries, Entry},
    error::Refusal,
    files::{self, File},
    index::Index,
    log::{Extent, Log},
    lookup::{Loaded, Stop},
    state::State,
    store::Store,
};

/// Whole batches of one log, yet to be copied to where they are wanted.
#[derive(Debug, Default)]
pub struct Slice {
    pieces: Vec<Piece>,
    /// First and last offset of each batch.
    pub batches: Vec<(i64, i64)>,
    /// Bytes of all batches.
    pub size: usize,
}

#[derive(Debug)]
enum Piece {
    Memory(Arc<[u8]>),
    /// Batches that lie one after the other, nothing between them.
    Disk {
        file: Arc<File>,
        at: u64,
        len: usize,
    },
}

impl Slice {
    /// Copies the batches to `out`, which is exactly `size` bytes long.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<(), Refusal> {
        self.copy_from(Source::Disk, out)
            .map_err(|e| unreadable(&e))?;
        self.check(out)
    }

    /// As `copy_to`, without waiting for the disk: false when part of it lies only there; `out` is then of no use.
    pub fn copy_cached(&self, out: &mut [u8]) -> Result<bool, Refusal> {
        match self.copy_from(Source::Memory, out) {
            Ok(()) => self.check(out).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// As `copy_to`, to memory that nothing has been written to: every byte is once this has gone well. Whether they are
    /// the batches that were looked for tells `check`.
    pub fn fill(&self, mut out: &mut [MaybeUninit<u8>]) -> Result<(), Refusal> {
        assert_eq!(out.len(), self.size, "room for all batches");
        let mut span = Span::default();
        for (i, piece) in self.pieces.iter().enumerate() {
            let (head, tail) = out.split_at_mut(piece.len());
            match piece {
                Piece::Memory(bytes) => files::fill(head, bytes),
                Piece::Disk { file, at, len } if *len > Span::PIECE_MAX => {
                    file.fill_at(head, *at).map_err(|e| unreadable(&e))?;
                }
                Piece::Disk { file, at, len } => {
                    let later = &self.pieces[i + 1..];
                    let found = span.find(Source::Disk, (file, *at), *len, later);
                    files::fill(head, found.map_err(|e| unreadable(&e))?);
                }
            }
            out = tail;
        }
        Ok(())
    }

    /// Bytes that are in a file, and not in the store's own memory.
    pub fn file_bytes(&self) -> usize {
        let files = self.pieces.iter().map(|piece| match piece {
            Piece::Memory(_) => 0,
            Piece::Disk { len, .. } => *len,
        });
        files.sum()
    }

    /// Whether all of it is in the store's own memory.
    pub fn is_in_memory(&self) -> bool {
        self.file_bytes() == 0
    }

    fn copy_from(&self, source: Source, out: &mut [u8]) -> io::Result<()> {
        assert_eq!(out.len(), self.size, "room for all batches");
        let mut span = Span::default();
        let mut rest = &mut *out;
        for (i, piece) in self.pieces.iter().enumerate() {
            let (head, tail) = rest.split_at_mut(piece.len());
            match piece {
                Piece::Memory(bytes) => head.copy_from_slice(bytes),
                Piece::Disk { file, at, .. } => {
                    span.copy(source, (file, *at), head, &self.pieces[i + 1..])?;
                }
            }
            rest = tail;
        }
        Ok(())
    }

    /// Checks that what came from the disk is the batches that were looked for; their checksums are left to the
    /// consumers.
    pub fn check(&self, out: &[u8]) -> Result<(), Refusal> {
        if self.is_in_memory() {
            return Ok(());
        }
        let mut rest = out;
        for (base, last) in &self.batches {
            let header =
                batch::read(rest).filter(|h| h.base_offset == *base && h.last_offset() == *last);
            let Some(header) = header else {
                return Err(Refusal::Storage(format!(
                    "the batch at offset {base} is damaged on the disk"
                )));
            };
            rest = &rest[header.size..];
        }
        Ok(())
    }

    fn push(&mut self, base: i64, last: i64, piece: Piece) {
        self.batches.push((base, last));
        match (self.pieces.last_mut(), piece) {
            (
                Some(Piece::Disk { file, at, len }),
                Piece::Disk {
                    file: next,
                    at: next_at,
                    len: more,
                },
            ) if *at + *len as u64 == next_at && Arc::ptr_eq(file, &next) => {
                *len += more;
                self.size += more;
            }
            (_, piece) => {
                self.size += piece.len();
                self.pieces.push(piece);
            }
        }
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Disk { len, .. } => *len,
        }
    }
}

/// Small batches that lie close together are fetched with one call, with what lies between them.
#[derive(Default)]
struct Span {
    file: Option<Arc<File>>,
    at: u64,
    bytes: Vec<u8>,
}

impl Span {
    const BYTES_MAX: u64 = 128 << 10;
    const GAP_MAX: u64 = 4 << 10;
    const PIECE_MAX: usize = 16 << 10;

    fn copy(
        &mut self,
        source: Source,
        (file, at): (&Arc<File>, u64),
        out: &mut [u8],
        later: &[Piece],
    ) -> io::Result<()> {
        if out.len() > Self::PIECE_MAX {
            return source.read(file, out, at);
        }
        out.copy_from_slice(self.find(source, (file, at), out.len(), later)?);
        Ok(())
    }

    /// A small batch, and where it is not yet here those that lie behind it.
    fn find(
        &mut self,
        source: Source,
        (file, at): (&Arc<File>, u64),
        len: usize,
        later: &[Piece],
    ) -> io::Result<&[u8]> {
        let (from, to) = (at, at + len as u64);
        let same = self.file.as_ref().is_some_and(|own| Arc::ptr_eq(own, file));
        if !same || from < self.at || to > self.at + self.bytes.len() as u64 {
            let end = Self::end(file, from, to, later);
            self.file = Some(Arc::clone(file));
            self.at = from;
            self.bytes.resize((end - from) as usize, 0);
            source.read(file, &mut self.bytes, from)?;
        }
        let start = (from - self.at) as usize;
        Ok(&self.bytes[start..start + len])
    }

    /// How far it is worth reading from `from` on.
    fn end(file: &Arc<File>, from: u64, mut end: u64, later: &[Piece]) -> u64 {
        for piece in later {
            match piece {
                Piece::Disk {
                    file: other,
                    at,
                    len,
                } if Arc::ptr_eq(file, other)
                    && *len <= Self::PIECE_MAX
                    && *at >= end
                    && *at - end <= Self::GAP_MAX
                    && at + *len as u64 - from <= Self::BYTES_MAX =>
                {
                    end = at + *len as u64;
                }
                _ => break,
            }
        }
        end
    }
}

/// How much a reader wants.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// About how many bytes.
    pub max_bytes: usize,
    /// The reading ends with the batch that reaches this many offsets.
    pub max_records: i64,
    /// No batch that reaches this offset is read, nor any beyond the high watermark.
    pub limit: Option<i64>,
    /// Whether the first batch is read however large it is.
    pub at_least_one: bool,
}

impl Want {
    /// Exactly the batch at an offset.
    pub const ONE: Self = Self {
        max_bytes: 0,
        max_records: 1,
        limit: None,
        at_least_one: true,
    };

    fn takes(&self, slice: &Slice, len: usize, from: i64) -> bool {
        match slice.batches.last() {
            None => self.at_least_one || len <= self.max_bytes,
            Some((_, last)) => {
                slice.size + len <= self.max_bytes
                    && last + 1 < from.saturating_add(self.max_records)
            }
        }
    }
}

fn unreadable(error: &io::Error) -> Refusal {
    Refusal::Storage(format!("reading failed: {error}"))
}

impl Store {
    /// Whole batches from the one that holds `offset` on, or the first after it.
    pub fn read(&self, log: LogId, offset: i64, want: Want) -> Result<Slice, Refusal> {
        let look = |state: &mut State, loaded: &_| state.read(log, offset, want, loaded);
        self.shared.look_up_on_disk(look)
    }

    /// As `read`, without waiting for the disk: `None` when it would be needed to tell where the batches lie.
    pub fn read_cached(
        &self,
        log: LogId,
        offset: i64,
        want: Want,
    ) -> Result<Option<Slice>, Refusal> {
        let look = |state: &mut State, loaded: &_| state.read(log, offset, want, loaded);
        self.shared.look_up(Source::Memory, look)
    }
}

impl State {
    /// Whole batches from the one that holds `offset` on, or the first after it.
    pub(crate) fn read(
        &mut self,
        id: LogId,
        offset: i64,
        want: Want,
        loaded: &Loaded,
    ) -> Result<Slice, Stop> {
        let log = self.log(id)?;
        if offset < log.start || offset > log.end {
            let (start, end) = (log.start, log.end);
            let what = format!("offset {offset} is not in [{start}, {end}]");
            return Err(Refusal::OffsetOutOfRange(what).into());
        }
        let limit = want
            .limit
            .map_or(log.durable_end, |limit| limit.min(log.durable_end));
        let cached_from = log.recent.front().map_or(log.durable_end, |r| r.base);
        let mut slice = Slice::default();
        if offset < cached_from
            && !self.read_disk(id, offset, (limit, cached_from), want, &mut slice, loaded)?
        {
            return Ok(slice);
        }
        let log = self.log(id)?;
        let next = slice.batches.last().map_or(offset, |(_, last)| last + 1);
        let from = log.recent.partition_point(|r| r.last < next);
        for recent in log.recent.range(from..) {
            if recent.last >= limit || !want.takes(&slice, recent.bytes.len(), offset) {
                break;
            }
            slice.push(
                recent.base,
                recent.last,
                Piece::Memory(Arc::clone(&recent.bytes)),
            );
        }
        Ok(slice)
    }

    /// Reads what lies before `cached_from`; false when enough was found.
    fn read_disk(
        &mut self,
        id: LogId,
        offset: i64,
        (limit, cached_from): (i64, i64),
        want: Want,
        slice: &mut Slice,
        loaded: &Loaded,
    ) -> Result<bool, Stop> {
        let mut at = self.log(id)?.extents.partition_point(|e| e.last < offset);
        while let Some(extent) = self.log(id)?.extents.get(at) {
            let segment = extent.segment;
            let entries = self.entries_of(id, at, loaded)?;
            let file = self.file(segment, loaded)?;
            for entry in entries.from(offset) {
                if entry.base >= cached_from {
                    return Ok(true);
                }
                if entry.last() >= limit || !want.takes(slice, entry.len as usize, offset) {
                    return Ok(false);
                }
                let (at, len) = (u64::from(entry.at), entry.len as usize);
                slice.push(
                    entry.base,
                    entry.last(),
                    Piece::Disk {
                        file: Arc::clone(&file),
                        at,
                        len,
                    },
                );
            }
            at += 1;
        }
        Ok(true)
    }

    /// The batches of a log's extent.
    fn entries_of(&mut self, id: LogId, at: usize, loaded: &Loaded) -> Result<Arc<Entries>, Stop> {
        let Extent { segment, index, .. } = &self.log(id)?.extents[at];
        let (segment, stored) = match index {
            Index::Memory(entries) => return Ok(Arc::clone(entries)),
            Index::Stored(stored) => (*segment, *stored),
        };
        self.index(segment, stored, loaded)
    }

    /// The first durable batch from `offset` on whose largest timestamp is at least `timestamp`.
    pub(crate) fn batch_since(
        &mut self,
        id: LogId,
        offset: i64,
        timestamp: i64,
        loaded: &Loaded,
    ) -> Result<Option<Slice>, Stop> {
        let log = self.log(id)?;
        let offset = offset.max(log.start);
        let mut at = log.extents.partition_point(|e| e.last < offset);
        while let Some(extent) = self.log(id)?.extents.get(at) {
            if extent.max_timestamp >= timestamp {
                let entries = self.entries_of(id, at, loaded)?;
                let fits = |e: &Entry| e.max_timestamp >= timestamp;
                if let Some(entry) = entries.from(offset).find(fits) {
                    let from = entry.base.max(offset);
                    return self.read(id, from, Want::ONE, loaded).map(Some);
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// The largest timestamp of the durable batches.
    pub(crate) fn max_timestamp(
        &mut self,
        id: LogId,
        loaded: &Loaded,
    ) -> Result<Option<i64>, Stop> {
        let log = self.log(id)?;
        let start = log.start;
        let behind = log.extents.iter().skip(1).map(|e| e.max_timestamp).max();
        if log.extents.is_empty() {
            return Ok(None);
        }
        // part of the first extent may have been deleted
        let entries = self.entries_of(id, 0, loaded)?;
        let first = entries.from(start).map(|e| e.max_timestamp).max();
        Ok(first.max(behind))
    }

    /// Where the log's start belongs once batches older than `oldest_ms`, and the oldest ones beyond `max_bytes`, are
    /// deleted.
    pub(crate) fn retained_from(
        &mut self,
        id: LogId,
        oldest_ms: Option<i64>,
        max_bytes: Option<u64>,
        loaded: &Loaded,
    ) -> Result<i64, Stop> {
        let log = self.log(id)?;
        let (start, mut from, mut bytes) = (log.start, log.start, log.bytes());
        for at in 0..log.extents.len() {
            let extent = &self.log(id)?.extents[at];
            let (last, live) = (extent.last, extent.live_bytes(start));
            let old = oldest_ms.is_some_and(|oldest| extent.max_timestamp < oldest);
            if old || max_bytes.is_some_and(|max| bytes.saturating_sub(live) >= max) {
                bytes -= live;
                from = last + 1;
                continue;
            }
            for entry in self.entries_of(id, at, loaded)?.from(start) {
                let len = u64::from(entry.len);
                let old = oldest_ms.is_some_and(|oldest| entry.max_timestamp < oldest);
                if !old && max_bytes.is_none_or(|max| bytes.saturating_sub(len) < max) {
                    return Ok(from);
                }
                bytes = bytes.saturating_sub(len);
                from = entry.last() + 1;
            }
        }
        Ok(from)
    }

    /// A log's extents that lie in one of the given segments, with the log's start.
    pub(crate) fn extents_in(&self, segments: &[u64]) -> Vec<(LogId, i64, Extent)> {
        let mut found = Vec::new();
        let of = |log: &Log| {
            log.extents
                .iter()
                .filter(|e| segments.contains(&e.segment))
                .cloned()
                .collect()
        };
        for (id, log) in &self.logs {
            let extents: Vec<Extent> = of(log);
            found.extend(extents.into_iter().map(|extent| (*id, log.start, extent)));
        }
        found.sort_by_key(|(id, _, extent)| (*id, extent.first));
        found
    }
}
