//! Where the batches of a sealed segment lie: written after its frames, read when a reader needs it.
//!
//! A block for each log, then a directory of the blocks, then a trailer. A batch takes about seven bytes in a block:
//! its fields are stored as differences from the batch before, seven bits per byte.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use crate::{
    LogId,
    batch::Header,
    disk::Source,
    error::StoreError,
    files::File,
    frame::Fields,
    varint::{put_varint, take_varint},
};

const MAGIC: &[u8; 8] = b"SCidx-1\n";
const TRAILER: u64 = 32;
const IN_DIRECTORY: usize = 52;
/// Of an entry in a block.
const NUMBERS: usize = 5;

/// Where a batch lies in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) base: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) last_delta: u32,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Entry {
    pub(crate) fn new(header: &Header, at: u32) -> Self {
        Self {
            base: header.base_offset,
            max_timestamp: header.max_timestamp,
            last_delta: header.last_offset_delta as u32,
            at,
            len: header.size as u32,
        }
    }

    pub(crate) fn last(&self) -> i64 {
        self.base + i64::from(self.last_delta)
    }
}

/// A block as the directory lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) log: LogId,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) bytes: u64,
    pub(crate) stored: Stored,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) at: u32,
    pub(crate) len: u32,
    crc: u32,
}

/// The batches of a log in one segment.
#[derive(Debug, Clone)]
pub(crate) enum Index {
    Memory(Arc<Vec<Entry>>),
    Stored(Stored),
}

fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * entries.len() + 16);
    let (mut end, mut at, mut timestamp) = (0, 0, 0);
    for entry in entries {
        put_varint(&mut out, entry.base - end);
        put_varint(&mut out, i64::from(entry.last_delta));
        put_varint(&mut out, i64::from(entry.at) - at);
        put_varint(&mut out, i64::from(entry.len));
        put_varint(&mut out, entry.max_timestamp.wrapping_sub(timestamp));
        end = entry.last() + 1;
        at = i64::from(entry.at) + i64::from(entry.len);
        timestamp = entry.max_timestamp;
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    // as many as there are, since they may be kept for long: every number's last byte is below 0x80
    let numbers = bytes.iter().filter(|byte| **byte < 0x80).count();
    let mut entries = Vec::with_capacity(numbers / NUMBERS);
    let (mut end, mut at, mut timestamp) = (0_i64, 0_i64, 0_i64);
    while !bytes.is_empty() {
        let base = end.checked_add(take_varint(&mut bytes)?)?;
        let last_delta = u32::try_from(take_varint(&mut bytes)?).ok()?;
        at = at.checked_add(take_varint(&mut bytes)?)?;
        let len = u32::try_from(take_varint(&mut bytes)?).ok()?;
        timestamp = timestamp.wrapping_add(take_varint(&mut bytes)?);
        let entry = Entry {
            base,
            max_timestamp: timestamp,
            last_delta,
            at: u32::try_from(at).ok()?,
            len,
        };
        end = base.checked_add(i64::from(last_delta) + 1)?;
        at += i64::from(len);
        entries.push(entry);
    }
    Some(entries)
}

/// Writes the index of a segment whose batches end at `position`. Returns the blocks as the directory lists them.
pub(crate) fn write<'a>(
    out: &mut impl Write,
    segment: u64,
    position: u64,
    blocks: impl Iterator<Item = (LogId, &'a [Entry])>,
) -> io::Result<Vec<Block>> {
    let mut directory = Vec::new();
    let mut listed = Vec::new();
    let mut at = position as u32;
    for (log, entries) in blocks {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            continue;
        };
        let bytes = encode(entries);
        out.write_all(&bytes)?;
        let block = Block {
            log,
            first: first.base,
            last: last.last(),
            max_timestamp: entries.iter().map(|e| e.max_timestamp).max().unwrap_or(-1),
            bytes: entries.iter().map(|e| u64::from(e.len)).sum(),
            stored: Stored {
                at,
                len: bytes.len() as u32,
                crc: crc32c::crc32c(&bytes),
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
    out.write_all(&directory)?;
    let mut trailer = Vec::with_capacity(TRAILER as usize);
    trailer.extend_from_slice(MAGIC);
    trailer.extend_from_slice(&segment.to_le_bytes());
    trailer.extend_from_slice(&at.to_le_bytes());
    trailer.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    trailer.extend_from_slice(&crc32c::crc32c(&directory).to_le_bytes());
    let crc = crc32c::crc32c(&trailer);
    trailer.extend_from_slice(&crc.to_le_bytes());
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
        .map_err(|_| damaged(u64::from(at), "the directory of the index is cut off"))?;
    if crc != Some(crc32c::crc32c(&directory)) {
        return Err(damaged(
            u64::from(at),
            "the directory of the index does not match its checksum",
        ));
    }
    let blocks: Option<Vec<Block>> = directory.chunks(IN_DIRECTORY).map(read_block).collect();
    blocks.ok_or_else(|| damaged(u64::from(at), "the directory of the index is cut off"))
}

/// Where the index begins in the bytes of a segment whose directory lists `blocks`.
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
pub(crate) fn load(file: &File, stored: Stored, source: Source) -> io::Result<Arc<Vec<Entry>>> {
    let mut bytes = vec![0; stored.len as usize];
    source.read(file, &mut bytes, u64::from(stored.at))?;
    (crc32c::crc32c(&bytes) == stored.crc)
        .then(|| decode(&bytes))
        .flatten()
        .map(Arc::new)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "an index block does not match its checksum",
            )
        })
}

/// A block's entries, and when they were asked for.
type Cached = (Arc<Vec<Entry>>, u64);

/// Recently read blocks, up to a number of entries.
#[derive(Debug, Default)]
pub(crate) struct IndexCache {
    blocks: HashMap<(u64, u32), Cached>,
    entries: usize,
    clock: u64,
}

impl IndexCache {
    /// About 4 MB.
    const ENTRIES_MAX: usize = 128 << 10;

    pub(crate) fn get(&mut self, segment: u64, stored: Stored) -> Option<Arc<Vec<Entry>>> {
        self.clock += 1;
        let (entries, used) = self.blocks.get_mut(&(segment, stored.at))?;
        *used = self.clock;
        Some(Arc::clone(entries))
    }

    pub(crate) fn keep(&mut self, segment: u64, stored: Stored, entries: Arc<Vec<Entry>>) {
        self.entries += entries.len();
        if let Some((old, _)) = self
            .blocks
            .insert((segment, stored.at), (entries, self.clock))
        {
            self.entries -= old.len();
        }
        while self.entries > Self::ENTRIES_MAX && self.blocks.len() > 1 {
            let Some(oldest) = self
                .blocks
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key)
            else {
                break;
            };
            self.entries -= self
                .blocks
                .remove(&oldest)
                .map_or(0, |(entries, _)| entries.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let one = (
            0..5_i64,
            any::<i64>(),
            0..1000_u32,
            0..100_u32,
            61..100_000_u32,
        );
        prop::collection::vec(one, 0..50).prop_map(|drawn| {
            let (mut end, mut at) = (7, 32);
            let place = |(gap, max_timestamp, last_delta, hole, len)| {
                let entry = Entry {
                    base: end + gap,
                    max_timestamp,
                    last_delta,
                    at: at + hole,
                    len,
                };
                end = entry.last() + 1;
                at = entry.at + entry.len;
                entry
            };
            drawn.into_iter().map(place).collect()
        })
    }

    proptest! {
        #[test]
        fn a_block_is_read_as_it_was_written(entries in entries()) {
            let decoded = decode(&encode(&entries)).expect("a block");
            prop_assert_eq!(decoded.capacity(), entries.len());
            prop_assert_eq!(decoded, entries);
        }
    }

    #[test]
    fn the_cache_keeps_what_was_used_last() {
        let entry = Entry {
            base: 0,
            max_timestamp: 0,
            last_delta: 0,
            at: 0,
            len: 61,
        };
        let block = Arc::new(vec![entry; IndexCache::ENTRIES_MAX / 2]);
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
