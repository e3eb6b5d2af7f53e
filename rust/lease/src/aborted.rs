//! Finds the records of aborted transactions in a read.

use std::collections::HashSet;

use sharecore_engine::{Acquired, OffsetRange};
use sharecore_guard::{Failed, Guarded};
use sharecore_records::Header;

use crate::holding::places;

/// The offsets of each record batch of an aborted transaction.
///
/// `aborted`: producer ID and first offset of each aborted transaction that overlaps the batches.
pub(crate) fn aborted_ranges(
    records: &[u8],
    batches: &[OffsetRange],
    mut aborted: Vec<(i64, i64)>,
) -> Vec<OffsetRange> {
    if aborted.is_empty() {
        return Vec::new();
    }
    aborted.sort_by_key(|(_, first)| *first);
    let mut pending = aborted.into_iter().peekable();
    let mut open = HashSet::new();
    let mut found = Vec::new();
    for (place, batch) in places(records).zip(batches) {
        while let Some((producer, _)) = pending.next_if(|(_, first)| *first <= batch.last) {
            open.insert(producer);
        }
        let Some(header) = Header::read(&records[place]) else {
            break;
        };
        if !header.is_transactional() {
            continue;
        }
        if header.is_control() {
            // a marker ends the transaction; a later one of the same producer has its own entry
            open.remove(&header.producer_id);
        } else if open.contains(&header.producer_id) {
            found.push(*batch);
        }
    }
    found
}

/// Archives records of aborted transactions and offsets without records, and returns the rest of the acquired ones.
/// Other members may hold some of the archived ones: a group that read uncommitted records until now may have acquired
/// them.
pub(crate) fn without(
    engine: &Guarded,
    gone: &[OffsetRange],
    acquired: &[Acquired],
) -> Result<Vec<Acquired>, Failed> {
    engine.with(|engine| {
        for range in gone {
            engine.archive(range.first, range.last);
        }
    })?;
    Ok(subtracted(acquired, gone))
}

/// The acquired offsets without those in `gone`; both ascending.
fn subtracted(acquired: &[Acquired], gone: &[OffsetRange]) -> Vec<Acquired> {
    let mut left = Vec::new();
    for each in acquired {
        let mut first = each.first;
        for range in gone {
            if range.last < first || range.first > each.last {
                continue;
            }
            if first < range.first {
                left.push(Acquired {
                    first,
                    last: range.first - 1,
                    ..*each
                });
            }
            first = range.last + 1;
        }
        if first <= each.last {
            left.push(Acquired { first, ..*each });
        }
    }
    left
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const PLAIN: i16 = 0;
    const TRANSACTIONAL: i16 = 0x10;
    const MARKER: i16 = 0x30;

    /// A record batch without records, padded with zeros to its size.
    pub(crate) fn batch(attributes: i16, producer_id: i64, size: usize) -> Vec<u8> {
        let header = Header {
            base_offset: 0,
            size,
            leader_epoch: 0,
            attributes,
            last_offset_delta: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            count: 0,
        };
        let mut bytes = vec![0; size];
        header.write(&mut bytes);
        bytes
    }

    /// First offset, last offset.
    pub(crate) type Span = (i64, i64);

    pub(crate) fn ranges(each: &[Span]) -> Vec<OffsetRange> {
        let new = |&(first, last): &Span| OffsetRange::new(first, last);
        each.iter().map(new).collect()
    }

    /// First offset, last offset, delivery count.
    pub(crate) type Held = (i64, i64, u16);

    pub(crate) fn acquired(each: &[Held]) -> Vec<Acquired> {
        let each = each.iter();
        each.map(|&(first, last, delivery_count)| Acquired {
            first,
            last,
            delivery_count,
        })
        .collect()
    }

    #[test]
    fn batches_of_aborted_transactions_are_found() {
        let heads = [
            (PLAIN, 7),
            (TRANSACTIONAL, 7),
            (TRANSACTIONAL, 8),
            (MARKER, 7),
            (TRANSACTIONAL, 7),
            (MARKER, 8),
            (TRANSACTIONAL, 8),
        ];
        let records = heads
            .map(|(kind, producer)| batch(kind, producer, 61))
            .concat();
        let offsets: Vec<(i64, i64)> = (0..7).map(|n| (n, n)).collect();
        let batches = ranges(&offsets);
        let found = |aborted: &[(i64, i64)]| aborted_ranges(&records, &batches, aborted.to_vec());
        assert_eq!(found(&[(7, 1)]), ranges(&[(1, 1)]));
        assert_eq!(found(&[(7, 4)]), ranges(&[(4, 4)]));
        assert_eq!(found(&[(8, 2), (7, 1)]), ranges(&[(1, 1), (2, 2)]));
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn offsets_of_aborted_records_are_taken_out_of_what_was_acquired() {
        let held = acquired(&[(0, 9, 1), (12, 12, 2)]);
        let cases: &[(&[Span], &[Held])] = &[
            (&[], &[(0, 9, 1), (12, 12, 2)]),
            (&[(0, 3)], &[(4, 9, 1), (12, 12, 2)]),
            (&[(2, 3), (5, 12)], &[(0, 1, 1), (4, 4, 1)]),
            (&[(9, 11)], &[(0, 8, 1), (12, 12, 2)]),
            (&[(0, 12)], &[]),
            (&[(20, 29)], &[(0, 9, 1), (12, 12, 2)]),
        ];
        for (gone, left) in cases {
            assert_eq!(subtracted(&held, &ranges(gone)), acquired(left), "{gone:?}");
        }
    }
}
