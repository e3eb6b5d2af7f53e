//! Compares the map with a plain map by offset.

use std::collections::BTreeMap;
use std::convert::Infallible;

use proptest::prelude::*;

use super::{Cell, Run, RunMap};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

#[derive(Clone, Debug)]
enum Step {
    Insert {
        at: Offset,
        length: Offset,
        state: u8,
    },
    Rewrite {
        at: Offset,
        length: Offset,
        state: u8,
        only: u8,
        at_most: Offset,
    },
    Remove {
        at: Offset,
    },
    Seek {
        at: Offset,
    },
}

fn state(id: u8) -> RecordState {
    [
        RecordState::Available,
        RecordState::Acknowledged,
        RecordState::Archived,
    ][usize::from(id) % 3]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Now and then a distant offset, because leaves count from a base with 32 bits
    let at = prop_oneof![9 => 0..2000_i64, 1 => (0..3_i64).prop_map(|far| far << 33)];
    let step = prop_oneof![
        4 => (at.clone(), 1..12_i64, 0..3_u8).prop_map(|(at, length, state)| Step::Insert { at, length, state }),
        4 => (at.clone(), 1..40_i64, 0..3_u8, 0..4_u8, 1..9_i64)
            .prop_map(|(at, length, state, only, at_most)| Step::Rewrite { at, length, state, only, at_most }),
        2 => at.clone().prop_map(|at| Step::Remove { at }),
        1 => at.prop_map(|at| Step::Seek { at }),
    ];
    prop::collection::vec(step, 1..1500)
}

/// The state of each offset, and whether a batch starts there.
type Model = BTreeMap<Offset, (RecordState, bool)>;

fn opening(first: Offset, last: Offset, cell: Cell) -> Run {
    Run::new(OffsetRange::new(first, last), cell).opening_batch(true)
}

fn rewrite(
    map: &mut RunMap,
    model: &mut Model,
    range: OffsetRange,
    to: RecordState,
    only: u8,
    at_most: Offset,
) {
    let Ok(()) = map.rewrite(range, |piece, cell| {
        piece.last = piece.last.min(piece.first + at_most - 1);
        Ok::<_, Infallible>(if cell.state().id() == only {
            cell
        } else {
            Cell::free(to, 0)
        })
    });
    for (_, (state, _)) in model.range_mut(range.first..=range.last) {
        if state.id() != only {
            *state = to;
        }
    }
}

fn compare(map: &RunMap, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(map.check(), Ok(()));
    let runs = map.iter().flat_map(|run| {
        (run.first..=run.last).map(move |offset| {
            (
                offset,
                (run.cell().state(), run.opens_batch() && offset == run.first),
            )
        })
    });
    prop_assert_eq!(runs.collect::<Model>(), model.clone());
    let available = model
        .iter()
        .find(|(_, (state, _))| *state == RecordState::Available)
        .map(|(&offset, _)| offset);
    prop_assert_eq!(
        map.first_available()
            .and_then(|at| map.get(at))
            .map(|run| run.first),
        available
    );
    prop_assert_eq!(
        map.first_offset(),
        model.first_key_value().map(|(&offset, _)| offset)
    );
    prop_assert_eq!(
        map.last_offset(),
        model.last_key_value().map(|(&offset, _)| offset)
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn agrees_with_the_model(steps in steps()) {
        let mut map = RunMap::default();
        let mut model = Model::new();
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { at, length, state: id } => {
                    let after = model.range(at..).next().map_or(Offset::MAX, |(&offset, _)| offset);
                    if after == at {
                        continue;
                    }
                    let last = (at + length - 1).min(after - 1);
                    map.insert(opening(at, last, Cell::free(state(id), 0)));
                    model.extend((at..=last).map(|offset| (offset, (state(id), offset == at))));
                }
                Step::Rewrite { at, length, state: id, only, at_most } => {
                    rewrite(&mut map, &mut model, OffsetRange::new(at, at + length - 1), state(id), only, at_most);
                }
                Step::Remove { at } => {
                    // As in the engine: a batch is removed once all of it may go
                    let found = map.seek(at);
                    if map.get(found).is_none() {
                        continue;
                    }
                    let batch = map.batch(found);
                    let mut at = map.seek(batch.first);
                    while map
                        .get(at)
                        .is_some_and(|run| run.last <= batch.last)
                    {
                        at = map.remove_at(at);
                    }
                    model.retain(|&offset, _| offset < batch.first || batch.last < offset);
                    let next = model
                        .range(batch.first..)
                        .next()
                        .map(|(&offset, _)| offset);
                    prop_assert_eq!(map.get(at).map(|run| run.first), next);
                }
                Step::Seek { at } => {
                    let expected = model.range(at..).next().map(|(&offset, _)| offset);
                    let found = map.seek(at);
                    prop_assert_eq!(map.get(found).map(|run| run.first.max(at)), expected);
                    let available = model.range(at..).find(|(_, (state, _))| *state == RecordState::Available);
                    let next = map.next_available(found).and_then(|at| map.get(at)).map(|run| run.first.max(at));
                    prop_assert_eq!(next, available.map(|(&offset, _)| offset));
                    let before = model.range(..at).next_back().map(|(&offset, _)| offset);
                    let prev = map.prev(found).and_then(|at| map.get(at)).map(|run| run.last);
                    if map.get(found).is_none_or(|run| run.first >= at) {
                        prop_assert_eq!(prev, before);
                    }
                }
            }
            if index % 50 == 0 {
                compare(&map, &model)?;
            }
        }
        compare(&map, &model)?;
    }
}

#[test]
fn runs_longer_than_a_leaf_can_count_are_cut() {
    let mut map = RunMap::default();
    let last = (1 << 40) - 1;
    map.insert(opening(0, last, Cell::free(RecordState::Archived, 1)));
    assert_eq!(map.check(), Ok(()));
    assert_eq!(
        (map.first_offset(), map.last_offset()),
        (Some(0), Some(last))
    );
    assert_eq!(map.batch(map.seek(1 << 35)), OffsetRange::new(0, last));
    let Ok(()) = map.rewrite(OffsetRange::new(1 << 33, last), |_, _| {
        Ok::<_, Infallible>(Cell::free(RecordState::Available, 1))
    });
    let available = map.first_available().and_then(|at| map.get(at));
    assert_eq!(available.map(|run| run.first), Some(1 << 33));
    assert_eq!(map.check(), Ok(()));
}
