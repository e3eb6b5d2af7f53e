//! Joins new state batches with those persisted before, as the share coordinator does for a snapshot.
//!
//! Where batches overlap, the highest delivery count wins, then the highest state. One sweep over the batches in order of
//! their first offset; the stack holds what reaches over the sweep line and still matters, best on top:
//!
//! ```text
//! offset      0    5    10   15   20   25   30
//! existing    [--- 0,1 ----]    [-- 2,1 --]
//! new              [- 0,2 -----------]   [4,1]
//! stack top   0,1  |    0,2          |2,1||4,1
//! combined    [0,1][---- 0,2 --------][2,1][4,1]
//! ```
//!
//! A batch beneath is dropped once a better one ends no earlier, so each is pushed and popped at most once. The stack is as
//! deep as batches overlap: two for a log of changes joined with new ones.

use crate::offset::Offset;
use crate::partition::StateBatch;

/// Joins `new` with `existing` and drops what lies before `start_offset`; `out` is overwritten.
///
/// The result ascends, does not overlap, and equal neighbours are joined. Inputs may be in any order and may overlap.
pub fn combine(
    existing: &[StateBatch],
    new: &[StateBatch],
    start_offset: Option<Offset>,
    out: &mut Vec<StateBatch>,
) {
    out.clear();
    let (mut sorted_existing, mut sorted_new) = (Vec::new(), Vec::new());
    let mut left = in_order(existing, &mut sorted_existing).iter().peekable();
    let mut right = in_order(new, &mut sorted_new).iter().peekable();
    let mut sweep = Sweep {
        floor: start_offset.unwrap_or(Offset::MIN),
        stack: Vec::new(),
        out,
    };
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if b.first < a.first => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        let Some(&batch) = next else { break };
        sweep.add(batch);
    }
    sweep.finish();
}

fn in_order<'a>(batches: &'a [StateBatch], scratch: &'a mut Vec<StateBatch>) -> &'a [StateBatch] {
    if batches.is_sorted_by_key(|batch| batch.first) {
        return batches;
    }
    scratch.extend_from_slice(batches);
    scratch.sort_unstable_by_key(|batch| batch.first);
    scratch
}

struct Sweep<'a> {
    /// All before has been written or is not wanted.
    floor: Offset,
    /// What reaches over the sweep line: better and ending earlier towards the top.
    stack: Vec<StateBatch>,
    out: &'a mut Vec<StateBatch>,
}

impl Sweep<'_> {
    fn add(&mut self, batch: StateBatch) {
        if batch.last < self.floor || batch.last < batch.first {
            return;
        }
        self.write_to(batch.first.saturating_sub(1));
        self.floor = self.floor.max(batch.first);
        let at = self
            .stack
            .partition_point(|other| rank(other) <= rank(&batch));
        if self
            .stack
            .get(at)
            .is_some_and(|better| batch.last <= better.last)
        {
            return;
        }
        let outlasting = self.stack[..at]
            .iter()
            .rposition(|worse| worse.last > batch.last)
            .map_or(0, |index| index + 1);
        self.stack.splice(outlasting..at, [batch]);
    }

    /// Writes what wins up to `last`.
    fn write_to(&mut self, last: Offset) {
        while let Some(&top) = self.stack.last() {
            let piece_last = top.last.min(last);
            if self.floor <= piece_last {
                self.write(StateBatch {
                    first: self.floor,
                    last: piece_last,
                    ..top
                });
                self.floor = piece_last.saturating_add(1);
            }
            if top.last > last {
                return;
            }
            self.stack.pop();
        }
    }

    fn write(&mut self, batch: StateBatch) {
        match self.out.last_mut() {
            Some(before) if before.last + 1 == batch.first && rank(before) == rank(&batch) => {
                before.last = batch.last;
            }
            _ => self.out.push(batch),
        }
    }

    fn finish(&mut self) {
        self.write_to(Offset::MAX);
    }
}

fn rank(batch: &StateBatch) -> (u16, u8) {
    (batch.delivery_count, batch.state.id())
}
