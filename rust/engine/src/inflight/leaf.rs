//! A leaf: up to [`LEAF_MAX`] runs side by side, 16 bytes each, their offsets relative to the leaf's base.

use super::run::{Cell, LeaseId, Run};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

/// Runs in a leaf. Inserting moves half of them on average: 64 runs are 1 KiB. Tests want many leaves of few runs.
pub(super) const LEAF_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// A leaf of fewer runs is joined with a neighbour where both fit into one.
pub(super) const LEAF_MIN: usize = LEAF_MAX / 4;

const STATE: u8 = 0b0_0111;
const PENDING: u8 = 0b0_1000;
const OPENS_BATCH: u8 = 0b1_0000;

/// A run, as it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    first: u32,
    last: u32,
    lease: u32,
    delivery_count: u16,
    bits: u8,
}

impl Packed {
    pub(super) fn is_available(self) -> bool {
        self.bits & (STATE | PENDING) == RecordState::Available.id()
    }

    /// Whether `next`, which follows in the same leaf, may be joined to this run.
    fn joins(self, next: Self) -> bool {
        self.last + 1 == next.first
            && self.bits & !OPENS_BATCH == next.bits
            && self.lease == next.lease
            && self.delivery_count == next.delivery_count
    }

    pub(super) fn cell(self) -> Cell {
        Cell {
            state: RecordState::from_id(self.bits & STATE).unwrap_or(RecordState::Archived),
            pending: self.bits & PENDING != 0,
            delivery_count: self.delivery_count,
            lease: LeaseId(self.lease),
        }
    }
}

/// Runs of one leaf that are written anew, equal neighbours joined.
pub(super) struct Writer<'a> {
    base: Offset,
    pub(super) runs: &'a mut Vec<Packed>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(leaf: &Leaf, runs: &'a mut Vec<Packed>) -> Self {
        runs.clear();
        Self {
            base: leaf.base,
            runs,
        }
    }

    pub(super) fn push(&mut self, run: Packed) {
        if let Some(before) = self.runs.last_mut()
            && before.joins(run)
        {
            before.last = run.last;
        } else {
            self.runs.push(run);
        }
    }

    /// Pushes a part of a run, unless it is empty, with another cell.
    pub(super) fn push_part(&mut self, of: Packed, part: OffsetRange, cell: Cell) {
        if part.is_empty() {
            return;
        }
        let first = (part.first - self.base) as u32;
        let opens = if first == of.first {
            of.bits & OPENS_BATCH
        } else {
            0
        };
        self.push(Packed {
            first,
            last: (part.last - self.base) as u32,
            lease: cell.lease.0,
            delivery_count: cell.delivery_count,
            bits: bits(cell) | opens,
        });
    }
}

fn bits(cell: Cell) -> u8 {
    cell.state.id() | if cell.pending { PENDING } else { 0 }
}

/// Neighbouring runs, and the offset that theirs count from.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    base: Offset,
    runs: Vec<Packed>,
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.runs.len() >= LEAF_MAX
    }

    /// Whether a run that ends at `last` and one that starts at `first` can both be kept here.
    pub(super) fn spans(&self, first: Offset, last: Offset) -> bool {
        let base = if self.runs.is_empty() {
            first
        } else {
            self.base.min(first)
        };
        last.max(self.last()) - base <= Offset::from(u32::MAX)
    }

    /// The highest offset; below every offset when the leaf is empty.
    pub(super) fn last(&self) -> Offset {
        self.runs
            .last()
            .map_or(Offset::MIN / 2, |run| self.base + Offset::from(run.last))
    }

    pub(super) fn get(&self, index: usize) -> Option<Run> {
        self.runs.get(index).map(|run| Run {
            first: self.base + Offset::from(run.first),
            last: self.base + Offset::from(run.last),
            cell: run.cell(),
            opens_batch: run.bits & OPENS_BATCH != 0,
        })
    }

    pub(super) fn packed(&self) -> &[Packed] {
        &self.runs
    }

    /// The offsets of a run.
    pub(super) fn range(&self, run: Packed) -> OffsetRange {
        OffsetRange::new(
            self.base + Offset::from(run.first),
            self.base + Offset::from(run.last),
        )
    }

    /// Puts `runs` in the place of those from `from` to before `to`; by how many more can be acquired then.
    pub(super) fn splice(&mut self, from: usize, to: usize, runs: &[Packed]) -> isize {
        let available =
            |runs: &[Packed]| runs.iter().filter(|run| run.is_available()).count() as isize;
        let more = available(runs) - available(&self.runs[from..to]);
        if runs.len() == to - from {
            self.runs[from..to].copy_from_slice(runs);
        } else {
            self.runs.splice(from..to, runs.iter().copied());
        }
        more
    }

    fn pack(&self, run: Run) -> Packed {
        Packed {
            first: (run.first - self.base) as u32,
            last: (run.last - self.base) as u32,
            lease: run.cell.lease.0,
            delivery_count: run.cell.delivery_count,
            bits: bits(run.cell) | if run.opens_batch { OPENS_BATCH } else { 0 },
        }
    }

    /// Lets the last run reach to `last`; the leaf must span it.
    pub(super) fn extend_last(&mut self, last: Offset) {
        if let Some(run) = self.runs.last_mut() {
            run.last = (last - self.base) as u32;
        }
    }

    /// Puts a run before the one at `index`; the leaf must span it.
    pub(super) fn insert(&mut self, index: usize, run: Run) {
        if self.runs.is_empty() {
            self.base = run.first;
        } else if run.first < self.base {
            self.rebase_to(run.first);
        }
        if self.runs.len() == self.runs.capacity() {
            self.runs.reserve_exact((self.runs.len() / 2).max(4));
        }
        let packed = self.pack(run);
        self.runs.insert(index, packed);
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.runs.remove(index);
    }

    /// Takes the runs from `index` on into a leaf of their own.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        let right = Self {
            base: self.base,
            runs: self.runs.split_off(index),
        };
        // a rewrite may have grown this leaf far over its size before it was split
        if self.runs.len() <= LEAF_MAX {
            self.runs.shrink_to(LEAF_MAX);
        }
        right
    }

    /// Appends all runs of `other`, which follow; the leaf must span them.
    pub(super) fn append(&mut self, mut other: Self) {
        other.rebase_to(self.base);
        self.runs.extend_from_slice(&other.runs);
    }

    fn rebase_to(&mut self, base: Offset) {
        let by = self.base - base;
        for run in &mut self.runs {
            run.first = (Offset::from(run.first) + by) as u32;
            run.last = (Offset::from(run.last) + by) as u32;
        }
        self.base = base;
    }

    /// The index of the first run that ends at `offset` or behind it.
    pub(super) fn seek(&self, offset: Offset) -> usize {
        let relative = offset - self.base;
        self.runs
            .partition_point(|run| Offset::from(run.last) < relative)
    }

    /// The index of the first run from `from` on that can be acquired.
    pub(super) fn next_available(&self, from: usize) -> Option<usize> {
        (from..self.runs.len()).find(|&index| self.runs[index].is_available())
    }

    pub(super) fn available(&self) -> usize {
        self.runs.iter().filter(|run| run.is_available()).count()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Packed>()
    }
}
