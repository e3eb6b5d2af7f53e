//! Expiry of acquisition locks.

use std::convert::Infallible;

use super::write::Write;
use super::writes::Mark;
use super::{Partition, Side};
use crate::inflight::{Cell, LeaseId};

impl Partition {
    /// Frees the records whose lock has expired at `now_ms`; those at their delivery limit are archived.
    ///
    /// The records are freed at once and for good, whether the write succeeds or not: the lock is gone either way. A
    /// transition being written goes on; if its write fails, its records are free then. The start offset moves when the
    /// write has ended, either way.
    pub fn advance(&mut self, now_ms: i64) -> Option<Write<'_>> {
        let start = self.start;
        let mark = self.expire_locks(now_ms);
        self.begin_write(mark, start, true)
    }

    /// Ends the expired locks; their records are among the changes since the mark.
    pub(super) fn expire_locks(&mut self, now_ms: i64) -> Mark {
        let mark = self.writes.mark();
        while let Some(lease) = self.leases.pop_expired(now_ms) {
            debug_assert!(
                self.leases.has_expired(lease, now_ms),
                "its lock has not run out"
            );
            self.expire(lease, mark);
        }
        debug_assert!(
            self.next_deadline_ms()
                .is_none_or(|next| next > now_ms.max(0)),
            "a lock that has run out is left"
        );
        mark
    }

    fn expire(&mut self, lease: LeaseId, mark: Mark) {
        let side = Side::of(self);
        let (at, range) = self.leases.extent(lease, &self.map);
        let mut freed = 0;
        let Self {
            map,
            complete,
            overtaken,
            writes,
            ..
        } = self;
        let Ok(()) = map.rewrite_from(at, range, |piece, cell| {
            if cell.lease() != lease || cell.is_pending() {
                return Ok::<_, Infallible>(cell);
            }
            side.clip(piece);
            freed += piece.length();
            let state = side.given_back(*piece, cell.delivery_count());
            if state.is_terminal() {
                *complete += side.counted(*piece);
                if piece.first < side.start {
                    overtaken.push(*piece);
                }
            }
            writes.push(mark, *piece, state, cell.delivery_count());
            Ok(Cell::free(state, cell.delivery_count()))
        });
        debug_assert!(
            (0..=range.length().max(0)).contains(&freed),
            "offsets of others are freed"
        );
        self.leases.settle(lease, freed);
        self.timed_out += freed as u64;
    }
}
