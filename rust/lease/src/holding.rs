//! Finds the record batches that hold acquired records.

use std::ops::Range;

use sharecore_engine::{Acquired, OffsetRange};
use sharecore_records::Header;

use crate::Ranges;

/// The byte ranges of the record batches that hold acquired records; both inputs ascending.
pub(crate) fn holding(records: &[u8], batches: &[OffsetRange], acquired: &[Acquired]) -> Ranges {
    let mut found = Ranges::new();
    if let (&[only], &[head, .., tail] | &[head @ tail]) = (acquired, batches)
        && only.first <= head.last
        && only.last >= tail.first
    {
        found.push(0..records.len());
        return found;
    }
    for (range, _, _) in partly(places(records), batches, acquired) {
        match found.last_mut() {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

/// The record batches that hold acquired records: what `each` has of it, its offsets, and the acquired ranges that
/// overlap it.
pub(crate) fn partly<'a, T>(
    each: impl Iterator<Item = T>,
    batches: &'a [OffsetRange],
    mut acquired: &'a [Acquired],
) -> impl Iterator<Item = (T, OffsetRange, &'a [Acquired])> {
    let all = each.zip(batches).map_while(move |(this, batch)| {
        let passed = acquired.iter().take_while(|each| each.last < batch.first);
        acquired = &acquired[passed.count()..];
        let here = acquired.iter().take_while(|each| each.first <= batch.last);
        (!acquired.is_empty()).then(|| (this, *batch, &acquired[..here.count()]))
    });
    all.filter(|(_, _, here)| !here.is_empty())
}

/// The byte range of each record batch.
pub(crate) fn places(records: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        at += Header::read(records.get(start..)?)?.size;
        Some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aborted::tests::{Held, acquired, batch, ranges};

    #[test]
    fn only_the_batches_with_acquired_records_are_held() {
        let batches = ranges(&[(0, 9), (10, 19), (20, 29), (40, 49)]);
        let bytes: Vec<Vec<u8>> = batches
            .iter()
            .map(|each| batch(0, -1, 70 + each.first as usize))
            .collect();
        let records = bytes.concat();
        let cases: &[(&[Held], &[usize])] = &[
            (&[(0, 49, 1)], &[0, 1, 2, 3]),
            (&[(9, 40, 1)], &[0, 1, 2, 3]),
            (&[(0, 9, 1)], &[0]),
            (&[(12, 15, 1)], &[1]),
            (&[(10, 29, 1)], &[1, 2]),
            (&[(3, 3, 1), (22, 23, 2)], &[0, 2]),
            (&[(3, 3, 1), (5, 5, 1), (49, 49, 2)], &[0, 3]),
            (&[(20, 24, 1), (25, 49, 1)], &[2, 3]),
            (&[(0, 24, 1), (25, 49, 1)], &[0, 1, 2, 3]),
            (&[(30, 45, 1)], &[3]),
        ];
        for (held, wanted) in cases {
            let found = holding(&records, &batches, &acquired(held));
            let found: Vec<u8> = found
                .into_iter()
                .flat_map(|r| records[r].to_vec())
                .collect();
            let wanted: Vec<u8> = wanted.iter().flat_map(|n| bytes[*n].clone()).collect();
            assert_eq!(found, wanted, "{held:?}");
        }
    }
}
