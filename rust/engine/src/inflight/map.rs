//! The in-flight records of a share partition: runs in order, without overlap.
//!
//! Three levels: runs in leaves, leaves in blocks, blocks in the map. Each level knows where the parts of the level
//! below end and which can be acquired, so a search reads one short array per level, and a change moves at most one
//! leaf and the ends of one block. The index takes less than two bytes per run in a full map.

use std::hint::select_unpredictable;

use super::block::{Block, first_to_reach};
use super::run::Run;
use crate::offset::{Offset, OffsetRange, after};

/// The position of a run in the map. A change to the map invalidates all cursors except the one it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(super) block: usize,
    pub(super) leaf: usize,
    pub(super) run: usize,
}

impl Cursor {
    /// The first run.
    pub(crate) const START: Self = Self {
        block: 0,
        leaf: 0,
        run: 0,
    };
}

/// Runs ordered by offset.
#[derive(Clone, Debug)]
pub(crate) struct RunMap {
    pub(super) blocks: Vec<Block>,
    pub(super) lasts: Vec<Offset>,
    /// How many leaves of each block have an acquirable run.
    pub(super) available: Vec<u32>,
    pub(super) len: usize,
    /// The position of the last change; may be stale.
    pub(super) near: Cursor,
}

impl Default for RunMap {
    fn default() -> Self {
        Self {
            blocks: vec![Block::new()],
            lasts: vec![Offset::MIN / 2],
            available: vec![0],
            len: 0,
            near: Cursor::START,
        }
    }
}

impl RunMap {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<Run> {
        self.blocks[0].leaves[0].get(0)
    }

    /// The first offset of the first run.
    pub(crate) fn first_offset(&self) -> Option<Offset> {
        self.first().map(|run| run.first)
    }

    /// The last offset of the last run.
    pub(crate) fn last_offset(&self) -> Option<Offset> {
        (self.len > 0).then(|| self.lasts[self.lasts.len() - 1])
    }

    /// The run that holds `offset`, or else the first after it.
    #[inline]
    pub(crate) fn seek(&self, offset: Offset) -> Cursor {
        // most maps have one leaf
        if let ([block], [last, ..]) = (&self.blocks[..], &self.lasts[..])
            && let [leaf] = &block.leaves[..]
            && offset <= *last
        {
            let run = leaf.seek(offset);
            debug_assert!(run < leaf.len(), "a run ends at or after the offset");
            return Cursor {
                run,
                ..Cursor::START
            };
        }
        let found = self.seek_leaf(offset);
        debug_assert!(
            self.get(found).is_none_or(|run| offset <= run.last),
            "the run ends before the offset"
        );
        debug_assert!(
            self.prev(found)
                .and_then(|prev| self.get(prev))
                .is_none_or(|prev| prev.last < offset),
            "a run before reaches the offset"
        );
        found
    }

    /// [`seek`](Self::seek) across many leaves.
    #[inline(never)]
    fn seek_leaf(&self, offset: Offset) -> Cursor {
        let block = first_to_reach(&self.lasts, offset);
        let Some(found) = self.blocks.get(block) else {
            return Cursor {
                block,
                leaf: 0,
                run: 0,
            };
        };
        let leaf = found.seek(offset);
        Cursor {
            block,
            leaf,
            run: found.leaves[leaf].seek(offset),
        }
    }

    /// [`seek`](Self::seek), but fast if the run is the last one changed, or the next in its leaf.
    pub(crate) fn seek_near(&self, offset: Offset) -> Cursor {
        let near = self.near;
        let leaf = self
            .blocks
            .get(near.block)
            .and_then(|block| block.leaves.get(near.leaf));
        if let Some(ahead) = leaf.and_then(|leaf| leaf.runs.get(near.run..))
            && let (Some(run), next) = (ahead.first(), ahead.get(1).or(ahead.first()))
        {
            let past = run.last < offset;
            let found = select_unpredictable(past, next.unwrap_or(run), run);
            if run.first <= offset && offset <= found.last {
                let at = Cursor {
                    run: near.run + usize::from(past),
                    ..near
                };
                debug_assert_eq!(at, self.seek(offset), "found where it is not");
                return at;
            }
        }
        self.seek(offset)
    }

    pub(crate) fn get(&self, at: Cursor) -> Option<Run> {
        self.blocks.get(at.block)?.leaves.get(at.leaf)?.get(at.run)
    }

    /// The run that holds `offset`.
    pub(crate) fn at(&self, offset: Offset) -> Option<Run> {
        self.get(self.seek(offset))
            .filter(|run| run.first <= offset)
    }

    pub(crate) fn next(&self, at: Cursor) -> Cursor {
        self.settle(Cursor {
            run: at.run + 1,
            ..at
        })
    }

    /// Moves a cursor at the end of a leaf to the next leaf.
    pub(super) fn settle(&self, mut at: Cursor) -> Cursor {
        let Some(block) = self.blocks.get(at.block) else {
            return at;
        };
        if block
            .leaves
            .get(at.leaf)
            .is_some_and(|leaf| at.run < leaf.len())
        {
            return at;
        }
        at = Cursor {
            leaf: at.leaf + 1,
            run: 0,
            ..at
        };
        if at.leaf >= block.leaves.len() {
            at = Cursor {
                block: at.block + 1,
                leaf: 0,
                run: 0,
            };
        }
        at
    }

    pub(crate) fn prev(&self, at: Cursor) -> Option<Cursor> {
        if at.run > 0 {
            return Some(Cursor {
                run: at.run - 1,
                ..at
            });
        }
        let (block, leaf) = if at.leaf > 0 {
            (at.block, at.leaf - 1)
        } else {
            let block = at.block.checked_sub(1)?;
            (block, self.blocks[block].leaves.len() - 1)
        };
        let run = self.blocks[block].leaves[leaf].len().checked_sub(1)?;
        Some(Cursor { block, leaf, run })
    }

    /// The first acquirable run from `at`.
    pub(crate) fn next_available(&self, at: Cursor) -> Option<Cursor> {
        let block = self.blocks.get(at.block)?;
        if let Some(run) = block.next_available_in(at.leaf, at.run) {
            return Some(Cursor { run, ..at });
        }
        if let Some(leaf) = block.next_available(at.leaf + 1) {
            let run = block.next_available_in(leaf, 0)?;
            return Some(Cursor { leaf, run, ..at });
        }
        self.next_available_from(at.block + 1)
    }

    /// The first acquirable run of the blocks from `block`.
    fn next_available_from(&self, block: usize) -> Option<Cursor> {
        let mut counts = self.available[block..].iter();
        let block = block + counts.position(|&leaves| leaves > 0)?;
        let leaf = self.blocks[block].next_available(0);
        debug_assert!(leaf.is_some(), "a block's count of leaves is wrong");
        let leaf = leaf?;
        let run = self.blocks[block].next_available_in(leaf, 0)?;
        Some(Cursor { block, leaf, run })
    }

    /// The first acquirable run.
    #[inline]
    pub(crate) fn first_available(&self) -> Option<Cursor> {
        // usually in the first leaf, and often the only one
        match self.blocks[0].next_available_in(0, 0) {
            Some(run) => Some(Cursor {
                run,
                ..Cursor::START
            }),
            None if self.blocks[0].leaves[0].len() == self.len => None,
            None => self.next_available_from(0),
        }
    }

    /// Whether the run at `at` continues the batch of the run ending at `last`.
    pub(crate) fn continues(&self, at: Cursor, last: Offset) -> bool {
        self.get(at)
            .is_some_and(|run| !run.opens_batch() && run.first == last + 1)
    }

    /// Visits the runs from `at` until `look` stops. One function, so that it is compiled once; a chain of iterators is
    /// not.
    #[inline]
    pub(crate) fn walk(&self, mut at: Cursor, mut look: impl FnMut(&Run) -> bool) {
        while let Some(block) = self.blocks.get(at.block) {
            while let Some(leaf) = block.leaves.get(at.leaf) {
                let runs = leaf.runs.get(at.run..).unwrap_or_default();
                if !runs.iter().all(&mut look) {
                    return;
                }
                (at.leaf, at.run) = (at.leaf + 1, 0);
            }
            at = Cursor {
                block: at.block + 1,
                ..Cursor::START
            };
        }
    }

    /// The first offset of the originally acquired batch of the run at a cursor.
    pub(crate) fn batch_first(&self, mut at: Cursor) -> Offset {
        let mut first = after(self.get(at).expect("a cursor on a run").last);
        loop {
            let leaf = &self.blocks[at.block].leaves[at.leaf];
            for run in leaf.runs[..=at.run].iter().rev() {
                if after(run.last) != first {
                    return first;
                }
                first = run.first;
                if run.opens_batch() {
                    return first;
                }
            }
            let Some(prev) = self.prev(Cursor { run: 0, ..at }) else {
                return first;
            };
            at = prev;
        }
    }

    /// The originally acquired batch of the run at a cursor.
    pub(crate) fn batch(&self, at: Cursor) -> OffsetRange {
        let mut batch = OffsetRange::new(self.batch_first(at), Offset::MIN);
        self.walk(at, |run| {
            let belongs = batch.is_empty() || !run.opens_batch() && run.first == after(batch.last);
            if belongs {
                batch.last = run.last;
            }
            belongs
        });
        debug_assert!(!batch.is_empty(), "the run itself belongs to its batch");
        batch
    }

    /// Records that a block changed, and the change in its number of leaves with an acquirable run.
    pub(super) fn note(&mut self, block: usize, leaves: i32) {
        self.lasts[block] = self.blocks[block].last();
        self.available[block] = self.available[block].wrapping_add_signed(leaves);
        debug_assert_eq!(
            self.available[block] as usize,
            self.blocks[block].available(),
            "a block's count of leaves is wrong"
        );
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        let leaves = self.blocks.iter().flat_map(|block| &block.leaves);
        leaves.flat_map(|leaf| (0..leaf.len()).filter_map(|index| leaf.get(index)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
            + self.lasts.capacity() * size_of::<Offset>()
            + self.available.capacity() * size_of::<u32>()
            + self.blocks.iter().map(Block::memory_bytes).sum::<usize>()
    }

    /// Checks order, merging and the index.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut before: Option<Run> = None;
        for run in self.iter() {
            let at = format!("run {}-{}", run.first, run.last);
            if run.last < run.first {
                return Err(format!("{at} is empty"));
            }
            if let Some(before) = before.filter(|before| run.first <= before.last) {
                return Err(format!("{at} overlaps {}-{}", before.first, before.last));
            }
            if before.is_some_and(|before| before.joins(&run)) {
                return Err(format!("{at} is not joined to what it follows"));
            }
            before = Some(run);
        }
        let blocks = self.blocks.iter().zip(&self.lasts).zip(&self.available);
        let beside = blocks.into_iter().all(|((block, &last), &available)| {
            block.check()
                && block.last() == last
                && block.available() == available as usize
                && !block.leaves.is_empty()
        });
        let empty = self
            .blocks
            .iter()
            .flat_map(|block| &block.leaves)
            .filter(|leaf| leaf.len() == 0)
            .count();
        if !beside || self.iter().count() != self.len || empty > usize::from(self.len == 0) {
            return Err("the index disagrees with the runs".into());
        }
        Ok(())
    }
}
