//! The file of a segment whose batches lie in the bucket: its header, and how it is written.

use std::{
    io::{self, IoSlice},
    path::Path,
};

use sharecore_bucket::{Manifest, Segment};

use super::PIECE;
use crate::{files::File, frame::Fields};

const MAGIC: &[u8; 8] = b"SChol-1\n";
/// Bytes of the header before the checksums.
const FIXED: usize = 60;

/// Write the file of a segment that lies in the bucket.
pub(super) fn write(path: &Path, head: &Head, kept: &[u8]) -> io::Result<()> {
    let file = File::create(path)?;
    file.write_all_at(&mut [IoSlice::new(&head.encode())], 0)?;
    file.set_len(head.size)?;
    file.write_all_at(&mut [IoSlice::new(kept)], head.kept_from)?;
    file.sync_data()
}

/// Write the file of a segment of which only the end was fetched; `kept` ends the segment.
pub(crate) fn write_fetched(
    path: &Path,
    segment: Segment,
    manifest: &Manifest,
    kept: &[u8],
) -> io::Result<()> {
    let mut head = Head::new(segment, manifest, manifest.size - kept.len() as u64);
    head.piece_bytes = manifest.part_bytes;
    head.crcs.clone_from(&manifest.parts);
    write(path, &head, kept)
}

/// Whether the header of the file fits before this position.
pub(crate) fn fits(manifest: &Manifest, kept_from: u64) -> bool {
    let pieces = manifest.size.div_ceil(manifest.part_bytes.min(PIECE));
    FIXED as u64 + 4 * pieces + 4 <= kept_from
}

/// The header of such a file.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) segment: Segment,
    pub(super) size: u64,
    /// From here on the file is as the segment.
    pub(super) kept_from: u64,
    pub(super) part_bytes: u64,
    pub(super) piece_bytes: u64,
    /// Checksums of the pieces.
    pub(super) crcs: Vec<u32>,
}

impl Head {
    pub(super) fn new(segment: Segment, manifest: &Manifest, kept_from: u64) -> Self {
        let part_bytes = manifest.part_bytes;
        Self {
            segment,
            size: manifest.size,
            kept_from,
            part_bytes,
            piece_bytes: if part_bytes.is_multiple_of(PIECE) {
                PIECE
            } else {
                part_bytes
            },
            crcs: Vec::new(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.segment.id.to_le_bytes());
        out.extend_from_slice(&self.segment.epoch.to_le_bytes());
        out.extend_from_slice(&u32::from(self.segment.is_compact).to_le_bytes());
        for field in [self.size, self.kept_from, self.part_bytes, self.piece_bytes] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&(self.crcs.len() as u32).to_le_bytes());
        debug_assert_eq!(out.len(), FIXED, "the header is read by its length");
        for crc in &self.crcs {
            out.extend_from_slice(&crc.to_le_bytes());
        }
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// The header of an open file; `None` if it is an ordinary segment.
    pub(super) fn read(file: &File, path: &Path) -> io::Result<Option<Self>> {
        let mut fixed = vec![0; FIXED];
        if file.len()? < FIXED as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut fixed[..8], 0)?;
        if &fixed[..8] != MAGIC {
            return Ok(None);
        }
        let broken = || {
            let what = format!("{}: the header is broken", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        file.read_exact_at(&mut fixed, 0)?;
        let mut fields = Fields { rest: &fixed[8..] };
        let mut head = Self {
            segment: Segment {
                id: fields.u64().ok_or_else(broken)?,
                epoch: fields.u32().ok_or_else(broken)?,
                is_compact: fields.u32() == Some(1),
            },
            size: fields.u64().ok_or_else(broken)?,
            kept_from: fields.u64().ok_or_else(broken)?,
            part_bytes: fields.u64().ok_or_else(broken)?,
            piece_bytes: fields.u64().ok_or_else(broken)?,
            crcs: Vec::new(),
        };
        let count = u64::from(fields.u32().ok_or_else(broken)?);
        let is_right = head.size == file.len()?
            && head.piece_bytes > 0
            && head.part_bytes > 0
            && count == head.size.div_ceil(head.piece_bytes)
            && head.kept_from <= head.size;
        if !is_right {
            return Err(broken());
        }
        let mut crcs = vec![0; count as usize * 4 + 4];
        file.read_exact_at(&mut crcs, FIXED as u64)?;
        let mut fields = Fields { rest: &crcs };
        for _ in 0..count {
            head.crcs.push(fields.u32().ok_or_else(broken)?);
        }
        let crc = crc32c::crc32c(&[&fixed[..], &crcs[..count as usize * 4]].concat());
        if fields.u32() != Some(crc) {
            return Err(broken());
        }
        Ok(Some(head))
    }
}
