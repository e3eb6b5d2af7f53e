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
//! deep as batches overlap: two for a log of changes joined with new ones. So its top is kept apart from the rest, where
//! most batches find all they are compared with.

use smallvec::SmallVec;

use crate::offset::Offset;
use crate::partition::StateBatch;
use crate::record_state::RecordState;

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
    out.reserve(existing.len() + new.len());
    let (mut sorted_existing, mut sorted_new) = (Scratch::new(), Scratch::new());
    let left = in_order(existing, &mut sorted_existing);
    let right = in_order(new, &mut sorted_new);
    let mut sweep = Sweep {
        floor: start_offset.unwrap_or(Offset::MIN),
        top: Tail::NONE,
        rest: SmallVec::new(),
        out,
    };
    let (mut l, mut r) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(l), right.get(r)) {
        // which list comes next is anybody's guess: counted on instead of branched on
        let from_right = b.first < a.first;
        r += usize::from(from_right);
        l += usize::from(!from_right);
        sweep.add(if from_right { b } else { a });
    }
    left[l..].iter().for_each(|batch| sweep.add(batch));
    right[r..].iter().for_each(|batch| sweep.add(batch));
    sweep.finish();
}

/// Room for the batches of one write.
type Scratch = SmallVec<[StateBatch; 32]>;

fn in_order<'a>(batches: &'a [StateBatch], scratch: &'a mut Scratch) -> &'a [StateBatch] {
    if batches.is_sorted_by_key(|batch| batch.first) {
        return batches;
    }
    scratch.extend_from_slice(batches);
    scratch.sort_unstable_by_key(|batch| batch.first);
    scratch
}

/// What is left of a batch whose beginning has been seen.
#[derive(Clone, Copy)]
struct Tail {
    last: Offset,
    state: RecordState,
    delivery_count: u16,
}

impl Tail {
    /// Ends before everything.
    const NONE: Self = Self {
        last: Offset::MIN,
        state: RecordState::Available,
        delivery_count: 0,
    };

    /// Higher wins: the delivery count, then the state.
    fn rank(self) -> u32 {
        u32::from(self.delivery_count) << 8 | u32::from(self.state.id())
    }
}

struct Sweep<'a> {
    /// All before has been written or is not wanted.
    floor: Offset,
    /// What wins at the floor.
    top: Tail,
    /// What ends behind it: better and ending earlier towards the end.
    rest: SmallVec<[Tail; 8]>,
    out: &'a mut Vec<StateBatch>,
}

impl Sweep<'_> {
    #[inline]
    fn add(&mut self, batch: &StateBatch) {
        let &StateBatch {
            first,
            last,
            state,
            delivery_count,
        } = batch;
        if last < self.floor || last < first {
            return;
        }
        let tail = Tail {
            last,
            state,
            delivery_count,
        };
        while self.top.last < first {
            if self.top.last == Offset::MIN {
                self.floor = self.floor.max(first);
                self.top = tail;
                return;
            }
            self.write_top(self.top.last);
            self.top = self.rest.pop().unwrap_or(Tail::NONE);
        }
        if self.top.rank() >= tail.rank() {
            if last > self.top.last {
                self.put_beneath(tail);
            }
            return;
        }
        if first > self.floor {
            self.write_top(first - 1);
        }
        while self.rest.last().is_some_and(|worse| worse.last <= last) {
            self.rest.pop();
        }
        if self.top.last > last {
            self.rest.push(self.top);
        }
        self.top = tail;
    }

    /// Puts what ends behind the top, and is no better, where it belongs.
    fn put_beneath(&mut self, tail: Tail) {
        let better = self.rest.iter().rev();
        let better = better
            .take_while(|other| other.rank() > tail.rank())
            .count();
        let at = self.rest.len() - better;
        if self.rest.get(at).is_some_and(|next| next.last >= tail.last) {
            return;
        }
        let outlived = self.rest[..at].iter().rev();
        let outlived = outlived.take_while(|other| other.last <= tail.last).count();
        self.rest.drain(at - outlived..at);
        self.rest.insert(at - outlived, tail);
    }

    /// Writes the top from the floor up to `last`.
    #[inline]
    fn write_top(&mut self, last: Offset) {
        let Tail {
            state,
            delivery_count,
            ..
        } = self.top;
        match self.out.last_mut() {
            Some(before)
                if before.last + 1 == self.floor
                    && before.state == state
                    && before.delivery_count == delivery_count =>
            {
                before.last = last;
            }
            _ => self.out.push(StateBatch {
                first: self.floor,
                last,
                state,
                delivery_count,
            }),
        }
        self.floor = last.saturating_add(1);
    }

    fn finish(&mut self) {
        while self.top.last > Offset::MIN {
            self.write_top(self.top.last);
            self.top = self.rest.pop().unwrap_or(Tail::NONE);
        }
    }
}
