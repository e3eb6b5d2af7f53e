//! The combiner against a model that knows each offset.

#[path = "models/combined.rs"]
mod combined;

use combined::model;
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
