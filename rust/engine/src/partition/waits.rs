//! Records that are available and wait: what [`Managed`](crate::Managed) asks of a partition.

use std::convert::Infallible;

use super::Partition;
use crate::offset::{OFFSET_MAX, Offset, OffsetRange};

impl Partition {
    /// Where in `range` records are available and do not wait, with how often they were delivered; neighbours that are
    /// equal in that are joined.
    pub(crate) fn available_in(&self, range: OffsetRange) -> Vec<(OffsetRange, u16)> {
        let mut found: Vec<(OffsetRange, u16)> = Vec::new();
        self.map.walk(self.map.seek(range.first), |run| {
            if run.first > range.last {
                return false;
            }
            if run.cell().is_available() {
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

    /// What is available in `range` waits from now on.
    pub(crate) fn wait(&mut self, range: OffsetRange) {
        let Ok(()) = self.map.rewrite(range, |_, cell| {
            let waits = cell.is_available();
            Ok::<_, Infallible>(if waits { cell.waiting() } else { cell })
        });
    }

    /// What waits in `range` can be acquired from now on.
    pub(crate) fn ready(&mut self, range: OffsetRange) {
        let Ok(()) = self
            .map
            .rewrite(range, |_, cell| Ok::<_, Infallible>(cell.ready()));
    }

    /// The last offset before the first record that waits; as far as `wanted` available ones, where so many come before it.
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
        last
    }

    /// How many offsets are leased, those whose settlement is being written included. Looks at all leases.
    pub(crate) fn leased(&self) -> i64 {
        self.leases.count()
    }

    /// Records at or after the start offset that wait, from the first on.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        let start = self.start;
        let runs = self.map.iter().filter(|run| run.cell().is_waiting());
        runs.map(move |run| OffsetRange::new(run.first.max(start), run.last))
    }

    /// Offsets of the window that are neither settled nor leased, those included that are not read yet.
    pub(crate) fn open_units(&self, leased: i64) -> i64 {
        self.in_flight() - self.complete - leased
    }

    /// The offset that follows everything in flight.
    pub(crate) fn past_end(&self) -> Offset {
        self.end + 1
    }
}
