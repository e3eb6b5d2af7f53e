//! How the map keeps its shape: leaves and blocks split and merge as runs come and go.

use super::block::BLOCK_MAX;
use super::leaf::Leaf;
use super::map::{Cursor, RunMap};
use super::run::Run;

impl RunMap {
    /// Adds a run at offsets that no run covers. It is never merged: new runs open batches, or differ from the previous
    /// run.
    pub(crate) fn insert(&mut self, run: Run) {
        debug_assert!(!run.range().is_empty(), "an empty run");
        if self.last_offset().is_none_or(|last| last < run.first) {
            return self.insert_at(self.end(), run);
        }
        let at = self.seek(run.first);
        debug_assert!(self.get(at).is_none_or(|next| run.last < next.first));
        let before = self.prev(at).map_or(Cursor::START, |prev| Cursor {
            run: prev.run + 1,
            ..prev
        });
        self.insert_at(before, run);
    }

    /// The place after the last run, in its leaf.
    fn end(&self) -> Cursor {
        let block = self.blocks.len() - 1;
        let leaf = self.blocks[block].leaves.len() - 1;
        let run = self.blocks[block].leaves[leaf].len();
        Cursor { block, leaf, run }
    }

    /// Inserts a run into the leaf of `at`, before the run there or at the leaf's end.
    fn insert_at(&mut self, mut at: Cursor, run: Run) {
        if self.blocks[at.block].leaves[at.leaf].is_full() {
            at = self.make_room(at);
        }
        debug_assert!(!self.blocks[at.block].leaves[at.leaf].is_full());
        let leaves = self.blocks[at.block].insert_run(at.leaf, at.run, run);
        self.note(at.block, leaves);
        self.len += 1;
    }

    /// Makes room for a run when the leaf of `at` is full. Returns where the run goes.
    fn make_room(&mut self, at: Cursor) -> Cursor {
        let at = self.room_in_block(at);
        let len = self.blocks[at.block].leaves[at.leaf].len();
        if at.run == 0 {
            self.blocks[at.block].insert(at.leaf, Leaf::default());
            return at;
        }
        if at.run < len {
            self.split_leaf(at, at.run);
            return at;
        }
        // at the end, where a growing log adds runs, a new leaf is added, so that the old one stays full
        self.blocks[at.block].insert(at.leaf + 1, Leaf::default());
        Cursor {
            leaf: at.leaf + 1,
            run: 0,
            ..at
        }
    }

    /// Makes room for another leaf in the block of `at`. Returns the new position of `at`.
    fn room_in_block(&mut self, at: Cursor) -> Cursor {
        if !self.blocks[at.block].is_full() {
            return at;
        }
        // at the end the old block stays full too
        let half = if at.leaf + 1 == BLOCK_MAX {
            BLOCK_MAX - 1
        } else {
            BLOCK_MAX / 2
        };
        debug_assert_eq!(self.blocks[at.block].leaves.len(), BLOCK_MAX);
        self.split_block(at.block, half);
        if at.leaf < half {
            return at;
        }
        Cursor {
            block: at.block + 1,
            leaf: at.leaf - half,
            ..at
        }
    }

    /// Splits the leaf of `at` before the run with index `run`. Returns the start of the right part.
    pub(super) fn split_leaf(&mut self, at: Cursor, run: usize) -> Cursor {
        let at = self.room_in_block(at);
        debug_assert!(!self.blocks[at.block].is_full(), "no room for a leaf");
        let before = self.blocks[at.block].available();
        self.blocks[at.block].split_leaf(at.leaf, run);
        let after = self.blocks[at.block].available();
        self.note(at.block, after as i32 - before as i32);
        Cursor {
            leaf: at.leaf + 1,
            run: 0,
            ..at
        }
    }

    fn split_block(&mut self, index: usize, half: usize) {
        let right = self.blocks[index].split_off(half);
        self.lasts.insert(index + 1, right.last());
        self.available.insert(index + 1, right.available() as u32);
        self.blocks.insert(index + 1, right);
        self.lasts[index] = self.blocks[index].last();
        self.available[index] -= self.available[index + 1];
        debug_assert!(self.lasts[index] < self.lasts[index + 1]);
        debug_assert_eq!(
            self.available[index] as usize,
            self.blocks[index].available(),
            "a block's count of leaves is wrong"
        );
    }

    /// Removes a run. Returns the position of the next one.
    pub(crate) fn remove_at(&mut self, at: Cursor) -> Cursor {
        debug_assert!(self.get(at).is_some(), "no run is there");
        let block = &mut self.blocks[at.block];
        let leaves = block.remove_run(at.leaf, at.run);
        let alone = block.leaves[at.leaf].len() + 1 == self.len;
        self.len -= 1;
        self.note(at.block, leaves);
        if alone { at } else { self.tidy(at) }
    }

    /// Removes leading batches whose runs are all `done`, within the first leaf.
    pub(crate) fn remove_batches(&mut self, done: impl Fn(&Run) -> bool) {
        let runs = &self.blocks[0].leaves[0].runs;
        let mut whole = 0;
        for (index, run) in runs.iter().enumerate() {
            if !done(run) {
                break;
            }
            let ends = match runs.get(index + 1) {
                Some(next) => next.opens_batch() || next.first > run.last + 1,
                None => runs.len() == self.len,
            };
            if ends {
                whole = index + 1;
            }
        }
        if whole > 0 {
            self.remove_front(whole);
        }
    }

    /// Removes the runs before `to` from the first leaf.
    fn remove_front(&mut self, to: usize) {
        debug_assert!(0 < to && to <= self.len, "the first runs");
        let block = &mut self.blocks[0];
        let leaves = block.remove_front(to);
        self.len -= to;
        let alone = block.leaves[0].len() == self.len;
        self.note(0, leaves);
        if !alone {
            self.tidy(Cursor::START);
        }
    }

    /// Removes the leaf of `at` if it is empty, merges it with a neighbor if it is small. Returns the new position of
    /// the run.
    pub(super) fn tidy(&mut self, mut at: Cursor) -> Cursor {
        let block = &mut self.blocks[at.block];
        if block.leaves[at.leaf].len() > 0 {
            let leaves = block.leaves.len();
            let (leaf, before) = block.join_small(at.leaf);
            self.lasts[at.block] = block.last();
            if block.leaves.len() < leaves {
                self.available[at.block] = block.available() as u32;
            }
            (at.leaf, at.run) = (leaf, at.run + before);
        } else if block.leaves.len() > 1 {
            block.remove(at.leaf);
            self.lasts[at.block] = block.last();
            at.run = 0;
        } else if self.blocks.len() > 1 {
            self.remove_block(at.block);
            return Cursor {
                leaf: 0,
                run: 0,
                ..at
            };
        } else {
            return at;
        }
        let at = self.join_small_block(at);
        self.settle(at)
    }

    fn remove_block(&mut self, index: usize) {
        debug_assert!(self.blocks.len() > 1, "there is always a block");
        self.blocks.remove(index);
        self.lasts.remove(index);
        self.available.remove(index);
    }

    /// Merges a small block with the previous one.
    fn join_small_block(&mut self, at: Cursor) -> Cursor {
        if at.block == 0 || !self.blocks[at.block].is_small() {
            return at;
        }
        let before = self.blocks[at.block - 1].leaves.len();
        if before + self.blocks[at.block].leaves.len() > BLOCK_MAX * 3 / 4 {
            return at;
        }
        let right = std::mem::take(&mut self.blocks[at.block]);
        self.blocks[at.block - 1].append(right);
        self.lasts[at.block - 1] = self.lasts[at.block];
        self.available[at.block - 1] += self.available[at.block];
        debug_assert!(self.blocks[at.block - 1].leaves.len() <= BLOCK_MAX);
        self.remove_block(at.block);
        Cursor {
            block: at.block - 1,
            leaf: before + at.leaf,
            ..at
        }
    }
}
