//! Reading: whole batches by offset, batches by time, and the start of a log after retention.

use std::sync::Arc;

use crate::{
    LogId,
    apart::ReadFrom,
    decode,
    disk::Source,
    entries::{Entries, Entry},
    error::Refusal,
    index::Index,
    log::{Extent, Log},
    lookup::{Loaded, Stop},
    slice::{Piece, Slice},
    state::State,
    store::Store,
};

/// The limits of a read.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// About how many bytes.
    pub max_bytes: usize,
    /// The read ends with the batch that reaches this many offsets.
    pub max_records: i64,
    /// Batches that reach this offset, or lie beyond the high watermark, are not read.
    pub limit: Option<i64>,
    /// Whether the first batch is read whatever its size.
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

    /// The amount per step when reading everything.
    const MUCH: Self = Self {
        max_bytes: 1 << 20,
        max_records: i64::MAX,
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

impl Store {
    /// Whole batches from the one that holds `offset`, or the first after it.
    pub fn read(&self, log: LogId, offset: i64, want: Want) -> Result<Slice, Refusal> {
        let look = |state: &mut State, loaded: &_| state.read(log, offset, want, loaded);
        self.shared.look_up_on_disk(look)
    }

    /// As `read`, without waiting for the disk: `None` if it is needed to locate the batches.
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

impl Store {
    /// The first durable record that is not older than `timestamp`: its offset and timestamp.
    pub fn offset_for(&self, log: LogId, timestamp: i64) -> Result<Option<(i64, i64)>, Refusal> {
        let start = self.offsets(log)?.start;
        let mut from = start;
        loop {
            let look =
                |state: &mut State, loaded: &_| state.batch_since(log, from, timestamp, loaded);
            let batch = self.shared.look_up_on_disk(look)?;
            let Some(slice) = batch else { return Ok(None) };
            let mut bytes = vec![0; slice.size];
            slice.copy_to(&mut bytes)?;
            if let Some(found) = decode::record_since(&bytes, start, timestamp)? {
                return Ok(Some(found));
            }
            // only records before the start were that new
            from = slice.batches.last().map_or(i64::MAX, |(_, last)| last + 1);
        }
    }

    /// Reads a whole log to find damaged batches, which `drain` returns. May take long: call it from a separate thread.
    /// Without a bucket, batches of evicted segments are passed over.
    pub fn verify(&self, log: LogId) -> Result<(), Refusal> {
        let mut offset = self.offsets(log)?.start;
        let mut bytes = Vec::new();
        let is_elsewhere =
            |slice: &Slice| self.shared.evicted().is_none() && slice.source() == ReadFrom::Bucket;
        loop {
            let mut slice = self.read(log, offset, Want::MUCH)?;
            if is_elsewhere(&slice) {
                slice = self.read(log, offset, Want::ONE)?;
            }
            let Some((_, last)) = slice.batches.last() else {
                return Ok(());
            };
            if is_elsewhere(&slice) {
                offset = last + 1;
                continue;
            }
            bytes.resize(slice.size, 0);
            let broken = match slice.copy_to(&mut bytes) {
                Ok(intact) => slice.batches.get(intact.batches),
                Err(Refusal::Damaged(_)) => slice.batches.first(),
                Err(other) => return Err(other),
            };
            offset = broken.map_or(*last, |(_, last)| *last) + 1;
        }
    }
}

impl State {
    /// Whole batches from the one that holds `offset`, or the first after it.
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
        debug_assert!(limit <= log.durable_end, "what is not durable is not read");
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
            debug_assert!(recent.base <= recent.last && next <= recent.last);
            slice.push(
                recent.base,
                recent.last,
                Piece::Memory(Arc::clone(&recent.bytes)),
            );
        }
        Ok(slice)
    }

    /// Reads batches before `cached_from`; false if the limits were reached.
    fn read_disk(
        &mut self,
        id: LogId,
        offset: i64,
        (limit, cached_from): (i64, i64),
        want: Want,
        slice: &mut Slice,
        loaded: &Loaded,
    ) -> Result<bool, Stop> {
        slice.log = Some((id, Arc::clone(&self.damages)));
        let mut at = self.log(id)?.extents.partition_point(|e| e.last < offset);
        while let Some(extent) = self.log(id)?.extents.get(at) {
            let segment = extent.segment;
            let found = self
                .entries_of(id, at, loaded)
                .and_then(|entries| Ok((entries, self.file(segment, loaded)?)));
            let (entries, file) = match found {
                // the batches before are intact: a read from here returns the error
                Err(Stop::Refused(_)) if !slice.batches.is_empty() => return Ok(false),
                found => found?,
            };
            let place = (segment, self.segments.kind(segment));
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
                        place,
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

    /// The first durable batch from `offset` whose largest timestamp is at least `timestamp`.
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

    /// The log's start after deleting batches older than `oldest_ms`, and the oldest ones beyond `max_bytes`.
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

    /// A log's extents in the given segments, with the log's start.
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
        debug_assert!(
            found
                .iter()
                .all(|(_, _, extent)| segments.contains(&extent.segment)),
            "of another segment"
        );
        found
    }
}
