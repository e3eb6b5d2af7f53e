//! A token bucket, one second deep.

/// Thousandths of a token, so that a rate of one per second counts milliseconds exactly.
const TOKEN: i64 = 1000;

/// A fetch waits for this fraction of a second's records: one record at a time would cost a request each.
const PARTS: i64 = 20;

/// A rate of records per second.
#[derive(Debug)]
pub struct Rate {
    per_second: i64,
    /// Negative if a fetch took more than had accumulated.
    tokens: i64,
    at_ms: i64,
}

impl Rate {
    /// A rate of at least one record per second, starting with one second's records.
    pub fn new(per_second: i64, now_ms: i64) -> Self {
        let per_second = per_second.max(1);
        Self {
            per_second,
            tokens: per_second * TOKEN,
            at_ms: now_ms,
        }
    }

    /// Changes the rate; accumulated tokens stay, up to one second's.
    pub fn set(&mut self, per_second: i64, now_ms: i64) {
        self.fill(now_ms);
        self.per_second = per_second.max(1);
        self.tokens = self.tokens.min(self.per_second * TOKEN);
    }

    fn fill(&mut self, now_ms: i64) {
        let passed = (now_ms - self.at_ms).max(0);
        let full = self.per_second * TOKEN;
        // one token per second is a thousandth per millisecond
        self.tokens = self
            .tokens
            .saturating_add(passed.saturating_mul(self.per_second))
            .min(full);
        self.at_ms = self.at_ms.max(now_ms);
    }

    /// The fewest tokens that serve a fetch.
    fn least(&self) -> i64 {
        (self.per_second / PARTS).max(1) * TOKEN
    }

    /// How many records may be acquired; 0 until enough tokens for a request have accumulated.
    pub fn ready(&mut self, now_ms: i64) -> i64 {
        self.fill(now_ms);
        if self.tokens < self.least() {
            0
        } else {
            self.tokens / TOKEN
        }
    }

    /// Records were acquired, possibly more than were ready.
    pub fn take(&mut self, records: i64) {
        self.tokens = self.tokens.saturating_sub(records.saturating_mul(TOKEN));
    }

    /// When records may be acquired; `None` if they may now.
    pub fn due_ms(&mut self, now_ms: i64) -> Option<i64> {
        self.fill(now_ms);
        let missing = self.least() - self.tokens;
        (missing > 0).then(|| now_ms + (missing + self.per_second - 1) / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_gives_so_many_records_and_no_more_come_together() {
        let mut rate = Rate::new(100, 0);
        assert_eq!(rate.ready(0), 100);
        rate.take(100);
        assert_eq!(rate.ready(49), 0);
        assert_eq!(rate.due_ms(49), Some(50));
        assert_eq!(rate.ready(50), 5);
        assert_eq!(rate.ready(1_000_000), 100);
        assert_eq!(rate.due_ms(1_000_000), None);
    }

    #[test]
    fn what_was_overdrawn_is_waited_for() {
        let mut rate = Rate::new(10, 0);
        rate.take(500);
        assert_eq!(rate.due_ms(0), Some(49_100));
        assert_eq!(rate.ready(49_099), 0);
        assert_eq!(rate.ready(49_100), 1);
    }

    #[test]
    fn one_record_a_second_comes_each_second() {
        let mut rate = Rate::new(1, 0);
        let taken: i64 = (0..=60_000)
            .map(|now_ms| {
                let ready = rate.ready(now_ms);
                rate.take(ready);
                ready
            })
            .sum();
        assert_eq!(taken, 61);
    }

    #[test]
    fn a_lower_rate_counts_at_once() {
        let mut rate = Rate::new(1000, 0);
        rate.set(10, 0);
        assert_eq!(rate.ready(0), 10);
    }
}
