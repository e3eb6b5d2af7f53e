//! One log in memory: its offsets, the positions of its batches, and the newest batches.

use std::{collections::VecDeque, sync::Arc};

use sharecore_records::Codec;

use crate::{
    batch::TimestampType,
    cleaner::Progress,
    entries::Entry,
    index::{Block, Index},
    producer::Producers,
};

/// The limits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogConfig {
    /// Largest batch in bytes (`max.message.bytes`).
    pub max_batch_bytes: usize,
    /// Whose clock sets timestamps (`message.timestamp.type`).
    pub timestamp_type: TimestampType,
    /// How old a timestamp may be (`message.timestamp.before.max.ms`).
    pub before_max_ms: i64,
    /// How far in the future a timestamp may be (`message.timestamp.after.max.ms`).
    pub after_max_ms: i64,
    /// Whether records must have keys because the log is compacted (`cleanup.policy`).
    pub needs_keys: bool,
    /// The log's compression (`compression.type`); `None` keeps the producer's.
    pub codec: Option<Codec>,
}

impl LogConfig {
    /// Whether a record of this time may be appended now.
    pub(crate) fn takes_time(&self, time: i64, now_ms: i64) -> bool {
        let since = now_ms.saturating_sub(time);
        since <= self.before_max_ms && since.saturating_neg() <= self.after_max_ms
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            max_batch_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            needs_keys: false,
            codec: None,
        }
    }
}

/// The offsets of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// First readable offset.
    pub start: i64,
    /// End of the durable records.
    pub high_watermark: i64,
    /// Offset of the next record, after staged ones.
    pub end: i64,
    /// End of the durable, decided records.
    pub last_stable: i64,
}

/// A log's batches in one segment.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    pub(crate) segment: u64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) bytes: u64,
    pub(crate) index: Index,
}

/// A durable batch that is cached.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    pub(crate) base: i64,
    pub(crate) last: i64,
    pub(crate) bytes: Arc<[u8]>,
}

/// The state of one log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) config: LogConfig,
    pub(crate) start: i64,
    pub(crate) durable_end: i64,
    pub(crate) end: i64,
    pub(crate) extents: VecDeque<Extent>,
    pub(crate) recent: VecDeque<Recent>,
    pub(crate) producers: Producers,
    /// How far the log has been compacted.
    pub(crate) cleaned: Progress,
    /// Whether a compaction pass is running.
    pub(crate) cleaning: bool,
    /// Whether its removal is staged: no more appends.
    pub(crate) dropping: bool,
    /// Whether it is listed among the logs whose offsets moved since the last drain.
    pub(crate) moved: bool,
}

impl Log {
    pub(crate) fn offsets(&self) -> Offsets {
        Offsets {
            start: self.start,
            high_watermark: self.durable_end,
            end: self.end,
            last_stable: self
                .producers
                .last_stable_offset(self.durable_end)
                .max(self.start),
        }
    }

    /// Adds a batch that became durable.
    pub(crate) fn add(&mut self, segment: u64, entry: Entry) {
        self.durable_end = entry.last() + 1;
        match self.extents.back_mut() {
            Some(extent) if extent.segment == segment => extent.push(entry),
            _ => self.extents.push_back(Extent {
                segment,
                first: entry.base,
                last: entry.last(),
                max_timestamp: entry.max_timestamp,
                bytes: u64::from(entry.len),
                index: Index::Memory(Arc::new([entry].into_iter().collect())),
            }),
        }
        self.producers.committed(self.durable_end);
    }

    /// Moves the start; returns the extents wholly before it, which are dropped.
    pub(crate) fn move_start(&mut self, offset: i64) -> Vec<Extent> {
        self.start = self.start.max(offset);
        debug_assert!(self.start >= offset, "the start never falls");
        let gone = self.extents.partition_point(|e| e.last < self.start);
        self.producers.forget_before(self.start);
        self.extents.drain(..gone).collect()
    }

    /// Bytes of live batches.
    pub(crate) fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.live_bytes(self.start)).sum()
    }
}

impl Extent {
    /// Batches with an index on disk.
    pub(crate) fn stored(segment: u64, block: &Block) -> Self {
        Self {
            segment,
            first: block.first,
            last: block.last,
            max_timestamp: block.max_timestamp,
            bytes: block.bytes,
            index: Index::Stored(block.stored),
        }
    }

    fn push(&mut self, entry: Entry) {
        self.last = entry.last();
        self.max_timestamp = self.max_timestamp.max(entry.max_timestamp);
        self.bytes += u64::from(entry.len);
        if let Index::Memory(entries) = &mut self.index {
            // nobody else holds the index of the active segment, except briefly
            Arc::make_mut(entries).push(&entry);
        }
    }

    /// About how many of its bytes are after `start`.
    pub(crate) fn live_bytes(&self, start: i64) -> u64 {
        if start <= self.first {
            return self.bytes;
        }
        let all = (self.last - self.first + 1) as u128;
        let live = (self.last + 1 - start).max(0) as u128;
        debug_assert!(live < all, "offsets before the start do not count");
        (u128::from(self.bytes) * live / all) as u64
    }
}
