//! Order by partition: one member at a time holds records, and the next ones follow in order.

use super::{Managed, Order};
use crate::offset::{OFFSET_MAX, Offset};

/// The records that the order lets a fetch acquire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The last offset.
    pub(super) last: Offset,
    /// The number of records.
    pub(super) records: i64,
}

impl Line {
    const ALL: Self = Self {
        last: OFFSET_MAX,
        records: i64::MAX,
    };
}

impl Managed {
    /// Whether reading further brings nothing: records are acquired, or the first one is known and waits.
    pub(super) fn stands_still(&self, leased: i64) -> bool {
        let scanned = self
            .admission
            .as_ref()
            .map_or(0, |admission| admission.scanned());
        self.rules.order == Order::Partition
            && (leased > 0 || self.inner.last_in_line(1) < scanned - 1)
    }

    /// The records that a fetch reading from `from` may acquire; none while records are acquired, while the first one
    /// waits, or if the fetch starts after it.
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
