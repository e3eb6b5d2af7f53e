//! Finds a record by its time: the only place where the store reads records.

use sharecore_records::{Batches, EXPANDED_BYTES_MAX};

use crate::error::Refusal;

/// The first record of the batches in `bytes`, from offset `start`, that is not older than `timestamp`.
pub(crate) fn record_since(
    bytes: &[u8],
    start: i64,
    timestamp: i64,
) -> Result<Option<(i64, i64)>, Refusal> {
    for batch in Batches::new(bytes) {
        let damaged = |fault: &dyn std::fmt::Display| {
            Refusal::CorruptBatch(format!(
                "batch at offset {}: {fault}",
                batch.header.base_offset
            ))
        };
        let expanded = batch
            .expand(EXPANDED_BYTES_MAX)
            .map_err(|fault| damaged(&fault))?;
        for record in batch.records(&expanded) {
            let record = record.map_err(|fault| damaged(&fault))?;
            if record.offset >= start && record.timestamp >= timestamp {
                return Ok(Some((record.offset, record.timestamp)));
            }
        }
    }
    Ok(None)
}
