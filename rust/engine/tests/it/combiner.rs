//! Compares the combiner with a model that knows each offset.

use crate::models::combined::model;
use proptest::prelude::*;
use sharecore_engine::{Combiner, RecordState, StateBatch};

/// Up to `count` batches, each of up to `length` offsets, up to `end`.
fn batches(count: usize, length: i64, end: i64) -> impl Strategy<Value = Vec<StateBatch>> {
    let state = prop_oneof![
        Just(RecordState::Available),
        Just(RecordState::Acknowledged),
        Just(RecordState::Archived)
    ];
    let batch =
        (0..end, 0..length, state, 0..4_u16).prop_map(|(first, length, state, delivery_count)| {
            StateBatch {
                first,
                last: first + length,
                state,
                delivery_count,
            }
        });
    prop::collection::vec(batch, 0..count)
}

fn agrees(
    existing: &[StateBatch],
    new: &[StateBatch],
    start: Option<i64>,
) -> Result<(), TestCaseError> {
    let once = combined(existing, new, start);
    prop_assert_eq!(&once, &model(existing, new, start));
    prop_assert_eq!(combined(&once, &[], start), once);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_the_model(
        existing in batches(12, 12, 60),
        new in batches(12, 12, 60),
        start in prop::option::of(0..70_i64),
    ) {
        agrees(&existing, &new, start)?;
    }

    #[test]
    fn agrees_with_the_model_on_lists_in_order(
        existing in batches(12, 12, 60),
        new in batches(12, 12, 60),
        start in prop::option::of(0..70_i64),
    ) {
        // Combined batches are in order
        let (existing, new) = (model(&existing, &[], None), model(&new, &[], None));
        agrees(&existing, &new, start)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn agrees_with_the_model_on_long_lists(
        existing in batches(120, 6, 500),
        new in batches(120, 90, 500),
        start in prop::option::of(0..500_i64),
    ) {
        agrees(&existing, &new, start)?;
    }
}

fn batch(first: i64, last: i64, delivery_count: u16) -> StateBatch {
    StateBatch {
        first,
        last,
        state: RecordState::Available,
        delivery_count,
    }
}

fn combined(
    existing: &[StateBatch],
    new: &[StateBatch],
    start_offset: Option<i64>,
) -> Vec<StateBatch> {
    Combiner::default()
        .combine(existing, new, start_offset)
        .to_vec()
}

#[test]
fn takes_the_lowest_and_the_highest_offset() {
    let all = [batch(i64::MIN, i64::MAX, 1)];
    let part = [batch(i64::MIN, 0, 2), batch(5, i64::MAX, 2)];
    assert_eq!(combined(&all, &[], None), all);
    let joined = [part[0], batch(1, 4, 1), part[1]];
    assert_eq!(combined(&all, &part, None), joined);
    assert_eq!(combined(&part, &all, None), joined);
    assert_eq!(combined(&[all[0], part[0], part[1]], &[], None), joined);
    let nested = [batch(0, i64::MAX, 1), batch(1, 5, 2), batch(3, i64::MAX, 3)];
    assert_eq!(
        combined(&nested, &[], None),
        [batch(0, 0, 1), batch(1, 2, 2), nested[2]]
    );
    assert_eq!(
        combined(&all, &part, Some(i64::MAX)),
        [batch(i64::MAX, i64::MAX, 2)]
    );
}

#[test]
fn passes_over_batches_that_end_before_they_begin() {
    let (good, bad) = ([batch(0, 9, 1), batch(20, 29, 1)], batch(15, 10, 3));
    for list in [[good[0], bad, good[1]], [bad, good[0], good[1]]] {
        assert_eq!(combined(&list, &[], None), good);
        assert_eq!(combined(&[], &list, None), good);
    }
    assert_eq!(combined(&good, &[bad], None), good);
    assert_eq!(combined(&[bad], &[], None), []);
}

#[test]
fn orders_batches_however_far_apart() {
    // Short lists are sorted by counting unless their offsets are too far apart: test both sides of that limit, and both signs
    for far in (20..62).flat_map(|bit| [(1_i64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
        for list in [
            [5, 5 + far, 6],
            [5, 5 - far, 4],
            [far, -far, 0],
            [0, far, -far],
        ] {
            let list = list.map(|first| batch(first, first, 1));
            let mut sorted = list;
            sorted.sort_by_key(|batch| batch.first);
            let expected = model_of_single(&sorted);
            assert_eq!(combined(&list, &[], None), expected, "{far}");
        }
    }
}

/// The expected result for batches of single offsets: neighbors are joined.
fn model_of_single(sorted: &[StateBatch]) -> Vec<StateBatch> {
    let mut joined: Vec<StateBatch> = vec![];
    for single in sorted {
        match joined.last_mut() {
            Some(before) if before.last + 1 >= single.first => before.last = single.last,
            _ => joined.push(*single),
        }
    }
    joined
}

#[test]
fn remembers_nothing_of_earlier_lists() {
    let mut combiner = Combiner::default();
    let many = [
        batch(0, 3, 1),
        batch(2, 9, 2),
        batch(5, 6, 3),
        batch(0, 99, 0),
    ];
    for list in [&many[..], &[batch(1, 1, 1)], &[], &many] {
        assert_eq!(combiner.combine(list, &[], None), combined(list, &[], None));
        assert_eq!(combiner.combine(&[], list, None), combined(list, &[], None));
    }
}
