//! The combiner against a model that knows each offset.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sharecore_engine::{RecordState, StateBatch, combine};

fn batches() -> impl Strategy<Value = Vec<StateBatch>> {
    let state = prop_oneof![
        Just(RecordState::Available),
        Just(RecordState::Acknowledged),
        Just(RecordState::Archived)
    ];
    let batch = (0..60_i64, 0..12_i64, state, 0..4_u16).prop_map(
        |(first, length, state, delivery_count)| StateBatch {
            first,
            last: first + length,
            state,
            delivery_count,
        },
    );
    prop::collection::vec(batch, 0..12)
}

fn model(
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_the_model(existing in batches(), new in batches(), start in prop::option::of(0..70_i64)) {
        let mut out = vec![];
        combine(&existing, &new, start, &mut out);
        prop_assert_eq!(&out, &model(&existing, &new, start));
        let mut again = vec![];
        combine(&out, &[], start, &mut again);
        prop_assert_eq!(again, out);
    }
}
