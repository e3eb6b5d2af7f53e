//! Batches without the records that their member did not acquire.
//!
//! Where keys have an order, or records wait, few records of a batch come to a member at a time: whole batches would be
//! sent once for each of them. A client takes an acquired offset without a record for a gap and acknowledges it as one, so a
//! record that is left out wrongly is lost.

use sharecore_engine::{Acquired, Bug, OffsetRange, is_planted};
use sharecore_records::{Batch, Batches, Record, Rewrite};

use crate::{EXPANDED_BYTES_MAX, expanded::Shelf, holding::partly};

/// Fewer bytes of records are not compressed.
const COMPRESSED_FROM: usize = 4 << 10;

/// The batches that hold what was acquired, those written anew of which less than half is; `None` where all stay as they
/// are. `room` has the bytes that may be expanded for that.
pub(crate) fn thinned(
    records: &[u8],
    batches: &[OffsetRange],
    acquired: &[Acquired],
    shelf: Shelf<'_>,
    room: &mut usize,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut is_anew = false;
    // what stays as it is, is copied once something does not
    let mut whole = Vec::new();
    for (place, offsets, here) in partly(records, batches, acquired) {
        let anew = match *room {
            0 => None,
            _ => thin(&records[place.clone()], offsets, here, shelf, room),
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

/// One batch with what was acquired of it alone; `None` where that is at least half of it, or where it is sent as it is
/// because it cannot be read, or says of its records what is not so.
fn thin(
    bytes: &[u8],
    offsets: OffsetRange,
    acquired: &[Acquired],
    shelf: Shelf<'_>,
    room: &mut usize,
) -> Option<Vec<u8>> {
    let counts = acquired
        .iter()
        .map(|each| each.last.min(offsets.last) - each.first.max(offsets.first) + 1);
    let batch = Batches::new(bytes).next()?;
    if counts.sum::<i64>() >= offsets.count() || batch.header.is_control() {
        return None;
    }
    let expanded = shelf.expand(&batch).ok()?;
    *room = room.saturating_sub(expanded.len());
    let (mut kept, all_bytes) = kept(&batch, &expanded, offsets, acquired)?;
    let bytes_kept: usize = kept.iter().map(|record| record.bytes.len()).sum();
    let is_half = 2 * kept.len() >= batch.header.count as usize && 2 * bytes_kept >= all_bytes;
    if kept.is_empty() || is_half {
        return None;
    }
    if is_planted(Bug::ThinnedShort) {
        kept.pop();
    }
    let mut rewrite = Rewrite::new(&batch.header, None);
    for record in &kept {
        rewrite.push(record);
    }
    let anew = rewrite.finish_compressing(COMPRESSED_FROM).ok()?;
    debug_assert!(
        is_planted(Bug::ThinnedShort) || has_all(&anew, &kept),
        "the batch at {} lost a record",
        batch.header.base_offset
    );
    (anew.len() < bytes.len()).then_some(anew)
}

/// The acquired records of a batch, and the bytes of all of its records; `None` where it cannot be read to its end, or its records lie elsewhere than it says.
fn kept<'a>(
    batch: &Batch<'_>,
    expanded: &'a [u8],
    offsets: OffsetRange,
    acquired: &[Acquired],
) -> Option<(Vec<Record<'a>>, usize)> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut wanted = acquired.iter().peekable();
    let mut next = offsets.first;
    let mut records = batch.records(expanded);
    for record in records.by_ref() {
        let record = record.ok()?;
        if record.offset < next || record.offset > offsets.last {
            return None;
        }
        next = record.offset + 1;
        bytes += record.bytes.len();
        while wanted.next_if(|each| each.last < record.offset).is_some() {}
        if wanted
            .peek()
            .is_some_and(|each| each.first <= record.offset)
        {
            kept.push(record);
        }
    }
    records.is_at_end().then_some((kept, bytes))
}

/// Whether a batch has these records and no others.
fn has_all(anew: &[u8], kept: &[Record<'_>]) -> bool {
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
                    && (found.key, found.value) == (wanted.key, wanted.value)
            })
        })
    });
    is_same && records.next().is_none() && records.is_at_end()
}

#[cfg(test)]
mod tests;
