//! Rewrites batches without the records that the member did not acquire.
//!
//! If keys have an order, or records wait, a member gets few records of a batch at a time: whole batches would be sent
//! once for each of them. A client takes an acquired offset without a record for a gap and acknowledges it, so a record
//! left out by mistake is lost.

use sharecore_engine::{Acquired, Bug, OffsetRange, is_planted};
use sharecore_records::{Batch, Batches, Compression, Outline, Rewrite};

use crate::{EXPANDED_BYTES_MAX, expanded::LogCache, holding::partly};

/// Smaller records are not compressed.
const COMPRESSED_FROM: usize = 4 << 10;

/// The batches that hold acquired records; those of which too little is acquired are rewritten. `None` if none is. `room`: how
/// many more bytes may be expanded.
pub(crate) fn thinned(
    records: &[u8],
    batches: &[OffsetRange],
    acquired: &[Acquired],
    log_cache: LogCache<'_>,
    room: &mut usize,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut is_anew = false;
    // batches kept as they are; copied only once one is rewritten
    let mut whole = Vec::new();
    for (place, offsets, here) in partly(records, batches, acquired) {
        let anew = match *room {
            0 => None,
            _ => thin(&records[place.clone()], offsets, here, log_cache, room),
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

/// One batch with only its acquired records; `None` if they are most of it, or if it is sent as it is because
/// it cannot be read or its header is wrong.
fn thin(
    bytes: &[u8],
    offsets: OffsetRange,
    acquired: &[Acquired],
    log_cache: LogCache<'_>,
    room: &mut usize,
) -> Option<Vec<u8>> {
    let counts = acquired
        .iter()
        .map(|each| each.last.min(offsets.last) - each.first.max(offsets.first) + 1);
    let batch = Batches::new(bytes).next()?;
    if counts.sum::<i64>() >= offsets.count() || batch.header.is_control() {
        return None;
    }
    let expanded = log_cache.expand(&batch).ok()?;
    *room = room.saturating_sub(expanded.len());
    let (mut kept, all_bytes) = kept(&batch, &expanded, offsets, acquired)?;
    let bytes_kept: usize = kept.iter().map(|record| record.bytes.len()).sum();
    let is_most = match batch.header.compression() {
        // rewriting it costs no more than a copy
        Ok(Compression::None) => 6 * bytes_kept >= 5 * all_bytes,
        _ => 2 * kept.len() >= batch.header.count as usize && 2 * bytes_kept >= all_bytes,
    };
    if kept.is_empty() || is_most {
        return None;
    }
    if is_planted(Bug::ThinnedShort) {
        kept.pop();
    }
    let mut rewrite = Rewrite::new(&batch.header, None);
    for record in &kept {
        rewrite.push(*record);
    }
    let anew = rewrite.finish_compressing(COMPRESSED_FROM).ok()?;
    debug_assert!(
        is_planted(Bug::ThinnedShort) || has_all(&anew, &kept),
        "the batch at {} lost a record",
        batch.header.base_offset
    );
    (anew.len() < bytes.len()).then_some(anew)
}

/// The acquired records of a batch, and the bytes of all its records; `None` if it cannot be read to the end, or its
/// records contradict its header.
fn kept<'a>(
    batch: &Batch<'_>,
    expanded: &'a [u8],
    offsets: OffsetRange,
    acquired: &[Acquired],
) -> Option<(Vec<Outline<'a>>, usize)> {
    let mut kept = Vec::new();
    let (mut bytes, mut is_in_order) = (0, true);
    let mut wanted = acquired.iter().peekable();
    let mut next = offsets.first;
    let walked = batch.records(expanded).outlines(|record| {
        is_in_order &= (next..=offsets.last).contains(&record.offset);
        next = record.offset.saturating_add(1);
        bytes += record.bytes.len();
        while wanted.next_if(|each| each.last < record.offset).is_some() {}
        if wanted
            .peek()
            .is_some_and(|each| each.first <= record.offset)
        {
            kept.push(record);
        }
    });
    (walked.is_ok() && is_in_order).then_some((kept, bytes))
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
