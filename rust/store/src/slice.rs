//! Located batches, copied from memory and files to the reader, and checked.

use std::{io, mem::MaybeUninit, sync::Arc};

use crate::{
    LogId,
    apart::ReadFrom,
    batch,
    damage::{Damages, Place},
    disk::Source,
    error::Refusal,
    files::{self, File},
};

/// Whole batches of one log, not copied yet.
#[derive(Debug, Default)]
pub struct Slice {
    pieces: Vec<Piece>,
    /// The log, and where its damaged batches are recorded.
    pub(crate) log: Option<(LogId, Arc<Damages>)>,
    /// First and last offset of each batch.
    pub batches: Vec<(i64, i64)>,
    /// Bytes of all batches.
    pub size: usize,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Memory(Arc<[u8]>),
    /// Contiguous batches.
    Disk {
        file: Arc<File>,
        place: Place,
        at: u64,
        len: usize,
    },
}

/// How much of a copy is intact: a damaged batch and all later ones are excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intact {
    /// Bytes of the batches.
    pub bytes: usize,
    /// How many batches.
    pub batches: usize,
}

impl Slice {
    /// Copies the batches to `out`, which is exactly `size` bytes long, and returns which of them are intact.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<Intact, Refusal> {
        self.copy_from(Source::Disk, out)
            .map_err(|e| unreadable(&e))?;
        self.check(out)
    }

    /// As `copy_to`, without waiting for the disk: `None` if part of it is only there; `out` is then unusable.
    pub fn copy_cached(&self, out: &mut [u8]) -> Result<Option<Intact>, Refusal> {
        match self.copy_from(Source::Memory, out) {
            Ok(()) => self.check(out).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// As `copy_to`, to uninitialized memory, which is fully initialized if it returns true. `check` then validates the
    /// batches. Returns false if `from` is the disk and part of it is in the bucket alone.
    pub fn fill(&self, from: ReadFrom, out: &mut [MaybeUninit<u8>]) -> Result<bool, Refusal> {
        let source = match from {
            ReadFrom::Disk => Source::Local,
            ReadFrom::Bucket => Source::Disk,
        };
        match self.fill_from(source, out) {
            Ok(()) => Ok(true),
            Err(error) if from == ReadFrom::Disk && error.kind() == io::ErrorKind::WouldBlock => {
                Ok(false)
            }
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn fill_from(&self, source: Source, mut out: &mut [MaybeUninit<u8>]) -> io::Result<()> {
        assert_eq!(out.len(), self.size, "room for all batches");
        let mut span = Span::default();
        for (i, piece) in self.pieces.iter().enumerate() {
            let (head, tail) = out.split_at_mut(piece.len());
            match piece {
                Piece::Memory(bytes) => files::fill(head, bytes),
                Piece::Disk { file, at, len, .. } if *len > Span::PIECE_MAX => {
                    source.fill(file, head, *at)?;
                }
                Piece::Disk { file, at, len, .. } => {
                    let later = &self.pieces[i + 1..];
                    files::fill(head, span.find(source, (file, *at), *len, later)?);
                }
            }
            out = tail;
        }
        assert!(out.is_empty(), "a place was left empty");
        Ok(())
    }

    /// Bytes in files rather than in the store's memory.
    pub fn file_bytes(&self) -> usize {
        let files = self.pieces.iter().map(|piece| match piece {
            Piece::Memory(_) => 0,
            Piece::Disk { len, .. } => *len,
        });
        files.sum()
    }

    /// What copying it waits for.
    pub fn source(&self) -> ReadFrom {
        let waits = self.pieces.iter().any(|piece| match piece {
            Piece::Memory(_) => false,
            Piece::Disk { file, at, len, .. } => file.waits_for_bucket(*at, *len as u64),
        });
        if waits {
            ReadFrom::Bucket
        } else {
            ReadFrom::Disk
        }
    }

    /// Whether all of it is in the store's memory.
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
        debug_assert!(rest.is_empty(), "a place was left empty");
        Ok(())
    }

    /// Checks that the bytes from disk are the requested batches, undamaged.
    ///
    /// # Errors
    ///
    /// Fails if the first of them is damaged.
    pub fn check(&self, out: &[u8]) -> Result<Intact, Refusal> {
        let whole = Intact {
            bytes: out.len(),
            batches: self.batches.len(),
        };
        if self.is_in_memory() {
            return Ok(whole);
        }
        let mut bytes = 0;
        for (batches, &(base, last)) in self.batches.iter().enumerate() {
            let rest = &out[bytes..];
            let header = batch::read(rest).filter(|header| {
                let found = &rest[..header.size];
                (header.base_offset, header.last_offset()) == (base, last)
                    && batch::has_no_epoch(found)
                    && batch::matches_checksum(found)
            });
            let Some(header) = header else {
                let damage = self.note(bytes, (base, last));
                if batches == 0 {
                    return Err(Refusal::Damaged(damage));
                }
                return Ok(Intact { bytes, batches });
            };
            bytes += header.size;
        }
        debug_assert_eq!(bytes, out.len(), "bytes outside any batch");
        Ok(whole)
    }

    /// Records that the batch `from` bytes after the start is damaged; returns the error for the reader.
    fn note(&self, from: usize, offsets: (i64, i64)) -> String {
        let mut before = 0;
        for piece in &self.pieces {
            let begins = before;
            before += piece.len();
            if let (true, Piece::Disk { place, at, .. }, Some((log, damages))) =
                (from < before, piece, &self.log)
            {
                return damages.note(*log, offsets, *place, at + (from - begins) as u64);
            }
        }
        format!("the batch at offset {} is damaged in memory", offsets.0)
    }

    pub(crate) fn push(&mut self, base: i64, last: i64, piece: Piece) {
        self.batches.push((base, last));
        match (self.pieces.last_mut(), piece) {
            (
                Some(Piece::Disk { file, at, len, .. }),
                Piece::Disk {
                    file: next,
                    at: next_at,
                    len: more,
                    ..
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
        debug_assert!(
            self.pieces.len() <= self.batches.len(),
            "a piece outside any batch"
        );
        debug_assert_eq!(
            self.size,
            self.pieces.iter().map(Piece::len).sum::<usize>(),
            "the counted size is wrong"
        );
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

/// Reads nearby small batches with one call, including the bytes between them.
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

    /// Finds a small batch, reading it with the following ones if need be.
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
        debug_assert!(
            self.at <= from && to <= self.at + self.bytes.len() as u64,
            "bytes that were not read"
        );
        let start = (from - self.at) as usize;
        Ok(&self.bytes[start..start + len])
    }

    /// How far to read from `from`.
    fn end(file: &Arc<File>, from: u64, first_end: u64, later: &[Piece]) -> u64 {
        let mut end = first_end;
        for piece in later {
            match piece {
                Piece::Disk {
                    file: other,
                    at,
                    len,
                    ..
                } if Arc::ptr_eq(file, other)
                    && *len <= Self::PIECE_MAX
                    && *at >= end
                    && *at - end <= Self::GAP_MAX
                    && at + *len as u64 - from <= Self::BYTES_MAX
                    && file.reads_along(from, first_end, at + *len as u64) =>
                {
                    end = at + *len as u64;
                }
                _ => break,
            }
        }
        end
    }
}

fn unreadable(error: &io::Error) -> Refusal {
    Refusal::Storage(format!("reading failed: {error}"))
}
