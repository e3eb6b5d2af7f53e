//! The index of a sealed segment: written after its frames, read on demand.
//!
//! One block per log ([`Entries`], packed), then a directory of the blocks, then a trailer.

use std::{
    borrow::Borrow,
    collections::HashMap,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use crate::{LogId, disk::Source, entries::Entries, error::StoreError, files::File, frame::Fields};

const MAGIC: &[u8; 8] = b"SCidx-1\n";
const TRAILER: u64 = 32;
const IN_DIRECTORY: usize = 52;

const _: () = {
    assert!(TRAILER as usize == MAGIC.len() + 8 + 4 + 4 + 4 + 4);
    assert!(IN_DIRECTORY == 5 * 8 + 3 * 4, "the fields of a block");
};

/// A directory entry of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) log: LogId,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) bytes: u64,
    pub(crate) stored: Stored,
}

/// The position of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) at: u32,
    pub(crate) len: u32,
    crc: u32,
}

/// The batches of a log in one segment.
#[derive(Debug, Clone)]
pub(crate) enum Index {
    Memory(Arc<Entries>),
    Stored(Stored),
}

impl Index {
    /// The batches, read from disk unless cached.
    pub(crate) fn entries<F: Borrow<File>>(
        &self,
        open: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<Arc<Entries>> {
        match self {
            Self::Memory(entries) => Ok(Arc::clone(entries)),
            Self::Stored(stored) => load(open()?.borrow(), *stored, Source::Disk),
        }
    }
}

/// Writes the index of a segment whose batches end at `position`. Returns the directory.
pub(crate) fn write<'a>(
    out: &mut impl Write,
    segment: u64,
    position: u64,
    blocks: impl Iterator<Item = (LogId, &'a Entries)>,
) -> io::Result<Vec<Block>> {
    let mut directory = Vec::new();
    let mut listed = Vec::new();
    assert!(u32::try_from(position).is_ok(), "too large a segment");
    let mut at = position as u32;
    for (log, entries) in blocks {
        let (mut batches, Some(end)) = (entries.iter(), entries.end()) else {
            continue;
        };
        let Some(first) = batches.next() else {
            continue;
        };
        let (max_timestamp, bytes) = batches.fold(
            (first.max_timestamp, u64::from(first.len)),
            |(newest, bytes), entry| {
                (
                    newest.max(entry.max_timestamp),
                    bytes + u64::from(entry.len),
                )
            },
        );
        let packed = entries.packed();
        debug_assert_eq!(
            Entries::unpack(packed.to_vec()).as_ref(),
            Some(entries),
            "a block that cannot be read"
        );
        out.write_all(packed)?;
        let block = Block {
            log,
            first: first.base,
            last: end - 1,
            max_timestamp,
            bytes,
            stored: Stored {
                at,
                len: packed.len() as u32,
                crc: crc32c::crc32c(packed),
            },
        };
        at += block.stored.len;
        for field in [
            block.log,
            block.first.cast_unsigned(),
            block.last.cast_unsigned(),
        ] {
            directory.extend_from_slice(&field.to_le_bytes());
        }
        for field in [block.max_timestamp.cast_unsigned(), block.bytes] {
            directory.extend_from_slice(&field.to_le_bytes());
        }
        for field in [block.stored.at, block.stored.len, block.stored.crc] {
            directory.extend_from_slice(&field.to_le_bytes());
        }
        listed.push(block);
    }
    assert_eq!(
        directory.len(),
        IN_DIRECTORY * listed.len(),
        "each block is listed once"
    );
    debug_assert!(
        listed.is_sorted_by(|a, b| a.stored.at + a.stored.len == b.stored.at),
        "blocks follow each other"
    );
    out.write_all(&directory)?;
    let mut trailer = Vec::with_capacity(TRAILER as usize);
    trailer.extend_from_slice(MAGIC);
    trailer.extend_from_slice(&segment.to_le_bytes());
    trailer.extend_from_slice(&at.to_le_bytes());
    trailer.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    trailer.extend_from_slice(&crc32c::crc32c(&directory).to_le_bytes());
    let crc = crc32c::crc32c(&trailer);
    trailer.extend_from_slice(&crc.to_le_bytes());
    assert_eq!(trailer.len() as u64, TRAILER, "it is found by its length");
    out.write_all(&trailer)?;
    Ok(listed)
}

/// Reads the directory of a sealed segment.
pub(crate) fn read(path: &Path, segment: u64, file: &File) -> Result<Vec<Block>, StoreError> {
    let size = file.len().map_err(StoreError::io(path))?;
    let damaged = |at: u64, what: &str| StoreError::damaged(path, at, what);
    let start = size
        .checked_sub(TRAILER)
        .ok_or_else(|| damaged(0, "the segment is too short for its index"))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact_at(&mut trailer, start)
        .map_err(StoreError::io(path))?;
    let mut fields = Fields {
        rest: &trailer[8..],
    };
    let (id, at, len, crc, own_crc) = (
        fields.u64(),
        fields.u32(),
        fields.u32(),
        fields.u32(),
        fields.u32(),
    );
    let intact = &trailer[0..8] == MAGIC
        && own_crc == Some(crc32c::crc32c(&trailer[0..28]))
        && id == Some(segment);
    let (Some(at), Some(len), true) = (at, len, intact) else {
        return Err(damaged(
            start,
            "the index of a sealed segment ends here, but does not",
        ));
    };
    let mut directory = vec![0; len as usize];
    file.read_exact_at(&mut directory, u64::from(at))
        .map_err(|_| damaged(u64::from(at), "the directory of the index is truncated"))?;
    if crc != Some(crc32c::crc32c(&directory)) {
        return Err(damaged(
            u64::from(at),
            "the directory of the index does not match its checksum",
        ));
    }
    let blocks: Option<Vec<Block>> = directory.chunks(IN_DIRECTORY).map(read_block).collect();
    blocks.ok_or_else(|| damaged(u64::from(at), "the directory of the index is truncated"))
}

/// Where the index of a segment of `size` bytes begins, if that is within its last bytes. A segment without one has none.
pub(crate) fn start_within(end: &[u8], size: u64) -> Option<u64> {
    let before = size - end.len() as u64;
    let trailer = end.len().checked_sub(TRAILER as usize)?;
    if !end[trailer..].starts_with(MAGIC) {
        return None;
    }
    let mut fields = Fields {
        rest: &end[trailer + 16..],
    };
    let (at, len) = (u64::from(fields.u32()?), fields.u32()?);
    let from = at.checked_sub(before)? as usize;
    let directory = end.get(from..from.checked_add(len as usize)?)?;
    let mut start = at;
    for block in directory.chunks(IN_DIRECTORY) {
        start = start.min(u64::from(read_block(block)?.stored.at));
    }
    (start >= before).then_some(start)
}

/// Where the index begins in the bytes of a segment with this directory.
pub(crate) fn begins(blocks: &[Block], bytes: &[u8]) -> usize {
    let directory = blocks.len() * IN_DIRECTORY + TRAILER as usize;
    let first = blocks.iter().map(|block| block.stored.at as usize).min();
    first.unwrap_or(bytes.len().saturating_sub(directory))
}

fn read_block(bytes: &[u8]) -> Option<Block> {
    let mut fields = Fields { rest: bytes };
    Some(Block {
        log: fields.u64()?,
        first: fields.i64()?,
        last: fields.i64()?,
        max_timestamp: fields.i64()?,
        bytes: fields.u64()?,
        stored: Stored {
            at: fields.u32()?,
            len: fields.u32()?,
            crc: fields.u32()?,
        },
    })
}

/// Reads a block's entries.
pub(crate) fn load(file: &File, stored: Stored, source: Source) -> io::Result<Arc<Entries>> {
    let mut bytes = vec![0; stored.len as usize];
    source.read(file, &mut bytes, u64::from(stored.at))?;
    (crc32c::crc32c(&bytes) == stored.crc)
        .then(|| Entries::unpack(bytes))
        .flatten()
        .map(Arc::new)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "an index block does not match its checksum",
            )
        })
}

/// A block's entries, and their last use.
type Cached = (Arc<Entries>, u64);

/// A cache of index blocks, bounded in bytes.
#[derive(Debug, Default)]
pub(crate) struct IndexCache {
    blocks: HashMap<(u64, u32), Cached>,
    bytes: usize,
    clock: u64,
}

impl IndexCache {
    /// About 250,000 batches.
    const BYTES_MAX: usize = 2 << 20;

    pub(crate) fn get(&mut self, segment: u64, stored: Stored) -> Option<Arc<Entries>> {
        self.clock += 1;
        let (entries, used) = self.blocks.get_mut(&(segment, stored.at))?;
        *used = self.clock;
        Some(Arc::clone(entries))
    }

    pub(crate) fn keep(&mut self, segment: u64, stored: Stored, entries: Arc<Entries>) {
        self.bytes += entries.footprint();
        if let Some((old, _)) = self
            .blocks
            .insert((segment, stored.at), (entries, self.clock))
        {
            self.bytes -= old.footprint();
        }
        while self.bytes > Self::BYTES_MAX && self.blocks.len() > 1 {
            let Some(oldest) = self
                .blocks
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key)
            else {
                break;
            };
            self.bytes -= self
                .blocks
                .remove(&oldest)
                .map_or(0, |(entries, _)| entries.footprint());
        }
        debug_assert_eq!(
            self.bytes,
            self.blocks
                .values()
                .map(|(entries, _)| entries.footprint())
                .sum::<usize>(),
            "the counted size is wrong"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entry;

    #[test]
    fn the_cache_keeps_what_was_used_last() {
        let entry = |base| Entry {
            base,
            max_timestamp: 0,
            last_delta: 0,
            at: 0,
            len: 61,
        };
        let mut block = Entries::default();
        for base in 0.. {
            if block.footprint() > IndexCache::BYTES_MAX / 2 - 100 {
                break;
            }
            block.push(&entry(base));
        }
        let block = Arc::new(block);
        let stored = |at| Stored { at, len: 0, crc: 0 };
        let mut cache = IndexCache::default();
        cache.keep(1, stored(1), Arc::clone(&block));
        cache.keep(1, stored(2), Arc::clone(&block));
        assert!(cache.get(1, stored(1)).is_some());
        cache.keep(1, stored(3), Arc::clone(&block));
        assert!(cache.get(1, stored(2)).is_none());
        assert!(cache.get(1, stored(1)).is_some() && cache.get(1, stored(3)).is_some());
    }
}
