//! Rewrites batches without the records that the member did not acquire.
//!
//! If keys have an order, or records wait, a member gets few records of a batch at a time: whole batches would be sent
//! once for each of them. A client takes an acquired offset without a record for a gap and acknowledges it, so a record
//! left out by mistake is lost.

use std::sync::Arc;

use sharecore_engine::{Acquired, Bug, OffsetRange, is_planted};
use sharecore_records::{Batch, Batches, Compression, Header, Outline, Rewrite};

use crate::{
    EXPANDED_BYTES_MAX,
    expanded::{Found, LogCache, Rest},
    holding::{partly, places},
    indexed::{IndexedBatch, outlined},
};

/// Smaller records are not compressed.
const COMPRESSED_FROM: usize = 4 << 10;

/// The batches that hold acquired records; those of which too little is acquired are rewritten. `None` if none is. `room`: how
/// many more bytes may be expanded. `rest` returns what is left to deliver of a batch.
pub(crate) fn thinned(
    records: &[u8],
    batches: &[OffsetRange],
    acquired: &[Acquired],
    log_cache: LogCache<'_>,
    room: &mut usize,
    rest: impl Fn(OffsetRange) -> Rest,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut is_anew = false;
    // batches kept as they are; copied only once one is rewritten
    let mut whole = Vec::new();
    for (place, offsets, here) in partly(places(records), batches, acquired) {
        let anew = match *room {
            0 => None,
            _ if counted(here, offsets) >= offsets.count() => None,
            _ => match log_cache.indexed(&records[place.clone()], offsets, room, &rest) {
                Some(Found::Kept(batch)) => thin(&batch, here, log_cache),
                Some(Found::Once(batch)) => thin_once(&batch, offsets, here, room),
                None => None,
            },
        };
        match anew {
            None if is_anew => out.extend_from_slice(&records[place]),
            None => whole.push(place),
            Some(anew) => {
                for before in whole.drain(..) {
                    out.extend_from_slice(&records[before]);
                }
                out.extend_from_slice(&anew);
                is_anew = true;
            }
        }
    }
    is_anew.then_some(out)
}

/// As [`thinned`], of cached batches: the batches that hold acquired records, and how many bytes they have in the log.
pub(crate) fn thinned_from(
    (batches, offsets): (&[Arc<IndexedBatch>], &[OffsetRange]),
    acquired: &[Acquired],
    log_cache: LogCache<'_>,
) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let mut size = 0;
    for (batch, _, here) in partly(batches.iter(), offsets, acquired) {
        size += batch.bytes().len();
        match thin(batch, here, log_cache) {
            Some(anew) => out.extend_from_slice(&anew),
            None => out.extend_from_slice(batch.bytes()),
        }
    }
    (out, size)
}

/// How many of a batch's offsets are acquired.
fn counted(acquired: &[Acquired], offsets: OffsetRange) -> i64 {
    let counts = acquired
        .iter()
        .map(|each| each.last.min(offsets.last) - each.first.max(offsets.first) + 1);
    counts.sum()
}

/// One batch with only its acquired records; `None` if they are most of it.
fn thin(batch: &IndexedBatch, acquired: &[Acquired], log_cache: LogCache<'_>) -> Option<Vec<u8>> {
    log_cache.delivered(batch, counted(acquired, batch.offsets()));
    let (all, all_bytes) = (batch.count(), batch.record_bytes());
    let kept = batch.records_in(acquired);
    rewritten(batch.header(), kept, (all, all_bytes), batch.bytes().len())
}

/// As [`thin`], of an uncompressed batch that is not cached.
fn thin_once(
    batch: &Batch<'_>,
    offsets: OffsetRange,
    mut acquired: &[Acquired],
    room: &mut usize,
) -> Option<Vec<u8>> {
    let payload = batch.payload();
    let (mut kept, mut all, mut all_bytes) = (Vec::new(), 0, 0);
    outlined(batch, offsets, |record, start| {
        all += 1;
        all_bytes += record.bytes.len();
        while let Some((range, behind)) = acquired.split_first()
            && range.last < record.offset
        {
            acquired = behind;
        }
        if acquired
            .first()
            .is_some_and(|range| range.first <= record.offset)
        {
            let bytes = &payload[start..][..record.bytes.len()];
            kept.push(Outline { bytes, ..record });
        }
    })?;
    *room = room.saturating_sub(batch.bytes().len());
    rewritten(&batch.header, kept, (all, all_bytes), batch.bytes().len())
}

/// A batch with only these of its records; `None` if they are most of it.
fn rewritten(
    header: &Header,
    mut kept: Vec<Outline<'_>>,
    (all, all_bytes): (usize, usize),
    whole_bytes: usize,
) -> Option<Vec<u8>> {
    let bytes_kept: usize = kept.iter().map(|record| record.bytes.len()).sum();
    let is_most = match header.compression() {
        // rewriting it costs no more than a copy
        Ok(Compression::None) => 6 * bytes_kept >= 5 * all_bytes,
        _ => 2 * kept.len() >= all && 2 * bytes_kept >= all_bytes,
    };
    if kept.is_empty() || is_most {
        return None;
    }
    if is_planted(Bug::ThinnedShort) {
        kept.pop();
    }
    // a length takes up to five bytes
    let capacity = bytes_kept + 5 * kept.len();
    let mut rewrite = Rewrite::with_capacity(header, None, capacity);
    for record in &kept {
        rewrite.push(*record);
    }
    let anew = rewrite.finish_compressing(COMPRESSED_FROM).ok()?;
    debug_assert!(
        is_planted(Bug::ThinnedShort) || has_all(&anew, &kept),
        "the batch at {} lost a record",
        header.base_offset
    );
    (anew.len() < whole_bytes).then_some(anew)
}

/// Whether a batch has exactly these records.
fn has_all(anew: &[u8], kept: &[Outline<'_>]) -> bool {
    let Some(batch) = Batches::new(anew).next() else {
        return false;
    };
    let Ok(expanded) = batch.expand(EXPANDED_BYTES_MAX) else {
        return false;
    };
    let mut records = batch.records(&expanded);
    let is_same = kept.iter().all(|wanted| {
        records.next().is_some_and(|found| {
            found.is_ok_and(|found| {
                (found.offset, found.timestamp) == (wanted.offset, wanted.timestamp)
                    && found.bytes == wanted.bytes
            })
        })
    });
    is_same && records.next().is_none() && records.is_at_end()
}

#[cfg(test)]
mod tests;
