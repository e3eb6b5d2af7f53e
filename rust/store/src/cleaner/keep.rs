//! Decides which records of a batch stay: the newest of each key, and tombstones and markers until their time (KIP-58,
//! KIP-534).

use std::{borrow::Cow, collections::HashMap};

use sharecore_records::{
    Batch, EXPANDED_BYTES_MAX, Fault, Record, Rewrite, decompress, without_records,
};

use crate::{
    batch::Header,
    cleaner::{offset_map::OffsetMap, transactions::Transactions},
    error::Refusal,
    producer::LastBatch,
};

/// The outcome for a batch.
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
    /// When tombstones and markers seen for the first time may be removed.
    pub(crate) horizon_ms: i64,
    pub(crate) records_read: u64,
    pub(crate) records_kept: u64,
    /// First offset of the first unreadable batch.
    pub(crate) first_unreadable: Option<i64>,
}

impl Keep<'_> {
    /// Decides about a batch all of whose keys are in the map.
    pub(crate) fn batch(&mut self, batch: &Batch<'_>) -> Result<Fate, Refusal> {
        let header = &batch.header;
        let Some(expanded) = readable(batch)? else {
            self.first_unreadable.get_or_insert(header.base_offset);
            return Ok(Fate::AsItIs);
        };
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
        debug_assert!(
            self.records_kept <= self.records_read,
            "a record that did not exist"
        );
        debug_assert!(!discarded || kept.is_empty(), "an aborted record stays");
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
            rewrite.push(record.outline());
        }
        let bytes = rewrite
            .finish()
            .map_err(|error| Refusal::Storage(format!("compressing failed: {error}")))?;
        Ok(Fate::Anew(bytes))
    }

    /// Whether a record stays. Records without a key have no later version: they do not belong in a compacted log, and
    /// are removed.
    fn stays(&self, record: &Record<'_>, due: bool) -> bool {
        let newest = |key| {
            self.newest
                .get(key)
                .is_none_or(|newest| record.offset >= newest)
        };
        record.key.is_some_and(newest) && (record.value.is_some() || !due)
    }

    /// Whether the batch has its producer's last sequence number, so that its header must stay.
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

/// A batch's records; `None` if its checksum is right but the records cannot be read: earlier brokers did not validate
/// compressed batches.
pub(crate) fn readable<'a>(batch: &Batch<'a>) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
    let header = &batch.header;
    batch.check().map_err(|fault| damaged(header, &fault))?;
    let expanded = header
        .compression()
        .and_then(|compression| decompress(compression, batch.payload(), EXPANDED_BYTES_MAX));
    let whole = |expanded: &Cow<'_, [u8]>| batch.records(expanded).all(|record| record.is_ok());
    Ok(expanded.ok().filter(whole))
}

/// Whether a marker commits its transaction; `None` for an invalid one, or one of another kind.
pub(crate) fn marker_commits(batch: &Batch<'_>, expanded: &[u8]) -> Result<Option<bool>, Refusal> {
    let first = batch.records(expanded).next().transpose();
    let first = first.map_err(|fault| damaged(&batch.header, &fault))?;
    let key = first.and_then(|record| record.key);
    Ok(key.and_then(crate::marker::marker_commits))
}

pub(crate) fn damaged(header: &Header, fault: &Fault) -> Refusal {
    Refusal::CorruptBatch(format!("batch at offset {}: {fault}", header.base_offset))
}

#[cfg(test)]
mod tests {
    use sharecore_records::{
        Batches, Compression, compress,
        layout::{HEADER, seal},
        local_batch,
    };

    use super::*;

    /// A compressed batch of one record, truncated.
    fn compressed(cut: usize) -> Vec<u8> {
        let (whole, mut header) = local_batch(
            &[(Some(b"k"), Some(b"v"))],
            sharecore_records::Producer::NONE,
            0,
        );
        let payload = compress(Compression::Gzip, &whole[HEADER..]).expect("memory");
        header.attributes = 1;
        header.size = HEADER + payload.len() - cut;
        let mut bytes = vec![0; HEADER];
        header.write(&mut bytes);
        bytes.extend_from_slice(&payload[..payload.len() - cut]);
        seal(&mut bytes);
        bytes
    }

    #[test]
    fn a_batch_that_nobody_can_read_differs_from_a_damaged_one() {
        let read = |bytes: &[u8]| {
            let batch = Batches::new(bytes).next().expect("a batch");
            readable(&batch).map(|records| records.is_some())
        };
        assert_eq!(read(&compressed(0)), Ok(true));
        assert_eq!(read(&compressed(3)), Ok(false), "as it was sent");
        let mut damaged = compressed(0);
        damaged[HEADER] ^= 1;
        assert!(matches!(read(&damaged), Err(Refusal::CorruptBatch(_))));
    }
}
