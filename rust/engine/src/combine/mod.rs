//! Merges new state batches with persisted ones, as the share coordinator does for a snapshot.
//!
//! Where batches overlap, the highest delivery count wins, then the highest state. One sweep over both lists: each step
//! goes to the nearest offset where a batch begins or ends, and merges the batches up to there with the piece written
//! before:
//!
//! ```text
//! offset      0    5    10   15   20   25   30
//! existing    [--- 0,1 ----]    [-- 2,1 --]
//! new              [- 0,2 -----------]   [4,1]
//! steps       [0,1]|- 0,2 -|----|0,2-|2,1|4,1]
//! combined    [0,1][---- 0,2 --------][2,1][4,1]
//! ```
//!
//! The sweep needs lists that are in order and free of overlaps, as the engine and the coordinator write them. Any
//! other list is sorted first: [`in_order`].
//!
//! Which list has the next boundary, and which batch wins, cannot be predicted. So a step has no branches: it computes
//! both cases and selects one. A mispredicted branch would cost as much as two steps.

mod in_order;

use std::hint::select_unpredictable;
use std::slice;

use self::in_order::Sorter;
use crate::offset::Offset;
use crate::partition::StateBatch;
use crate::record_state::RecordState;

/// Merges lists of state batches. Its buffers are reused: calls after the first do not allocate.
#[derive(Debug, Default)]
pub struct Combiner {
    existing: Sorter,
    new: Sorter,
    pieces: Vec<StateBatch>,
}

impl Combiner {
    /// Merges `new` with `existing` and drops everything before `start_offset`.
    ///
    /// The result is in ascending order, without overlaps, with equal neighbors merged. Inputs may be unordered and
    /// overlap. The time is linear in the length of the lists once they are sorted.
    pub fn combine(
        &mut self,
        existing: &[StateBatch],
        new: &[StateBatch],
        start_offset: Option<Offset>,
    ) -> &[StateBatch] {
        let left = self.existing.in_order(existing);
        let right = self.new.in_order(new);
        let floor = start_offset.unwrap_or(Offset::MIN);
        debug_assert!(ascends(left), "the existing batches are not in order");
        debug_assert!(ascends(right), "the new batches are not in order");
        let (left, right) = (behind(floor, left), behind(floor, right));
        let slots = slots(&mut self.pieces, left.len() + right.len());
        let combined = sweep(left, right, floor, slots);
        debug_assert!(ascends(combined), "combined batches overlap: {combined:?}");
        debug_assert!(
            combined.first().is_none_or(|batch| floor <= batch.first),
            "a batch before the start offset"
        );
        debug_assert!(
            combined.len() <= 2 * (left.len() + right.len()),
            "more batches than there are edges"
        );
        combined
    }
}

/// Whether the batches are non-empty, in order and without overlaps.
fn ascends(batches: &[StateBatch]) -> bool {
    batches.iter().all(|batch| batch.first <= batch.last)
        && batches.is_sorted_by(|a, b| a.last < b.first)
}

/// Higher wins: the delivery count, then the state.
fn rank(batch: &StateBatch) -> i32 {
    i32::from(batch.delivery_count) << 3 | i32::from(batch.state.id())
}

/// The rank of offsets that no batch holds: lower than any other.
const NO_RANK: i32 = -1;

/// The batches that end at or after the floor.
fn behind(floor: Offset, batches: &[StateBatch]) -> &[StateBatch] {
    match batches.first() {
        Some(batch) if batch.last < floor => {
            &batches[batches.partition_point(|batch| batch.last < floor)..]
        }
        _ => batches,
    }
}

/// Merges two ordered lists from `at` on.
fn sweep<'a>(
    left: &[StateBatch],
    right: &[StateBatch],
    mut at: Offset,
    slots: &'a mut [StateBatch],
) -> &'a [StateBatch] {
    let (mut a, mut b) = (left.iter(), right.iter());
    // the piece that is being written
    let (mut place, mut first, mut rank_now) = (0_usize, at, NO_RANK);
    while let (Some(x), Some(y)) = (a.as_slice().first(), b.as_slice().first()) {
        let (x_holds, y_holds) = (x.first <= at, y.first <= at);
        // if the batch has not begun, the step ends before its first offset
        let x_until = select_unpredictable(x_holds, x.last, x.first.wrapping_sub(1));
        let y_until = select_unpredictable(y_holds, y.last, y.first.wrapping_sub(1));
        let x_rank = select_unpredictable(x_holds, rank(x), NO_RANK);
        let y_rank = select_unpredictable(y_holds, rank(y), NO_RANK);
        let best = x_rank.max(y_rank);
        let winner = *select_unpredictable(x_rank >= y_rank, x, y);
        let to = x_until.min(y_until);
        a = passed(a, x_holds, x_until <= y_until);
        b = passed(b, y_holds, y_until <= x_until);
        // a piece that no batch holds is overwritten
        place = place.wrapping_add(usize::from(best != rank_now && rank_now != NO_RANK));
        first = select_unpredictable(best != rank_now, at, first);
        rank_now = best;
        at = to.wrapping_add(1);
        slots[place] = piece(winner, first, to);
    }
    debug_assert!(
        a.as_slice().is_empty() || b.as_slice().is_empty(),
        "both lists go on"
    );
    for batch in if a.as_slice().is_empty() { b } else { a } {
        let (differs, apart) = (rank(batch) != rank_now, batch.first > at);
        let new = differs | apart;
        place = place.wrapping_add(usize::from(new && rank_now != NO_RANK));
        first = select_unpredictable(new, batch.first.max(at), first);
        rank_now = rank(batch);
        at = batch.last.wrapping_add(1);
        slots[place] = piece(*batch, first, batch.last);
    }
    &slots[..place.wrapping_add(usize::from(rank_now != NO_RANK))]
}

/// Reserves room for the result of `batches` batches: a piece begins only where a batch begins or ends.
fn slots(room: &mut Vec<StateBatch>, batches: usize) -> &mut [StateBatch] {
    const BLANK: StateBatch = StateBatch {
        first: 0,
        last: 0,
        state: RecordState::Available,
        delivery_count: 0,
    };
    let most = 2 * batches + 1;
    if room.len() < most {
        room.resize(most, BLANK);
    }
    debug_assert!(
        room.len() > batches,
        "room for one piece more than there are"
    );
    room
}

/// Moves to the next batch if this one holds and ends first.
#[inline]
fn passed(
    batches: slice::Iter<'_, StateBatch>,
    holds: bool,
    ends: bool,
) -> slice::Iter<'_, StateBatch> {
    let mut next = batches.clone();
    next.next();
    let next = select_unpredictable(holds, next, batches.clone());
    select_unpredictable(ends, next, batches)
}

#[inline]
fn piece(mut batch: StateBatch, first: Offset, last: Offset) -> StateBatch {
    batch.first = first;
    batch.last = last;
    batch
}
