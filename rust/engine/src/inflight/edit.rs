//! Rewriting runs of a leaf in place.

use super::leaf::Leaf;
use super::mask::Mask;
use super::run::{Cell, Run};
use crate::offset::{OffsetRange, after, before};

/// How many places are made when a run splits into more parts than expected.
const ROOM: usize = 16;

/// Runs of a leaf that are being rewritten in place; equal neighbours are joined on the way.
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
    /// Which of the old runs can, counted from `read` on.
    old: Mask,
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
        Self {
            leaf,
            written: at,
            read: at,
            available: available.before(at),
            old: available.from(at),
        }
    }

    /// Gives another cell to the pieces of runs in `range`, up to the leaf's end; removes from `range` what is done.
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
            loop {
                let begins = piece.first == part.first;
                let answer = change(&mut piece, cell);
                let Ok(new) = answer else {
                    if !begins {
                        self.put_part(&run, OffsetRange::new(piece.first, run.last), cell);
                    }
                    return answer.map(|_| ());
                };
                // the map's own tests write anything
                debug_assert!(
                    cfg!(test) || cell.may_become(new),
                    "{cell:?} cannot become {new:?}"
                );
                let last = piece.last >= part.last;
                if begins {
                    self.take();
                    if last && (new == cell || part == run.range()) {
                        self.put(run.with(new));
                        break;
                    }
                    self.cut(&run, part);
                }
                self.put_part(&run, piece, new);
                if last {
                    self.put_part(&run, OffsetRange::new(after(part.last), run.last), cell);
                    break;
                }
                piece = OffsetRange::new(after(piece.last), part.last);
            }
            range.first = after(part.last);
        }
        Ok(())
    }

    /// Takes the next old run; its place becomes room.
    #[inline]
    fn take(&mut self) {
        self.read += 1;
        self.old = self.old.from(1);
    }

    /// Makes room for a run that `part` is cut from, and writes what lies before it.
    fn cut(&mut self, run: &Run, part: OffsetRange) {
        let (head, tail) = (run.first < part.first, part.last < run.last);
        self.make_room(1 + usize::from(head) + usize::from(tail));
        self.put_part(
            run,
            OffsetRange::new(run.first, before(part.first)),
            run.cell(),
        );
    }

    /// Writes a part of a run with another cell, unless it is empty.
    fn put_part(&mut self, run: &Run, part: OffsetRange, cell: Cell) {
        if !part.is_empty() {
            self.put(run.part(part, cell));
        }
    }

    /// Writes a run, or joins it to the one before.
    #[allow(
        clippy::inline_always,
        reason = "a run passed on through memory is read in other pieces than it was written in: a CPU waits for that"
    )]
    #[inline(always)]
    fn put(&mut self, run: Run) {
        if let Some(before) = self.leaf.runs[..self.written].last_mut()
            && before.joins(&run)
        {
            before.last = run.last;
            return;
        }
        if self.written == self.read {
            self.make_room(ROOM);
        }
        self.leaf.runs[self.written] = run;
        let available = run.cell().is_available().into();
        self.available = self.available.and_at(self.written, available);
        self.written += 1;
    }

    /// Makes sure that there is room for `runs` runs.
    #[inline(never)]
    fn make_room(&mut self, runs: usize) {
        let more = runs.saturating_sub(self.read - self.written);
        if more == 0 {
            return;
        }
        self.leaf.open(self.read - 1, more);
        self.read += more;
    }

    /// Joins the last new run with the old one after it if they are equal, and closes the room that is left.
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
        if self.written < self.read {
            self.leaf.close(self.written, self.read - self.written);
        }
        Edited {
            available,
            reached_end,
        }
    }
}
