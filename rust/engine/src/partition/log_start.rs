//! Offsets that the log lost: its start moved, compaction removed them, or a transaction was aborted.

use std::convert::Infallible;

use super::Partition;
use crate::inflight::{Cell, LeaseId};
use crate::offset::{OFFSET_MAX, Offset, OffsetRange};
use crate::record_state::RecordState;

impl Partition {
    /// The log now starts at `offset`: earlier records can no longer be delivered.
    ///
    /// Acquired records before it stay so until their lock ends, and are archived then. Nothing is written now: the
    /// next write carries the start offset.
    pub fn move_log_start(&mut self, offset: Offset) {
        if offset <= self.start {
            return;
        }
        let offset = offset.min(OFFSET_MAX + 1);
        let gone = OffsetRange::new(self.start, offset - 1);
        self.archive_available(gone);
        self.complete -= self.settled_in(gone);
        self.start = offset;
        self.end = self.end.max(offset);
        self.overtaken.push(gone);
        if let Some(gap) = self.read_gap {
            self.set_gap(gap.start.max(offset), gap.end);
        }
        self.assert_window();
    }

    fn settled_in(&self, range: OffsetRange) -> i64 {
        let mut count = 0;
        let mut at = self.map.seek(range.first);
        while let Some(run) = self.map.get(at).filter(|run| run.first <= range.last) {
            if run.cell().state().is_terminal() {
                count += run.range().clip(range).count();
            }
            at = self.map.next(at);
        }
        debug_assert!(
            (0..=self.complete).contains(&count),
            "more is settled than was counted"
        );
        count
    }

    /// Archives offsets without a record for this group: aborted transactions, control records.
    pub fn archive(&mut self, first: Offset, last: Offset) {
        self.archive_where(OffsetRange::new(first, last), |cell| {
            use RecordState::{Acquired, Available};
            !cell.is_pending() && matches!(cell.state(), Available | Acquired)
        });
        self.advance_start();
        self.assert_window();
    }

    /// The log has no records from `first` to `last`, as a fetch from `first` has shown: they were compacted.
    ///
    /// The start offset moves past the hole: nothing else would ever finish these offsets, and the window would fill.
    /// Acquired records in it stay so until their lock ends. Nothing is written now.
    pub fn pass_hole(&mut self, first: Offset, last: Offset) {
        if last < first || last > OFFSET_MAX {
            return;
        }
        self.archive_available(OffsetRange::new(first, last));
        if let Some((unread, end)) = self.unread_hole()
            && (first..=last).contains(&unread)
        {
            self.set_gap(last + 1, end);
        }
        if let Some(front) = self.map.first()
            && first <= self.start
            && self.start <= last
            && self.start < front.first
        {
            debug_assert!(front.first > self.start, "the start offset never falls");
            self.start = front.first.min(last + 1);
        }
        self.advance_start();
        self.assert_window();
    }

    /// Archives the available records in `range`, even if a state change is still being written.
    pub(super) fn archive_available(&mut self, range: OffsetRange) {
        self.archive_where(range, |cell| cell.state() == RecordState::Available);
    }

    fn archive_where(&mut self, range: OffsetRange, condition: impl Fn(Cell) -> bool) {
        let (start, settled) = (self.start, self.complete);
        let Self {
            map,
            leases,
            complete,
            ..
        } = self;
        // the caller's numbers are unchecked; no record has a negative offset
        let range = OffsetRange::new(range.first.max(0), range.last);
        let Ok(()) = map.rewrite(range, |piece, cell| {
            if !condition(cell) {
                return Ok::<_, Infallible>(cell);
            }
            if cell.lease() != LeaseId::NONE {
                leases.settle(cell.lease(), piece.length());
            }
            *complete += OffsetRange::new(piece.first.max(start), piece.last).count();
            Ok(Cell::free(RecordState::Archived, cell.delivery_count()))
        });
        debug_assert!(settled <= self.complete, "what is settled stays so");
    }
}
