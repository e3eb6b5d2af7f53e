//! Completes what the files of evicted segments keep.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    path::PathBuf,
};

use sharecore_bucket::Segment;

use super::{
    EvictedFile, EvictedSegments,
    eviction::{local_batches, put_in_place},
    header::{self, Header},
};
use crate::{
    LogId,
    disk::Source,
    error::StoreError,
    files::File,
    store::{Shared, Store},
};

/// A file that takes the place of an evicted segment's, while it is written.
const NEW: &str = "bucket.completed";
/// A start that cannot read one of many pieces fails: each is requested this often.
const ATTEMPTS: u32 = 4;
/// Segments whose files are open at a time.
const SEGMENTS: usize = 32;
/// Pieces fetched at a time, and how large they are together.
const PIECES: u64 = 32;
const BYTES: u64 = 64 << 20;

/// An evicted segment whose file is to keep more.
struct Incomplete {
    id: u64,
    path: PathBuf,
    old: Box<EvictedFile>,
    new: Header,
}

impl Incomplete {
    /// None if the file has all of these logs that it is to keep, or was replaced by a whole segment.
    fn of(shared: &Shared, page_bytes: u64, id: u64) -> Result<Option<Self>, StoreError> {
        let path = {
            let state = shared.lock();
            if !state.segments.is_evicted(id) {
                return Ok(None); // rewritten meanwhile, so it is local
            }
            state.segments.path(id)
        };
        let found = || -> io::Result<Option<(Box<EvictedFile>, Header)>> {
            let file = File::open(&path)?;
            let batches = local_batches(shared, id, &file)?;
            let File::Evicted(old) = file else {
                return Ok(None);
            };
            let mut new = old.header.clone();
            let pages = header::pages(&batches, new.index_from, page_bytes);
            if pages.iter().all(|it| new.keeps(it)) {
                return Ok(None);
            }
            new.keep(pages);
            Ok(Some((old, new)))
        };
        let found = unless_gone(shared, id, found());
        let found = found.map_err(StoreError::io(&path))?.flatten();
        Ok(found.map(|(old, new)| Self { id, path, old, new }))
    }

    /// The pieces with what the file is to keep and has not kept so far.
    fn pieces(&self) -> BTreeSet<u64> {
        let old = &self.old.header;
        let wanted = self.new.kept.iter().flat_map(|it| self.old.pieces_of(it));
        let lacks = |piece: &u64| {
            let range = old.range_of(*piece);
            self.new.kept.iter().any(|kept| {
                let part = kept.start.max(range.start)..kept.end.min(range.end);
                part.start < part.end && !old.keeps(&part)
            })
        };
        wanted.filter(lacks).collect()
    }
}

/// Fetches pieces of several segments at a time, in the order in which they are read.
struct Ahead<'a> {
    evicted: &'a EvictedSegments,
    rest: VecDeque<(&'a Header, u64)>,
    there: BTreeMap<(Segment, u64), Vec<u8>>,
}

impl Ahead<'_> {
    /// Read bytes of a segment that its file has not kept.
    fn read(&mut self, header: &Header, mut out: &mut [u8], mut at: u64) -> io::Result<()> {
        while !out.is_empty() {
            let piece = at / header.piece_bytes;
            let key = (header.segment, piece);
            if !self.there.contains_key(&key) {
                self.fetch_from(key)?;
            }
            let bytes = self.there.get(&key).ok_or(io::ErrorKind::UnexpectedEof)?;
            let bytes = &bytes[(at - piece * header.piece_bytes) as usize..];
            let (head, tail) = out.split_at_mut(bytes.len().min(out.len()));
            head.copy_from_slice(&bytes[..head.len()]);
            at += head.len() as u64;
            out = tail;
        }
        Ok(())
    }

    /// Fetch a piece and those after it. Earlier ones are not needed any more.
    fn fetch_from(&mut self, key: (Segment, u64)) -> io::Result<()> {
        self.there.clear();
        while self
            .rest
            .front()
            .is_some_and(|(header, piece)| (header.segment, *piece) != key)
        {
            self.rest.pop_front();
        }
        let largest = self
            .rest
            .front()
            .map_or(1, |(header, _)| header.piece_bytes.max(1));
        let count = (BYTES / largest).clamp(1, PIECES) as usize;
        let some: Vec<_> = self.rest.drain(..count.min(self.rest.len())).collect();
        for ((header, piece), found) in some.iter().zip(self.evicted.fetch(&some, ATTEMPTS)) {
            self.there.insert((header.segment, *piece), found?);
        }
        Ok(())
    }
}

/// The result of work on the file of a segment; None if it failed because the segment was rewritten meanwhile.
fn unless_gone<T>(shared: &Shared, id: u64, result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if shared.lock().segments.is_evicted(id) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Complete the files of some evicted segments.
fn complete(shared: &Shared, evicted: &EvictedSegments, ids: &[u64]) -> Result<(), StoreError> {
    let found = ids
        .iter()
        .map(|id| Incomplete::of(shared, evicted.page_bytes, *id));
    let found: Vec<_> = found
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    let pieces = found.iter().flat_map(|it| {
        let header = &it.old.header;
        it.pieces().into_iter().map(move |piece| (header, piece))
    });
    let mut ahead = Ahead {
        evicted,
        rest: pieces.collect(),
        there: BTreeMap::new(),
    };
    let new = evicted.dir.join(NEW);
    for it in &found {
        let mut attempt = || -> io::Result<()> {
            header::write(&new, &it.new, |out, at| {
                let old = &it.old;
                old.read_with(Source::Disk, out, at, |out, at| {
                    ahead.read(&old.header, out, at)
                })
            })?;
            put_in_place(shared, it.id, &it.path, &new, it.new.kept_bytes())?;
            Ok(())
        };
        let done = attempt();
        unless_gone(shared, it.id, done).map_err(StoreError::io(&it.path))?;
    }
    Ok(())
}

impl Store {
    /// Keep the live batches of these logs on the disk when a segment is evicted, so that reading them never waits for the
    /// bucket; fetch those that are missing, several at a time. Nothing is evicted before the first call.
    pub fn keep_local(&self, logs: &[LogId]) -> Result<(), StoreError> {
        let shared = &*self.shared;
        let Some(evicted) = shared.evicted() else {
            return Ok(());
        };
        let ids: BTreeSet<u64> = {
            let mut state = shared.lock();
            state.segments.keep_local(logs.iter().copied());
            let extents = logs.iter().filter_map(|log| state.logs.get(log));
            let ids = extents.flat_map(|log| log.extents.iter().map(|it| it.segment));
            ids.filter(|id| state.segments.is_evicted(*id)).collect()
        };
        for some in ids.into_iter().collect::<Vec<_>>().chunks(SEGMENTS) {
            complete(shared, evicted, some)?;
        }
        // segments may be evicted from now on
        shared.maintenance.notify_all();
        Ok(())
    }
}
