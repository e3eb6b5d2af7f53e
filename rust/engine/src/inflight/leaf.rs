//! A leaf: up to [`LEAF_MAX`] contiguous runs of 24 bytes each.

use super::mask::Mask;
use super::run::Run;
use crate::offset::Offset;

/// Runs in a leaf, one per bit of a [`Mask`]. An insert moves half of them on average: 64 runs are 1.5 KiB. Tests use
/// small leaves to get many of them.
pub(super) const LEAF_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// A smaller leaf is merged with a neighbor if both fit into one.
pub(super) const LEAF_MIN: usize = LEAF_MAX / 4;

const _: () = {
    assert!(
        LEAF_MAX <= u64::BITS as usize,
        "a bit of a mask for each run"
    );
    assert!(LEAF_MIN > 0, "an empty leaf is small");
    assert!(size_of::<Run>() == 24, "what a run in flight costs");
};

/// Neighboring runs.
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

    /// The last offset; below every offset if the leaf is empty.
    pub(super) fn last(&self) -> Offset {
        self.runs.last().map_or(Offset::MIN / 2, |run| run.last)
    }

    pub(super) fn get(&self, index: usize) -> Option<Run> {
        self.runs.get(index).copied()
    }

    /// Extends the last run to `last`.
    pub(super) fn extend_last(&mut self, last: Offset) {
        if let Some(run) = self.runs.last_mut() {
            debug_assert!(run.last <= last, "a run may only be extended");
            run.last = last;
        }
    }

    /// Reserves memory for `more` runs: growth by a factor of four up to a full leaf, exact beyond.
    pub(super) fn reserve(&mut self, more: usize) {
        let len = self.runs.len();
        if len + more > self.runs.capacity() {
            let room = (4 * len).clamp(8, LEAF_MAX);
            self.runs.reserve_exact(more.max(room.saturating_sub(len)));
        }
        debug_assert!(self.runs.capacity() >= len + more);
    }

    /// Inserts a run before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, run: Run) {
        debug_assert!(
            index == 0 || self.runs[index - 1].last < run.first,
            "a run begins before the one before it ends"
        );
        debug_assert!(
            self.get(index).is_none_or(|next| run.last < next.first),
            "a run ends behind where the next one begins"
        );
        self.reserve(1);
        self.runs.insert(index, run);
    }

    pub(super) fn remove(&mut self, index: usize) -> Run {
        self.runs.remove(index)
    }

    /// Opens `more` places before the run at `index`, to be overwritten.
    pub(super) fn open(&mut self, index: usize, more: usize) {
        debug_assert!(index < self.len(), "before a run");
        self.reserve(more);
        let len = self.runs.len();
        self.runs.resize(len + more, self.runs[index]);
        self.runs.copy_within(index..len, index + more);
    }

    /// Removes `less` runs from `index`.
    pub(super) fn close(&mut self, index: usize, less: usize) {
        debug_assert!(index + less <= self.len(), "more is removed than there is");
        self.runs.copy_within(index + less.., index);
        self.runs.truncate(self.runs.len() - less);
    }

    /// Moves the runs from `index` to a new leaf.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        debug_assert!(0 < index && index < self.len(), "both parts have something");
        let runs = self.runs.split_off(index);
        // a rewrite may have grown this leaf far beyond its former size
        if self.runs.len() <= LEAF_MAX && self.runs.capacity() > 2 * LEAF_MAX {
            self.runs.shrink_to(LEAF_MAX);
        }
        Self { runs }
    }

    /// Appends the runs of `other`, which follow this leaf's.
    pub(super) fn append(&mut self, other: &Self) {
        debug_assert!(
            other.get(0).is_none_or(|next| self.last() < next.first),
            "its runs follow"
        );
        self.reserve(other.len());
        self.runs.extend_from_slice(&other.runs);
    }

    /// The index of the first run that ends at or after `offset`.
    pub(super) fn seek(&self, offset: Offset) -> usize {
        self.runs.partition_point(|run| run.last < offset)
    }

    /// Which runs can be acquired.
    pub(super) fn available(&self) -> Mask {
        self.runs
            .iter()
            .map(|run| run.cell().is_available())
            .collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }
}
