//! Changing what is known of a range of offsets.
//!
//! A leaf at a time: the runs that the range touches are written anew beside the leaf, equal neighbours joined on the way,
//! and put back in one go. So the price of a run is that of writing 16 bytes, wherever the range splits or joins runs.

use super::leaf::{LEAF_MAX, LEAF_MIN, Leaf, Packed, Writer};
use super::map::{Cursor, RunMap};
use super::run::Cell;
use crate::offset::{Offset, OffsetRange};

/// What one leaf needs, with room; a request that cut a run into many more gives its memory back.
const SCRATCH_MAX: usize = 16 * LEAF_MAX;

impl RunMap {
    /// Gives pieces of the runs in `range` another cell.
    ///
    /// `change` sees each run's part of the range in order; it may shorten the part, and is then asked about the rest next.
    /// Stops at its first error; what was changed before stays changed.
    pub(crate) fn rewrite<E>(
        &mut self,
        range: OffsetRange,
        mut change: impl FnMut(&mut OffsetRange, Cell) -> Result<Option<Cell>, E>,
    ) -> Result<(), E> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut from = range.first;
        let mut answer = Ok(());
        while from <= range.last && answer.is_ok() {
            let at = self.seek(from);
            let Some(leaf) = self.leaf(at) else { break };
            let runs = leaf.packed();
            // the neighbours are written too: the first and the last piece may join them
            let start = at.run.saturating_sub(1);
            let mut writer = Writer::new(leaf, &mut scratch);
            runs[start..at.run].iter().for_each(|&run| writer.push(run));
            let mut end = at.run;
            while let Some(&packed) = runs.get(end)
                && answer.is_ok()
            {
                let run = leaf.range(packed);
                if run.first > range.last {
                    break;
                }
                let cell = packed.cell();
                writer.push_part(
                    packed,
                    OffsetRange::new(run.first, run.last.min(from - 1)),
                    cell,
                );
                from = from.max(run.first);
                while from <= run.last.min(range.last) {
                    let mut piece = OffsetRange::new(from, run.last.min(range.last));
                    match change(&mut piece, cell) {
                        Ok(new) => writer.push_part(packed, piece, new.unwrap_or(cell)),
                        Err(error) => {
                            answer = Err(error);
                            break;
                        }
                    }
                    from = piece.last + 1;
                }
                writer.push_part(packed, OffsetRange::new(from, run.last), cell);
                end += 1;
            }
            let touched = end > at.run;
            let whole = end == runs.len();
            from = if whole {
                from.max(leaf.last() + 1)
            } else {
                Offset::MAX
            };
            if touched {
                runs[end..].iter().take(1).for_each(|&run| writer.push(run));
                end = (end + 1).min(runs.len());
                self.put_back(at, start, end, &scratch);
            }
        }
        if scratch.capacity() > SCRATCH_MAX {
            scratch = Vec::new();
        }
        self.scratch = scratch;
        answer
    }

    fn leaf(&self, at: Cursor) -> Option<&Leaf> {
        let leaf = self.blocks.get(at.block)?.leaves.get(at.leaf)?;
        (at.run < leaf.len()).then_some(leaf)
    }

    /// Puts what was written in the place of the runs from `start` to before `end`.
    fn put_back(&mut self, at: Cursor, start: usize, end: usize, runs: &[Packed]) {
        let leaf = &mut self.blocks[at.block].leaves[at.leaf];
        let whole = end == leaf.len();
        let more = leaf.splice(start, end, runs);
        let alone = leaf.len() <= LEAF_MAX && self.len == end - start + leaf.len() - runs.len();
        self.len = self.len + runs.len() - (end - start);
        if more != 0 || whole {
            self.note(at.block, at.leaf, more);
        }
        if !alone {
            self.reshape(Cursor { run: 0, ..at }, start == 0, whole);
        }
    }

    /// Splits a leaf that has become too large, joins it with a neighbour if it has become small, and joins its outer runs
    /// with those of the neighbours, where these are equal.
    fn reshape(&mut self, at: Cursor, first: bool, last: bool) {
        let len = self.blocks[at.block].leaves[at.leaf].len();
        if (LEAF_MIN..=LEAF_MAX).contains(&len)
            && !(first && self.joins_previous(at))
            && !(last && self.joins_previous(self.settle(Cursor { run: len, ..at })))
        {
            return;
        }
        let begins = self.get(at).map_or(0, |run| run.first);
        let ends = self.blocks[at.block].leaves[at.leaf].last();
        self.split_large(at);
        if last {
            let next = self.next(self.seek(ends));
            self.join_with_previous(next);
        }
        let at = self.seek(begins);
        if first {
            self.join_with_previous(at);
        } else {
            self.tidy(at);
        }
    }

    /// Splits a leaf that has become too large, from its end on: so each run moves once, however many there are.
    fn split_large(&mut self, mut at: Cursor) {
        const PART: usize = LEAF_MAX * 3 / 4;
        let mut len = self.blocks[at.block].leaves[at.leaf].len();
        while len > LEAF_MAX {
            len -= PART.min(len - PART);
            let right = self.split_leaf(at, len);
            at = Cursor {
                leaf: right.leaf - 1,
                ..right
            };
        }
    }

    /// Whether the first run of a leaf may be joined to the last one of the leaf before.
    fn joins_previous(&self, at: Cursor) -> bool {
        self.get(at).is_some_and(|run| {
            let before = self.prev(at).and_then(|previous| self.get(previous));
            before.is_some_and(|before| before.joins(&run))
        })
    }

    /// Joins the first run of a leaf with the last one of the leaf before, if they are equal.
    fn join_with_previous(&mut self, at: Cursor) {
        let Some(run) = self.get(at) else { return };
        if let Some(previous) = self.prev(at)
            && let Some(before) = self.get(previous).filter(|before| before.joins(&run))
            && self.blocks[previous.block].leaves[previous.leaf].spans(before.first, run.last)
        {
            self.blocks[previous.block].leaves[previous.leaf].extend_last(run.last);
            self.note(previous.block, previous.leaf, 0);
            self.remove_at(at);
        } else {
            self.tidy(at);
        }
    }
}
