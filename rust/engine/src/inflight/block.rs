//! A block: up to [`BLOCK_MAX`] leaves, with an index of each for searches.

use super::leaf::{LEAF_MAX, LEAF_MIN, Leaf};
use super::mask::Mask;
use super::run::Run;
use crate::offset::Offset;

/// Leaves in a block.
pub(super) const BLOCK_MAX: usize = if cfg!(test) { 8 } else { 128 };
const BLOCK_MIN: usize = BLOCK_MAX / 4;

const _: () = assert!(BLOCK_MIN > 0, "an empty block is small");

/// Neighboring leaves. `lasts` and `available` are separate from the leaves so that a search reads little memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) leaves: Vec<Leaf>,
    lasts: Vec<Offset>,
    /// Which runs of each leaf can be acquired.
    available: Vec<Mask>,
}

impl Block {
    /// A block of one empty leaf.
    pub(super) fn new() -> Self {
        let mut block = Self::default();
        block.insert(0, Leaf::default());
        block
    }

    pub(super) fn is_full(&self) -> bool {
        self.leaves.len() >= BLOCK_MAX
    }

    pub(super) fn is_small(&self) -> bool {
        self.leaves.len() < BLOCK_MIN
    }

    pub(super) fn last(&self) -> Offset {
        self.lasts.last().copied().unwrap_or(Offset::MIN / 2)
    }

    /// How many leaves have a run that can be acquired.
    pub(super) fn available(&self) -> usize {
        self.available
            .iter()
            .filter(|mask| !mask.is_empty())
            .count()
    }

    pub(super) fn insert(&mut self, index: usize, leaf: Leaf) {
        self.lasts.insert(index, leaf.last());
        self.available.insert(index, leaf.available());
        self.leaves.insert(index, leaf);
        debug_assert!(self.len_agrees(), "a leaf without its end or its mask");
    }

    /// Whether each leaf has its end and its mask.
    fn len_agrees(&self) -> bool {
        self.lasts.len() == self.leaves.len() && self.available.len() == self.leaves.len()
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.lasts.remove(index);
        self.available.remove(index);
        self.leaves.remove(index);
        debug_assert!(self.len_agrees(), "an end or a mask without its leaf");
    }

    pub(super) fn split_off(&mut self, index: usize) -> Self {
        debug_assert!(
            0 < index && index < self.leaves.len(),
            "both parts have leaves"
        );
        Self {
            leaves: self.leaves.split_off(index),
            lasts: self.lasts.split_off(index),
            available: self.available.split_off(index),
        }
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.leaves.append(&mut other.leaves);
        self.lasts.append(&mut other.lasts);
        self.available.append(&mut other.available);
        debug_assert!(self.len_agrees(), "a leaf without its end or its mask");
        debug_assert!(self.lasts.is_sorted(), "leaves of another place");
    }

    /// Splits a leaf before the run at `at`.
    pub(super) fn split_leaf(&mut self, index: usize, at: usize) {
        let right = self.leaves[index].split_off(at);
        self.insert(index + 1, right);
        debug_assert!(
            self.leaves[index].last() < self.lasts[index + 1],
            "the right part follows the left one"
        );
        self.lasts[index] = self.leaves[index].last();
        self.available[index] = self.leaves[index].available();
    }

    /// Merges a small leaf with a neighbor if both fit into one. Returns the index of the merged leaf and how many runs
    /// precede the small leaf's in it.
    pub(super) fn join_small(&mut self, index: usize) -> (usize, usize) {
        let len = self.leaves[index].len();
        if len >= LEAF_MIN {
            return (index, 0);
        }
        if index > 0 && self.fit(index - 1) {
            let before = self.leaves[index - 1].len();
            self.join(index - 1);
            return (index - 1, before);
        }
        if index + 1 < self.leaves.len() && self.fit(index) {
            self.join(index);
        }
        (index, 0)
    }

    fn fit(&self, index: usize) -> bool {
        let (left, right) = (&self.leaves[index], &self.leaves[index + 1]);
        left.len() + right.len() <= LEAF_MAX * 3 / 4
    }

    fn join(&mut self, index: usize) {
        debug_assert!(self.fit(index), "both fit into one leaf");
        let right = std::mem::take(&mut self.leaves[index + 1]);
        self.available[index] =
            self.available[index].and_at(self.leaves[index].len(), self.available[index + 1]);
        self.leaves[index].append(&right);
        self.lasts[index] = self.leaves[index].last();
        self.remove(index + 1);
    }

    /// The index of the first leaf that ends at or after `offset`.
    pub(super) fn seek(&self, offset: Offset) -> usize {
        first_to_reach(&self.lasts, offset)
    }

    /// The first run of a leaf, from `run` on, that can be acquired.
    pub(super) fn next_available_in(&self, leaf: usize, run: usize) -> Option<usize> {
        self.available.get(leaf)?.next(run)
    }

    /// The first leaf from `from` on with a run that can be acquired.
    pub(super) fn next_available(&self, from: usize) -> Option<usize> {
        self.available[from..]
            .iter()
            .position(|mask| !mask.is_empty())
            .map(|at| from + at)
    }

    /// Inserts a run into a leaf, before the run at `at`. Returns the change in the number of leaves with an acquirable
    /// run.
    pub(super) fn insert_run(&mut self, index: usize, at: usize, run: Run) -> i32 {
        self.leaves[index].insert(at, run);
        self.lasts[index] = self.leaves[index].last();
        let available = self.available[index].inserted(at, run.cell().is_available());
        self.set_available(index, available)
    }

    /// Removes a run from a leaf. Returns the change in the number of leaves with an acquirable run.
    pub(super) fn remove_run(&mut self, index: usize, at: usize) -> i32 {
        self.leaves[index].remove(at);
        self.lasts[index] = self.leaves[index].last();
        self.set_available(index, self.available[index].removed(at))
    }

    /// A leaf, and which of its runs can be acquired.
    pub(super) fn leaf_mut(&mut self, index: usize) -> (&mut Leaf, Mask) {
        (&mut self.leaves[index], self.available[index])
    }

    /// Removes the runs before `to` from the first leaf. Returns the change in the number of leaves with an acquirable
    /// run.
    pub(super) fn remove_front(&mut self, to: usize) -> i32 {
        debug_assert!(to <= self.leaves[0].len(), "of the first leaf");
        self.leaves[0].close(0, to);
        self.lasts[0] = self.leaves[0].last();
        self.set_available(0, self.available[0].from(to))
    }

    /// Sets which runs of a leaf can be acquired. Returns the change in the number of leaves with an acquirable run.
    pub(super) fn set_available(&mut self, index: usize, available: Mask) -> i32 {
        debug_assert!(
            self.leaves[index].len() > LEAF_MAX || available == self.leaves[index].available(),
            "the mask disagrees with the runs"
        );
        let before = std::mem::replace(&mut self.available[index], available);
        i32::from(!available.is_empty()) - i32::from(!before.is_empty())
    }

    /// Extends the last run of a leaf to `last`.
    pub(super) fn extend_last(&mut self, index: usize, last: Offset) {
        self.leaves[index].extend_last(last);
        debug_assert_eq!(self.leaves[index].last(), last, "a leaf with runs");
        self.lasts[index] = last;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Leaf>()
            + self.lasts.capacity() * size_of::<Offset>()
            + self.available.capacity() * size_of::<Mask>()
            + self.leaves.iter().map(Leaf::memory_bytes).sum::<usize>()
    }

    /// Whether the index agrees with the leaves.
    pub(super) fn check(&self) -> bool {
        self.leaves
            .iter()
            .zip(&self.lasts)
            .all(|(leaf, &last)| leaf.last() == last)
            && self
                .leaves
                .iter()
                .zip(&self.available)
                .all(|(leaf, &mask)| leaf.available() == mask)
    }
}

/// The index of the first end at or after `offset`. Most maps are small, so the first end is tried first.
pub(super) fn first_to_reach(lasts: &[Offset], offset: Offset) -> usize {
    match lasts.split_first() {
        Some((&first, rest)) if first < offset => 1 + rest.partition_point(|&last| last < offset),
        _ => 0,
    }
}
