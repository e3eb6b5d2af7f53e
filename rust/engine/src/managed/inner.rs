//! The partition of a [`Managed`](super::Managed), with a count that it does not keep itself.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use crate::offset::{Offset, OffsetRange};
use crate::partition::{AcquireOptions, Acquired, Partition};

/// Nothing is lined up.
const NOWHERE: Offset = -1;

/// A partition, and how many of its records are acquired. A fetch whose records lie far apart asks for that count at
/// each of them; plain partitions never do, and do not count.
#[derive(Debug)]
pub(super) struct Inner {
    partition: Partition,
    /// `None` after a change other than an acquire.
    leased: Cell<Option<i64>>,
    /// Up to here, everything that a fetch may have is acquirable; see [`line_up`](super::Managed::line_up).
    lined_up: Offset,
}

impl Inner {
    pub(super) fn new(partition: Partition) -> Self {
        Self {
            partition,
            leased: Cell::new(None),
            lined_up: NOWHERE,
        }
    }

    /// Replaces the partition; returns the one before.
    pub(super) fn replace(&mut self, partition: Partition) -> Partition {
        std::mem::replace(self, Self::new(partition)).partition
    }

    /// As [`Partition::leased`], without a scan if nothing but acquires happened since the last call.
    pub(super) fn leased(&self) -> i64 {
        let leased = self.leased.get();
        let leased = leased.unwrap_or_else(|| self.partition.leased());
        debug_assert_eq!(
            leased,
            self.partition.leased(),
            "the count of acquired records is stale"
        );
        self.leased.set(Some(leased));
        leased
    }

    /// Up to where everything that a fetch may have is acquirable.
    pub(super) fn lined_up(&self) -> Offset {
        self.lined_up
    }

    pub(super) fn set_lined_up(&mut self, to: Offset) {
        self.lined_up = to;
    }

    pub(super) fn forget_lined_up(&mut self) {
        self.lined_up = NOWHERE;
    }

    /// As [`Partition::acquire_ready`].
    pub(super) fn acquire_ready(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        last: Offset,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let leased = self.leased();
        let partition = &mut self.partition;
        let taken = partition.acquire_ready(now_ms, member, batches, options, last, out);
        self.leased.set(Some(leased + taken));
        taken
    }
}

impl Deref for Inner {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl DerefMut for Inner {
    fn deref_mut(&mut self) -> &mut Partition {
        self.leased.set(None);
        self.lined_up = NOWHERE;
        &mut self.partition
    }
}
