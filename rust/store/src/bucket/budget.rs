//! Limits the creation of objects: a rate per second, over a minute.

/// For how long unused requests are saved.
const SAVED_S: u64 = 60;

/// A token bucket of requests.
pub(super) struct Budget {
    per_second: u64,
    /// In thousandths of a request, as of `at_ms`. Negative after exceeding the rate.
    left: i64,
    at_ms: u64,
}

impl Budget {
    pub(super) fn new(per_second: u64, now_ms: u64) -> Self {
        Self {
            per_second,
            left: (per_second * SAVED_S * 1000).cast_signed(),
            at_ms: now_ms,
        }
    }

    /// Count a request, due or not.
    pub(super) fn take(&mut self, now_ms: u64) {
        let earned = (now_ms.saturating_sub(self.at_ms) * self.per_second).cast_signed();
        let most = (self.per_second * SAVED_S * 1000).cast_signed();
        self.left = (self.left + earned).min(most) - 1000;
        // an urgent burst is not paid for with a long silence
        self.left = self.left.max(-most);
        self.at_ms = now_ms;
    }

    /// Return when the next request is due.
    pub(super) fn due_ms(&self) -> u64 {
        let missing = (1000 - self.left).max(0).cast_unsigned();
        self.at_ms + missing.div_ceil(self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Make as many requests as are due within a time; return their number.
    fn spend(budget: &mut Budget, from_ms: u64, to_ms: u64) -> u64 {
        (from_ms..to_ms).fold(0, |made, now_ms| {
            if budget.due_ms() > now_ms {
                return made;
            }
            budget.take(now_ms);
            made + 1
        })
    }

    #[test]
    fn so_many_a_second_are_made_over_a_minute_and_what_was_saved_before() {
        let mut budget = Budget::new(10, 0);
        let is_about = |made: u64, expected: u64| assert!(made.abs_diff(expected) <= 1, "{made}");
        is_about(spend(&mut budget, 0, 10_000), 600 + 100);
        is_about(spend(&mut budget, 10_000, 20_000), 100);
        // A minute is saved up, not an hour
        is_about(spend(&mut budget, 3_600_000, 3_610_000), 600 + 100);
    }

    #[test]
    fn requests_that_cannot_be_put_off_are_paid_for_later() {
        let mut budget = Budget::new(2, 0);
        for _ in 0..130 {
            budget.take(0);
        }
        // Ten too many, and one more
        assert_eq!(budget.due_ms(), 5500);
        for _ in 0..10_000 {
            budget.take(0);
        }
        assert!(budget.due_ms() <= 61_000, "{}", budget.due_ms());
    }
}
