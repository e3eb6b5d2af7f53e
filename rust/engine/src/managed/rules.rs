//! A group's settings for order, delivery times and retries.

use std::sync::Arc;

use crate::offset::Offset;

/// How long a returned record waits, by delivery count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the second delivery (`share.retry.backoff.ms`).
    pub first_ms: i64,
    /// The longest wait (`share.retry.backoff.max.ms`), to which jitter is added.
    pub max_ms: i64,
    /// Growth of each wait over the previous one (`share.retry.backoff.multiplier`).
    pub multiplier: f64,
    /// A wait grows by up to this fraction (`share.retry.backoff.jitter`).
    pub jitter: f64,
    /// Whether released records back off.
    pub on_release: bool,
    /// Whether records whose lock expired back off.
    pub on_timeout: bool,
}

impl Backoff {
    /// No record waits.
    pub const NONE: Self = Self {
        first_ms: 0,
        max_ms: 0,
        multiplier: 1.0,
        jitter: 0.0,
        on_release: false,
        on_timeout: false,
    };

    /// The wait of records from `first` with this delivery count.
    ///
    /// The jitter is computed from the arguments, as the engine has no randomness: records returned together wait
    /// together.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a week has 30 bits of milliseconds, and 53 bits are cut out"
    )]
    pub fn wait_ms(&self, first: Offset, delivery_count: u16) -> i64 {
        let (mut wait, max) = (self.first_ms as f64, self.max_ms as f64);
        for _ in 1..delivery_count {
            if wait >= max {
                break;
            }
            wait *= self.multiplier;
        }
        let wait = wait.min(max);
        let part = (mixed(first, delivery_count) >> 11) as f64 / (1_u64 << 53) as f64;
        wait.ceil() as i64 + (wait * self.jitter * part).floor() as i64
    }
}

/// A pseudo-random number (`SplitMix64`).
fn mixed(first: Offset, delivery_count: u16) -> u64 {
    let mut x = (first as u64)
        .wrapping_add(u64::from(delivery_count).wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Which records wait until others are finished (`share.ordering`). Order by key is set by [`Spec::key`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// No order.
    #[default]
    None,
    /// All records of the share partition, one after the other.
    Partition,
}

/// The source of a record's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The record key.
    Own,
    /// The value of the last header of this name (`share.ordering.key.header`).
    Header(Vec<u8>),
}

/// What to read from records to decide when they may be delivered, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// A new ID means a new spec: callers that read records themselves compare it.
    pub id: u64,
    /// The header with the earliest delivery time (`share.deliver.at.header`); empty: none.
    pub deliver_at_header: Vec<u8>,
    /// Age at which a record is archived (`share.record.ttl.ms`).
    pub ttl_ms: Option<i64>,
    /// The header with a record's own time to live (`share.record.ttl.header`); empty: none.
    pub ttl_header: Vec<u8>,
    /// The key whose records are delivered in order (`share.ordering=key`); `None` without order by key.
    pub key: Option<Key>,
}

/// The rules of a managed share partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Which records wait until others are finished.
    pub order: Order,
    /// How many consecutive records of an order may be acquired together (`share.ordering.run.max`).
    pub run_max: i64,
    /// How long returned records wait.
    pub backoff: Backoff,
    /// How many records of the window may be neither acquired nor finished (`share.partition.max.waiting`); ordered by
    /// key, neighbors with one key count as one.
    pub max_waiting: i64,
    /// What to examine records for before they can be acquired, if anything.
    pub spec: Option<Arc<Spec>>,
    /// Whether expired records get a dead-letter record (`share.record.ttl.dead.letter`).
    pub expired_letters: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first_ms: 1000,
        max_ms: 10_000,
        multiplier: 2.0,
        jitter: 0.0,
        on_release: true,
        on_timeout: true,
    };

    #[test]
    fn each_wait_is_longer_up_to_the_longest() {
        let waits: Vec<_> = (1..7).map(|count| BACKOFF.wait_ms(7, count)).collect();
        assert_eq!(waits, [1000, 2000, 4000, 8000, 10_000, 10_000]);
        let steady = Backoff {
            multiplier: 1.0,
            ..BACKOFF
        };
        assert_eq!(steady.wait_ms(7, u16::MAX), 1000);
        let steep = Backoff {
            multiplier: 10.0,
            max_ms: 604_800_000,
            ..BACKOFF
        };
        assert_eq!(steep.wait_ms(7, u16::MAX), 604_800_000);
    }

    #[test]
    fn jitter_makes_no_wait_shorter_and_spreads_them() {
        let jittered = Backoff {
            jitter: 0.5,
            ..BACKOFF
        };
        let waits: Vec<_> = (0..1000).map(|first| jittered.wait_ms(first, 1)).collect();
        assert!(waits.iter().all(|wait| (1000..=1500).contains(wait)));
        for quarter in 0..4 {
            let from = 1000 + quarter * 125;
            let here = waits
                .iter()
                .filter(|wait| (from..from + 125).contains(*wait));
            assert!(here.count() > 150, "few waits from {from} ms on");
        }
    }
}
