//! The in-flight window: its start, its end, and the next offset to fetch.

use std::convert::Infallible;

use super::Partition;
use crate::inflight::{Cell, Cursor, Run};
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

/// What remains of a finished run before the start offset while its batch is unfinished.
const HUSK: RecordState = RecordState::Archived;

/// Offsets missing from the persisted state: they may hold records, so they are fetched again.
///
/// Open while `end` is the partition's end offset; everything before `start` has been examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadGap {
    pub(super) start: Offset,
    pub(super) end: Offset,
    /// The first offset from `start` that no run covers and that is followed by a run.
    hole: Option<Offset>,
}

impl Partition {
    /// The first offset that may hold records not fetched since the load.
    pub(super) fn unread_from(&self) -> Option<Offset> {
        self.read_gap
            .filter(|gap| gap.start <= gap.end && gap.end == self.end)
            .map(|gap| gap.start)
    }

    /// The first uncovered range that may hold records not fetched since the load.
    pub(super) fn unread_hole(&self) -> Option<(Offset, Offset)> {
        self.unread_from()?;
        self.read_gap.and_then(|gap| Some((gap.hole?, gap.end)))
    }

    /// Everything before `to` has been fetched, or is known to be absent.
    pub(super) fn read_up_to(&mut self, to: Offset) {
        match self.unread_from() {
            Some(_) => self.set_gap(to, self.end),
            None => self.read_gap = None,
        }
    }

    pub(super) fn set_gap(&mut self, start: Offset, end: Offset) {
        let mut hole = start;
        let mut at = self.map.seek(start);
        while let Some(run) = self.map.get(at).filter(|run| run.first <= hole) {
            hole = run.last + 1;
            at = self.map.next(at);
        }
        let hole = self.map.get(at).map(|_| hole);
        debug_assert!(
            hole.is_none_or(|hole| start <= hole && self.map.at(hole).is_none()),
            "a run covers the hole"
        );
        self.read_gap = Some(ReadGap { start, end, hole });
    }

    /// Asserts the window's invariants at the end of each call.
    #[inline]
    pub(super) fn assert_window(&self) {
        debug_assert!(self.start >= 0, "no record has a negative offset");
        debug_assert!(
            self.start <= self.end.saturating_add(1),
            "the window begins behind its end"
        );
        debug_assert!(self.complete >= 0, "less than nothing is settled");
        debug_assert!(
            self.map
                .last_offset()
                .is_none_or(|last| last <= self.end.max(self.start)),
            "records in flight lie behind the window"
        );
    }

    /// The offset to fetch from next: the first one available or never read.
    pub fn next_fetch_offset(&self) -> Offset {
        if self.map.last_offset().is_none_or(|last| last < self.start) {
            return self.end;
        }
        let available = self.map.first_available();
        let available = available
            .and_then(|at| self.map.get(at))
            .map(|run| run.first);
        let Some(gap) = self.read_gap else {
            return available.unwrap_or(self.end + 1);
        };
        let unread = self.unread_from().and(gap.hole);
        available
            .into_iter()
            .chain(unread)
            .min()
            .unwrap_or(self.end + 1)
    }

    /// The last offset acquired together with `offset`; `offset` itself if it is not in flight.
    ///
    /// Records acquired together are redelivered together, so a fetch reads that far.
    pub fn batch_end(&self, offset: Offset) -> Offset {
        let at = self.map.seek(offset);
        match self.map.get(at) {
            Some(run) if run.first <= offset => self.map.batch(at).last,
            _ => offset,
        }
    }

    /// How many offsets of the window are in use, gaps included.
    pub fn in_flight(&self) -> i64 {
        if self.map.is_empty() {
            0
        } else {
            self.end - self.start + 1
        }
    }

    /// Whether a fetch could acquire anything.
    pub fn can_acquire(&self) -> bool {
        self.in_flight() < self.config.max_inflight || self.next_fetch_offset() != self.end + 1
    }

    /// Moves the start offset past finished records, to the next offset in flight.
    ///
    /// It stops before offsets that may hold records not read yet.
    pub(super) fn advance_start(&mut self) {
        let old = self.start;
        let Some(front) = self.map.first().filter(|front| front.first <= old) else {
            return;
        };
        let from = if old > front.last {
            self.map.seek(old)
        } else if front.cell().is_settled() {
            Cursor::START
        } else {
            return;
        };
        let unread = self.unread_from();
        let barrier = unread.map_or(Offset::MAX, |unread| self.batch_start(unread));
        let (mut passed, mut next) = (None, None);
        let complete = &mut self.complete;
        self.map.walk(from, |&run| {
            if !run.cell().is_settled() || run.last >= barrier {
                next = Some(run);
                return false;
            }
            *complete -= run.last - run.first.max(old) + 1;
            debug_assert!(*complete >= 0, "more offsets were passed than finished");
            passed = Some(run.last);
            true
        });
        if next.is_some_and(|next| !next.cell().is_settled() && next.first <= old) {
            return;
        }
        let next = next.map(|run| run.first);
        match next {
            None => {
                self.start = passed.map_or(old, |passed| passed + 1);
                self.end = self.start;
            }
            Some(next) => {
                let next = passed.map_or(next, |passed| next.max(passed + 1));
                self.start = unread.map_or(next, |unread| unread.min(next)).max(old);
            }
        }
        debug_assert!(old <= self.start, "the start offset never falls");
        self.assert_window();
        self.bury(from, self.start - 1);
        while let Some(range) = self.overtaken.pop() {
            self.bury(self.map.seek(range.first), range.last.min(self.start - 1));
        }
    }

    /// The start of the batch that covers `offset`, or else `offset`.
    fn batch_start(&self, offset: Offset) -> Offset {
        let at = self.map.seek(offset);
        match self.map.get(at) {
            Some(run) if run.first <= offset => self.map.batch_first(at),
            _ => offset,
        }
    }

    /// Drops finished records from the run at `at`, up to `last`, which is before the start offset.
    ///
    /// An unfinished batch leaves a husk: slower delivery needs the original batch size.
    fn bury(&mut self, mut at: Cursor, last: Offset) {
        debug_assert!(last < self.start, "what is in the window stays");
        if at == Cursor::START {
            self.map
                .remove_batches(|run| run.cell().is_settled() && run.last <= last);
        }
        let mut husked = false;
        while let Some(run) = self.map.get(at).filter(|run| run.first <= last) {
            let next = self.map.next(at);
            if !run.cell().is_settled() {
                at = next;
            } else if run.last < self.start && self.is_whole(at, &run, next) {
                at = self.map.remove_at(at);
            } else if husked {
                at = next;
            } else {
                let rest = OffsetRange::new(run.first, last);
                let Ok(()) = self.map.rewrite_from(at, rest, |_, cell| {
                    let settled = cell.is_settled();
                    Ok::<_, Infallible>(if settled { Cell::free(HUSK, 0) } else { cell })
                });
                husked = true;
                at = self.map.seek(run.first);
            }
        }
    }

    /// Whether a run is the whole of its batch.
    fn is_whole(&self, at: Cursor, run: &Run, next: Cursor) -> bool {
        let opens = run.opens_batch()
            || self
                .map
                .prev(at)
                .and_then(|prev| self.map.get(prev))
                .is_none_or(|prev| prev.last + 1 < run.first);
        opens && !self.map.continues(next, run.last)
    }
}
