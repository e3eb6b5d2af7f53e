//! Ranges in a map by their first offset.

use std::collections::BTreeMap;

use crate::offset::{Offset, OffsetRange};

/// Removes the overlaps with `range` from a map of ranges by first offset; the parts outside stay.
pub(super) fn take_overlaps<T: Copy>(
    map: &mut BTreeMap<Offset, T>,
    range: OffsetRange,
    last_of: impl Fn(&T) -> Offset,
    with_last: impl Fn(&T, Offset) -> T,
) -> Vec<(OffsetRange, T)> {
    let mut found = Vec::new();
    while let Some((&first, &value)) = map.range(..=range.last).next_back() {
        let whole = OffsetRange::new(first, last_of(&value));
        if whole.last < range.first {
            break;
        }
        map.remove(&first);
        let piece = whole.clip(range);
        if whole.first < piece.first {
            map.insert(first, with_last(&value, piece.first - 1));
        }
        if piece.last < whole.last {
            map.insert(piece.last + 1, value);
        }
        found.push((piece, value));
        if whole.first < piece.first {
            break;
        }
    }
    found.reverse();
    debug_assert!(
        found.is_sorted_by(|(a, _), (b, _)| a.last < b.first),
        "pieces are in order"
    );
    debug_assert!(
        found.iter().all(|(piece, _)| *piece == piece.clip(range)),
        "a piece lies elsewhere"
    );
    found
}
