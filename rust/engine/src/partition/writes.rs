//! How a begun change ends: committed when it is durable, rolled back when it could not be written.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::write::{Changes, Ranges, Write};
use super::{Partition, Side};
use crate::error::Refusal;
use crate::inflight::Cell;
use crate::offset::{Offset, OffsetRange};

/// What waits for the end of a write.
#[derive(Debug)]
struct OpenWrite {
    id: u64,
    /// Where transitions have begun.
    ranges: Ranges,
    /// The write tells of locks that have run out: its end changes no record.
    expiry: bool,
}

/// The open writes, in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Writes {
    open: VecDeque<OpenWrite>,
    last_id: u64,
}

impl Writes {
    fn begin(&mut self, ranges: Ranges, expiry: bool) -> u64 {
        self.last_id += 1;
        self.open.push_back(OpenWrite {
            id: self.last_id,
            ranges,
            expiry,
        });
        self.last_id
    }

    fn end(&mut self, id: u64) -> Result<OpenWrite, Refusal> {
        // writes end in the order in which they began, or nearly so
        let ended = if self.open.front().is_some_and(|oldest| oldest.id == id) {
            self.open.pop_front()
        } else {
            let found = self.open.binary_search_by_key(&id, |write| write.id);
            found.ok().and_then(|at| self.open.remove(at))
        };
        ended.ok_or(Refusal::UnknownWrite { id })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.open.capacity() * size_of::<OpenWrite>()
    }
}

impl Partition {
    #[inline]
    /// Opens a write for what has begun or, with `expiry`, has already happened.
    pub(super) fn begin_write(
        &mut self,
        start_offset: Offset,
        changes: Changes,
        expiry: bool,
    ) -> Option<Write> {
        if changes.is_empty() {
            return None;
        }
        let ranges = if expiry {
            Ranges::new()
        } else {
            changes.ranges()
        };
        let id = self.writes.begin(ranges, expiry);
        Some(Write {
            id,
            start_offset,
            delivery_complete_count: self.complete,
            batches: changes.finish(),
        })
    }

    /// The write is durable: what it changed may change again, and the start offset moves over what is settled.
    pub fn commit(&mut self, write_id: u64) -> Result<(), Refusal> {
        let write = self.writes.end(write_id)?;
        let Self {
            map,
            leases,
            overtaken,
            start,
            ..
        } = self;
        for &range in &write.ranges {
            let Ok(()) = map.rewrite(range, |piece, cell| {
                if !cell.is_pending() {
                    return Ok::<_, Infallible>(cell);
                }
                leases.settle(cell.lease(), piece.count());
                if piece.first < *start {
                    overtaken.push(*piece);
                }
                Ok(Cell::free(cell.state(), cell.delivery_count()))
            });
        }
        self.advance_start();
        Ok(())
    }

    /// The write failed: its records are leased as before, or free where their lock has run out by `now_ms`.
    pub fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let write = self.writes.end(write_id)?;
        self.restore(&write.ranges, now_ms);
        if write.expiry {
            self.advance_start();
        }
        Ok(())
    }

    /// Undoes what has begun in `ranges`.
    pub(super) fn restore(&mut self, ranges: &[OffsetRange], now_ms: i64) {
        let side = Side::of(self);
        let Self {
            map,
            leases,
            overtaken,
            complete,
            ..
        } = self;
        for &range in ranges {
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
                leases.settle(cell.lease(), piece.count());
                let state = side.given_back(*piece, cell.delivery_count());
                if state.is_terminal() {
                    *complete += side.counted(*piece);
                    if piece.first < side.start {
                        overtaken.push(*piece);
                    }
                }
                Ok(Cell::free(state, cell.delivery_count()))
            });
        }
    }
}
