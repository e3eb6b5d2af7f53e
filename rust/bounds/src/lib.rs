//! Limits on the records that a share group and its members acquire: a rate for the group, a limit per member, weights
//! for its topics, and a circuit breaker.
//!
//! Limits apply to one broker: each node of a tier counts for itself.
#![forbid(unsafe_code)]

mod breaker;
mod rate;
mod weights;

pub use crate::breaker::{Breaker, BreakerRules, BreakerState, Ended};
pub use crate::{rate::Rate, weights::Weights};

/// The limits of one share group.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Records per second (`share.records.per.second`).
    pub rate: Option<Rate>,
    /// The most records that one member may hold (`share.member.max.record.locks`).
    pub member_max: Option<i64>,
    /// Each topic's part of a fetch (`share.topic.weights`).
    pub weights: Option<Weights>,
    /// Pauses the group when too many records fail (`share.breaker.percent`).
    pub breaker: Option<Breaker>,
}

/// What a fetch may acquire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The number of records; with 0 it must wait.
    pub records: i64,
    /// Whether the number is strict, rather than rounded up to a record batch.
    pub exact: bool,
}

impl Bounds {
    /// How many of `wanted` records a fetch may acquire at `now_ms`; its member holds `held` records, all members
    /// together `leased`.
    ///
    /// The rate may be exceeded by a record batch, which delays the next fetch; the limits of a member and of a
    /// half-open breaker are strict.
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

    /// A fetch has acquired records.
    pub fn took(&mut self, records: i64) {
        if let Some(rate) = &mut self.rate {
            rate.take(records);
        }
        if let Some(breaker) = &mut self.breaker {
            breaker.took(records);
        }
    }

    /// When a fetch delayed by the rate or an open breaker may acquire records; `None` if neither delays it.
    pub fn due_ms(&mut self, now_ms: i64) -> Option<i64> {
        let breaker = self.breaker.as_ref();
        let pause = breaker.and_then(|breaker| breaker.due_ms(now_ms));
        pause.max(self.rate.as_mut().and_then(|rate| rate.due_ms(now_ms)))
    }

    /// Whether the breaker pauses delivery at `now_ms`.
    pub fn is_broken(&self, now_ms: i64) -> bool {
        let breaker = self.breaker.as_ref();
        breaker.is_some_and(|breaker| breaker.state(now_ms) != BreakerState::Closed)
    }
}
