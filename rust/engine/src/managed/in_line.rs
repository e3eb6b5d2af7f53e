//! All records of a share partition in one line: one member at a time has some, the next ones in their order.

use super::{Managed, Order};
use crate::offset::{OFFSET_MAX, Offset};

/// What the order of a partition lets a fetch have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The last offset.
    pub(super) last: Offset,
    /// How many records.
    pub(super) records: i64,
}

impl Line {
    const ALL: Self = Self {
        last: OFFSET_MAX,
        records: i64::MAX,
    };
}

impl Managed {
    /// Whether reading on brings nothing, as the line stands still: somebody holds records of it, or the first one is known
    /// and waits.
    pub(super) fn stands_still(&self, leased: i64) -> bool {
        let scanned = self
            .admission
            .as_ref()
            .map_or(0, |admission| admission.scanned());
        self.rules.order == Order::Partition
            && (leased > 0 || self.inner.last_in_line(1) < scanned - 1)
    }

    /// What a fetch that has read from `from` on may have of the line; none while somebody holds records of it, where the first
    /// one waits, or where the fetch has passed over it.
    pub(super) fn in_line(&self, leased: i64, from: Offset) -> Option<Line> {
        match self.rules.order {
            Order::None => Some(Line::ALL),
            Order::Partition if leased > 0 || from > self.inner.next_fetch_offset() => None,
            Order::Partition => {
                let records = self.rules.run_max;
                let last = self.inner.last_in_line(records);
                debug_assert_eq!(leased, 0, "one member at a time has some");
                let is_first = last >= self.inner.next_fetch_offset();
                is_first.then_some(Line { last, records })
            }
        }
    }
}
