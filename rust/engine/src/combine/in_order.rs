//! Puts a list of state batches in order, such that none overlaps another.

use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::rank;
use crate::offset::Offset;
use crate::partition::StateBatch;

/// Room for the batches of one write.
pub(super) type Room = SmallVec<[StateBatch; 32]>;

/// The batches that have begun, best on top; some may have ended. Rank, last offset, place in the list.
type Begun = BinaryHeap<(u32, Offset, usize)>;

/// `batches` themselves, if they are in order; or what they come to, in `room`, where equal neighbours may stay apart.
///
/// One sweep over the batches by their first offset. Before one begins, those that began earlier are written up to there, the
/// best first; one that has ended is forgotten when it comes to the top:
///
/// ```text
/// offset      0    5    10   15   20   25   30
/// batches     [------ 0,1 -------]
///                  [---- 2,1 ----]
///                       [------- 0,2 ------]
/// top         0,1  2,1  0,2
/// beneath          0,1  2,1
///                       0,1
/// in order    [0,1][2,1][------- 0,2 ------]
/// ```
///
/// What has begun is a heap: no order of batches, however unlucky, costs more than sorting them.
pub(super) fn in_order<'a>(batches: &'a [StateBatch], room: &'a mut Room) -> &'a [StateBatch] {
    let possible = |batch: &StateBatch| batch.first <= batch.last;
    if batches.is_sorted_by(|a, b| possible(a) && a.last < b.first)
        && batches.last().is_none_or(possible)
    {
        return batches;
    }
    let mut sorted = Room::from_slice(batches);
    sorted.retain(|batch| possible(batch));
    // stable, because that merges parts that are in order each
    sorted.sort_by_key(|batch| batch.first);
    let mut begun = Begun::with_capacity(sorted.len());
    let mut at = Offset::MIN;
    for (place, batch) in sorted.iter().enumerate() {
        if batch.first > at {
            write(&sorted, &mut begun, at, batch.first - 1, room);
            at = batch.first;
        }
        begun.push((rank(batch), batch.last, place));
    }
    write(&sorted, &mut begun, at, Offset::MAX, room);
    room
}

/// Writes what holds at each offset of `at..=last`.
fn write(sorted: &[StateBatch], begun: &mut Begun, mut at: Offset, last: Offset, room: &mut Room) {
    while at <= last {
        let Some(&(_, end, place)) = begun.peek() else {
            return;
        };
        if end >= at {
            room.push(StateBatch {
                first: at,
                last: end.min(last),
                ..sorted[place]
            });
        }
        if end >= last {
            return;
        }
        begun.pop();
        at = at.max(end + 1);
    }
}
