//! Joins new state batches with those persisted before, as the share coordinator does for a snapshot.
//!
//! Where batches overlap, the highest delivery count wins, then the highest state. One sweep over both lists; each step
//! goes to the nearest offset where a batch begins or ends, and joins what held up to there with what was written
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
//! This needs lists that are in order and do not overlap themselves, as the engine and the coordinator write them. Any
//! other list is put in order first: [`in_order`].
//!
//! Which list has the next boundary, and which batch wins, cannot be predicted. So a step has no branches: it computes
//! both cases and selects one. A mispredicted branch would cost as much as two steps.

mod in_order;

use std::hint::select_unpredictable;

use self::in_order::{Room, in_order};
use crate::offset::Offset;
use crate::partition::StateBatch;

/// Joins `new` with `existing` and drops what lies before `start_offset`; `out` is overwritten.
///
/// The result ascends without overlaps, with equal neighbours joined. Inputs may be in any order and may overlap. The
/// time is linear in the length of the lists once they are sorted.
pub fn combine(
    existing: &[StateBatch],
    new: &[StateBatch],
    start_offset: Option<Offset>,
    out: &mut Vec<StateBatch>,
) {
    let (mut left_room, mut right_room) = (Room::new(), Room::new());
    let left = in_order(existing, &mut left_room);
    let right = in_order(new, &mut right_room);
    out.clear();
    // no piece begins where no batch begins or ends
    out.reserve(2 * (left.len() + right.len()));
    let floor = start_offset.unwrap_or(Offset::MIN);
    let mut sweep = Sweep {
        at: floor,
        first: floor,
        rank: NO_RANK,
        out,
    };
    sweep.both(behind(floor, left), behind(floor, right));
}

/// Higher wins: the delivery count, then the state.
fn rank(batch: &StateBatch) -> u32 {
    u32::from(batch.delivery_count) << 8 | u32::from(batch.state.id())
}

/// A rank that no batch has.
const NO_RANK: u32 = u32::MAX;

/// The batches that do not end before the floor.
fn behind(floor: Offset, batches: &[StateBatch]) -> &[StateBatch] {
    match batches.first() {
        Some(batch) if batch.last < floor => {
            &batches[batches.partition_point(|batch| batch.last < floor)..]
        }
        _ => batches,
    }
}

/// Where a sweep stands in a list. The offsets of the batch after this one are read ahead: a step that has to wait for
/// memory makes all steps after it wait.
struct Head<'a> {
    batches: &'a [StateBatch],
    at: usize,
    first: Offset,
    last: Offset,
    next: (Offset, Offset),
}

impl<'a> Head<'a> {
    fn of(batches: &'a [StateBatch]) -> Self {
        let offsets = |at: usize| batches.get(at).map_or((0, 0), |b| (b.first, b.last));
        let (first, last) = offsets(0);
        Self {
            batches,
            at: 0,
            first,
            last,
            next: offsets(1),
        }
    }

    fn batch(&self) -> Option<&'a StateBatch> {
        self.batches.get(self.at)
    }

    /// Goes on to the next batch if this one ends by `to`.
    #[inline]
    fn pass(&mut self, to: Offset) {
        let done = self.last <= to;
        self.first = select_unpredictable(done, self.next.0, self.first);
        self.last = select_unpredictable(done, self.next.1, self.last);
        self.at += usize::from(done);
        // behind the last one anything will do
        let next = self.batches[(self.at + 1).min(self.batches.len() - 1)];
        self.next = (next.first, next.last);
    }

    fn rest(&self) -> &'a [StateBatch] {
        self.batches.get(self.at..).unwrap_or_default()
    }
}

struct Sweep<'a> {
    /// Everything before this has been written or is not wanted.
    at: Offset,
    /// First offset and rank of the piece written last: the next piece may continue it.
    first: Offset,
    rank: u32,
    out: &'a mut Vec<StateBatch>,
}

impl Sweep<'_> {
    fn both(&mut self, left: &[StateBatch], right: &[StateBatch]) {
        let (mut a, mut b) = (Head::of(left), Head::of(right));
        while let (Some(left), Some(right)) = (a.batch(), b.batch()) {
            let from = self.at.max(a.first.min(b.first));
            let (a_holds, b_holds) = (a.first <= from, b.first <= from);
            // where the batch does not hold yet, the step ends before it begins
            let a_until = select_unpredictable(a_holds, a.last, a.first.wrapping_sub(1));
            let b_until = select_unpredictable(b_holds, b.last, b.first.wrapping_sub(1));
            let to = a_until.min(b_until);
            let a_wins = a_holds & (!b_holds | (rank(left) >= rank(right)));
            self.write(from, to, select_unpredictable(a_wins, left, right));
            a.pass(to);
            b.pass(to);
        }
        let (left, right) = (a.rest(), b.rest());
        for batch in if left.is_empty() { right } else { left } {
            self.write(self.at.max(batch.first), batch.last, batch);
        }
    }

    /// Writes a piece of a batch, or lengthens the piece before.
    #[inline]
    fn write(&mut self, from: Offset, to: Offset, batch: &StateBatch) {
        let rank = rank(batch);
        let new = self.rank != rank || self.at != from;
        self.first = select_unpredictable(new, from, self.first);
        // the piece before is written anew when it becomes longer
        self.out.truncate(self.out.len() - usize::from(!new));
        self.out.push(StateBatch {
            first: self.first,
            last: to,
            ..*batch
        });
        self.rank = rank;
        self.at = to.wrapping_add(1);
    }
}
