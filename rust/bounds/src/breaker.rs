//! A circuit breaker: pauses a group whose members fail most of their records.

/// Buckets of the counting window.
const BUCKETS: usize = 10;

/// How many records are acquired at a time, and must end, before a pause is over.
const TRIAL: i64 = 10;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// Opens when at least this percentage of the records that ended failed (`share.breaker.percent`).
    pub percent: i64,
    /// The counting window (`share.breaker.window.ms`).
    pub window_ms: i64,
    /// The fewest records that must end within the window (`share.breaker.min.records`).
    pub min_records: i64,
    /// How long delivery is paused (`share.breaker.pause.ms`).
    pub pause_ms: i64,
}

/// Counts of finished records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Accepted by a member.
    pub accepted: i64,
    /// Rejected, or at their delivery limit.
    pub given_up: i64,
}

impl Ended {
    fn add(&mut self, other: Self) {
        self.accepted = self.accepted.saturating_add(other.accepted);
        self.given_up = self.given_up.saturating_add(other.given_up);
    }

    /// The sum of all counts.
    pub fn all(self) -> i64 {
        self.accepted.saturating_add(self.given_up)
    }
}

/// Whether a group gets records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Yes.
    Closed,
    /// A few, as a trial.
    HalfOpen,
    /// No.
    Open,
}

#[derive(Debug)]
enum Phase {
    /// Counts per bucket, of the time since bucket number `at - BUCKETS`.
    Closed {
        buckets: [Ended; BUCKETS],
        at: i64,
    },
    Open {
        until_ms: i64,
    },
    HalfOpen {
        /// Records acquired during the trial and not returned yet.
        out: i64,
        ended: Ended,
    },
}

impl Phase {
    fn closed() -> Self {
        Self::Closed {
            buckets: [Ended::default(); BUCKETS],
            at: i64::MIN,
        }
    }
}

/// The breaker of a group.
#[derive(Debug)]
pub struct Breaker {
    rules: BreakerRules,
    phase: Phase,
    opened: u64,
}

impl Breaker {
    /// Creates a closed breaker.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            phase: Phase::closed(),
            opened: 0,
        }
    }

    /// Changes the rules; a running pause goes on unchanged. Another window restarts the counts.
    pub fn set(&mut self, rules: BreakerRules) {
        if rules.window_ms != self.rules.window_ms && matches!(self.phase, Phase::Closed { .. }) {
            self.phase = Phase::closed();
        }
        self.rules = rules;
    }

    /// Whether the group gets records at `now_ms`.
    pub fn state(&self, now_ms: i64) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until_ms } if now_ms < until_ms => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// How often the breaker has opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How many records a fetch may acquire while the group's members hold `leased`; `None` without a limit.
    pub fn ready(&mut self, now_ms: i64, leased: i64) -> Option<i64> {
        if let Phase::Open { until_ms } = self.phase {
            if now_ms < until_ms {
                return Some(0);
            }
            self.phase = Phase::HalfOpen {
                out: 0,
                ended: Ended::default(),
            };
        }
        match &mut self.phase {
            Phase::HalfOpen { out, .. } => {
                // records lost with their log or their leader are not counted as returned
                *out = (*out).min(leased);
                Some((TRIAL - *out).max(0))
            }
            _ => None,
        }
    }

    /// Members acquired records.
    pub fn took(&mut self, records: i64) {
        if let Phase::HalfOpen { out, .. } = &mut self.phase {
            *out += records;
        }
    }

    /// When waiting fetches may acquire records.
    pub fn due_ms(&self, now_ms: i64) -> Option<i64> {
        match self.phase {
            Phase::Open { until_ms } => (now_ms < until_ms).then_some(until_ms),
            _ => None,
        }
    }

    /// Records have ended durably, or are available again. Returns the counts if the breaker opens because of them.
    pub fn ended(&mut self, now_ms: i64, ended: Ended, returned: i64) -> Option<Ended> {
        let counted = match &mut self.phase {
            Phase::Open { .. } => return None,
            Phase::Closed { buckets, at } => {
                let bucket_ms = (self.rules.window_ms / BUCKETS as i64).max(1);
                count(buckets, at, now_ms.div_euclid(bucket_ms), ended);
                let mut sum = Ended::default();
                for bucket in buckets.iter() {
                    sum.add(*bucket);
                }
                if sum.all() < self.rules.min_records {
                    return None;
                }
                sum
            }
            Phase::HalfOpen { out, ended: sum } => {
                *out = (*out - ended.all() - returned).max(0);
                sum.add(ended);
                if sum.all() < TRIAL {
                    return None;
                }
                *sum
            }
        };
        let share = i128::from(counted.given_up) * 100;
        if share >= i128::from(self.rules.percent) * i128::from(counted.all()) {
            self.opened += 1;
            self.phase = Phase::Open {
                until_ms: now_ms.saturating_add(self.rules.pause_ms),
            };
            return Some(counted);
        }
        if matches!(self.phase, Phase::HalfOpen { .. }) {
            self.phase = Phase::closed();
        }
        None
    }
}

/// Counts records in bucket `now`, and clears those that left the window.
fn count(buckets: &mut [Ended; BUCKETS], at: &mut i64, now: i64, ended: Ended) {
    let passed = now.saturating_sub(*at).clamp(0, BUCKETS as i64);
    *at = now.max(*at);
    for ahead in 0..passed {
        buckets[(*at - ahead).rem_euclid(BUCKETS as i64) as usize] = Ended::default();
    }
    buckets[at.rem_euclid(BUCKETS as i64) as usize].add(ended);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        percent: 50,
        window_ms: 10_000,
        min_records: 20,
        pause_ms: 5000,
    };

    fn ended(accepted: i64, given_up: i64) -> Ended {
        Ended { accepted, given_up }
    }

    #[test]
    fn it_opens_at_its_share_of_enough_records() {
        let mut breaker = Breaker::new(RULES);
        assert_eq!(breaker.ended(0, ended(0, 19), 0), None);
        assert_eq!(breaker.state(0), BreakerState::Closed);
        assert_eq!(breaker.ready(0, 1000), None);
        let mut other = Breaker::new(RULES);
        assert_eq!(other.ended(0, ended(11, 10), 0), None);
        assert_eq!(other.ended(0, ended(0, 1), 0), Some(ended(11, 11)));
        assert_eq!(other.ready(4999, 0), Some(0));
        assert_eq!(other.due_ms(0), Some(5000));
        assert_eq!((other.opened(), other.due_ms(5000)), (1, None));
    }

    #[test]
    fn what_the_window_has_passed_counts_no_more() {
        let mut breaker = Breaker::new(RULES);
        breaker.ended(500, ended(0, 15), 0);
        assert_eq!(breaker.ended(10_000, ended(0, 4), 0), None);
        assert_eq!(breaker.ended(10_999, ended(0, 15), 0), None, "15 are gone");
        assert_eq!(breaker.ended(11_000, ended(0, 1), 0), Some(ended(0, 20)));
        let mut late = Breaker::new(RULES);
        late.ended(0, ended(0, 19), 0);
        assert_eq!(late.ended(1 << 50, ended(0, 19), 0), None);
    }

    #[test]
    fn a_pause_is_over_once_some_records_have_ended_well() {
        let mut breaker = Breaker::new(RULES);
        assert!(breaker.ended(0, ended(0, 20), 0).is_some());
        assert_eq!(breaker.ended(4000, ended(0, 100), 0), None, "it is open");
        assert_eq!(breaker.ready(5000, 0), Some(10));
        breaker.took(10);
        assert_eq!(breaker.ready(5000, 10), Some(0));
        assert_eq!(breaker.ended(5001, ended(5, 0), 0), None);
        assert_eq!(breaker.ready(5001, 5), Some(5));
        breaker.took(5);
        assert_eq!(breaker.ended(5002, ended(1, 4), 0), None);
        assert_eq!(breaker.state(5002), BreakerState::Closed);
        // counts from before the pause are gone
        assert_eq!(breaker.ended(5002, ended(0, 19), 0), None);
        assert!(breaker.ended(5002, ended(0, 1), 0).is_some());
    }

    #[test]
    fn the_same_share_opens_it_again() {
        let mut breaker = Breaker::new(RULES);
        assert!(breaker.ended(0, ended(0, 20), 0).is_some());
        assert_eq!(breaker.ready(5000, 0), Some(10));
        breaker.took(10);
        assert_eq!(
            breaker.ended(6000, ended(5, 5), 0),
            Some(ended(5, 5)),
            "half of them"
        );
        assert_eq!((breaker.due_ms(6000), breaker.opened()), (Some(11_000), 2));
    }

    #[test]
    fn records_that_come_back_or_are_lost_are_replaced() {
        let mut breaker = Breaker::new(RULES);
        assert!(breaker.ended(0, ended(0, 20), 0).is_some());
        assert_eq!(breaker.ready(5000, 3), Some(10));
        breaker.took(10);
        assert_eq!(breaker.ended(5001, ended(0, 0), 4), None, "released");
        assert_eq!(breaker.ready(5001, 9), Some(4));
        breaker.took(4);
        assert_eq!(breaker.ready(5001, 0), Some(10), "their leader is gone");
    }

    #[test]
    fn changed_rules_count_at_once_and_end_no_pause() {
        let mut breaker = Breaker::new(RULES);
        breaker.ended(0, ended(0, 19), 0);
        breaker.set(BreakerRules {
            min_records: 10,
            ..RULES
        });
        assert!(breaker.ended(0, ended(1, 0), 0).is_some());
        breaker.set(BreakerRules {
            window_ms: 1000,
            ..RULES
        });
        assert_eq!(breaker.state(4999), BreakerState::Open);
        let mut other = Breaker::new(RULES);
        other.ended(0, ended(0, 19), 0);
        other.set(BreakerRules {
            window_ms: 60_000,
            ..RULES
        });
        assert_eq!(other.ended(0, ended(0, 1), 0), None, "counted anew");
    }
}
