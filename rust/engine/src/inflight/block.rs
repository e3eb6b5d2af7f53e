//! A block: up to [`BLOCK_MAX`] leaves, and beside them what a search needs to know of each.

use super::leaf::{LEAF_MAX, LEAF_MIN, Leaf};
use crate::offset::Offset;

/// Leaves in a block.
pub(super) const BLOCK_MAX: usize = if cfg!(test) { 8 } else { 128 };
const BLOCK_MIN: usize = BLOCK_MAX / 4;

/// Neighbouring leaves. `lasts` and `available` lie apart from the leaves so that a search reads little memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) leaves: Vec<Leaf>,
    lasts: Vec<Offset>,
    available: Vec<u16>,
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

    pub(super) fn available(&self) -> usize {
        self.available.iter().map(|&count| usize::from(count)).sum()
    }

    pub(super) fn insert(&mut self, index: usize, leaf: Leaf) {
        self.lasts.insert(index, leaf.last());
        self.available.insert(index, leaf.available() as u16);
        self.leaves.insert(index, leaf);
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.lasts.remove(index);
        self.available.remove(index);
        self.leaves.remove(index);
    }

    pub(super) fn split_off(&mut self, index: usize) -> Self {
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
    }

    /// Splits a leaf before the run at `at`.
    pub(super) fn split_leaf(&mut self, index: usize, at: usize) {
        let right = self.leaves[index].split_off(at);
        self.insert(index + 1, right);
        self.lasts[index] = self.leaves[index].last();
        self.available[index] -= self.available[index + 1];
    }

    /// Joins a small leaf with a neighbour if both fit into one. Returns the index that the leaf then has, and how many
    /// runs precede its own there.
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
        let right = std::mem::take(&mut self.leaves[index + 1]);
        self.available[index] += self.available[index + 1];
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
        if *self.available.get(leaf)? == 0 {
            return None;
        }
        self.leaves[leaf].next_available(run)
    }

    /// The first leaf from `from` on with a run that can be acquired.
    pub(super) fn next_available(&self, from: usize) -> Option<usize> {
        self.available[from..]
            .iter()
            .position(|&count| count > 0)
            .map(|at| from + at)
    }

    /// Adds `more` to the count of a leaf's runs that can be acquired.
    pub(super) fn count_available(&mut self, index: usize, more: isize) {
        self.available[index] = self.available[index].wrapping_add_signed(more as i16);
    }

    /// Notes that a leaf changed, and by how much the number of its available runs did.
    pub(super) fn note(&mut self, index: usize, available: isize) {
        self.lasts[index] = self.leaves[index].last();
        self.count_available(index, available);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Leaf>()
            + self.lasts.capacity() * size_of::<Offset>()
            + self.available.capacity() * size_of::<u16>()
            + self.leaves.iter().map(Leaf::memory_bytes).sum::<usize>()
    }

    /// Whether the arrays beside the leaves agree with them.
    pub(super) fn check(&self) -> bool {
        self.leaves
            .iter()
            .zip(&self.lasts)
            .all(|(leaf, &last)| leaf.last() == last)
            && self
                .leaves
                .iter()
                .zip(&self.available)
                .all(|(leaf, &count)| leaf.available() == usize::from(count))
    }
}

/// The index of the first end at or after `offset`. Most maps are small, so the first end is tried first.
pub(super) fn first_to_reach(lasts: &[Offset], offset: Offset) -> usize {
    match lasts.split_first() {
        Some((&first, rest)) if first < offset => 1 + rest.partition_point(|&last| last < offset),
        _ => 0,
    }
}
