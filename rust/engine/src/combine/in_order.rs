//! Orders state batches so that none overlaps another.

use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::rank;
use crate::offset::Offset;
use crate::partition::StateBatch;

/// Room for the batches of one write.
pub(super) type Room = SmallVec<[StateBatch; 32]>;

/// A batch that has begun: rank, last offset, place in the list. The greatest is the best.
type Begun = (i32, Offset, usize);

/// Returns `batches` itself if it is in order; otherwise the ordered result in `room`, where equal neighbours may stay
/// apart.
///
/// One sweep over the batches by first offset. Of the batches that have begun, the best one holds; when it ends, the
/// best of those beneath holds, unless that has ended too:
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
pub(super) fn in_order<'a>(batches: &'a [StateBatch], room: &'a mut Room) -> &'a [StateBatch] {
    let possible = |batch: &StateBatch| batch.first <= batch.last;
    if batches.is_sorted_by(|a, b| possible(a) && a.last < b.first)
        && batches.last().is_none_or(possible)
    {
        return batches;
    }
    let mut sorted = Room::new();
    if !(batches.iter().all(possible) && rank_few(batches, &mut sorted)) {
        sorted.extend(batches.iter().copied().filter(possible));
        // stable, because a stable sort merges parts that are already in order
        sorted.sort_by_key(|batch| batch.first);
    }
    let mut sweep = Sweep {
        sorted: &sorted,
        at: Offset::MIN,
        holds: None,
        beneath: BinaryHeap::new(),
        room,
    };
    for place in 0..sorted.len() {
        sweep.begin(place);
    }
    sweep.end_before(None);
    room
}

/// Sorts a few batches that are not too far apart by their first offset: each goes to the place that it has by the number
/// of those before it. That is counted for many at once, while a sort would have to guess where each belongs, and often
/// guess wrong.
fn rank_few(batches: &[StateBatch], sorted: &mut Room) -> bool {
    const FEW: usize = 24;
    const NUMBER_BITS: u32 = FEW.next_power_of_two().trailing_zeros();
    let Some(&any) = batches.first().filter(|_| batches.len() <= FEW) else {
        return false;
    };
    // no two are equal, as each holds its batch's number
    let mut keys = [i32::MAX; FEW];
    let mut apart = 0;
    for (number, (key, batch)) in (0..).zip(keys.iter_mut().zip(batches)) {
        let distance = batch.first.wrapping_sub(any.first);
        apart |= distance ^ (distance >> 63);
        *key = (distance as i32) << NUMBER_BITS | number;
    }
    if apart >> (i32::BITS - 1 - NUMBER_BITS) != 0 {
        return false;
    }
    sorted.resize(batches.len(), any);
    for (key, batch) in keys.iter().zip(batches) {
        let rank: i32 = keys.iter().map(|other| i32::from(other < key)).sum();
        sorted[rank as usize] = *batch;
    }
    true
}

struct Sweep<'a> {
    sorted: &'a [StateBatch],
    /// Everything before this has been written.
    at: Offset,
    holds: Option<Begun>,
    beneath: BinaryHeap<Begun>,
    room: &'a mut Room,
}

impl Sweep<'_> {
    fn begin(&mut self, place: usize) {
        let batch = &self.sorted[place];
        self.end_before(Some(batch.first));
        let begun = (rank(batch), batch.last, place);
        let Some(holds) = self.holds else {
            self.holds = Some(begun);
            return;
        };
        let (worse, better) = if begun > holds {
            if batch.first > self.at {
                self.write(holds, batch.first - 1);
            }
            self.holds = Some(begun);
            (holds, begun)
        } else {
            (begun, holds)
        };
        if worse.1 > better.1 {
            self.beneath.push(worse);
        }
    }

    /// Writes what ends before an offset; everything if there is none.
    fn end_before(&mut self, next: Option<Offset>) {
        while let Some(holds) = self.holds
            && next.is_none_or(|next| holds.1 < next)
        {
            self.write(holds, holds.1);
            self.holds = self.beneath.pop();
        }
    }

    /// Writes what is left of a batch up to `last`.
    fn write(&mut self, (_, _, place): Begun, last: Offset) {
        let batch = self.sorted[place];
        let first = self.at.max(batch.first);
        if first <= last {
            self.room.push(StateBatch {
                first,
                last,
                ..batch
            });
            match last.checked_add(1) {
                Some(next) => self.at = next,
                None => self.beneath.clear(),
            }
        }
    }
}
