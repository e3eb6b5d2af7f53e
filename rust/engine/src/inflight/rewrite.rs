//! Changing the cells of a range of offsets.
//!
//! One leaf at a time, in place: a run that neither splits nor merges costs a comparison with its neighbors; otherwise
//! the runs after it in its leaf move.

use super::edit::Edit;
use super::leaf::{LEAF_MAX, LEAF_MIN};
use super::map::{Cursor, RunMap};
use super::run::Cell;
use crate::offset::OffsetRange;

impl RunMap {
    /// Sets the cell of the pieces of runs in `range`.
    ///
    /// `change` gets each run's part of the range, in order, and returns the new cell. It may shorten the part, and
    /// then gets the rest in the next call. Stops at the first error; earlier changes are kept.
    pub(crate) fn rewrite<E>(
        &mut self,
        range: OffsetRange,
        change: impl FnMut(&mut OffsetRange, Cell) -> Result<Cell, E>,
    ) -> Result<(), E> {
        self.rewrite_from(self.seek_near(range.first), range, change)
    }

    /// [`rewrite`](Self::rewrite), given that `at` is the first run of `range`.
    pub(crate) fn rewrite_from<E>(
        &mut self,
        mut at: Cursor,
        mut range: OffsetRange,
        mut change: impl FnMut(&mut OffsetRange, Cell) -> Result<Cell, E>,
    ) -> Result<(), E> {
        debug_assert!(range.is_empty() || at == self.seek(range.first));
        self.near = at;
        while !range.is_empty()
            && let Some(block) = self.blocks.get_mut(at.block)
        {
            let (leaf, available) = block.leaf_mut(at.leaf);
            let before = leaf.len();
            let mut edit = Edit::new(leaf, available, at.run);
            let answer = edit.rewrite(&mut range, &mut change);
            let edited = edit.finish();
            let len = leaf.len();
            debug_assert!(self.len + len >= before, "a map of fewer than no runs");
            self.len = self.len + len - before;
            let leaves = block.set_available(at.leaf, edited.available);
            self.available[at.block] = self.available[at.block].wrapping_add_signed(leaves);
            let alone = len == self.len;
            if len > LEAF_MAX || !alone && (at.run == 0 || edited.reached_end || len < LEAF_MIN) {
                self.reshape(at, edited.reached_end);
            }
            if answer.is_err() || !edited.reached_end {
                return answer;
            }
            if !range.is_empty() {
                at = self.seek(range.first);
            }
        }
        Ok(())
    }

    /// Splits an oversized leaf, merges a small one with a neighbor, and merges its outer runs with equal neighbors.
    /// The runs from `at` have changed, up to the leaf's end if `to_end`.
    fn reshape(&mut self, at: Cursor, to_end: bool) {
        let len = self.blocks[at.block].leaves[at.leaf].len();
        let from_start = at.run == 0;
        let at = Cursor { run: 0, ..at };
        if (LEAF_MIN..=LEAF_MAX).contains(&len)
            && !(from_start && self.joins_previous(at))
            && !(to_end && self.joins_previous(self.settle(Cursor { run: len, ..at })))
        {
            return;
        }
        let begins = self.get(at).map_or(0, |run| run.first);
        let ends = self.blocks[at.block].leaves[at.leaf].last();
        self.split_large(at);
        if to_end {
            let next = self.next(self.seek(ends));
            self.join_with_previous(next);
        }
        let at = self.seek(begins);
        if from_start {
            self.join_with_previous(at);
        } else {
            self.tidy(at);
        }
    }

    /// Splits an oversized leaf, starting from its end so that each run moves only once.
    fn split_large(&mut self, mut at: Cursor) {
        const PART: usize = LEAF_MAX * 3 / 4;
        const { assert!(LEAF_MIN <= PART && PART < LEAF_MAX) };
        let mut len = self.blocks[at.block].leaves[at.leaf].len();
        while len > LEAF_MAX {
            len -= PART.min(len - PART);
            let right = self.split_leaf(at, len);
            at = Cursor {
                leaf: right.leaf - 1,
                ..right
            };
        }
        debug_assert!(self.blocks[at.block].leaves[at.leaf].len() <= LEAF_MAX);
    }

    /// Whether the first run of a leaf can be merged with the last one of the previous leaf.
    fn joins_previous(&self, at: Cursor) -> bool {
        self.get(at).is_some_and(|run| {
            let before = self.prev(at).and_then(|previous| self.get(previous));
            before.is_some_and(|before| before.joins(&run))
        })
    }

    /// Merges the first run of a leaf with the last one of the previous leaf, if they are equal.
    fn join_with_previous(&mut self, at: Cursor) {
        let Some(run) = self.get(at) else { return };
        if let Some(previous) = self.prev(at)
            && self.get(previous).is_some_and(|before| before.joins(&run))
        {
            self.blocks[previous.block].extend_last(previous.leaf, run.last);
            self.note(previous.block, 0);
            self.remove_at(at);
        } else {
            self.tidy(at);
        }
    }
}
