//! What a group has set about when its records come, and come again.

use std::sync::Arc;

use crate::offset::Offset;

/// How long a record waits that was given back, by how often it was delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the second delivery (`share.retry.backoff.ms`).
    pub first_ms: i64,
    /// The longest wait (`share.retry.backoff.max.ms`), to which jitter is added.
    pub max_ms: i64,
    /// What each wait is longer by than the one before (`share.retry.backoff.multiplier`).
    pub multiplier: f64,
    /// A wait is longer by up to this part of it (`share.retry.backoff.jitter`).
    pub jitter: f64,
    /// Whether records wait that a member releases.
    pub on_release: bool,
    /// Whether records wait whose lock ran out.
    pub on_timeout: bool,
}

impl Backoff {
    /// How long records from `first` on wait that were delivered so often.
    ///
    /// The jitter follows from the arguments, as the engine has no randomness: what is given back together waits together.
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

/// A number that looks random (`SplitMix64`).
fn mixed(first: Offset, delivery_count: u16) -> u64 {
    let mut x = (first as u64)
        .wrapping_add(u64::from(delivery_count).wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Which records come only after others are settled (`share.ordering`). Order by key is a matter of [`Spec::key`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// None.
    #[default]
    None,
    /// All records of the share partition, one after the other.
    Partition,
}

/// What the key of a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Its own.
    Own,
    /// The value of the last header of this name (`share.ordering.key.header`).
    Header(Vec<u8>),
}

/// What records say about when they may be delivered, and where they say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Another number is another spec: of callers that read records themselves, and look for something else now.
    pub id: u64,
    /// The name of the header with a time before which a record is not delivered (`share.deliver.at.header`); empty: none.
    pub deliver_at_header: Vec<u8>,
    /// After this time a record is given up (`share.record.ttl.ms`).
    pub ttl_ms: Option<i64>,
    /// The name of the header with a record's own time to live (`share.record.ttl.header`); empty: none.
    pub ttl_header: Vec<u8>,
    /// The key: of the records of each, one comes after the other (`share.ordering=key`); none: there is no such order.
    pub key: Option<Key>,
}

/// The rules of a managed share partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Which records come only after others are settled.
    pub order: Order,
    /// So many records that follow each other in their order may be leased together (`share.ordering.run.max`).
    pub run_max: i64,
    /// How long records wait that were given back.
    pub backoff: Backoff,
    /// How many records may be in the window that are neither leased nor settled (`share.partition.max.waiting`);
    /// ordered by key, neighbors with one key count as one.
    pub max_waiting: i64,
    /// What records are looked at for before they can be acquired; none: they are not looked at.
    pub spec: Option<Arc<Spec>>,
    /// Whether expired records get a dead letter (`share.record.ttl.dead.letter`).
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
