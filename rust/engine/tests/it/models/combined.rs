//! The combiner, offset by offset.

use std::collections::BTreeMap;

use sharecore_engine::StateBatch;

/// The expected result of [`combine`](sharecore_engine::combine).
pub(crate) fn model(
    existing: &[StateBatch],
    new: &[StateBatch],
    start_offset: Option<i64>,
) -> Vec<StateBatch> {
    let mut offsets = BTreeMap::new();
    for batch in existing.iter().chain(new) {
        for offset in batch.first.max(start_offset.unwrap_or(0))..=batch.last {
            let rank = (batch.delivery_count, batch.state);
            let best = offsets.entry(offset).or_insert(rank);
            *best = rank.max(*best);
        }
    }
    let mut out: Vec<StateBatch> = Vec::new();
    for (offset, (delivery_count, state)) in offsets {
        match out.last_mut() {
            Some(b)
                if b.last + 1 == offset
                    && (b.delivery_count, b.state) == (delivery_count, state) =>
            {
                b.last = offset;
            }
            _ => out.push(StateBatch {
                first: offset,
                last: offset,
                state,
                delivery_count,
            }),
        }
    }
    out
}
