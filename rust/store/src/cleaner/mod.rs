//! Log compaction: the newest record of each key stays (KIP-58).
//!
//! A pass reads the newest offset of each key from the part of the log not compacted yet, and rewrites the log before
//! the end of that part into new segments. One frame of the journal then replaces the old segments: the pass takes
//! effect as a whole once that frame is durable. It holds the store's lock only briefly.

mod files;
mod keep;
mod offset_map;
mod pace;
mod section;
mod transactions;

use std::{collections::HashMap, path::Path, sync::Arc};

use crate::{
    LogId,
    entries::Entry,
    error::Refusal,
    frame::Clean,
    index::Block,
    log::Extent,
    pending::Pending,
    producer::{Aborted, LastBatch},
    segment::Kind,
    state::State,
    store::{Shared, Store},
};
use files::{Reader, Writer};
use keep::{Fate, Keep, marker_commits, readable};
use offset_map::OffsetMap;
use pace::Pace;
pub use section::Dirt;
pub(crate) use section::Progress;
use section::{Section, Source};
use transactions::Transactions;

/// Settings of a pass.
#[derive(Debug, Clone, Copy)]
pub struct CleanOptions {
    /// The current time.
    pub now_ms: i64,
    /// Segments with newer records are not compacted (`min.compaction.lag.ms`).
    pub newest_ms: i64,
    /// How long tombstones and markers stay after the first pass over them (`delete.retention.ms`).
    pub delete_retention_ms: i64,
    /// Memory for keys (`log.cleaner.dedupe.buffer.size`), and the fraction of it to use
    /// (`log.cleaner.io.buffer.load.factor`).
    pub keys_bytes: usize,
    /// See `keys_bytes`.
    pub keys_load: f64,
    /// About how many bytes to read at a time (`log.cleaner.io.buffer.size`).
    pub read_bytes: usize,
    /// Bytes read and written per second (`log.cleaner.io.max.bytes.per.second`).
    pub bytes_per_second: f64,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// The first offset not covered.
    pub end: i64,
    /// Records read, and records kept.
    pub records_read: u64,
    /// See `records_read`.
    pub records_kept: u64,
    /// Bytes of the old segments, and of the new ones.
    pub bytes_before: u64,
    /// See `bytes_before`.
    pub bytes_after: u64,
    /// Distinct keys between the end of the last pass and that of this one.
    pub keys: u64,
    /// Memory for these keys.
    pub keys_bytes: u64,
    /// Whether the keys exceeded the memory: another pass continues from `end`.
    pub is_partial: bool,
    /// First offset of the first unreadable batch; such batches stay as they are.
    pub first_unreadable: Option<i64>,
}

/// Segments that replace the beginning of a log; takes effect with the frame that carries it.
pub(crate) struct Replacement {
    pub(crate) log: LogId,
    pub(crate) progress: Progress,
    pub(crate) added: Vec<(u64, Block)>,
    /// Aborted transactions without remaining batches.
    pub(crate) vanished: Vec<Aborted>,
}

impl Replacement {
    pub(crate) fn record(&self) -> Clean {
        let mut added: Vec<u64> = self.added.iter().map(|(id, _)| *id).collect();
        added.dedup();
        Clean {
            log: self.log,
            progress: self.progress,
            added,
            vanished: self.vanished.clone(),
        }
    }

    pub(crate) fn weight(&self) -> usize {
        8 * self.added.len() + size_of::<Aborted>() * self.vanished.len() + 64
    }
}

impl Store {
    /// How much of a log can be compacted; `newest_ms` as in [`CleanOptions`].
    pub fn dirt(&self, log: LogId, newest_ms: i64) -> Result<Dirt, Refusal> {
        let mut section = Section::of(&self.shared.lock(), log, newest_ms)?;
        section.spare_last()?;
        section.dirt()
    }

    /// Compacts a log; `None` if there is nothing to do. May take long: call it from a separate thread.
    ///
    /// Undecided batches, those in the active journal segment, and the last batch are left alone.
    pub fn clean(&self, log: LogId, options: &CleanOptions) -> Result<Option<Cleaned>, Refusal> {
        let pass = Pass::begin(&self.shared, log, options)?;
        pass.run(&self.dir, self.segment_bytes)
    }

    /// Continues in a new journal segment, so that the batches of the current one can be compacted.
    pub fn roll(&self) -> Result<(), Refusal> {
        let mut state = self.shared.lock();
        state.writable()?;
        state.roll = true;
        self.shared.hurry(state);
        Ok(())
    }
}

/// One pass over one log; keeps its segments from being rewritten meanwhile.
struct Pass<'a> {
    shared: &'a Shared,
    options: &'a CleanOptions,
    log: LogId,
    section: Section,
    /// The segments written have IDs from this one; those read have lower ones.
    since: u64,
    aborted: Vec<Aborted>,
    producers: HashMap<i64, LastBatch>,
}

impl<'a> Pass<'a> {
    fn begin(shared: &'a Shared, id: LogId, options: &'a CleanOptions) -> Result<Self, Refusal> {
        let mut state = shared.lock();
        state.writable()?;
        let section = loop {
            if shared.is_leaving() {
                return Err(Refusal::Storage("the store is being closed".into()));
            }
            let section = Section::of(&state, id, options.newest_ms)?;
            let segments = &state.segments;
            let mut sources = section.sources.iter();
            if !sources.any(|source| segments.is_taken(source.extent.segment)) {
                break section;
            }
            let woken = shared.maintenance.wait(state);
            state = woken.expect("no panic under the lock");
        };
        if state.log(id)?.cleaning {
            return Err(Refusal::Storage(format!("log {id} is being compacted")));
        }
        for source in &section.sources {
            state.segments.pin(source.extent.segment);
        }
        state.passes += 1;
        let since = state.segments.next_id();
        let log = state.log_mut(id)?;
        log.cleaning = true;
        let mut aborted = log.producers.aborted(section.start, i64::MAX);
        aborted.sort_by_key(|transaction| transaction.first_offset);
        Ok(Self {
            producers: log.producers.last_batches(),
            aborted,
            shared,
            options,
            log: id,
            section,
            since,
        })
    }

    fn run(mut self, dir: &Path, segment_bytes: u64) -> Result<Option<Cleaned>, Refusal> {
        self.section.spare_last()?;
        let mut pace = Pace::new(self.shared, self.options.bytes_per_second);
        let (newest, end, is_partial) = self.newest_offsets(&mut pace)?;
        if end <= self.section.dirty_from {
            return Ok(None);
        }
        assert!(
            end <= self.section.limit,
            "undecided batches are not compacted"
        );
        let now_ms = self.options.now_ms;
        let mut keep = Keep {
            newest: &newest,
            transactions: Transactions::new(&self.aborted),
            producers: &self.producers,
            now_ms,
            horizon_ms: now_ms.saturating_add(self.options.delete_retention_ms),
            records_read: 0,
            records_kept: 0,
            first_unreadable: None,
        };
        let mut writer = Writer::new(self.shared, dir, self.log, segment_bytes);
        let sources = &self.section.sources;
        let count = sources.partition_point(|source| source.extent.first < end);
        assert!(count > 0, "batches read are in no segment");
        assert!(
            end <= sources[count - 1].extent.last + 1,
            "more is replaced than was read"
        );
        for source in &sources[..count] {
            self.rewrite(source, end, &mut keep, &mut writer, &mut pace)?;
        }
        writer.finish()?;
        let replacement = Replacement {
            log: self.log,
            progress: Progress {
                end,
                covered: sources[count - 1].extent.last + 1,
                since: self.since,
            },
            added: writer.written.clone(),
            vanished: keep.transactions.vanished(end),
        };
        let cleaned = Cleaned {
            end,
            records_read: keep.records_read,
            records_kept: keep.records_kept,
            bytes_before: sources[..count].iter().map(|s| s.extent.bytes).sum(),
            bytes_after: writer.bytes,
            keys: newest.len() as u64,
            keys_bytes: newest.bytes() as u64,
            is_partial,
            first_unreadable: keep.first_unreadable,
        };
        self.install(replacement, &mut writer)?;
        Ok(Some(cleaned))
    }

    /// The newest offset of each key since the end of the last pass, up to the returned offset; true if the memory for
    /// keys ran out there.
    fn newest_offsets(&self, pace: &mut Pace<'_>) -> Result<(OffsetMap, i64, bool), Refusal> {
        let mut newest = OffsetMap::new(self.options.keys_bytes, self.options.keys_load);
        let Section {
            dirty_from, limit, ..
        } = self.section;
        // a transaction whose marker is before this part would never end here
        let aborted = self.aborted.iter().filter(|a| a.last_offset >= dirty_from);
        let aborted: Vec<Aborted> = aborted.copied().collect();
        let mut transactions = Transactions::new(&aborted);
        let mut end = dirty_from;
        for source in &self.section.sources {
            if source.extent.last < dirty_from || source.extent.first >= limit {
                continue;
            }
            let entries: Vec<Entry> = source.entries()?.from(dirty_from).collect();
            let mut reader = Reader::new(source, self.options.read_bytes)?;
            for at in 0..entries.len() {
                if entries[at].last() >= limit {
                    return Ok((newest, end, false));
                }
                let batch = reader.batch(&entries[at..], pace)?;
                let Some(records) = readable(&batch)? else {
                    end = entries[at].last() + 1;
                    continue;
                };
                if batch.header.is_control() {
                    transactions.marker(&batch.header, marker_commits(&batch, &records)?);
                } else if !transactions.data(&batch.header) {
                    for record in batch.records(&records) {
                        let record =
                            record.map_err(|fault| keep::damaged(&batch.header, &fault))?;
                        let Some(key) = record.key.filter(|_| record.offset >= dirty_from) else {
                            continue;
                        };
                        // the first batch is always included, however many keys it has, to guarantee progress
                        if newest.is_full() && end > dirty_from && newest.get(key).is_none() {
                            return Ok((newest, end, true));
                        }
                        newest.put(key, record.offset);
                    }
                }
                end = entries[at].last() + 1;
            }
        }
        Ok((newest, end, false))
    }

    fn rewrite(
        &self,
        source: &Source,
        end: i64,
        keep: &mut Keep<'_>,
        writer: &mut Writer<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<(), Refusal> {
        let entries: Vec<Entry> = source.entries()?.from(self.section.start).collect();
        let mut reader = Reader::new(source, self.options.read_bytes)?;
        for at in 0..entries.len() {
            let batch = reader.batch(&entries[at..], pace)?;
            let fate = if entries[at].last() < end {
                keep.batch(&batch)?
            } else {
                Fate::AsItIs
            };
            match fate {
                Fate::Gone => {}
                Fate::AsItIs => writer.push(batch.bytes(), pace)?,
                Fate::Anew(bytes) => writer.push(&bytes, pace)?,
            }
        }
        Ok(())
    }

    fn install(&self, replacement: Replacement, writer: &mut Writer<'_>) -> Result<(), Refusal> {
        let progress = replacement.progress;
        let sequence = {
            let state = self.shared.lock();
            state.writable()?;
            state.log(self.log)?;
            let pending = Pending::Clean(Arc::new(replacement));
            self.shared.stage(state, pending, false)
        };
        let installed = self.shared.wait(sequence, |state: &State| {
            let added = writer.written.first();
            let log = state.logs.get(&self.log);
            log.is_some_and(|log| log.cleaned == progress)
                || added.is_some_and(|(id, _)| state.segments.contains(*id))
        });
        if !installed {
            let what = "the frame that puts compacted segments in place could not be written";
            return Err(Refusal::Storage(what.into()));
        }
        writer.keep();
        Ok(())
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        for source in &self.section.sources {
            state.segments.unpin(source.extent.segment);
        }
        if let Some(log) = state.logs.get_mut(&self.log) {
            debug_assert!(log.cleaning, "another pass over it has ended");
            log.cleaning = false;
        }
        state.passes -= 1;
        drop(state);
        self.shared.maintenance.notify_all();
    }
}

impl State {
    /// Makes readers use the new segments in place of the old ones.
    pub(crate) fn replace_cleaned(&mut self, replacement: &Replacement) {
        let Replacement {
            log: id,
            progress,
            added,
            vanished,
        } = replacement;
        for (segment, block) in added {
            self.segments.add(*segment, Kind::Compact, None);
            self.segments.wrote(*segment, block.bytes);
        }
        let Some(log) = self.logs.get_mut(id) else {
            for (segment, block) in added {
                self.segments.freed(*segment, block.bytes);
            }
            return;
        };
        self.cache.forget_before(*id, log, progress.covered);
        for extent in log.forget_covered(progress.covered) {
            self.segments.freed(extent.segment, extent.bytes);
        }
        for (segment, block) in added.iter().rev() {
            if block.last >= log.start {
                let extent = Extent::stored(*segment, block);
                log.extents.push_front(extent);
            } else {
                self.segments.freed(*segment, block.bytes);
            }
        }
        log.cleaned = *progress;
        log.producers.forget_vanished(vanished);
    }
}
