//! Release: a member's session has closed, which ends all its leases.

use std::convert::Infallible;

use super::write::Write;
use super::{Partition, Side};
use crate::record_state::RecordState;

impl Partition {
    /// Releases all records that a member holds; those at their delivery limit are archived. Delivery counts stay.
    pub fn release(&mut self, member: &str) -> Option<Write<'_>> {
        let start = self.start;
        let side = Side::of(self);
        let Self {
            map,
            leases,
            complete,
            writes,
            ..
        } = self;
        let member = leases.member(member)?;
        let mark = writes.mark();
        for lease in leases.held_by(member) {
            let (at, range) = leases.extent(lease, map);
            let Ok(()) = map.rewrite_from(at, range, |piece, cell| {
                if cell.lease() != lease || cell.state() != RecordState::Acquired {
                    return Ok::<_, Infallible>(cell);
                }
                debug_assert_eq!(leases.owner(lease), member);
                debug_assert!(!cell.is_pending(), "its transition is being written");
                side.clip(piece);
                let state = side.given_back(*piece, cell.delivery_count());
                if state.is_terminal() {
                    *complete += side.counted(*piece);
                }
                writes.push(mark, *piece, state, cell.delivery_count());
                Ok(cell.begun(state))
            });
        }
        debug_assert_eq!(self.start, start, "it moves when the write has ended");
        self.begin_write(mark, start, false)
    }
}
