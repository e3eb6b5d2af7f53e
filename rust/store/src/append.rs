//! Appending: clients' batches, local batches, and transaction markers.

use std::sync::{Arc, MutexGuard};

use sharecore_records::{LocalRecord, Producer, local_batch, marker_batch};

use crate::{
    LogId,
    batch::{self, Header},
    error::Refusal,
    incoming::{Checked, Incoming},
    log::Log,
    pending::Pending,
    producer::{Sequence, Undo},
    state::State,
    store::Store,
};

/// The result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The broker's time if the log uses it, else -1.
    pub append_time_ms: i64,
    /// The log's start.
    pub start_offset: i64,
    /// The operation to wait for.
    pub sequence: u64,
}

impl Store {
    /// Appends a client's batch; a duplicate returns the offsets of the original.
    pub fn append(&self, log: LogId, records: &[u8], now_ms: i64) -> Result<Appended, Refusal> {
        let mut incoming = self.receive(log, records, now_ms)?;
        while !incoming.check(&mut { usize::MAX })? {}
        self.append_checked(log, incoming)
    }

    /// Receives a client's batch whose records must be validated before it is appended.
    pub fn receive(&self, log: LogId, records: &[u8], now_ms: i64) -> Result<Incoming, Refusal> {
        let config = self.shared.lock().log(log)?.config;
        Incoming::new(config, records, now_ms)
    }

    /// Appends a batch whose records have been validated.
    pub fn append_checked(&self, log: LogId, incoming: Incoming) -> Result<Appended, Refusal> {
        let Checked {
            mut header,
            mut batch,
            append_time_ms,
            now_ms,
        } = incoming.into_checked();
        let bytes = Arc::get_mut(&mut batch).expect("nobody else has it");
        let mut state = self.shared.lock();
        state.room()?;
        let sequence = state.sequence;
        let target = state.log_mut(log)?;
        if header.producer_id >= 0
            && let Sequence::Duplicate(old) = target.producers.check(&header)?
        {
            return Ok(Appended {
                base_offset: old.last_offset - i64::from(old.offset_delta),
                last_offset: old.last_offset,
                // as in Kafka, whichever clock that was
                append_time_ms: old.timestamp,
                start_offset: target.start,
                sequence,
            });
        }
        debug_assert_eq!(header.size, bytes.len(), "a whole batch, and no more");
        debug_assert!(target.durable_end <= target.end, "offsets are given once");
        header.base_offset = target.end;
        batch::assign_offset(bytes, header.base_offset);
        let undo = (header.producer_id >= 0).then(|| target.producers.append(&header, now_ms));
        target.end = header.last_offset() + 1;
        debug_assert!(target.end > header.base_offset, "a batch has a record");
        let start_offset = target.start;
        if undo.as_ref().is_some_and(Undo::is_first) {
            state.producer_added();
        }
        let pending = Pending::Append {
            log,
            now_ms,
            header,
            batch,
            undo,
        };
        let sequence = self.shared.stage(state, pending, false);
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            append_time_ms,
            start_offset,
            sequence,
        })
    }

    /// Announces a transactional batch, about to be appended or refused for now by its coordinator: no batch with a
    /// higher sequence number may begin the producer's transaction in this log.
    ///
    /// `sequence`: the batch's first; `from_zero`: a producer unknown to the log begins with 0.
    pub fn announce(
        &self,
        log: LogId,
        producer: (i64, i16),
        sequence: i32,
        from_zero: bool,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let mut state = self.shared.lock();
        let producers = &mut state.log_mut(log)?.producers;
        if producers.announce(producer, sequence, from_zero, now_ms) {
            state.producer_added();
        }
        Ok(())
    }

    /// Appends a local batch; transactional if its producer has a transaction.
    ///
    /// A batch that `lingers`, as nobody waits for it yet, becomes durable within some milliseconds: another write in
    /// that time shares its commit.
    pub fn append_local(
        &self,
        log: LogId,
        records: &[LocalRecord<'_>],
        producer: Option<(i64, i16)>,
        now_ms: i64,
        lingers: bool,
    ) -> Result<Appended, Refusal> {
        if records.is_empty() {
            return Err(Refusal::InvalidRecord(
                "a batch holds at least one record".into(),
            ));
        }
        let author = producer.map_or(Producer::NONE, Producer::in_transaction);
        let (batch, header) = local_batch(records, author, now_ms);
        let state = self.shared.lock();
        let limit = state.log(log)?.config.max_batch_bytes;
        if header.size > limit {
            return Err(Refusal::TooLarge {
                size: header.size,
                limit,
            });
        }
        if let Some((id, epoch)) = producer {
            state.log(log)?.producers.check_epoch(id, epoch)?;
        }
        let remember =
            |log: &mut Log, header: &Header| producer.map(|_| log.producers.append(header, now_ms));
        self.append_own(state, (log, lingers), batch, header, now_ms, remember)
    }

    /// Appends a marker that ends a producer's transaction in this log.
    pub fn append_marker(
        &self,
        log: LogId,
        producer: (i64, i16),
        coordinator_epoch: i32,
        commit: bool,
        now_ms: i64,
    ) -> Result<Appended, Refusal> {
        let (batch, header) = marker_batch(producer, coordinator_epoch, commit, now_ms);
        let state = self.shared.lock();
        state
            .log(log)?
            .producers
            .check_marker(producer.0, producer.1, coordinator_epoch)?;
        let remember = |log: &mut Log, header: &Header| {
            let producers = &mut log.producers;
            Some(producers.marker(header, coordinator_epoch, commit, now_ms))
        };
        self.append_own(state, (log, false), batch, header, now_ms, remember)
    }

    fn append_own(
        &self,
        mut state: MutexGuard<'_, State>,
        (log, lingers): (LogId, bool),
        mut batch: Vec<u8>,
        mut header: Header,
        now_ms: i64,
        remember: impl FnOnce(&mut Log, &Header) -> Option<Undo>,
    ) -> Result<Appended, Refusal> {
        state.room()?;
        let target = state.log_mut(log)?;
        debug_assert_eq!(header.size, batch.len(), "a whole batch, and no more");
        debug_assert!(target.durable_end <= target.end, "offsets are given once");
        header.base_offset = target.end;
        batch::assign_offset(&mut batch, header.base_offset);
        debug_assert!(
            batch::matches_checksum(&batch),
            "a local batch does not match its checksum"
        );
        let undo = remember(target, &header);
        target.end = header.last_offset() + 1;
        debug_assert!(target.end > header.base_offset, "a batch has a record");
        let start_offset = target.start;
        if undo.as_ref().is_some_and(Undo::is_first) {
            state.producer_added();
        }
        let pending = Pending::Append {
            log,
            now_ms,
            header,
            batch: batch.into(),
            undo,
        };
        let sequence = self.shared.stage(state, pending, lingers);
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            append_time_ms: -1,
            start_offset,
            sequence,
        })
    }
}
