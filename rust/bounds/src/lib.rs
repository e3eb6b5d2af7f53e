//! How many records a share group and its members may be given: a rate for the group, a bound for each member, weights
//! for its topics, and a breaker that pauses it.
//!
//! All of it is about one broker: the nodes of a tier count each for itself.
#![forbid(unsafe_code)]

mod breaker;
mod rate;
mod weights;

pub use crate::breaker::{Breaker, BreakerRules, BreakerState, Ended};
pub use crate::{rate::Rate, weights::Weights};

/// The bounds of one share group.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Records a second (`share.records.per.second`).
    pub rate: Option<Rate>,
    /// Records that one member may hold (`share.member.max.record.locks`).
    pub member_max: Option<i64>,
    /// Parts of a fetch by topic (`share.topic.weights`).
    pub weights: Option<Weights>,
    /// Pauses the group when too much of what ends is given up (`share.breaker.percent`).
    pub breaker: Option<Breaker>,
}

/// What a fetch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// So many records; with 0 it has to wait.
    pub records: i64,
    /// Not one more, even to complete a record batch.
    pub exact: bool,
}

impl Bounds {
    /// How many of `wanted` records a fetch may take at `now_ms` whose member holds `held` records; all members together
    /// hold `leased`.
    ///
    /// The rate may be overdrawn by a record batch, and is paid back by waiting; the bounds of a member and of a breaker that
    /// is half open are exact.
    pub fn allow(&mut self, now_ms: i64, wanted: i64, held: i64, leased: i64) -> Allowance {
        let mut records = wanted;
        let breaker = self.breaker.as_mut();
        let trial = breaker.and_then(|breaker| breaker.ready(now_ms, leased));
        if let Some(trial) = trial {
            records = records.min(trial);
        }
        if let Some(rate) = &mut self.rate {
            records = records.min(rate.ready(now_ms));
        }
        if let Some(max) = self.member_max {
            records = records.min((max - held).max(0));
        }
        Allowance {
            records,
            exact: self.member_max.is_some() || trial.is_some(),
        }
    }

    /// A fetch has taken records.
    pub fn took(&mut self, records: i64) {
        if let Some(rate) = &mut self.rate {
            rate.take(records);
        }
        if let Some(breaker) = &mut self.breaker {
            breaker.took(records);
        }
    }

    /// When a fetch that the rate or an open breaker keeps waiting may take records; none where neither does.
    pub fn due_ms(&mut self, now_ms: i64) -> Option<i64> {
        let breaker = self.breaker.as_ref();
        let pause = breaker.and_then(|breaker| breaker.due_ms(now_ms));
        pause.max(self.rate.as_mut().and_then(|rate| rate.due_ms(now_ms)))
    }

    /// Whether a breaker holds records back at `now_ms`.
    pub fn is_broken(&self, now_ms: i64) -> bool {
        let breaker = self.breaker.as_ref();
        breaker.is_some_and(|breaker| breaker.state(now_ms) != BreakerState::Closed)
    }
}
