//! Sorts state batches and removes overlaps.

use std::collections::BinaryHeap;
use std::hint::select_unpredictable;

use super::{ascends, piece, rank, slots};
use crate::offset::Offset;
use crate::partition::StateBatch;
use crate::record_state::RecordState;

/// A batch that has begun: delivery count, state, last offset. The greatest wins.
type Begun = (u16, RecordState, Offset);

/// Sorts a list and removes its overlaps.
///
/// One sweep over the batches by first offset. Among the batches that have begun, the greatest wins; when it ends, the
/// greatest of the others that has not ended takes over:
///
/// ```text
/// offset      0    5    10   15   20   25   30
/// batches     [----------- 0,1 ------------]
///                  [-- 2,1 -]
///                                 [0,2]
/// holds       0,1  2,1       0,1  0,2  0,1
/// beneath          0,1            0,1
/// in order    [0,1][-- 2,1 -][0,1][0,2][0,1]
/// ```
///
/// The batches beneath form a heap, so no input costs more than sorting it.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    pieces: Vec<StateBatch>,
    beneath: BinaryHeap<Begun>,
}

impl Sorter {
    /// Returns `batches` itself if it is in order; otherwise the ordered result, where equal neighbors may stay
    /// separate.
    pub(super) fn in_order<'a>(&'a mut self, batches: &'a [StateBatch]) -> &'a [StateBatch] {
        let possible = |batch: &StateBatch| batch.first <= batch.last;
        if batches.is_sorted_by(|a, b| possible(a) && a.last < b.first)
            && batches.last().is_none_or(possible)
        {
            debug_assert!(ascends(batches), "an ordered list is returned unchanged");
            return batches;
        }
        let ordered = if let Some(order) = rank_few(batches) {
            let places = order[..batches.len()].iter();
            self.sweep(
                places.map(|place| &batches[usize::from(*place)]),
                batches.len(),
            )
        } else {
            let mut sorted: Vec<_> = batches.iter().filter(|batch| possible(batch)).collect();
            // stable, because a stable sort merges parts that are already in order
            sorted.sort_by_key(|batch| batch.first);
            self.sweep(sorted.into_iter(), batches.len())
        };
        debug_assert!(ascends(ordered), "batches are not in order: {ordered:?}");
        ordered
    }

    /// Cuts at most `count` batches, sorted by first offset, so that none overlaps another.
    ///
    /// Which of two batches wins is unpredictable, so both cases are computed; whether another batch lies beneath is
    /// predictable enough for a branch.
    fn sweep<'b>(
        &mut self,
        mut sorted: impl Iterator<Item = &'b StateBatch>,
        count: usize,
    ) -> &[StateBatch] {
        let slots = slots(&mut self.pieces, count);
        let beneath = &mut self.beneath;
        beneath.clear();
        let Some(first) = sorted.next() else {
            return &[];
        };
        let mut place = 0_usize;
        // the part of the winning batch not written yet
        let mut holds = *first;
        'begins: for batch in sorted {
            debug_assert!(holds.first <= batch.first, "they begin in order");
            while !beneath.is_empty() && holds.last < batch.first {
                slots[place] = holds;
                place += 1;
                let Some(best) = best_behind(holds.last, beneath) else {
                    holds = *batch;
                    continue 'begins;
                };
                holds = best;
            }
            let better = (holds.last < batch.first) | (rank(batch) > rank(&holds));
            slots[place] = piece(
                holds,
                holds.first,
                holds.last.min(batch.first.wrapping_sub(1)),
            );
            place = place.wrapping_add(usize::from(better && holds.first < batch.first));
            let ends_later = select_unpredictable(better, holds, *batch);
            holds = select_unpredictable(better, *batch, holds);
            if ends_later.last > holds.last {
                beneath.push(begun(&ends_later));
            }
        }
        loop {
            slots[place] = holds;
            place += 1;
            let Some(best) = best_behind(holds.last, beneath) else {
                return &slots[..place];
            };
            holds = best;
        }
    }
}

/// The most batches sorted by counting.
const FEW: usize = 24;

const _: () = assert!(FEW <= u8::MAX as usize, "a place is one byte");

/// Sorts a few batches that are close together by first offset: a batch's position is the number of batches before it.
/// Counting handles all batches at once; a comparison sort would mispredict many branches.
fn rank_few(batches: &[StateBatch]) -> Option<[u8; FEW]> {
    const NUMBER_BITS: u32 = FEW.next_power_of_two().trailing_zeros();
    let any = batches.first().filter(|_| batches.len() <= FEW)?;
    // keys are distinct, as each includes its batch's index; unused ones are larger, and no difference overflows
    let mut keys = [1 << 30; FEW];
    let (mut apart, mut impossible) = (0, false);
    for (number, (key, batch)) in (0..).zip(keys.iter_mut().zip(batches)) {
        let distance = batch.first.wrapping_sub(any.first);
        apart |= distance ^ (distance >> 63);
        impossible |= batch.first > batch.last;
        *key = (distance as i32) << NUMBER_BITS | number;
    }
    if impossible || apart >> (i32::BITS - 2 - NUMBER_BITS) != 0 {
        return None;
    }
    let mut order = [0; FEW];
    for (number, key) in (0..).zip(&keys[..batches.len()]) {
        // the compiler would turn a sum of comparisons into a mask and count its bits, which is slow without a popcount
        // instruction
        let before = |sum: i32, other: &i32| sum.wrapping_sub(other.wrapping_sub(*key) >> 31);
        order[keys.iter().fold(0, before) as usize] = number;
    }
    debug_assert!(
        order[..batches.len()]
            .is_sorted_by_key(|place| (batches[usize::from(*place)].first, *place)),
        "a batch is not in its place"
    );
    Some(order)
}

fn begun(batch: &StateBatch) -> Begun {
    (batch.delivery_count, batch.state, batch.last)
}

/// The winner after `offset`, among the batches beneath that do not end there.
fn best_behind(offset: Offset, beneath: &mut BinaryHeap<Begun>) -> Option<StateBatch> {
    while let Some((delivery_count, state, last)) = beneath.pop() {
        if last > offset {
            return Some(StateBatch {
                first: offset + 1,
                last,
                state,
                delivery_count,
            });
        }
    }
    None
}
