//! Finds the offsets of a log that no batch covers.

use super::Batches;

/// Ranges of `[start, end)` covered neither by a whole batch nor by a hole from compaction; below `holes_end` only
/// those that a broken batch covers.
///
/// ```text
/// found    [0      9][whole 20-29][broken 30-39]      [whole 50-59]  hole from 45
/// lost                             30-39, 40-44
/// ```
pub(super) fn lost(found: &Batches, holes_end: i64, start: i64, end: i64) -> Vec<(i64, i64)> {
    let mut lost: Vec<(i64, i64)> = Vec::new();
    let mut add = |first: i64, last: i64| match lost.last_mut() {
        _ if last < first => {}
        Some(before) if before.1 + 1 >= first => before.1 = before.1.max(last),
        _ => lost.push((first, last)),
    };
    let mut next = start;
    for (base, batch) in found {
        let base = (*base).max(start);
        if batch.last < next {
            continue;
        }
        add(next.max(holes_end), batch.from.min(base) - 1);
        if !batch.is_whole {
            add(base.max(next), batch.last);
        }
        next = batch.last + 1;
    }
    add(next.max(holes_end), end - 1);
    debug_assert!(
        lost.is_sorted_by(|a, b| a.1 < b.0 - 1),
        "adjacent lost ranges are merged"
    );
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{segment::Kind, survey::Batch};

    fn found(batches: &[(i64, i64, i64, bool)]) -> Batches {
        let batch = |&(from, base, last, is_whole)| {
            let batch = Batch {
                segment: 1,
                kind: Kind::Journal,
                at: 0,
                len: 61,
                last,
                max_timestamp: 0,
                from,
                is_whole,
            };
            (base, batch)
        };
        batches.iter().map(batch).collect()
    }

    #[test]
    fn what_nothing_covers_is_lost() {
        let all = found(&[
            (0, 0, 9, true),
            (20, 20, 29, true),
            (30, 30, 39, false),
            (45, 50, 59, true),
        ]);
        assert_eq!(lost(&all, 0, 0, 60), [(10, 19), (30, 44)]);
        assert_eq!(lost(&all, 45, 0, 60), [(30, 39)]);
        assert_eq!(lost(&all, 0, 25, 70), [(30, 44), (60, 69)]);
        assert_eq!(lost(&found(&[]), 0, 5, 8), [(5, 7)]);
        assert_eq!(lost(&found(&[]), 0, 5, 5), []);
    }
}
