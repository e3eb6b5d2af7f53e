//! Splitting a fetch's bytes and records among partitions.

use crate::Limits;

/// Limits for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ration {
    /// Maximum bytes of records.
    pub max_bytes: i64,
    /// Records.
    pub max_records: i64,
    /// Whether the first batch is returned whatever its size, so that a large batch cannot block the fetch.
    pub at_least_one: bool,
}

/// The remaining limits of a fetch.
///
/// Splits `max_bytes` evenly over the first `max_records` fetchable partitions; others get the rest. Pending reads of threads
/// count too.
#[derive(Debug)]
pub struct Rations {
    each: i64,
    max_bytes: i64,
    bytes_left: i64,
    records_left: i64,
    reading_bytes: i64,
}

impl Rations {
    /// `partitions`: fetchable partitions, at least 1 and at most `max_records`.
    pub fn among(limits: &Limits, partitions: usize) -> Self {
        debug_assert!(partitions > 0, "nobody to share among");
        let partitions = i64::try_from(partitions).unwrap_or(i64::MAX).max(1);
        Self {
            each: limits.max_bytes / partitions,
            max_bytes: limits.max_bytes,
            bytes_left: limits.max_bytes,
            records_left: limits.max_records,
            reading_bytes: 0,
        }
    }

    /// Return the limits for the next partition; `None` if the fetch has enough.
    pub fn ration(&self) -> Option<Ration> {
        if self.bytes_left <= self.reading_bytes || self.records_left <= 0 {
            return None;
        }
        let ration = Ration {
            max_bytes: (self.bytes_left - self.reading_bytes).min(self.each),
            max_records: self.records_left,
            at_least_one: self.bytes_left == self.max_bytes,
        };
        debug_assert!(ration.max_bytes <= self.max_bytes && ration.max_records > 0);
        Some(ration)
    }

    /// Subtract a partition's records.
    pub fn take(&mut self, bytes: usize, records: i64) {
        debug_assert!(records >= 0, "a partition takes no records");
        debug_assert!(
            self.bytes_left > 0 && self.records_left > 0,
            "who has enough takes no more"
        );
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.records_left = self.records_left.saturating_sub(records);
    }

    /// Subtract bytes that a thread is reading.
    pub fn read_later(&mut self, bytes: i64) {
        debug_assert!(bytes >= 0, "nobody reads less than nothing");
        self.reading_bytes = self.reading_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn limits(max_bytes: i64, max_records: i64) -> Limits {
        Limits {
            min_bytes: 1,
            max_bytes,
            max_records,
            batch_size: 500,
            record_limit: false,
        }
    }

    #[test]
    fn partitions_get_an_equal_part_each() {
        let mut rations = Rations::among(&limits(900, 30), 3);
        let first = rations.ration().expect("a fetch that has nothing yet");
        assert_eq!((first.max_bytes, first.max_records), (300, 30));
        assert!(first.at_least_one);
        rations.take(100, 10);
        let second = rations.ration().expect("a fetch that has not enough");
        assert_eq!((second.max_bytes, second.max_records), (300, 20));
        assert!(!second.at_least_one);
        rations.take(600, 10);
        let third = rations.ration().expect("a fetch that has not enough");
        assert_eq!((third.max_bytes, third.max_records), (200, 10));
        rations.take(10, 10);
        assert_eq!(rations.ration(), None);
    }

    #[test]
    fn the_first_batch_may_be_larger_than_all() {
        let mut rations = Rations::among(&limits(10, 500), 1);
        assert!(rations.ration().expect("room").at_least_one);
        rations.take(1 << 20, 1);
        assert_eq!(rations.ration(), None);
    }

    #[test]
    fn what_is_read_for_later_takes_room() {
        let mut rations = Rations::among(&limits(100, 500), 1);
        rations.read_later(60);
        assert_eq!(rations.ration().expect("room").max_bytes, 40);
        // Nothing was taken yet
        assert!(rations.ration().expect("room").at_least_one);
        rations.read_later(40);
        assert_eq!(rations.ration(), None);
    }

    #[test]
    fn who_wants_nothing_gets_nothing() {
        for (bytes, records) in [(0, 10), (-1, 10), (10, 0), (10, -5)] {
            assert_eq!(Rations::among(&limits(bytes, records), 1).ration(), None);
        }
    }

    proptest! {
        /// If partitions keep to their limits, the fetch keeps to its own.
        #[test]
        fn no_more_is_taken_than_may_be(
            max_bytes in 0_i64..10_000,
            max_records in 0_i64..500,
            partitions in 1_usize..20,
            gives in vec((0_i64..4_000, 1_i64..200, any::<bool>()), 0..40),
        ) {
            let mut rations = Rations::among(&limits(max_bytes, max_records), partitions);
            let (mut bytes, mut records, mut reading) = (0, 0, 0);
            for (size, count, later) in gives {
                let Some(ration) = rations.ration() else { break };
                prop_assert!(ration.max_bytes <= max_bytes / partitions as i64);
                prop_assert!(ration.max_bytes + bytes + reading <= max_bytes);
                prop_assert!(ration.max_records + records <= max_records);
                prop_assert_eq!(ration.at_least_one, bytes == 0);
                if later {
                    rations.read_later(size);
                    reading += size;
                } else {
                    let (size, count) = (size.min(ration.max_bytes), count.min(ration.max_records));
                    rations.take(size as usize, count);
                    bytes += size;
                    records += count;
                }
            }
            prop_assert!(bytes <= max_bytes && records <= max_records);
        }
    }
}
