//! Slower delivery near the limit: a record that keeps failing is delivered with fewer and fewer others, finally alone,
//! so that one bad record does not exhaust the deliveries of its neighbors.

/// The delivery count from which a record is delivered with fewer others.
pub(super) fn slow_from(max_delivery_count: u16) -> u16 {
    let from = max_delivery_count.div_ceil(2).max(2);
    debug_assert!(from > 1, "what comes for the first time comes with others");
    from
}

/// Whether this is the last delivery before the record is archived; false if all deliveries are slow.
pub(super) fn is_last_attempt(max_delivery_count: u16, delivery_count: u16) -> bool {
    max_delivery_count > 2 && delivery_count == max_delivery_count - 1
}

/// How many records are delivered with one near its delivery limit that comes first in a batch of `batch_count`: half
/// of the batch, then a quarter, and so on.
pub(super) fn share(max_delivery_count: u16, delivery_count: u16, batch_count: i64) -> i64 {
    let slow_from = slow_from(max_delivery_count);
    debug_assert!(delivery_count >= slow_from, "it is not near its limit");
    debug_assert!(batch_count > 0, "an empty batch");
    let share = batch_count
        .checked_shr(u32::from(delivery_count - slow_from) + 1)
        .unwrap_or(0)
        .max(1);
    debug_assert!(share <= batch_count, "more than the batch has");
    share
}

/// How many records of one batch a fetch gets if some are near their delivery limit.
pub(super) struct Pace {
    max_delivery_count: u16,
    /// Offsets of the originally acquired batch.
    batch_count: i64,
    limit: Option<i64>,
}

impl Pace {
    pub(super) fn new(max_delivery_count: u16, batch_count: i64) -> Self {
        Self {
            max_delivery_count,
            batch_count,
            limit: None,
        }
    }

    /// How many records of the batch may be acquired in total, given a record with `delivery_count` after `taken`
    /// others.
    ///
    /// The first record near its limit decides: half of the batch, a quarter, and so on. If more have been acquired
    /// before it, the rest follows, up to a record on its last delivery.
    #[inline(never)] // keeps code needed only near the limit out of the path of every batch
    pub(super) fn limit(&mut self, delivery_count: u16, taken: i64) -> i64 {
        debug_assert!(taken >= 0, "a negative number of records was taken");
        if is_last_attempt(self.max_delivery_count, delivery_count) {
            return taken.max(1);
        }
        if self.limit.is_none() && delivery_count >= slow_from(self.max_delivery_count) {
            let share = share(self.max_delivery_count, delivery_count, self.batch_count);
            self.limit = Some(if taken < share { share } else { i64::MAX });
        }
        self.limit.unwrap_or(i64::MAX)
    }
}
