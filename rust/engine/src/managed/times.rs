//! When records have waited long enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::offset::{Offset, OffsetRange};

/// Ranges by the time at which they wait no longer.
///
/// What does not wait any more when its time comes is passed over then: nothing is taken out before.
#[derive(Debug, Default)]
pub(crate) struct Times(BinaryHeap<Reverse<(i64, Offset, Offset)>>);

impl Times {
    pub(crate) fn push(&mut self, due_ms: i64, range: OffsetRange) {
        self.0.push(Reverse((due_ms, range.first, range.last)));
    }

    pub(crate) fn next_ms(&self) -> Option<i64> {
        self.0.peek().map(|Reverse((due_ms, ..))| *due_ms)
    }

    /// Takes a range whose time has come.
    pub(crate) fn pop(&mut self, now_ms: i64) -> Option<OffsetRange> {
        let due_ms = self.next_ms()?;
        if due_ms > now_ms {
            return None;
        }
        let Reverse((_, first, last)) = self.0.pop()?;
        Some(OffsetRange::new(first, last))
    }

    pub(crate) fn clear(&mut self) {
        self.0 = BinaryHeap::new();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Reverse<(i64, Offset, Offset)>>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        let ranges = self.0.iter();
        ranges.map(|Reverse((_, first, last))| OffsetRange::new(*first, *last))
    }
}
