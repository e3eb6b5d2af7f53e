//! The part of a log that can be compacted, and how much of it has not been.

use std::{path::PathBuf, sync::Arc};

use crate::{
    LogId,
    entries::Entries,
    error::Refusal,
    files::File,
    index::Index,
    log::{Extent, Log},
    state::State,
};

/// How much of a log can be compacted (`min.cleanable.dirty.ratio`, `max.compaction.lag.ms`, `segment.ms`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dirt {
    /// Bytes of compacted batches, and of those that can be compacted now.
    pub clean_bytes: u64,
    /// See `clean_bytes`.
    pub dirty_bytes: u64,
    /// Newest timestamp of the first batch that can be compacted now.
    pub dirty_since_ms: Option<i64>,
    /// Bytes in the active journal segment: they wait until it is full or rolled.
    pub active_bytes: u64,
    /// Newest timestamp of the first of them.
    pub active_since_ms: Option<i64>,
}

/// The sealed segments of a log, up to the first batch that must stay.
pub(crate) struct Section {
    pub(crate) start: i64,
    /// First offset not compacted yet.
    pub(crate) dirty_from: i64,
    /// First offset beyond this pass.
    pub(crate) limit: i64,
    pub(crate) sources: Vec<Source>,
    /// Its batches in segments without an index on disk: the active one, and full ones before it.
    active: Vec<Extent>,
}

/// Batches of the log in one sealed segment.
pub(crate) struct Source {
    pub(crate) extent: Extent,
    path: PathBuf,
}

impl Source {
    pub(crate) fn open(&self) -> Result<File, Refusal> {
        File::open(&self.path).map_err(|error| self.unreadable(&error))
    }

    pub(crate) fn unreadable(&self, error: &dyn std::fmt::Display) -> Refusal {
        Refusal::Storage(format!("{}: {error}", self.path.display()))
    }

    pub(crate) fn entries(&self) -> Result<Arc<Entries>, Refusal> {
        let entries = self.extent.index.entries(|| File::open(&self.path));
        entries.map_err(|error| self.unreadable(&error))
    }
}

impl Section {
    /// The part of the log that can be compacted: decided batches in sealed segments, not newer than `newest_ms`, and
    /// never the last batch, which defines the end of the log.
    pub(crate) fn of(state: &State, id: LogId, newest_ms: i64) -> Result<Self, Refusal> {
        let log = state.log(id)?;
        let sealed = |extent: &&Extent| state.segments.is_sealed(extent.segment);
        let extents: Vec<Extent> = log.extents.iter().take_while(sealed).cloned().collect();
        let active: Vec<Extent> = log.extents.iter().skip(extents.len()).cloned().collect();
        let dirty_from = log.cleaned.end.max(log.start);
        let young = extents
            .iter()
            .find(|e| e.last >= dirty_from && e.max_timestamp > newest_ms);
        let stable = log.offsets().last_stable;
        let limit = [young, active.first()]
            .into_iter()
            .flatten()
            .map(|extent| extent.first)
            .fold(stable, i64::min);
        debug_assert!(limit <= stable, "a transaction may still be aborted");
        debug_assert!(log.start <= dirty_from, "records are gone from there");
        let sources = extents.into_iter().map(|extent| Source {
            path: state.segments.path(extent.segment),
            extent,
        });
        Ok(Self {
            start: log.start,
            dirty_from,
            limit,
            sources: sources.collect(),
            active,
        })
    }

    /// Sets the limit before the last batch if that is in a sealed segment; reads the segment's index.
    pub(crate) fn spare_last(&mut self) -> Result<(), Refusal> {
        let Some(source) = self.sources.last().filter(|_| self.active.is_empty()) else {
            return Ok(());
        };
        let last = source.entries()?.last();
        let last = last
            .filter(|entry| entry.last() >= self.start)
            .map(|entry| entry.base);
        self.limit = self.limit.min(last.unwrap_or(i64::MAX));
        Ok(())
    }

    pub(crate) fn dirt(&self) -> Result<Dirt, Refusal> {
        let mut dirt = Dirt::default();
        for Source { extent, .. } in &self.sources {
            let live = extent.live_bytes(self.start);
            let behind = |offset| extent.live_bytes(self.start.max(offset));
            dirt.clean_bytes += live - behind(self.dirty_from);
            if extent.first < self.limit {
                dirt.dirty_bytes += behind(self.dirty_from) - behind(self.limit);
            }
        }
        let first = self
            .sources
            .iter()
            .find(|source| source.extent.last >= self.dirty_from)
            .filter(|_| dirt.dirty_bytes > 0);
        if let Some(source) = first {
            let first = source.entries()?.from(self.dirty_from).next();
            dirt.dirty_since_ms = first.map(|entry| entry.max_timestamp);
        }
        let active = self.active.iter();
        dirt.active_bytes = active.map(|extent| extent.live_bytes(self.start)).sum();
        if let Some(Index::Memory(entries)) = self.active.first().map(|extent| &extent.index) {
            let first = entries.from(self.start).next();
            dirt.active_since_ms = first.map(|entry| entry.max_timestamp);
        }
        Ok(dirt)
    }
}

/// How far a log has been compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// First offset not compacted yet.
    pub(crate) end: i64,
    /// The remaining batches before this offset are all in segments from `since`.
    pub(crate) covered: i64,
    pub(crate) since: u64,
}

impl Progress {
    /// Whether batches from `first` in `segment` have been replaced.
    pub(crate) fn replaced(&self, segment: u64, first: i64) -> bool {
        first < self.covered && segment < self.since
    }
}

impl Log {
    /// Forgets what a pass has replaced; returns it.
    pub(crate) fn forget_covered(&mut self, covered: i64) -> Vec<Extent> {
        let count = self.extents.partition_point(|e| e.last < covered);
        self.extents.drain(..count).collect()
    }
}
