//! What stays of a batch: the newest record of each key, and tombstones and markers until their time (KIP-58, KIP-534).

use std::collections::HashMap;

use sharecore_records::{Batch, Fault, Record, Rewrite, without_records};

use crate::{
    batch::Header,
    cleaner::{EXPANDED_MAX, offset_map::OffsetMap, transactions::Transactions},
    error::Refusal,
    producer::LastBatch,
};

/// What becomes of a batch.
pub(crate) enum Fate {
    Gone,
    AsItIs,
    Anew(Vec<u8>),
}

pub(crate) struct Keep<'a> {
    pub(crate) newest: &'a OffsetMap,
    pub(crate) transactions: Transactions<'a>,
    pub(crate) producers: &'a HashMap<i64, LastBatch>,
    pub(crate) now_ms: i64,
    /// When tombstones and markers that are seen for the first time may go.
    pub(crate) horizon_ms: i64,
    pub(crate) records_read: u64,
    pub(crate) records_kept: u64,
}

impl Keep<'_> {
    /// Decides about a batch all of whose keys are in the map.
    pub(crate) fn batch(&mut self, batch: &Batch<'_>) -> Result<Fate, Refusal> {
        let header = &batch.header;
        let expanded = expanded(batch)?;
        let marker = header.is_control();
        let undone = if marker {
            let commits = marker_commits(batch, &expanded)?;
            self.transactions.marker(header, commits)
        } else {
            self.transactions.data(header)
        };
        let due = header.delete_horizon().is_some_and(|at| at <= self.now_ms);
        let discarded = undone && (!marker || due);
        let mut kept: Vec<Record<'_>> = Vec::new();
        let mut tombstones = false;
        for record in batch.records(&expanded) {
            let record = record.map_err(|fault| damaged(header, &fault))?;
            self.records_read += 1;
            if !discarded && (marker || self.stays(&record, due)) {
                tombstones |= !marker && record.value.is_none();
                kept.push(record);
            }
        }
        self.records_kept += kept.len() as u64;
        let horizon = (tombstones || (undone && marker)) && header.delete_horizon().is_none();
        if kept.is_empty() {
            return Ok(match self.is_last_of_producer(header) {
                false => Fate::Gone,
                true if header.count == 0 => Fate::AsItIs,
                true => Fate::Anew(without_records(header)),
            });
        }
        if kept.len() == header.count as usize && !horizon {
            return Ok(Fate::AsItIs);
        }
        let mut rewrite = Rewrite::new(header, horizon.then_some(self.horizon_ms));
        for record in &kept {
            rewrite.push(record);
        }
        let bytes = rewrite
            .finish()
            .map_err(|error| Refusal::Storage(format!("compressing failed: {error}")))?;
        Ok(Fate::Anew(bytes))
    }

    /// Whether a record stays. Records without a key have no successor to wait for: they do not belong here, and go.
    fn stays(&self, record: &Record<'_>, due: bool) -> bool {
        let newest = |key| {
            self.newest
                .get(key)
                .is_none_or(|newest| record.offset >= newest)
        };
        record.key.is_some_and(newest) && (record.value.is_some() || !due)
    }

    /// Whether the batch carries its producer's last sequence number, so that its header must stay.
    fn is_last_of_producer(&self, header: &Header) -> bool {
        let Some(last) = self.producers.get(&header.producer_id) else {
            return false;
        };
        match last.data_offset {
            Some(offset) => offset == header.last_offset(),
            None => header.is_control() && header.producer_epoch == last.epoch,
        }
    }
}

/// A batch's records, checked.
pub(crate) fn expanded<'a>(batch: &Batch<'a>) -> Result<std::borrow::Cow<'a, [u8]>, Refusal> {
    let expanded = batch.expand(EXPANDED_MAX);
    expanded.map_err(|fault| damaged(&batch.header, &fault))
}

/// Whether a marker commits its transaction; `None` for one without its record, or of another kind.
pub(crate) fn marker_commits(batch: &Batch<'_>, expanded: &[u8]) -> Result<Option<bool>, Refusal> {
    let first = batch.records(expanded).next().transpose();
    let first = first.map_err(|fault| damaged(&batch.header, &fault))?;
    let key = first.and_then(|record| record.key);
    Ok(key.and_then(crate::producer::marker_commits))
}

pub(crate) fn damaged(header: &Header, fault: &Fault) -> Refusal {
    Refusal::CorruptBatch(format!("batch at offset {}: {fault}", header.base_offset))
}
