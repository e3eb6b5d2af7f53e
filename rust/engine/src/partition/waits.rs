//! Available records that wait: the partition's part of [`Managed`](crate::Managed).

use std::convert::Infallible;

use super::fresh::cut;
use super::pace::slow_from;
use super::{AcquireOptions, Acquired, Partition, Write};
use crate::inflight::{Cell, LeaseId, Run};
use crate::offset::{OFFSET_MAX, Offset, OffsetRange};
use crate::record_state::RecordState;

/// Unfinished offsets with the same state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) range: OffsetRange,
    /// Whether they are acquired or have a pending write.
    pub(crate) is_held: bool,
    /// Whether they wait for a time or to be examined.
    pub(crate) is_waiting: bool,
    /// Whether they wait for earlier records.
    pub(crate) is_behind: bool,
}

impl Open {
    /// Offsets that can be acquired.
    pub(crate) fn free(range: OffsetRange) -> Self {
        Self {
            range,
            is_held: false,
            is_waiting: false,
            is_behind: false,
        }
    }
}

impl Partition {
    /// The available, non-waiting records in `range` with their delivery counts; equal neighbors are merged.
    pub(crate) fn available_in(&self, range: OffsetRange) -> Vec<(OffsetRange, u16)> {
        let mut found: Vec<(OffsetRange, u16)> = Vec::new();
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last {
                return false;
            }
            if run.cell().is_free() && !run.cell().is_waiting() {
                let (piece, count) = (run.range().clip(range), run.cell().delivery_count());
                match found.last_mut() {
                    Some((before, same)) if before.last + 1 == piece.first && *same == count => {
                        before.last = piece.last;
                    }
                    _ => found.push((piece, count)),
                }
            }
            true
        });
        found
    }

    /// Makes available records in `range` wait.
    pub(crate) fn wait(&mut self, range: OffsetRange) {
        let Ok(()) = self.map.rewrite(range, |_, cell| {
            let waits = cell.is_free();
            Ok::<_, Infallible>(if waits { cell.waiting() } else { cell })
        });
    }

    /// Makes waiting records in `range` acquirable.
    pub(crate) fn ready(&mut self, range: OffsetRange) {
        let Ok(()) = self
            .map
            .rewrite(range, |_, cell| Ok::<_, Infallible>(cell.ready()));
    }

    /// Makes available records in `range` wait for earlier ones.
    pub(crate) fn put_behind(&mut self, range: OffsetRange) {
        let Ok(()) = self.map.rewrite(range, |_, cell| {
            Ok::<_, Infallible>(if cell.is_free() { cell.behind() } else { cell })
        });
    }

    /// Ends the wait of records in `range` for earlier ones.
    pub(crate) fn put_in_front(&mut self, range: OffsetRange) {
        let Ok(()) = self
            .map
            .rewrite(range, |_, cell| Ok::<_, Infallible>(cell.in_front()));
    }

    /// Adds the unfinished offsets in `range`, in order, to `found`, up to `wanted` offsets; returns how many.
    pub(crate) fn open_in(&self, range: OffsetRange, wanted: i64, found: &mut Vec<Open>) -> i64 {
        let mut count = 0;
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last || count >= wanted {
                return false;
            }
            let cell = run.cell();
            let is_held = cell.lease() != LeaseId::NONE;
            if is_held || cell.is_free() {
                let range = run.range().clip(range);
                count += range.count();
                found.push(Open {
                    range,
                    is_held,
                    is_waiting: cell.is_waiting(),
                    is_behind: cell.is_behind(),
                });
            }
            true
        });
        count
    }

    /// The first unfinished offsets in `range` with the same state.
    pub(crate) fn first_open(&self, range: OffsetRange) -> Option<Open> {
        let mut found = None;
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last {
                return false;
            }
            let cell = run.cell();
            let is_held = cell.lease() != LeaseId::NONE;
            if is_held || cell.is_free() {
                found = Some(Open {
                    range: run.range().clip(range),
                    is_held,
                    is_waiting: cell.is_waiting(),
                    is_behind: cell.is_behind(),
                });
            }
            found.is_none()
        });
        found
    }

    /// The end of the batch that `offset` belongs to, if available records behind `offset` in it are near their delivery
    /// limit, those that come after others of their key included.
    pub(crate) fn slow_batch_end(&self, offset: Offset) -> Option<Offset> {
        let slow_from = slow_from(self.config.max_delivery_count);
        let (mut last, mut slow) = (None, false);
        self.map.walk(self.map.seek(offset), |run| {
            if last.is_some_and(|last| run.opens_batch() || run.first != last + 1) {
                return false;
            }
            let cell = run.cell();
            slow |= run.last > offset
                && cell.in_front().is_available()
                && cell.delivery_count() >= slow_from;
            last = Some(run.last);
            true
        });
        last.filter(|_| slow)
    }

    /// All unfinished offsets in `range`, in order.
    pub(crate) fn all_open_in(&self, range: OffsetRange) -> Vec<Open> {
        let mut found = Vec::new();
        self.open_in(range, i64::MAX, &mut found);
        found
    }

    /// The last offset before the first record that waits, or after `wanted` available ones if that comes first.
    pub(crate) fn last_in_line(&self, wanted: i64) -> Offset {
        let (mut last, mut found) = (OFFSET_MAX, 0);
        self.map.walk(self.map.seek(self.start), |run| {
            if run.cell().is_waiting() {
                last = run.first - 1;
                return false;
            }
            if run.cell().is_available() {
                found += run.range().count();
            }
            found < wanted
        });
        debug_assert!(last <= OFFSET_MAX, "no record lies there");
        last
    }

    /// Adds the offsets of record batches to the window: those that no run covers become available, and wait.
    ///
    /// `batches` are ascending; offsets between them hold no record. A batch of the window ends at a record-batch
    /// boundary, with at least `batch_size` offsets.
    pub(crate) fn admit(&mut self, batches: &[OffsetRange], batch_size: i64) {
        let (Some(head), Some(tail)) = (batches.first(), batches.last()) else {
            return;
        };
        let mut first = head.first.max(self.start);
        if self.map.is_empty() {
            first = first.max(self.end);
        }
        let last = tail.last.min(OFFSET_MAX);
        let mut inserted = None;
        while first <= last {
            let part = OffsetRange::new(first, cut(batches, first, last, batch_size));
            debug_assert!(!part.is_empty(), "it would not end");
            for hole in self.uncovered_in(part) {
                let waiting = Cell::free(RecordState::Available, 0).waiting();
                self.map.insert(Run::new(hole, waiting).opening_batch(true));
                inserted.get_or_insert(hole.first);
            }
            first = part.last + 1;
        }
        if inserted.is_some() && self.map.first_offset() == inserted {
            self.start = self.start.max(inserted.unwrap_or(self.start));
        }
        self.end = self.end.max(last);
        self.read_up_to(last + 1);
        self.assert_window();
    }

    /// The parts of `range` that no run covers.
    fn uncovered_in(&self, range: OffsetRange) -> Vec<OffsetRange> {
        let (mut holes, mut next) = (Vec::new(), range.first);
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last {
                return false;
            }
            if run.first > next {
                holes.push(OffsetRange::new(next, run.first - 1));
            }
            next = run.last + 1;
            true
        });
        if next <= range.last {
            holes.push(OffsetRange::new(next, range.last));
        }
        debug_assert!(
            holes.is_sorted_by(|a, b| a.last < b.first),
            "holes are in order"
        );
        debug_assert!(
            holes.iter().all(|hole| *hole == hole.clip(range)),
            "a hole elsewhere"
        );
        holes
    }

    /// As [`acquire`](Self::acquire), but only in-flight records that do not wait, up to `last`, and never more than
    /// requested.
    pub(crate) fn acquire_ready(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        last: Offset,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let Some(tail) = batches.last() else {
            return 0;
        };
        let options = AcquireOptions {
            record_limit: true,
            ..options
        };
        // nothing after the end has been admitted
        let last = tail.last.min(self.end).min(last);
        let cap = (last, options.max_fetch_records);
        let taken = self.acquire_known_within(now_ms, member, batches, options, cap, out);
        debug_assert!(
            (0..=options.max_fetch_records.max(0)).contains(&taken),
            "more than was wanted"
        );
        taken
    }

    /// Expires the available records in `ranges`, with dead letters if `letters`, and does the work of
    /// [`advance`](Self::advance), in one write.
    pub(crate) fn advance_and_expire(
        &mut self,
        now_ms: i64,
        ranges: &[OffsetRange],
        letters: bool,
    ) -> Option<Write<'_>> {
        let start = self.start;
        let mark = self.expire_locks(now_ms);
        let state = if letters && self.config.dead_letters {
            RecordState::Archiving
        } else {
            RecordState::Archived
        };
        let Self {
            map,
            complete,
            writes,
            dead_letters,
            expired,
            ..
        } = self;
        for range in ranges {
            let Ok(()) = map.rewrite(*range, |piece, cell| {
                if !cell.is_free() {
                    return Ok::<_, Infallible>(cell);
                }
                debug_assert!(
                    piece.first >= start,
                    "nothing is available before the start"
                );
                *expired += piece.length() as u64;
                if state.is_terminal() {
                    *complete += piece.length();
                } else {
                    dead_letters.note_expired(*piece);
                }
                writes.push(mark, *piece, state, cell.delivery_count());
                Ok(Cell::free(state, cell.delivery_count()))
            });
        }
        self.begin_write(mark, start, true)
    }

    /// The records in `range` that are neither finished nor about to become dead letters, and whether a member holds
    /// them.
    pub(crate) fn unsettled_in(&self, range: OffsetRange) -> Vec<(OffsetRange, bool)> {
        let mut found: Vec<(OffsetRange, bool)> = Vec::new();
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last {
                return false;
            }
            let is_leased = run.cell().lease() != LeaseId::NONE;
            if is_leased || run.cell().is_free() {
                let piece = run.range().clip(range);
                match found.last_mut() {
                    Some((before, same))
                        if before.last + 1 == piece.first && *same == is_leased =>
                    {
                        before.last = piece.last;
                    }
                    _ => found.push((piece, is_leased)),
                }
            }
            true
        });
        found
    }

    /// The first unfinished offset from `offset`.
    pub(crate) fn unsettled_from(&self, mut offset: Offset) -> Offset {
        self.map.walk(self.map.seek(offset), |run| {
            let passes = run.first <= offset && run.cell().is_settled();
            if passes {
                offset = run.last + 1;
            }
            passes
        });
        offset
    }

    /// Whether all of `range` is finished or before the start offset.
    pub(crate) fn is_settled(&self, range: OffsetRange) -> bool {
        range.last < self.start || self.unsettled_from(range.first.max(self.start)) > range.last
    }

    /// The first acquirable record.
    pub(crate) fn first_ready(&self) -> Option<Offset> {
        let at = self.map.first_available()?;
        self.map.get(at).map(|run| run.first)
    }

    /// The first acquirable record from `offset`.
    pub(crate) fn first_ready_from(&self, offset: Offset) -> Option<Offset> {
        let at = self.map.next_available(self.map.seek(offset))?;
        self.map
            .get(at)
            .map(|run| run.last.min(run.first.max(offset)))
    }

    /// The first acquirable records from `offset`, as far as their state is the same.
    pub(crate) fn first_ready_piece(&self, offset: Offset) -> Option<OffsetRange> {
        let at = self.map.next_available(self.map.seek(offset))?;
        let run = self.map.get(at)?;
        Some(OffsetRange::new(run.first.max(offset), run.last))
    }

    /// How many records in `range` are acquirable; no more than about `wanted` are counted.
    pub(crate) fn ready_count(&self, range: OffsetRange, wanted: i64) -> i64 {
        let (mut count, mut next) = (0, self.first_ready_piece(range.first));
        while let Some(piece) = next.filter(|piece| piece.first <= range.last && count < wanted) {
            count += piece.clip(range).count();
            next = self.first_ready_piece(piece.last + 1);
        }
        count
    }

    /// The acquirable records in `range`.
    pub(crate) fn ready_in(&self, range: OffsetRange) -> Vec<OffsetRange> {
        let mut found = Vec::new();
        let mut next = self.map.next_available(self.map.seek(range.first));
        while let Some(run) = next.and_then(|at| self.map.get(at))
            && run.first <= range.last
        {
            found.push(run.range().clip(range));
            next = self.map.next_available(self.map.seek_near(run.last + 1));
        }
        found
    }

    /// Returns the last of the first `room` acquirable records from `offset` to `to`, or `offset`.
    pub(crate) fn last_ready(&self, offset: Offset, to: Offset, mut room: i64) -> Offset {
        let mut last = offset;
        let mut next = self.map.next_available(self.map.seek(offset));
        while room > 0
            && let Some(run) = next.and_then(|at| self.map.get(at))
        {
            let ready = run.range().clip(OffsetRange::new(offset, to));
            if ready.is_empty() {
                break;
            }
            room -= ready.count();
            last = ready.last + room.min(0);
            next = self.map.next_available(self.map.seek_near(run.last + 1));
        }
        last
    }

    /// How many offsets are acquired, pending writes included. Scans all leases.
    pub fn leased(&self) -> i64 {
        self.leases.count()
    }

    /// The waiting records at or after the start offset.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        let start = self.start;
        let runs = self.map.iter().filter(|run| run.cell().is_waiting());
        runs.map(move |run| OffsetRange::new(run.first.max(start), run.last))
    }

    /// Offsets of the window that are neither finished nor acquired, unread ones included.
    pub(crate) fn open_units(&self, leased: i64) -> i64 {
        self.in_flight() - self.complete - leased
    }

    /// The offset after everything in flight.
    pub(crate) fn past_end(&self) -> Offset {
        self.end + 1
    }
}
