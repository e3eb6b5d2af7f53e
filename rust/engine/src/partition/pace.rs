//! Slower delivery near the limit: a record that keeps failing is delivered together with fewer and fewer others, in
//! the end alone, so that one bad record does not take its neighbours over the delivery limit with it.

/// The delivery count from which on a record is delivered with fewer others.
pub(super) fn slow_from(max_delivery_count: u16) -> u16 {
    let from = max_delivery_count.div_ceil(2).max(2);
    debug_assert!(from > 1, "what comes for the first time comes with others");
    from
}

/// Whether a record is given up unless it is accepted this time; there is no such attempt where all are slow.
pub(super) fn is_last_attempt(max_delivery_count: u16, delivery_count: u16) -> bool {
    max_delivery_count > 2 && delivery_count == max_delivery_count - 1
}

/// How many records come with one near its delivery limit that is the first of a batch of `batch_count` to be given: half of the
/// batch, or a quarter, and so on.
pub(super) fn share(max_delivery_count: u16, delivery_count: u16, batch_count: i64) -> i64 {
    let slow_from = slow_from(max_delivery_count);
    debug_assert!(delivery_count >= slow_from, "it is not near its limit");
    debug_assert!(batch_count > 0, "a batch of nothing");
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
    /// Offsets of the batch as it was first acquired.
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

    /// How many records of the batch may be taken in all, at a record with `delivery_count`, `taken` of them
    /// before it.
    ///
    /// The first record near its limit decides: half of the batch, or a quarter, and so on. If more than that has been
    /// taken before it, the rest is delivered too, up to a record on its last attempt.
    #[inline(never)] // else what is needed near the limit alone is computed for every batch
    pub(super) fn limit(&mut self, delivery_count: u16, taken: i64) -> i64 {
        debug_assert!(taken >= 0, "fewer than none were taken");
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
