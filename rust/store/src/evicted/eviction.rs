//! Evicts segments.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use sharecore_bucket::{
    self as bucket, Manifest, Segment,
    mistakes::{Mistake, planted},
    names,
};

use super::{
    EvictedSegments, PIECE,
    header::{self, Header},
};
use crate::{
    error::StoreError,
    files::{self, File},
    index,
    store::Shared,
};

/// A file that takes the place of a segment, while it is written.
const NEW: &str = "bucket.evicted";

/// A segment's new file, and the bytes of batches in it.
type Replaced = (PathBuf, u64);

impl EvictedSegments {
    /// Write a file that takes the place of a segment's, if the bucket has the segment: same size, same checksums. It
    /// keeps the index and these batches. None if that is more than half of the segment.
    fn evict(
        &self,
        path: &Path,
        segment: Segment,
        batches: &[Range<u64>],
        index_from: u64,
    ) -> io::Result<Option<Replaced>> {
        let file = File::open(path)?;
        let size = file.len()?;
        let pages = header::pages(batches, index_from, self.page_bytes);
        let kept: u64 = pages.iter().map(|it| it.end - it.start).sum();
        if 2 * (kept + size - index_from) > size {
            return Ok(None);
        }
        let name = names::manifest(segment);
        let manifest = if planted(Mistake::EvictedUnshipped) {
            Some(assumed(path, segment)?)
        } else {
            Manifest::decode(&self.get(name.clone())?)
        };
        let differs = |what: &str| {
            let what = format!("{name} in the bucket {what}");
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let manifest = manifest.ok_or_else(|| differs("does not match its checksum"))?;
        if size != manifest.size || manifest.id != segment.id {
            return Err(differs("is not of the local segment"));
        }
        let mut header = Header::new(segment, &manifest, index_from);
        let mut part = vec![0; manifest.part_bytes.min(manifest.size) as usize];
        for (at, crc) in (0..manifest.size)
            .step_by(manifest.part_bytes as usize)
            .zip(&manifest.parts)
        {
            part.resize(manifest.part_bytes.min(manifest.size - at) as usize, 0);
            file.read_exact_at(&mut part, at)?;
            if crc32c::crc32c(&part) != *crc {
                return Err(differs("is not of the local segment"));
            }
            let pieces = part.chunks(header.piece_bytes as usize);
            header.crcs.extend(pieces.map(crc32c::crc32c));
        }
        header.keep(pages);
        let new = self.dir.join(NEW);
        header::write(&new, &header, |out, at| file.read_exact_at(out, at))?;
        Ok(Some((new, header.kept_bytes())))
    }
}

/// The manifest of a segment that may not be in the bucket, for a planted mistake.
fn assumed(path: &Path, segment: Segment) -> io::Result<Manifest> {
    let bytes = files::read(path)?;
    Ok(Manifest {
        id: segment.id,
        size: bytes.len() as u64,
        part_bytes: PIECE,
        parts: bytes.chunks(PIECE as usize).map(crc32c::crc32c).collect(),
    })
}

/// Where a segment has live batches of logs that stay on the disk.
pub(super) fn local_batches(shared: &Shared, id: u64, file: &File) -> io::Result<Vec<Range<u64>>> {
    let extents = {
        let state = shared.lock();
        let mut extents = state.extents_in(&[id]);
        extents.retain(|(log, _, _)| state.segments.is_local(*log));
        extents
    };
    let mut batches = Vec::new();
    for (_, start, extent) in extents {
        let entries = extent.index.entries(|| Ok(file))?;
        let places = entries.from(start).map(|it| (u64::from(it.at), it.len));
        batches.extend(places.map(|(at, len)| at..at + u64::from(len)));
    }
    Ok(batches)
}

/// Removes the batches of a segment from the disk, if the bucket has them.
pub(crate) fn evict(shared: &Shared, id: u64, name: bucket::Segment) -> Result<(), StoreError> {
    let Some(evicted) = shared.evicted() else {
        return Ok(());
    };
    let path = {
        let state = shared.lock();
        if !state.segments.is_sealed(id) {
            return Ok(()); // removed meanwhile, as nothing in it was live
        }
        state.segments.path(id)
    };
    let attempt = || -> io::Result<()> {
        let file = File::open(&path)?;
        let blocks = index::read(&path, id, &file).map_err(io::Error::other)?;
        let first = blocks.iter().map(|block| u64::from(block.stored.at)).min();
        let batches = local_batches(shared, id, &file)?;
        let replaced = first.map(|from| evicted.evict(&path, name, &batches, from));
        let Some((new, kept)) = replaced.transpose()?.flatten() else {
            shared.lock().segments.postpone(id);
            return Ok(());
        };
        if put_in_place(shared, id, &path, &new, kept)? {
            evicted.count_evicted();
        }
        Ok(())
    };
    attempt().or_else(|error| {
        let mut state = shared.lock();
        if !state.segments.is_sealed(id) {
            return Ok(());
        }
        state.segments.postpone(id);
        Err(StoreError::io(&path)(error))
    })
}

/// Replaces a segment's file, unless the segment is gone meanwhile: it is removed only after the state has forgotten it.
pub(super) fn put_in_place(
    shared: &Shared,
    id: u64,
    path: &Path,
    new: &Path,
    kept: u64,
) -> io::Result<bool> {
    let mut state = shared.lock();
    if !state.segments.is_sealed(id) {
        drop(state);
        files::remove(new)?;
        return Ok(false);
    }
    files::rename(new, path)?;
    state.segments.evicted(id, kept);
    Ok(true)
}

impl Shared {
    /// The evicted segments, with a bound on the local disk.
    pub(crate) fn evicted(&self) -> Option<&EvictedSegments> {
        self.backup.as_ref()?.evicted.as_deref()
    }
}
