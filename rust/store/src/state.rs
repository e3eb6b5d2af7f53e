//! The store's state, behind one lock; staged operations, and how they are committed or rolled back.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use crate::{
    LogId,
    cache::Cache,
    damage::Damages,
    entries::Entry,
    error::Refusal,
    index::{Block, Index, IndexCache},
    journal::Written,
    log::{Extent, Log, Recent},
    maintain::Seal,
    pending::{Pending, Replace},
    producer_room::ProducerRoom,
    recover::Torn,
    segment::Kind,
    segments::Segments,
    shipping::Shipping,
    store::{Change, Outcome},
};

/// Who commits, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The committing thread works; it checks for staged operations before it waits.
    Busy,
    /// A caller commits in its own turn (`Store::end_turn`); it checks for staged operations when it is done.
    Caller,
    /// The thread waits, and is about to check by itself: lingering operations may wait with it.
    Lingering,
    /// The thread waits until it is woken.
    Idle,
}

/// The operations of one commit.
pub(crate) struct Group {
    pub(crate) pending: Vec<Pending>,
    weight: usize,
    last_sequence: u64,
}

/// Hashes ids of logs, which are our own.
pub(crate) type IdHash = foldhash::fast::RandomState;

pub(crate) struct State {
    pub(crate) logs: HashMap<LogId, Log, IdHash>,
    pub(crate) next_log: LogId,
    pub(crate) catalog: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) segments: Segments,
    pub(crate) indexes: IndexCache,
    pub(crate) cache: Cache,
    /// Full segments waiting for their index, oldest first.
    pub(crate) seals: VecDeque<Seal>,
    /// Why the last attempt to seal or rewrite segments failed.
    pub(crate) maintenance_error: Option<String>,
    pub(crate) maintenance_failed: u64,
    pub(crate) staged: VecDeque<Pending>,
    /// Bytes waiting or being written.
    pub(crate) staged_bytes: usize,
    pub(crate) staging_limit: usize,
    producer_room: ProducerRoom,
    /// The last operation that someone waits for.
    urgent: u64,
    pub(crate) writer: Writer,
    /// Until when staged operations that nobody waits for may stay staged.
    pub(crate) lingers_until: Instant,
    /// Whether the end of a caller's turn decides who commits what is staged (`Store::begin_turn`).
    pub(crate) held: bool,
    /// The number of callers waiting for an outcome.
    pub(crate) waiters: usize,
    /// Sequence number of the last staged operation, and of the last one with an outcome.
    pub(crate) sequence: u64,
    settled: u64,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) moved: Vec<LogId>,
    /// Whether to begin a new segment.
    pub(crate) roll: bool,
    /// Compaction passes in progress.
    pub(crate) passes: usize,
    /// No more writes.
    pub(crate) closing: bool,
    /// Writes waiting for the bucket, with durability `bucket`.
    pub(crate) shipping: Option<Shipping>,
    /// Why waiting writes will never have an outcome.
    pub(crate) ended: Option<String>,
    pub(crate) damages: Arc<Damages>,
    /// A torn write found at the end of the journal when opening.
    pub(crate) torn: Option<Torn>,
}

impl State {
    pub(crate) fn new(
        dir: PathBuf,
        cache_bytes: usize,
        staging_limit: usize,
        producer_bytes: usize,
    ) -> Self {
        Self {
            logs: HashMap::default(),
            next_log: 1,
            catalog: BTreeMap::new(),
            damages: Arc::new(Damages::new(dir.clone())),
            segments: Segments::new(dir),
            indexes: IndexCache::default(),
            cache: Cache::new(cache_bytes),
            seals: VecDeque::new(),
            maintenance_error: None,
            maintenance_failed: 0,
            staged: VecDeque::new(),
            staged_bytes: 0,
            staging_limit,
            producer_room: ProducerRoom::new(producer_bytes),
            urgent: 0,
            writer: Writer::Busy,
            lingers_until: Instant::now(),
            held: false,
            waiters: 0,
            sequence: 0,
            settled: 0,
            outcomes: Vec::new(),
            moved: Vec::new(),
            roll: false,
            passes: 0,
            closing: false,
            shipping: None,
            ended: None,
            torn: None,
        }
    }

    pub(crate) fn log(&self, id: LogId) -> Result<&Log, Refusal> {
        self.logs
            .get(&id)
            .filter(|log| !log.dropping)
            .ok_or(Refusal::UnknownLog(id))
    }

    pub(crate) fn log_mut(&mut self, id: LogId) -> Result<&mut Log, Refusal> {
        self.logs
            .get_mut(&id)
            .filter(|log| !log.dropping)
            .ok_or(Refusal::UnknownLog(id))
    }

    /// Fails if the store accepts no more writes.
    pub(crate) fn writable(&self) -> Result<(), Refusal> {
        if self.closing {
            let why = "the store accepts no writes: it was closed, or opened read-only";
            return Err(Refusal::Storage(why.into()));
        }
        match &self.ended {
            Some(why) => Err(Refusal::Storage(why.clone())),
            None => Ok(()),
        }
    }

    /// Fails if too much is staged, or if a write failed and the caller does not know yet.
    ///
    /// A failed write takes later ones with it. A caller that has not drained the failure still builds on them: its
    /// next write would be durable without the one it depends on.
    pub(crate) fn room(&self) -> Result<(), Refusal> {
        self.writable()?;
        if let Some(why) = self.outcomes.iter().find_map(|it| it.error.as_ref()) {
            return Err(Refusal::Storage(why.clone()));
        }
        if self.staged_bytes >= self.staging_limit {
            Err(Refusal::Busy)
        } else {
            Ok(())
        }
    }

    /// A producer was added, or announced.
    pub(crate) fn producer_added(&mut self) {
        if self.producer_room.take() {
            self.bound_producers();
        }
    }

    /// Counts all producers, and forgets the longest idle ones beyond the limit.
    pub(crate) fn bound_producers(&mut self) {
        let mut counts: Vec<usize> = self.producer_counts().collect();
        if let Some(share) = self.producer_room.share(&mut counts) {
            for log in self.logs.values_mut() {
                log.producers.keep_newest(share);
            }
        }
        self.producer_room.counted(self.producer_counts().sum());
    }

    fn producer_counts(&self) -> impl Iterator<Item = usize> + '_ {
        let counts = self.logs.values().flat_map(|log| log.producers.counts());
        counts.filter(|count| *count > 0)
    }

    /// Queues an operation; returns its sequence number.
    pub(crate) fn stage(&mut self, pending: Pending) -> u64 {
        if let Pending::Catalog(changes) = &pending {
            for change in changes {
                match change {
                    Change::CreateLog(id) => {
                        self.logs.insert(*id, Log::default());
                        self.next_log = self.next_log.max(id + 1);
                    }
                    Change::DropLog(id) => {
                        if let Some(log) = self.logs.get_mut(id) {
                            log.dropping = true;
                        }
                    }
                    Change::Put(..) | Change::Delete(_) => {}
                }
            }
        }
        debug_assert!(
            matches!(&pending, Pending::Catalog(_)) || pending.weight() > 0,
            "it takes no room"
        );
        self.staged_bytes += pending.weight();
        self.staged.push_back(pending);
        self.sequence += 1;
        debug_assert!(
            self.sequence >= self.settled + self.staged.len() as u64,
            "it has an outcome before it is written"
        );
        self.sequence
    }

    pub(crate) fn is_settled(&self, sequence: u64) -> bool {
        self.settled >= sequence
    }

    pub(crate) fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Whether a staged operation has no outcome yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.settled < self.sequence
    }

    /// Someone waits for the staged operations.
    pub(crate) fn hurry(&mut self) {
        debug_assert!(self.urgent <= self.sequence, "nothing is staged yet");
        self.urgent = self.sequence;
    }

    /// Whether someone waits for a staged operation.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent + self.staged.len() as u64 > self.sequence
    }

    /// Takes the operations of the next frame: at least one, about `limit` bytes.
    pub(crate) fn take(&mut self, limit: usize) -> Group {
        let mut group = Group {
            pending: Vec::new(),
            weight: 0,
            last_sequence: self.sequence,
        };
        while group.weight < limit
            && let Some(pending) = self.staged.pop_front()
        {
            group.weight += pending.weight();
            group.pending.push(pending);
        }
        group.last_sequence -= self.staged.len() as u64;
        debug_assert!(
            group.last_sequence >= self.settled + group.pending.len() as u64,
            "it already had an outcome"
        );
        debug_assert!(
            group.weight <= self.staged_bytes,
            "more is taken than was staged"
        );
        group
    }

    /// A group is durable. Returns whether segments may have become garbage.
    pub(crate) fn committed(&mut self, group: Group, written: &Written) -> bool {
        let freed = self.segments.freed_bytes();
        let mut positions = written.positions.iter();
        for pending in group.pending {
            match pending {
                Pending::Append {
                    log: id,
                    header,
                    batch,
                    ..
                } => {
                    let at = *positions.next().expect("a position for every operation");
                    let Some(log) = self.logs.get_mut(&id) else {
                        continue;
                    };
                    // whatever a restart found: offsets are unique and without gaps
                    assert_eq!(
                        log.durable_end, header.base_offset,
                        "a batch becomes durable out of order"
                    );
                    log.add(written.segment, Entry::new(&header, at));
                    assert!(
                        log.durable_end <= log.end,
                        "more is durable than was appended"
                    );
                    self.segments.wrote(written.segment, header.size as u64);
                    let (base, last) = (header.base_offset, header.last_offset());
                    self.mark_moved(id);
                    let recent = Recent {
                        base,
                        last,
                        bytes: batch,
                    };
                    self.cache.keep(&mut self.logs, id, recent);
                }
                Pending::LogStart { log: id, offset } => {
                    positions.next();
                    self.move_start(id, offset);
                    self.mark_moved(id);
                }
                Pending::Catalog(changes) => {
                    for change in changes {
                        positions.next();
                        self.apply(change);
                    }
                }
                Pending::Replace(replace) => {
                    positions.next();
                    self.replace(replace);
                }
                Pending::Clean(replacement) => {
                    positions.next();
                    self.replace_cleaned(&replacement);
                }
            }
        }
        assert!(positions.next().is_none(), "an operation was skipped");
        self.settle(group.last_sequence, group.weight, None);
        self.segments.freed_bytes() > freed
    }

    /// Makes a durable change of the catalog visible.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Put(key, value) => {
                self.catalog.insert(key, value);
            }
            Change::Delete(key) => {
                self.catalog.remove(&key);
            }
            Change::CreateLog(id) => {
                self.logs.entry(id).or_default();
                self.next_log = self.next_log.max(id + 1);
            }
            Change::DropLog(id) => {
                if let Some(log) = self.logs.remove(&id) {
                    self.cache.forget(&log);
                    for extent in &log.extents {
                        self.segments.freed(extent.segment, extent.bytes);
                    }
                }
            }
        }
    }

    /// Moves a log's start, durably.
    pub(crate) fn move_start(&mut self, id: LogId, offset: i64) {
        if let Some(log) = self.logs.get_mut(&id) {
            for extent in log.move_start(offset) {
                self.segments.freed(extent.segment, extent.bytes);
            }
        }
    }

    /// Makes readers use one segment in place of others.
    fn replace(&mut self, replace: Replace) {
        if let Some((id, blocks)) = replace.added {
            self.segments.add(id, Kind::Compact, None);
            for block in blocks {
                self.segments.wrote(id, block.bytes);
                let Some(log) = self
                    .logs
                    .get_mut(&block.log)
                    .filter(|log| log.start <= block.last)
                else {
                    self.segments.freed(id, block.bytes);
                    continue;
                };
                let covered = |e: &Extent| {
                    replace.removed.contains(&e.segment)
                        && e.first <= block.last
                        && block.first <= e.last
                };
                log.extents.retain(|e| !covered(e));
                let place = log.extents.partition_point(|e| e.first < block.first);
                log.extents.insert(place, Extent::stored(id, &block));
            }
        }
        replace
            .removed
            .iter()
            .for_each(|id| self.segments.remove(*id));
    }

    /// A segment's index has been written: drop it from memory.
    pub(crate) fn sealed(&mut self, segment: u64, blocks: &[Block]) {
        self.segments.sealed(segment);
        for block in blocks {
            let Some(log) = self.logs.get_mut(&block.log) else {
                continue;
            };
            let place = log.extents.partition_point(|e| e.last < block.first);
            if let Some(extent) = log.extents.get_mut(place).filter(|e| e.segment == segment) {
                extent.index = Index::Stored(block.stored);
            }
        }
    }

    /// A group failed to reach the disk: roll back it and everything staged after it.
    pub(crate) fn failed(&mut self, group: Group, why: &str) {
        let weight = self.staged_bytes;
        let later = std::mem::take(&mut self.staged);
        for pending in group.pending.into_iter().chain(later).rev() {
            match pending {
                Pending::Append { log: id, undo, .. } => {
                    if let Some(log) = self.logs.get_mut(&id) {
                        log.end = log.durable_end;
                        if let Some(undo) = undo {
                            log.producers.undo(undo);
                        }
                        log.producers.truncated(log.durable_end);
                    }
                    self.mark_moved(id);
                }
                Pending::LogStart { .. } | Pending::Replace(_) | Pending::Clean(_) => {}
                Pending::Catalog(changes) => {
                    for change in changes {
                        match change {
                            Change::CreateLog(id) => {
                                self.logs.remove(&id);
                            }
                            Change::DropLog(id) => {
                                if let Some(log) = self.logs.get_mut(&id) {
                                    log.dropping = false;
                                }
                            }
                            Change::Put(..) | Change::Delete(_) => {}
                        }
                    }
                }
            }
        }
        debug_assert!(
            self.logs.values().all(|log| log.end == log.durable_end),
            "an unwritten batch keeps its offset"
        );
        self.settle(self.sequence, weight, Some(why.into()));
        debug_assert_eq!(self.staged_bytes, 0, "nothing is staged any more");
    }

    fn settle(&mut self, sequence: u64, weight: usize, error: Option<String>) {
        assert!(
            self.settled < sequence && sequence <= self.sequence,
            "a group ends twice, or has not begun"
        );
        assert!(weight <= self.staged_bytes, "more ends than was staged");
        self.staged_bytes -= weight;
        self.settled = sequence;
        match self.outcomes.last_mut() {
            Some(last) if last.error == error => last.sequence = sequence,
            _ => self.outcomes.push(Outcome { sequence, error }),
        }
    }

    fn mark_moved(&mut self, id: LogId) {
        if let Some(log) = self.logs.get_mut(&id)
            && !log.moved
        {
            log.moved = true;
            debug_assert!(!self.moved.contains(&id), "it is listed already");
            self.moved.push(id);
        }
    }
}
