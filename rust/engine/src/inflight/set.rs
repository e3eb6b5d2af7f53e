//! Setting a part of a run to a unique cell: nothing can be merged, so neighbors need no check.

use std::convert::Infallible;

use super::leaf::{LEAF_MAX, Leaf};
use super::map::{Cursor, RunMap};
use super::mask::Mask;
use super::run::{Cell, Run};
use crate::offset::{OffsetRange, after, before};

impl RunMap {
    /// Sets `piece`, all or part of the run at `at`, to a cell that no other run has, such as that of a new lease.
    pub(crate) fn set_apart(&mut self, at: Cursor, piece: OffsetRange, cell: Cell) {
        let block = &mut self.blocks[at.block];
        let (leaf, available) = block.leaf_mut(at.leaf);
        let (run, len) = (leaf.runs[at.run], leaf.len());
        // the map's own tests write arbitrary cells
        debug_assert!(
            cfg!(test) || run.cell().may_become(cell),
            "{run:?} cannot become {cell:?}"
        );
        debug_assert!(
            run.first <= piece.first && piece.last <= run.last && !piece.is_empty(),
            "{piece:?} is not part of {run:?}"
        );
        let new = run.part(piece, cell);
        let available = if piece == run.range() {
            leaf.runs[at.run] = new;
            available.with(at.run, cell.is_available())
        } else if len + 2 <= LEAF_MAX {
            leaf.cut(at.run, new, available)
        } else {
            let Ok(()) = self.rewrite_from(at, piece, |_, _| Ok::<_, Infallible>(cell));
            return;
        };
        self.len = self.len + leaf.len() - len;
        let leaves = block.set_available(at.leaf, available);
        self.available[at.block] = self.available[at.block].wrapping_add_signed(leaves);
    }
}

impl Leaf {
    /// Replaces the run at `at` with a part of it and the remainders on both sides. Returns which runs can be acquired
    /// then.
    ///
    /// Whether there are remainders is unpredictable, so all three parts are written unconditionally, and empty ones
    /// are overwritten.
    fn cut(&mut self, at: usize, new: Run, available: Mask) -> Mask {
        let run = self.runs[at];
        let (head, tail) = (run.first < new.first, new.last < run.last);
        let more = usize::from(head) + usize::from(tail);
        self.open(at, more);
        let runs = &mut self.runs[at..=at + more];
        let left = OffsetRange::new(run.first, before(new.first));
        runs[0] = run.part(left, run.cell());
        let right = OffsetRange::new(after(new.last), run.last);
        runs[more] = run.part(right, run.cell());
        runs[usize::from(head)] = new;
        debug_assert!(
            runs[0].first == run.first && runs[more].last == run.last,
            "offsets were lost"
        );
        debug_assert!(
            runs.is_sorted_by(|a, b| after(a.last) == b.first),
            "the parts follow each other"
        );
        available.cut(at, head, tail, new.cell().is_available())
    }
}
