//! A leaf: up to [`LEAF_MAX`] runs side by side, 24 bytes each.

use super::run::Run;
use crate::offset::Offset;

/// Runs in a leaf. Inserting moves half of them on average: 64 runs are 1.5 KiB. Tests want many leaves of few runs.
pub(super) const LEAF_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// A leaf of fewer runs is joined with a neighbour where both fit into one.
pub(super) const LEAF_MIN: usize = LEAF_MAX / 4;

/// Neighbouring runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    pub(super) runs: Vec<Run>,
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.runs.len() >= LEAF_MAX
    }

    /// The highest offset; below every offset when the leaf is empty.
    pub(super) fn last(&self) -> Offset {
        self.runs.last().map_or(Offset::MIN / 2, |run| run.last)
    }

    pub(super) fn get(&self, index: usize) -> Option<Run> {
        self.runs.get(index).copied()
    }

    /// Lets the last run reach to `last`.
    pub(super) fn extend_last(&mut self, last: Offset) {
        if let Some(run) = self.runs.last_mut() {
            run.last = last;
        }
    }

    /// Makes memory for `more` runs: by doubling up to a full leaf, and no more than is needed from there on.
    pub(super) fn reserve(&mut self, more: usize) {
        let len = self.runs.len();
        if len + more > self.runs.capacity() {
            let doubled = (2 * len).clamp(4, LEAF_MAX);
            self.runs
                .reserve_exact(more.max(doubled.saturating_sub(len)));
        }
    }

    /// Puts a run before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, run: Run) {
        self.reserve(1);
        self.runs.insert(index, run);
    }

    pub(super) fn remove(&mut self, index: usize) -> Run {
        self.runs.remove(index)
    }

    /// Makes places for `more` runs behind the one at `index`; what fills them is to be written over.
    pub(super) fn open(&mut self, index: usize, more: usize) {
        self.reserve(more);
        let len = self.runs.len();
        self.runs.resize(len + more, self.runs[index]);
        self.runs.copy_within(index + 1..len, index + 1 + more);
    }

    /// Removes `less` runs from `index` on.
    pub(super) fn close(&mut self, index: usize, less: usize) {
        self.runs.copy_within(index + less.., index);
        self.runs.truncate(self.runs.len() - less);
    }

    /// Takes the runs from `index` on into a leaf of their own.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        let runs = self.runs.split_off(index);
        // a rewrite may have grown this leaf far over its size before it was split
        if self.runs.len() <= LEAF_MAX && self.runs.capacity() > 2 * LEAF_MAX {
            self.runs.shrink_to(LEAF_MAX);
        }
        Self { runs }
    }

    /// Appends all runs of `other`, which follow.
    pub(super) fn append(&mut self, other: &Self) {
        self.reserve(other.len());
        self.runs.extend_from_slice(&other.runs);
    }

    /// The index of the first run that ends at `offset` or behind it.
    pub(super) fn seek(&self, offset: Offset) -> usize {
        self.runs.partition_point(|run| run.last < offset)
    }

    /// The index of the first run from `from` on that can be acquired.
    pub(super) fn next_available(&self, from: usize) -> Option<usize> {
        (from..self.runs.len()).find(|&index| self.runs[index].cell().is_available())
    }

    pub(super) fn available(&self) -> usize {
        self.runs
            .iter()
            .filter(|run| run.cell().is_available())
            .count()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }
}
