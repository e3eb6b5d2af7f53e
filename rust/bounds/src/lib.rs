//! How many records a share group and its members may be given: a rate for the group, a bound for each member, weights
//! for its topics.
//!
//! All of it is about one broker: the nodes of a tier count each for itself.
#![forbid(unsafe_code)]

mod rate;
mod weights;

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
    /// How many of `wanted` records a fetch may take at `now_ms` whose member holds `held` records.
    ///
    /// The rate may be overdrawn by a record batch, and is paid back by waiting; the bound of a member is exact.
    pub fn allow(&mut self, now_ms: i64, wanted: i64, held: i64) -> Allowance {
        let mut records = wanted;
        if let Some(rate) = &mut self.rate {
            records = records.min(rate.ready(now_ms));
        }
        if let Some(max) = self.member_max {
            records = records.min((max - held).max(0));
        }
        Allowance {
            records,
            exact: self.member_max.is_some(),
        }
    }

    /// A fetch has taken records.
    pub fn took(&mut self, records: i64) {
        if let Some(rate) = &mut self.rate {
            rate.take(records);
        }
    }

    /// When a fetch that the rate keeps waiting may take records; none where it may now, or no rate is set.
    pub fn due_ms(&mut self, now_ms: i64) -> Option<i64> {
        self.rate.as_mut().and_then(|rate| rate.due_ms(now_ms))
    }
}
