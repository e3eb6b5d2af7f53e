//! Rewriting runs of a leaf in place.

use super::leaf::Leaf;
use super::mask::Mask;
use super::run::{Cell, Run};
use crate::offset::{OffsetRange, after, before};

/// How many places to open at once while a run splits into more and more parts.
const ROOM: usize = 16;

/// Runs of a leaf that are being rewritten in place; equal neighbors are merged along the way.
///
/// ```text
/// [new] [new] [room] [room] [old] [old] [old]
///             written       read
/// ```
pub(super) struct Edit<'a> {
    leaf: &'a mut Leaf,
    written: usize,
    read: usize,
    /// Which of the written runs can be acquired.
    available: Mask,
    /// Which of the old runs can be acquired, counted from `read`.
    old: Mask,
    /// How many places to open next, unless more are needed.
    room: usize,
}

/// What an edit did to its leaf.
#[derive(Clone, Copy)]
pub(super) struct Edited {
    /// Which runs can be acquired.
    pub(super) available: Mask,
    /// Whether the leaf's last run was among those rewritten.
    pub(super) reached_end: bool,
}

impl<'a> Edit<'a> {
    /// Begins before the run at `at`.
    pub(super) fn new(leaf: &'a mut Leaf, available: Mask, at: usize) -> Self {
        debug_assert!(at <= leaf.len(), "before a run, or at the end");
        Self {
            leaf,
            written: at,
            read: at,
            available: available.before(at),
            old: available.from(at),
            room: 1,
        }
    }

    /// Sets the cell of the pieces of runs in `range`, up to the leaf's end; removes the rewritten part from `range`.
    ///
    /// The part of a run after a piece becomes an old run again, so pieces and whole runs share one path.
    #[inline]
    pub(super) fn rewrite<E>(
        &mut self,
        range: &mut OffsetRange,
        mut change: impl FnMut(&mut OffsetRange, Cell) -> Result<Cell, E>,
    ) -> Result<(), E> {
        while let Some(&run) = self.leaf.runs.get(self.read)
            && run.first <= range.last
        {
            let (part, cell) = (run.range().clip(*range), run.cell());
            let mut piece = part;
            debug_assert!(!part.is_empty(), "an empty change");
            let new = change(&mut piece, cell)?;
            debug_assert!(
                piece.first == part.first && piece.last <= part.last && !piece.is_empty(),
                "a change may only shorten the end of its part: {part:?}, {piece:?}"
            );
            // the map's own tests write arbitrary cells
            debug_assert!(
                cfg!(test) || cell.may_become(new),
                "{cell:?} cannot become {new:?}"
            );
            if piece == run.range() || piece.last == part.last && new == cell {
                self.take();
                self.put(run.with(new));
            } else {
                self.cut(piece, new);
            }
            range.first = after(piece.last);
        }
        Ok(())
    }

    /// Takes the next old run; its place becomes free.
    #[inline]
    fn take(&mut self) {
        debug_assert!(self.read < self.leaf.len(), "nothing is left to take");
        self.read += 1;
        self.old = self.old.from(1);
    }

    /// Writes a piece of the next old run with another cell, after the part before the piece. The part after it stays
    /// an old run.
    #[inline(never)]
    fn cut(&mut self, piece: OffsetRange, cell: Cell) {
        let run = self.leaf.runs[self.read];
        let (head, tail) = (run.first < piece.first, piece.last < run.last);
        debug_assert!(
            run.first <= piece.first && piece.last <= run.last,
            "a piece of another run"
        );
        if tail {
            self.make_room(1 + usize::from(head));
            let rest = OffsetRange::new(after(piece.last), run.last);
            self.leaf.runs[self.read] = run.part(rest, run.cell());
        } else {
            self.make_room(usize::from(head));
            self.take();
        }
        if head {
            let head = OffsetRange::new(run.first, before(piece.first));
            self.put(run.part(head, run.cell()));
        }
        self.put(run.part(piece, cell));
    }

    /// Writes a run into free room, or merges it with the previous one.
    #[allow(
        clippy::inline_always,
        reason = "passed through memory, a run would be read in other sizes than it was written: a store-forwarding stall"
    )]
    #[inline(always)]
    fn put(&mut self, run: Run) {
        if let Some(before) = self.leaf.runs[..self.written].last_mut()
            && before.joins(&run)
        {
            before.last = run.last;
            return;
        }
        debug_assert!(self.written < self.read, "an old run would be lost");
        debug_assert!(
            self.written == 0 || self.leaf.runs[self.written - 1].last < run.first,
            "runs are written in order"
        );
        self.leaf.runs[self.written] = run;
        let available = run.cell().is_available().into();
        self.available = self.available.and_at(self.written, available);
        self.written += 1;
    }

    /// Ensures room for `runs` runs.
    fn make_room(&mut self, runs: usize) {
        let room = self.read - self.written;
        if room >= runs {
            return;
        }
        let more = self.room.max(runs - room);
        self.leaf.open(self.read, more);
        self.read += more;
        debug_assert!(self.read - self.written >= runs, "too little room");
        self.room = ROOM;
    }

    /// Merges the last new run with the next old one if they are equal, and closes the remaining gap.
    #[inline]
    pub(super) fn finish(mut self) -> Edited {
        let runs = &mut self.leaf.runs;
        if let Some(&next) = runs.get(self.read)
            && let Some(before) = runs[..self.written].last_mut()
            && before.joins(&next)
        {
            before.last = next.last;
            self.take();
        }
        let available = self.available.and_at(self.written, self.old);
        let reached_end = self.read == self.leaf.len();
        debug_assert!(self.written <= self.read, "more is written than was read");
        if self.written < self.read {
            self.leaf.close(self.written, self.read - self.written);
        }
        Edited {
            available,
            reached_end,
        }
    }
}
