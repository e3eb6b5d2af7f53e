//! Finds offsets that a batch claims but cannot hold records for. A broker that did not validate the batch may have
//! stored a false record count, and each missing record would be acquired, counted, and dead-lettered.

use sharecore_engine::OffsetRange;
use sharecore_records::{Batch, Batches, Expander, Fault, Header, Walk};

use crate::EXPANDED_BYTES_MAX;

/// Batches of fewer offsets are trusted.
const OFFSETS_TRUSTED: i64 = 1_000;

/// The offsets without a record in batches that claim more offsets than they have bytes.
pub(crate) fn missing(records: &[u8], batches: &[OffsetRange]) -> Vec<OffsetRange> {
    if batches.iter().all(|each| each.count() <= OFFSETS_TRUSTED) {
        return Vec::new();
    }
    Batches::new(records)
        .zip(batches)
        .filter(|(batch, claimed)| !is_trusted(**claimed, batch.bytes().len()))
        .flat_map(|(batch, claimed)| gaps(*claimed, &held(&batch)))
        .collect()
}

/// Whether a batch of this size may have a record for each offset that it claims.
pub(crate) fn is_trusted(claimed: OffsetRange, size: usize) -> bool {
    claimed.count() <= OFFSETS_TRUSTED.max(size as i64)
}

/// The offsets of a batch's records, merged into ranges; if the batch cannot be read, one record per byte.
fn held(batch: &Batch<'_>) -> Vec<OffsetRange> {
    let header = &batch.header;
    let mut held: Vec<OffsetRange> = Vec::new();
    let walked = walk(header, batch, |delta| {
        let offset = header.base_offset.saturating_add(i64::from(delta));
        match held.last_mut() {
            Some(last) if offset == last.last + 1 => last.last = offset,
            Some(last) if offset <= last.last => {}
            _ => held.push(OffsetRange::new(offset, offset)),
        }
    });
    if walked.is_err() && held.is_empty() {
        let last = header.base_offset + batch.bytes().len() as i64;
        held.push(OffsetRange::new(header.base_offset, last));
    }
    held
}

/// Visits the offset of each record.
fn walk(header: &Header, batch: &Batch<'_>, mut see: impl FnMut(i32)) -> Result<(), Fault> {
    let mut expander = Expander::new(header.compression()?, batch.payload())?;
    let mut walk = Walk::new(header);
    let mut bytes = 0;
    while bytes < EXPANDED_BYTES_MAX {
        let piece = expander.next_piece()?;
        if piece.is_empty() {
            break;
        }
        bytes += piece.len();
        walk.feed(piece, |record| see(record.offset_delta))?;
    }
    Ok(())
}

/// The parts of `claimed` that are not in `held`, which is ascending.
fn gaps(claimed: OffsetRange, held: &[OffsetRange]) -> Vec<OffsetRange> {
    let mut gaps = Vec::new();
    let mut next = claimed.first;
    for range in held {
        if range.first > next {
            gaps.push(OffsetRange::new(next, claimed.last.min(range.first - 1)));
        }
        next = next.max(range.last.saturating_add(1));
    }
    if next <= claimed.last {
        gaps.push(OffsetRange::new(next, claimed.last));
    }
    gaps.retain(|gap| gap.first <= gap.last);
    gaps
}

#[cfg(test)]
mod tests {
    use sharecore_records::{Compression, compress, layout::HEADER, put_varint};

    use super::*;

    const CLAIMED: i64 = i32::MAX as i64;

    /// A batch at offset 10 with one record per delta, which claims `count` offsets.
    fn batch(deltas: &[i32], count: i64, compression: Compression) -> Vec<u8> {
        let mut records = Vec::new();
        for delta in deltas {
            let mut body = vec![0, 0];
            put_varint(&mut body, i64::from(*delta));
            body.extend_from_slice(&[1, 2, b'v', 0]);
            put_varint(&mut records, body.len() as i64);
            records.extend_from_slice(&body);
        }
        let payload = compress(compression, &records).unwrap();
        let header = Header {
            base_offset: 10,
            size: HEADER + payload.len(),
            leader_epoch: 0,
            attributes: compression as i16,
            last_offset_delta: (count - 1) as i32,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: count as i32,
        };
        let mut bytes = vec![0; HEADER];
        header.write(&mut bytes);
        bytes.extend_from_slice(&payload);
        bytes
    }

    fn found(bytes: &[u8], count: i64) -> Vec<(i64, i64)> {
        let claimed = [OffsetRange::new(10, 9 + count)];
        let gone = missing(bytes, &claimed);
        gone.iter().map(|gap| (gap.first, gap.last)).collect()
    }

    #[test]
    fn offsets_without_a_record_are_found_where_a_batch_claims_more_than_it_has_bytes() {
        use Compression::{Gzip, Lz4, None, Snappy, Zstd};
        for compression in [None, Gzip, Snappy, Lz4, Zstd] {
            let bytes = batch(&[0, 1, 2], CLAIMED, compression);
            assert_eq!(
                found(&bytes, CLAIMED),
                [(13, 9 + CLAIMED)],
                "{compression:?}"
            );
            let bytes = batch(&[0, 5, 6], CLAIMED, compression);
            assert_eq!(found(&bytes, CLAIMED), [(11, 14), (17, 9 + CLAIMED)]);
            let bytes = batch(&[0, 1, 2], 20, compression);
            assert_eq!(found(&bytes, 20), [], "compaction leaves gaps as well");
        }
    }

    #[test]
    fn a_batch_with_as_many_records_as_it_claims_has_no_offset_without_one() {
        let deltas: Vec<i32> = (0..50_000).collect();
        let bytes = batch(&deltas, 50_000, Compression::Zstd);
        assert!(bytes.len() < 50_000, "it is looked into");
        assert_eq!(found(&bytes, 50_000), []);
    }

    #[test]
    fn the_bytes_of_a_batch_that_nobody_can_read_are_taken_for_as_many_records() {
        let mut bytes = batch(&[0, 1, 2], CLAIMED, Compression::Gzip);
        let size = bytes.len() as i64;
        bytes[HEADER] ^= 1;
        assert_eq!(found(&bytes, CLAIMED), [(11 + size, 9 + CLAIMED)]);
    }
}
