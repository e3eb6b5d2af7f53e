//! Persisted state batches: runs of offsets with one delivery state and count.
//!
//! A list is encoded as in Kafka's `ShareSnapshotValue` and `ShareUpdateValue` (without the array length): first
//! offset, last offset, delivery state, delivery count, no tagged fields.

use crate::offset::{OFFSET_MAX, Offset};
use crate::partition::StateBatch;
use crate::record_state::RecordState;

/// Encoded size of one batch.
pub const ENCODED_LEN: usize = 8 + 8 + 1 + 2 + 1;

const _: () = assert!(
    ENCODED_LEN == 2 * size_of::<Offset>() + size_of::<u8>() + size_of::<u16>() + 1,
    "two offsets, a state, a count and no tagged fields"
);

/// The longest valid state batch.
const LENGTH_MAX: Offset = 1 << 48;

/// Whether `first` to `last` are valid record offsets.
pub fn is_range(first: Offset, last: Offset) -> bool {
    first >= 0 && first <= last && last - first < LENGTH_MAX && last <= OFFSET_MAX
}

/// Why bytes are not a valid list of state batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is not a whole number of batches.
    Length(usize),
    /// The batch at this index ends before it begins, has an unknown state or count, or carries unknown fields.
    Batch(usize),
}

/// Reads a list of batches.
pub fn decode(bytes: &[u8], out: &mut Vec<StateBatch>) -> Result<(), Malformed> {
    let (chunks, rest) = bytes.as_chunks::<ENCODED_LEN>();
    if !rest.is_empty() {
        return Err(Malformed::Length(bytes.len()));
    }
    out.reserve(chunks.len());
    for (index, chunk) in chunks.iter().enumerate() {
        let batch = read(chunk).filter(|batch| {
            batch.last >= batch.first
                && batch.first >= 0
                && i16::try_from(batch.delivery_count).is_ok()
                && chunk[19] == 0
        });
        let batch = batch.ok_or(Malformed::Batch(index))?;
        debug_assert!(
            0 <= batch.first && batch.first <= batch.last,
            "an empty batch: {batch:?}"
        );
        out.push(batch);
    }
    debug_assert!(out.len() >= chunks.len(), "as many batches as were read");
    Ok(())
}

fn read(chunk: &[u8; ENCODED_LEN]) -> Option<StateBatch> {
    Some(StateBatch {
        first: Offset::from_be_bytes(chunk[..8].try_into().ok()?),
        last: Offset::from_be_bytes(chunk[8..16].try_into().ok()?),
        state: RecordState::from_id(chunk[16])?,
        delivery_count: u16::from_be_bytes(chunk[17..19].try_into().ok()?),
    })
}

/// Writes a list of batches into `out`, which has exactly [`ENCODED_LEN`] bytes for each.
pub fn encode(batches: &[StateBatch], out: &mut [u8]) {
    assert_eq!(
        out.len(),
        ENCODED_LEN * batches.len(),
        "`out` has the exact size"
    );
    let (chunks, _) = out.as_chunks_mut::<ENCODED_LEN>();
    for (batch, chunk) in batches.iter().zip(chunks) {
        chunk[..8].copy_from_slice(&batch.first.to_be_bytes());
        chunk[8..16].copy_from_slice(&batch.last.to_be_bytes());
        chunk[16] = batch.state.id();
        chunk[17..19].copy_from_slice(&batch.delivery_count.to_be_bytes());
        chunk[19] = 0;
    }
}

/// The `batches` (ascending, without overlaps) still to be written when the start offset moves past acknowledged
/// records.
///
/// Records below the start offset need no state, so it moves past adjacent acknowledged batches, which are then not
/// written. Archived batches are written once: the state history is later the only evidence of a rejected record.
/// `start_offset` is its position after all earlier writes.
///
/// ```text
/// start offset   v
/// batches        [acknowledged][archived][available] [acknowledged]
/// afterwards                   v
///                              [archived][available] [acknowledged]
/// ```
///
/// Returns the new start offset and how many batches lie below it.
pub fn pass_acknowledged(start_offset: i64, batches: &[StateBatch]) -> (i64, usize) {
    let mut start = start_offset;
    let mut passed = 0;
    for batch in batches {
        if batch.last >= start {
            if batch.first > start || batch.state != RecordState::Acknowledged {
                break;
            }
            start = batch.last + 1;
        }
        passed += 1;
    }
    debug_assert!(start >= start_offset, "the start offset never falls");
    debug_assert!(
        batches[..passed].iter().all(|batch| batch.last < start),
        "a batch that was passed lies below the start offset"
    );
    (start, passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: i64, last: i64, state: u8, delivery_count: u16) -> StateBatch {
        let state = RecordState::from_id(state).expect("a known state");
        StateBatch {
            first,
            last,
            state,
            delivery_count,
        }
    }

    fn bytes(batches: &[StateBatch]) -> Vec<u8> {
        let mut out = vec![0xff; batches.len() * ENCODED_LEN];
        encode(batches, &mut out);
        out
    }

    #[test]
    fn bytes_and_back() {
        let batches = vec![
            batch(0, 9, 2, 1),
            batch(10, 10, 0, 3),
            batch(1 << 40, (1 << 40) + 1, 4, 5),
        ];
        let mut back = Vec::new();
        decode(&bytes(&batches), &mut back).unwrap();
        assert_eq!(back, batches);
        assert_eq!(decode(&[0; 21], &mut back), Err(Malformed::Length(21)));
        assert_eq!(
            decode(&bytes(&[batch(5, 4, 0, 0)]), &mut back),
            Err(Malformed::Batch(0))
        );
    }

    #[test]
    fn passes_only_acknowledged_records_that_touch_the_start() {
        let batches = [
            batch(10, 19, 2, 1),
            batch(20, 24, 4, 2),
            batch(25, 29, 0, 1),
            batch(30, 39, 2, 1),
        ];
        assert_eq!(pass_acknowledged(10, &batches), (20, 1));
        assert_eq!(pass_acknowledged(9, &batches), (9, 0));
        assert_eq!(pass_acknowledged(15, &batches), (20, 1));
        assert_eq!(pass_acknowledged(25, &batches), (25, 2));
        assert_eq!(pass_acknowledged(100, &batches[..2]), (100, 2));
    }
}
