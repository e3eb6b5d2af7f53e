//! The segments of a store: how much of each is live, and their open files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
};

use sharecore_bucket as bucket;

use crate::{LogId, files::File, segment::Kind};

/// Open files of sealed segments.
const OPEN_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) kind: Kind,
    /// Bytes of batches written to it, and of live ones.
    pub(crate) bytes: u64,
    pub(crate) live: u64,
    /// It has an index, and no start needs its frames.
    pub(crate) sealed: bool,
    /// Compaction passes reading it, which keep it from being rewritten.
    pins: u32,
    file: Option<Arc<File>>,
    used: u64,
    /// The name in the bucket that a checkpoint there gives it.
    named: Option<bucket::Segment>,
    /// If it was evicted, the bytes of batches that its file has kept.
    kept: Option<u64>,
    /// It is being rewritten: nobody else may start to, and the cleaner must not start reading it.
    is_taken: bool,
    /// Failed attempts in a row to evict it, or to rewrite it once it was evicted.
    failures: u32,
    /// So many checkpoints come before the next attempt.
    pause: u32,
}

impl Segment {
    pub(crate) fn is_evicted(&self) -> bool {
        self.kept.is_some()
    }
}

/// Bytes of the batches in sealed segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SealedBytes {
    pub(crate) local: u64,
    /// The part of `local` in evicted segments.
    pub(crate) kept: u64,
    pub(crate) remote: u64,
}

#[derive(Debug)]
pub(crate) struct Segments {
    dir: PathBuf,
    map: BTreeMap<u64, Segment>,
    next: u64,
    clock: u64,
    freed: u64,
    /// How many bytes of sealed segments stay on the disk.
    bound: Option<u64>,
    /// Logs whose batches stay on the disk; nothing is evicted until they are known.
    local_logs: Option<BTreeSet<LogId>>,
}

impl Segments {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            map: BTreeMap::new(),
            next: 1,
            clock: 0,
            freed: 0,
            bound: None,
            local_logs: None,
        }
    }

    /// An unused ID.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next += 1;
        let id = self.next - 1;
        assert!(
            !self.map.contains_key(&id),
            "another segment has the number"
        );
        id
    }

    /// The ID after all used ones.
    pub(crate) fn next_id(&self) -> u64 {
        self.next
    }

    /// Marks IDs below `next` as used.
    pub(crate) fn given_below(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    pub(crate) fn add(&mut self, id: u64, kind: Kind, file: Option<Arc<File>>) {
        self.given_below(id + 1);
        debug_assert!(id < self.next, "the number would be given again");
        let segment = Segment {
            kind,
            bytes: 0,
            live: 0,
            sealed: kind == Kind::Compact,
            pins: 0,
            file,
            used: self.clock,
            named: None,
            kept: None,
            is_taken: false,
            failures: 0,
            pause: 0,
        };
        self.map.insert(id, segment);
    }

    /// Adds a sealed segment listed in a checkpoint; none of its bytes is live yet.
    pub(crate) fn restore(&mut self, id: u64, kind: Kind, bytes: u64) {
        self.add(id, kind, None);
        if let Some(segment) = self.map.get_mut(&id) {
            segment.bytes = bytes;
            segment.sealed = true;
        }
    }

    pub(crate) fn remove(&mut self, id: u64) {
        debug_assert!(
            self.map.get(&id).is_none_or(|segment| segment.pins == 0),
            "a pass reads the segment"
        );
        self.map.remove(&id);
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.map.contains_key(&id)
    }

    pub(crate) fn path(&self, id: u64) -> PathBuf {
        self.kind(id).path(&self.dir, id)
    }

    pub(crate) fn kind(&self, id: u64) -> Kind {
        let segment = self.map.get(&id);
        segment.map_or(Kind::Journal, |segment| segment.kind)
    }

    /// Counts batches written to a segment.
    pub(crate) fn wrote(&mut self, id: u64, bytes: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.bytes += bytes;
            segment.live += bytes;
        }
    }

    /// Sets the bytes of batches in a sealed segment, from its index.
    pub(crate) fn holds(&mut self, id: u64, bytes: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.bytes = segment.bytes.max(bytes);
        }
    }

    /// Counts live batches of a sealed segment.
    pub(crate) fn reached(&mut self, id: u64, bytes: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.live += bytes;
        }
    }

    /// Counts batches of a segment that are no longer live.
    pub(crate) fn freed(&mut self, id: u64, bytes: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.live = segment.live.saturating_sub(bytes);
            if segment.sealed {
                self.freed += bytes;
            }
        }
    }

    /// Bytes freed in sealed segments so far.
    pub(crate) fn freed_bytes(&self) -> u64 {
        self.freed
    }

    pub(crate) fn sealed(&mut self, id: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.sealed = true;
            // it may be read next
            segment.used = self.clock;
        }
    }

    pub(crate) fn is_sealed(&self, id: u64) -> bool {
        self.map.get(&id).is_some_and(|segment| segment.sealed)
    }

    /// Keeps a segment from being rewritten until it is unpinned as often.
    pub(crate) fn pin(&mut self, id: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, id: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            debug_assert!(segment.pins > 0, "nobody reads it");
            segment.pins -= 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Segment)> + Clone {
        self.map.iter().map(|(id, segment)| (*id, segment))
    }

    /// A segment's file, if it is open.
    pub(crate) fn opened(&mut self, id: u64) -> Option<Arc<File>> {
        self.clock += 1;
        let segment = self.map.get_mut(&id)?;
        segment.used = self.clock;
        segment.file.clone()
    }

    /// Caches the open file of a segment, unless it is gone, or was opened or evicted meanwhile.
    pub(crate) fn keep_open(&mut self, id: u64, file: Arc<File>) {
        let is_whole = !matches!(*file, File::Evicted(_));
        if let Some(segment) = self.map.get_mut(&id)
            && segment.file.is_none()
            // an evicted file that stays open keeps its disk space
            && !(segment.is_evicted() && is_whole)
        {
            segment.used = self.clock;
            segment.file = Some(file);
            self.close_surplus();
        }
    }

    /// A segment's file, opened if need be.
    pub(crate) fn file(&mut self, id: u64) -> io::Result<Arc<File>> {
        self.clock += 1;
        let clock = self.clock;
        let path = self.path(id);
        let segment = self.map.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
        segment.used = clock;
        if let Some(file) = &segment.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(&path)?);
        segment.file = Some(Arc::clone(&file));
        self.close_surplus();
        Ok(file)
    }

    /// Keep so many bytes of sealed segments on the disk.
    pub(crate) fn bound(&mut self, bytes: u64) {
        self.bound = Some(bytes);
    }

    /// Keep the batches of these logs on the disk, too.
    pub(crate) fn keep_local(&mut self, logs: impl IntoIterator<Item = LogId>) {
        self.local_logs.get_or_insert_default().extend(logs);
    }

    /// Whether the batches of a log stay on the disk.
    pub(crate) fn is_local(&self, log: LogId) -> bool {
        self.local_logs.as_ref().is_some_and(|it| it.contains(&log))
    }

    /// A checkpoint in the bucket names a segment.
    pub(crate) fn named(&mut self, name: bucket::Segment) {
        if let Some(segment) = self.map.get_mut(&name.id)
            && segment.kind == Kind::of(name)
        {
            if segment.pause > 0 {
                segment.pause -= 1;
                return;
            }
            segment.named = Some(name);
        }
    }

    /// An attempt to evict a segment, or to rewrite an evicted one, has failed: it rests for a number of checkpoints that
    /// doubles with each failure.
    pub(crate) fn postpone(&mut self, id: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            segment.named = None;
            segment.pause = 1 << segment.failures.min(PAUSES_MAX);
            segment.failures += 1;
        }
    }

    /// A segment was evicted; its file has kept some bytes of batches.
    pub(crate) fn evicted(&mut self, id: u64, kept: u64) {
        if let Some(segment) = self.map.get_mut(&id) {
            debug_assert!(segment.sealed, "its batches are not in the bucket");
            segment.kept = Some(kept);
            segment.file = None;
            segment.failures = 0;
            segment.pause = 0;
        }
    }

    pub(crate) fn is_evicted(&self, id: u64) -> bool {
        self.map.get(&id).is_some_and(Segment::is_evicted)
    }

    /// Mark segments that are rewritten, or no longer.
    pub(crate) fn take(&mut self, ids: &[u64], is_taken: bool) {
        for id in ids {
            if let Some(segment) = self.map.get_mut(id) {
                segment.is_taken = is_taken;
            }
        }
    }

    /// Whether a segment is being rewritten.
    pub(crate) fn is_taken(&self, id: u64) -> bool {
        self.map.get(&id).is_some_and(|segment| segment.is_taken)
    }

    pub(crate) fn sealed_bytes(&self) -> SealedBytes {
        let mut bytes = SealedBytes::default();
        for segment in self.map.values().filter(|s| s.sealed) {
            let kept = segment.kept.map(|kept| kept.min(segment.bytes));
            bytes.local += kept.unwrap_or(segment.bytes);
            bytes.kept += kept.unwrap_or(0);
            bytes.remote += kept.map_or(0, |kept| segment.bytes - kept);
        }
        bytes
    }

    /// Beyond the bound: the segment that was read longest ago and that the bucket has.
    pub(crate) fn surplus(&self) -> Option<(u64, bucket::Segment)> {
        let bound = self.bound.filter(|_| self.local_logs.is_some())?;
        if self.sealed_bytes().local <= bound {
            return None;
        }
        let local = self
            .iter()
            .filter(|(_, s)| s.sealed && !s.is_evicted() && s.pins == 0 && !s.is_taken);
        let named = local.filter_map(|(id, s)| Some((s.used, id, s.named?)));
        let oldest = named.min_by_key(|(used, id, _)| (*used, *id));
        oldest.map(|(_, id, name)| (id, name))
    }

    fn close_surplus(&mut self) {
        let open = self.map.values().filter(|s| s.sealed && s.file.is_some());
        if open.clone().count() > OPEN_MAX {
            let oldest = open.map(|s| s.used).min();
            let mut sealed = self.map.values_mut().filter(|s| s.sealed);
            if let Some(segment) = sealed.find(|s| s.file.is_some() && Some(s.used) == oldest) {
                segment.file = None;
            }
        }
    }

    /// Sealed segments that are mostly garbage, oldest first, whose live batches fill about one segment.
    ///
    /// Rewriting one frees at least as many bytes as it writes. Small segments are merged once there are several.
    /// Evicted ones are rewritten apart, because that waits for the bucket, unless nothing in them is live.
    pub(crate) fn victims(&self, segment_bytes: u64, evicted: bool) -> Vec<u64> {
        let free = |s: &Segment| s.sealed && s.pins == 0 && !s.is_taken;
        let sealed = self.iter().filter(|(_, s)| free(s));
        if !evicted && sealed.clone().any(|(_, s)| s.live == 0) {
            return sealed
                .filter(|(_, s)| s.live == 0)
                .map(|(id, _)| id)
                .collect();
        }
        let sealed = sealed.filter(|(_, s)| s.live > 0 && s.is_evicted() == evicted);
        let sealed = sealed.filter(|(_, s)| !evicted || s.pause == 0);
        let small = |s: &Segment| s.live < segment_bytes / 8;
        let join = sealed.clone().filter(|(_, s)| small(s)).count() >= JOINED;
        let mut room = segment_bytes;
        let mut chosen = Vec::new();
        for (id, segment) in sealed {
            let wanted = segment.live * 2 < segment.bytes || (join && small(segment));
            if wanted && segment.live <= room {
                room -= segment.live;
                chosen.push(id);
            }
        }
        debug_assert!(
            chosen.is_sorted() && chosen.iter().all(|id| self.is_sealed(*id)),
            "the active segment"
        );
        chosen
    }
}

/// This many small segments are worth rewriting for fewer files.
const JOINED: usize = 16;
/// The longest pause after failures is 2 to this power, in checkpoints.
const PAUSES_MAX: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_evicted_while_a_reader_opened_it_is_not_kept_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut segments = Segments::new(dir.path().into());
        segments.restore(1, Kind::Journal, 10);
        File::create(&segments.path(1)).expect("room");
        let file = Arc::new(File::open(&segments.path(1)).expect("it is there"));
        segments.keep_open(1, Arc::clone(&file));
        assert!(segments.opened(1).is_some());
        segments.evicted(1, 0);
        segments.keep_open(1, file);
        assert!(segments.opened(1).is_none());
    }
}
