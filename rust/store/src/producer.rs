//! A log's state of its idempotent and transactional producers (KIP-98, KIP-360).

mod idle;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::{announced::Announcements, batch::Header, error::Refusal, marker::read_marker};

/// Batches remembered per producer: a client has at most five requests in flight.
const BATCHES: usize = 5;

/// The epoch of batches without one: any batch may follow them, as in Kafka.
const NO_EPOCH: i16 = -1;

/// An appended batch, remembered to recognize a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) first_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: i64,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: i64,
}

/// One producer's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    pub(crate) coordinator_epoch: i32,
    pub(crate) seen_ms: i64,
    pub(crate) transaction_start: Option<i64>,
    pub(crate) batches: VecDeque<Remembered>,
    /// Whether a marker came last.
    pub(crate) ended: bool,
}

impl Producer {
    fn active(&self, producer_id: i64) -> Active {
        let last = self.batches.back();
        Active {
            producer_id,
            epoch: self.epoch,
            last_sequence: last.map_or(-1, |batch| batch.last_sequence),
            last_timestamp: match last {
                Some(batch) if !self.ended => batch.timestamp,
                _ => self.seen_ms,
            },
            coordinator_epoch: self.coordinator_epoch,
            transaction_start: self.transaction_start,
        }
    }

    /// The batch that this one duplicates.
    fn repeated(&self, header: &Header) -> Option<Remembered> {
        let (first, last) = (header.base_sequence, header.last_sequence());
        let same = |b: &&Remembered| b.first_sequence == first && b.last_sequence == last;
        (header.producer_epoch == self.epoch)
            .then(|| self.batches.iter().find(same).copied())
            .flatten()
    }

    fn check_epoch(&self, header: &Header) -> Result<(), Refusal> {
        if header.producer_epoch < self.epoch {
            return Err(Refusal::InvalidProducerEpoch(format!(
                "producer {} has epoch {}, the batch {}",
                header.producer_id, self.epoch, header.producer_epoch
            )));
        }
        Ok(())
    }

    fn check_sequence(&self, header: &Header) -> Result<(), Refusal> {
        let (id, epoch, first) = (
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        );
        let last = self.batches.back();
        if let Some(last) = last.filter(|_| epoch == self.epoch && epoch != NO_EPOCH) {
            if first != following(last.last_sequence) {
                return Err(Refusal::OutOfOrderSequence(format!(
                    "producer {id} sent sequence {first} after {}",
                    last.last_sequence
                )));
            }
        } else if first != 0 && self.epoch != NO_EPOCH {
            // the epoch is new, or a marker raised it and no batch has followed yet
            return Err(Refusal::OutOfOrderSequence(format!(
                "producer {id} begins epoch {epoch} with sequence {first}"
            )));
        }
        Ok(())
    }

    fn check_transaction(&self, header: &Header) -> Result<(), Refusal> {
        if self.transaction_start.is_some() && !header.is_transactional() {
            return Err(Refusal::InvalidTransaction(format!(
                "producer {} has a transaction open, which the batch is no part of",
                header.producer_id
            )));
        }
        Ok(())
    }
}

/// A producer's last batch, for compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastBatch {
    /// Last offset of its last data batch with this epoch.
    pub(crate) data_offset: Option<i64>,
    pub(crate) epoch: i16,
}

/// An aborted transaction, for readers of committed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted {
    /// The producer.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Offset of the abort marker.
    pub last_offset: i64,
}

/// A log's state of a producer (KIP-664).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The producer ID.
    pub producer_id: i64,
    /// Its last epoch.
    pub epoch: i16,
    /// Last sequence of its last batch; -1 if it has written none with this epoch.
    pub last_sequence: i32,
    /// Time of its last batch or marker.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that ended its last transaction; -1 without one.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub transaction_start: Option<i64>,
}

/// State to restore if an append fails.
pub(crate) struct Undo {
    pub(crate) producer_id: i64,
    pub(crate) before: Option<Producer>,
}

impl Undo {
    /// Whether a producer was added.
    pub(crate) fn is_first(&self) -> bool {
        self.before.is_none()
    }
}

/// A batch compared with its producer's state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// New: to be appended.
    New,
    /// A duplicate, with the original.
    Duplicate(Remembered),
}

/// All producers of one log.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    entries: HashMap<i64, Producer>,
    /// First offsets of open transactions.
    open: BTreeSet<i64>,
    /// First offset and marker offset of transactions whose marker is staged but not durable.
    deciding: BTreeMap<i64, i64>,
    aborted: VecDeque<Aborted>,
    announced: Announcements,
}

impl Producers {
    /// Checks a batch against its producer's state: new, duplicate, or refused.
    pub(crate) fn check(&self, header: &Header) -> Result<Sequence, Refusal> {
        let entry = self.entries.get(&header.producer_id);
        if let Some(batch) = entry.and_then(|entry| entry.repeated(header)) {
            return Ok(Sequence::Duplicate(batch));
        }
        if let Some(entry) = entry {
            entry.check_epoch(header)?;
        }
        let unknown = entry.is_none_or(|entry| entry.batches.is_empty());
        self.announced.check(header, unknown)?;
        if let Some(entry) = entry {
            entry.check_sequence(header)?;
            entry.check_transaction(header)?;
        }
        Ok(Sequence::New)
    }

    /// Announces a transactional batch, about to be appended or refused for now; `sequence` is its first. Returns
    /// whether an announcement was added.
    pub(crate) fn announce(
        &mut self,
        producer: (i64, i16),
        sequence: i32,
        from_zero: bool,
        now_ms: i64,
    ) -> bool {
        let open = self
            .entries
            .get(&producer.0)
            .is_some_and(|entry| entry.transaction_start.is_some() && entry.epoch == producer.1);
        !open
            && self
                .announced
                .announce(producer, sequence, from_zero, now_ms)
    }

    /// Records an appended batch; `header` has its offsets.
    pub(crate) fn append(&mut self, header: &Header, now_ms: i64) -> Undo {
        let undo = self.see(header, now_ms);
        let Some(entry) = self.entries.get_mut(&header.producer_id) else {
            return undo;
        };
        // a coordinator's own batches have no sequence: they are never retried
        if header.base_sequence >= 0 {
            if entry.batches.len() == BATCHES {
                entry.batches.pop_front();
            }
            // most producers write once, and more capacity would double their size
            entry.batches.reserve_exact(1);
            debug_assert!(
                header.last_sequence() >= 0,
                "sequences wrap to zero, not below"
            );
            entry.batches.push_back(Remembered {
                first_sequence: header.base_sequence,
                last_sequence: header.last_sequence(),
                last_offset: header.last_offset(),
                offset_delta: header.last_offset_delta,
                timestamp: header.max_timestamp,
            });
        }
        if header.is_transactional() {
            self.announced.forget(header.producer_id);
            if entry.transaction_start.is_none() {
                entry.transaction_start = Some(header.base_offset);
                self.open.insert(header.base_offset);
            }
        }
        debug_assert_eq!(undo.producer_id, header.producer_id);
        debug_assert_eq!(entry.epoch, header.producer_epoch, "of another epoch");
        undo
    }

    /// Ensures an entry for the batch's producer and epoch; returns the previous one.
    fn see(&mut self, header: &Header, now_ms: i64) -> Undo {
        let before = self.entries.get(&header.producer_id).cloned();
        let entry = self
            .entries
            .entry(header.producer_id)
            .or_insert_with(|| Producer {
                epoch: header.producer_epoch,
                coordinator_epoch: -1,
                seen_ms: now_ms,
                transaction_start: None,
                batches: VecDeque::new(),
                ended: false,
            });
        if entry.epoch != header.producer_epoch {
            entry.epoch = header.producer_epoch;
            entry.batches.clear();
        }
        entry.seen_ms = now_ms;
        entry.ended = header.is_control();
        Undo {
            producer_id: header.producer_id,
            before,
        }
    }

    /// Whether a coordinator may write records for this producer.
    pub(crate) fn check_epoch(&self, id: i64, epoch: i16) -> Result<(), Refusal> {
        match self.entries.get(&id) {
            Some(entry) if epoch < entry.epoch => Err(Refusal::InvalidProducerEpoch(format!(
                "producer {id} has epoch {}, not {epoch}",
                entry.epoch
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a coordinator may write a marker with these epochs.
    pub(crate) fn check_marker(
        &self,
        id: i64,
        epoch: i16,
        coordinator_epoch: i32,
    ) -> Result<(), Refusal> {
        self.check_epoch(id, epoch)?;
        match self.entries.get(&id) {
            Some(entry) if coordinator_epoch < entry.coordinator_epoch => {
                Err(Refusal::CoordinatorFenced(format!(
                    "a transaction coordinator of epoch {} wrote after {coordinator_epoch}",
                    entry.coordinator_epoch
                )))
            }
            _ => Ok(()),
        }
    }

    /// Ends a producer's transaction; `header` is that of the marker's batch, with its offset.
    pub(crate) fn marker(
        &mut self,
        header: &Header,
        coordinator_epoch: i32,
        commit: bool,
        now_ms: i64,
    ) -> Undo {
        let undo = self.see(header, now_ms);
        let (producer_id, offset) = (header.producer_id, header.base_offset);
        self.announced.forget(producer_id);
        let Some(entry) = self.entries.get_mut(&producer_id) else {
            return undo;
        };
        entry.coordinator_epoch = coordinator_epoch;
        if let Some(first_offset) = entry.transaction_start.take() {
            self.open.remove(&first_offset);
            self.deciding.insert(first_offset, offset);
            if !commit {
                self.aborted.push_back(Aborted {
                    producer_id,
                    first_offset,
                    last_offset: offset,
                });
            }
        }
        debug_assert_eq!(entry.transaction_start, None, "a marker ends it");
        undo
    }

    /// Restores the state before an append, newest first; `end` is the log's end after all restores.
    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo.before {
            Some(entry) => self.entries.insert(undo.producer_id, entry),
            None => self.entries.remove(&undo.producer_id),
        };
    }

    /// After the last `undo`: drops decisions beyond the log's end.
    pub(crate) fn truncated(&mut self, end: i64) {
        self.deciding.retain(|_, marker| *marker < end);
        self.aborted.retain(|a| a.last_offset < end);
        self.open = self
            .entries
            .values()
            .filter_map(|e| e.transaction_start)
            .collect();
    }

    /// The last stable offset, at most the high watermark.
    pub(crate) fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        let undecided = self
            .open
            .first()
            .into_iter()
            .chain(self.deciding.keys().next())
            .min();
        let stable = undecided.map_or(high_watermark, |first| high_watermark.min(*first));
        debug_assert!(
            stable <= high_watermark,
            "what is not durable is not stable"
        );
        stable
    }

    /// The high watermark moved: apply the markers below it.
    pub(crate) fn committed(&mut self, high_watermark: i64) {
        if !self.deciding.is_empty() {
            self.deciding.retain(|_, marker| *marker >= high_watermark);
        }
        debug_assert!(
            self.deciding
                .values()
                .all(|marker| *marker >= high_watermark),
            "a marker that is durable decides nothing more"
        );
    }

    /// The log's start moved: drop aborted transactions before it.
    pub(crate) fn forget_before(&mut self, start: i64) {
        while self.aborted.front().is_some_and(|a| a.last_offset < start) {
            self.aborted.pop_front();
        }
    }

    /// Aborted transactions with records in `[first, end)`.
    pub(crate) fn aborted(&self, first: i64, end: i64) -> Vec<Aborted> {
        self.aborted
            .iter()
            .filter(|a| a.last_offset >= first && a.first_offset < end)
            .copied()
            .collect()
    }

    /// Drops aborted transactions without remaining batches.
    pub(crate) fn forget_vanished(&mut self, vanished: &[Aborted]) {
        if !vanished.is_empty() {
            self.aborted.retain(|aborted| !vanished.contains(aborted));
        }
    }

    /// The last batch of each producer.
    pub(crate) fn last_batches(&self) -> HashMap<i64, LastBatch> {
        let last = |entry: &Producer| LastBatch {
            data_offset: entry.batches.back().map(|batch| batch.last_offset),
            epoch: entry.epoch,
        };
        self.entries
            .iter()
            .map(|(id, entry)| (*id, last(entry)))
            .collect()
    }

    /// All remembered producers, by ID.
    pub(crate) fn active(&self) -> Vec<Active> {
        let mut found: Vec<Active> = self
            .entries
            .iter()
            .map(|(id, entry)| entry.active(*id))
            .collect();
        found.sort_unstable_by_key(|each| each.producer_id);
        debug_assert_eq!(found.len(), self.entries.len(), "each is listed once");
        found
    }

    /// The durable state for a checkpoint; `before` holds the entries as of before staged appends.
    pub(crate) fn durable<'a>(
        &'a self,
        before: &HashMap<i64, Option<&'a Producer>>,
        durable_end: i64,
    ) -> (Vec<(i64, &'a Producer)>, Vec<Aborted>) {
        let entries = self.entries.iter().filter_map(|(id, entry)| {
            let durable = before.get(id).copied().unwrap_or(Some(entry));
            durable.map(|entry| (*id, entry))
        });
        let aborted = self.aborted.iter().filter(|a| a.last_offset < durable_end);
        (entries.collect(), aborted.copied().collect())
    }

    /// Restores the result of `durable`.
    pub(crate) fn restore(&mut self, entries: Vec<(i64, Producer)>, aborted: Vec<Aborted>) {
        self.entries = entries.into_iter().collect();
        self.aborted = aborted.into();
        self.open = self
            .entries
            .values()
            .filter_map(|e| e.transaction_start)
            .collect();
    }
}

/// The sequence after `last`.
fn following(last: i32) -> i32 {
    if last == i32::MAX { 0 } else { last + 1 }
}

impl Producers {
    /// Applies a batch replayed from the journal.
    ///
    /// Returns whether a producer was added.
    pub(crate) fn replay(&mut self, header: &Header, batch: &[u8], now_ms: i64) -> bool {
        if header.producer_id < 0 {
            return false;
        }
        if !header.is_control() {
            self.append(header, now_ms).is_first()
        } else if let Some((coordinator_epoch, commit)) = read_marker(batch) {
            self.marker(header, coordinator_epoch, commit, now_ms)
                .is_first()
        } else {
            false
        }
    }
}
