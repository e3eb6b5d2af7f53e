//! Open writes: how a change begins, and how it ends: committed once durable, rolled back if the write failed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Range;

use super::write::{StateBatch, Write};
use super::{Partition, Side};
use crate::error::Refusal;
use crate::inflight::Cell;
use crate::offset::{Offset, OffsetRange, after};
use crate::record_state::RecordState;

/// The initial capacity for batches, and how many ended ones may stay.
const SPARE: usize = 16;
/// The capacity for batches kept while no write is open.
const ROOM_MAX: usize = 256;

#[derive(Debug)]
struct OpenWrite {
    id: u64,
    /// The position of its batches.
    batches: Range<usize>,
    /// The write reports expired locks: its end changes no record.
    expiry: bool,
}

/// The open writes, oldest first.
///
/// Their batches are in one list, to which an operation appends as it proceeds:
///
/// ```text
/// batches   [ended ][write 7     ][ended][write 9][under way
/// ```
#[derive(Debug, Default)]
pub(super) struct Writes {
    open: VecDeque<OpenWrite>,
    batches: Vec<StateBatch>,
    /// How many of `batches` belong to ended writes.
    ended: usize,
    last_id: u64,
    /// Whether the current changes are in order.
    in_order: bool,
}

/// The start of the current operation's changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

impl Writes {
    /// Marks the start of an operation.
    pub(super) fn mark(&mut self) -> Mark {
        self.in_order = true;
        if self.batches.capacity() == 0 {
            self.batches.reserve(SPARE);
        }
        Mark(self.batches.len())
    }

    /// Adds a change to the current operation, or merges it with the previous one.
    #[inline]
    pub(super) fn push(
        &mut self,
        mark: Mark,
        piece: OffsetRange,
        state: RecordState,
        delivery_count: u16,
    ) {
        let OffsetRange { first, last } = piece;
        debug_assert!(!piece.is_empty(), "an empty change");
        debug_assert_ne!(
            state,
            RecordState::Acquired,
            "acquired records are not written"
        );
        let next = StateBatch {
            first,
            last,
            state,
            delivery_count,
        };
        if let Some(before) = self.batches[mark.0..].last_mut() {
            if joins(before, &next) {
                before.last = last;
                return;
            }
            self.in_order &= before.first < first;
        }
        self.batches.push(next);
    }

    /// The current operation was refused.
    pub(super) fn give_up(&mut self, mark: Mark) {
        debug_assert!(mark.0 <= self.batches.len(), "another write has ended");
        self.batches.truncate(mark.0);
    }

    /// Sorts the current changes, equal neighbors merged.
    fn sort(&mut self, mark: Mark) {
        let changes = &mut self.batches[mark.0..];
        changes.sort_unstable_by_key(|batch| batch.first);
        let mut to = 0;
        for from in 1..changes.len() {
            let next = changes[from];
            if joins(&changes[to], &next) {
                changes[to].last = next.last;
            } else {
                to += 1;
                changes[to] = next;
            }
        }
        self.batches.truncate(mark.0 + to + 1);
    }

    /// Opens a write for the changes since the mark, if any.
    fn begin(
        &mut self,
        mark: Mark,
        start_offset: Offset,
        delivery_complete_count: i64,
        expiry: bool,
    ) -> Option<Write<'_>> {
        if self.batches.len() == mark.0 {
            return None;
        }
        if !self.in_order {
            self.sort(mark);
        }
        debug_assert!(
            self.batches[mark.0..].is_sorted_by(|a, b| a.last < b.first && !joins(a, b)),
            "changes overlap, or are not joined"
        );
        debug_assert!(
            self.open
                .back()
                .is_none_or(|last| last.batches.end <= mark.0),
            "batches of another write"
        );
        self.last_id += 1;
        let id = self.last_id;
        self.open.push_back(OpenWrite {
            id,
            batches: mark.0..self.batches.len(),
            expiry,
        });
        Some(Write {
            id,
            start_offset,
            delivery_complete_count,
            batches: &self.batches[mark.0..],
        })
    }

    /// The index of an open write.
    fn find(&self, id: u64) -> Option<usize> {
        // writes end in the order in which they began, or nearly so
        if self.open.front().is_some_and(|oldest| oldest.id == id) {
            return Some(0);
        }
        self.open.binary_search_by_key(&id, |write| write.id).ok()
    }

    fn batches_of(&self, at: usize) -> &[StateBatch] {
        &self.batches[self.open[at].batches.clone()]
    }

    /// The ranges with transitions in a write.
    fn begun(&self, at: usize) -> impl Iterator<Item = OffsetRange> + '_ {
        let changed = !self.open[at].expiry;
        stretches(self.batches_of(at)).filter(move |_| changed)
    }

    fn end(&mut self, at: usize) {
        debug_assert!(at < self.open.len(), "no such write is open");
        let write = match at {
            0 => self.open.pop_front(),
            _ => self.open.remove(at),
        };
        let Some(write) = write else { return };
        if self.open.is_empty() {
            // keep room for writes of this size
            let room = self.batches.len().clamp(SPARE, ROOM_MAX);
            self.batches.clear();
            if self.batches.capacity() > 4 * room {
                self.batches.shrink_to(room);
            }
            self.ended = 0;
            return;
        }
        self.ended += write.batches.len();
        debug_assert!(
            self.ended <= self.batches.len(),
            "more has ended than began"
        );
        if self.ended > SPARE && self.ended > self.batches.len() / 2 {
            self.close_up();
        }
    }

    /// Closes the gaps between batches that are still needed.
    fn close_up(&mut self) {
        let mut to = 0;
        for write in &mut self.open {
            let batches = std::mem::replace(&mut write.batches, to..to);
            write.batches.end += batches.len();
            debug_assert!(to <= batches.start, "batches move down");
            self.batches.copy_within(batches, to);
            to = write.batches.end;
        }
        self.batches.truncate(to);
        self.ended = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.open.capacity() * size_of::<OpenWrite>()
            + self.batches.capacity() * size_of::<StateBatch>()
    }
}

#[allow(
    clippy::needless_bitwise_bool,
    reason = "one branch, not three unpredictable ones"
)]
fn joins(before: &StateBatch, next: &StateBatch) -> bool {
    (after(before.last) == next.first)
        & (before.state == next.state)
        & (before.delivery_count == next.delivery_count)
}

/// The offsets of batches in order, neighbors merged whatever their state.
fn stretches(batches: &[StateBatch]) -> impl Iterator<Item = OffsetRange> + '_ {
    batches
        .chunk_by(|a, b| after(a.last) == b.first)
        .map(|stretch| OffsetRange::new(stretch[0].first, stretch[stretch.len() - 1].last))
}

impl Partition {
    /// Opens a write for transitions that have begun or, with `expiry`, have already happened.
    #[inline]
    pub(super) fn begin_write(
        &mut self,
        mark: Mark,
        start_offset: Offset,
        expiry: bool,
    ) -> Option<Write<'_>> {
        self.writes.begin(mark, start_offset, self.complete, expiry)
    }

    /// The batches of an open write, as they were in its [`Write`].
    pub fn write_batches(&self, write_id: u64) -> Result<&[StateBatch], Refusal> {
        let at = self.open_write(write_id)?;
        Ok(self.writes.batches_of(at))
    }

    fn open_write(&self, id: u64) -> Result<usize, Refusal> {
        self.writes.find(id).ok_or(Refusal::UnknownWrite { id })
    }

    /// The write is durable: its records may change again, and the start offset moves past finished ones.
    pub fn commit(&mut self, write_id: u64) -> Result<(), Refusal> {
        let at = self.open_write(write_id)?;
        let Self {
            map,
            leases,
            overtaken,
            start,
            writes,
            dead_letters,
            ..
        } = self;
        for range in writes.begun(at) {
            let Ok(()) = map.rewrite(range, |piece, cell| {
                if !cell.is_pending() {
                    return Ok::<_, Infallible>(cell);
                }
                debug_assert_ne!(
                    cell.state(),
                    RecordState::Acquired,
                    "a write finishes or frees records"
                );
                leases.settle(cell.lease(), piece.length());
                if piece.first < *start {
                    overtaken.push(*piece);
                }
                dead_letters.committed(*piece, cell);
                Ok(Cell::free(cell.state(), cell.delivery_count()))
            });
        }
        self.end_write(at);
        self.advance_start();
        debug_assert!(self.writes.find(write_id).is_none(), "a write ends once");
        self.assert_window();
        Ok(())
    }

    /// The write failed: its records are acquired as before, or free if their lock has expired by `now_ms`.
    pub fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let at = self.open_write(write_id)?;
        let expiry = self.writes.open[at].expiry;
        self.restore(|writes| writes.begun(at), now_ms);
        self.end_write(at);
        if expiry {
            self.advance_start();
        }
        debug_assert!(self.writes.find(write_id).is_none(), "a write ends once");
        self.assert_window();
        Ok(())
    }

    /// The write has ended, either way: dead letters of records at their delivery limit are due now.
    fn end_write(&mut self, at: usize) {
        if self.writes.open[at].expiry {
            self.dead_letters.expired(self.writes.batches_of(at));
        }
        self.writes.end(at);
    }

    /// Undoes the changes of a refused operation since the mark.
    pub(super) fn give_up(&mut self, mark: Mark) {
        self.restore(|writes| stretches(&writes.batches[mark.0..]), i64::MIN);
        self.writes.give_up(mark);
    }

    /// Undoes the transitions in `ranges`.
    fn restore<'a, I: Iterator<Item = OffsetRange>>(
        &'a mut self,
        ranges: impl FnOnce(&'a Writes) -> I,
        now_ms: i64,
    ) {
        let side = Side::of(self);
        let Self {
            map,
            leases,
            overtaken,
            complete,
            writes,
            dead_letters,
            ..
        } = self;
        for range in ranges(writes) {
            let Ok(()) = map.rewrite(range, |piece, cell| {
                if !cell.is_pending() {
                    return Ok::<_, Infallible>(cell);
                }
                side.clip(piece);
                if cell.state().is_terminal() {
                    *complete -= side.counted(*piece);
                }
                if !leases.has_expired(cell.lease(), now_ms) {
                    return Ok(Cell::acquired(cell.delivery_count(), cell.lease()));
                }
                leases.settle(cell.lease(), piece.length());
                let state = side.given_back(*piece, cell.delivery_count());
                if state.is_terminal() {
                    *complete += side.counted(*piece);
                    if piece.first < side.start {
                        overtaken.push(*piece);
                    }
                } else if state == RecordState::Archiving {
                    dead_letters.given_up(*piece, cell.delivery_count());
                }
                Ok(Cell::free(state, cell.delivery_count()))
            });
        }
    }
}
