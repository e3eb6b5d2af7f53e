//! Counts of what members of a share group did with the records of one partition.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sharecore_engine::{AckBatch, Acquired, Engine};

/// Delivery counts that are counted separately; the last one includes all higher ones.
pub const DELIVERIES: usize = 16;
/// Acknowledge types by their numbers in the protocol, gaps and renewals included.
pub const TYPES: usize = 5;

/// Counts since the partition was loaded.
#[derive(Debug, Default)]
pub struct Tally {
    /// Records acquired for the first, second, ... time.
    deliveries: [AtomicU64; DELIVERIES],
    /// By acknowledge type, in batches that were not refused.
    acknowledged: [AtomicU64; TYPES],
    /// Headers with times that are not numbers.
    unreadable_headers: AtomicU64,
    /// Batches that could not be expanded to read times.
    unreadable_batches: AtomicU64,
    /// Bytes of record batches that responses left out.
    thinned_bytes: AtomicU64,
}

impl Tally {
    /// Count acquired records.
    pub fn acquired(&self, acquired: &[Acquired]) {
        for batch in acquired {
            debug_assert!(batch.first <= batch.last && batch.delivery_count > 0);
            let at = usize::from(batch.delivery_count).clamp(1, DELIVERIES) - 1;
            self.deliveries[at].fetch_add((batch.last - batch.first + 1) as u64, Relaxed);
        }
    }

    /// Count acknowledged records.
    pub fn acknowledged(&self, batches: &[AckBatch<'_>]) {
        for batch in batches {
            if let &[kind] = batch.types {
                let records = batch.last.saturating_sub(batch.first).saturating_add(1);
                self.add(kind, records as u64);
            } else {
                for &kind in batch.types {
                    self.add(kind, 1);
                }
            }
        }
    }

    /// Count headers and batches without readable times.
    pub fn unreadable_times(&self, headers: u64, batches: u64) {
        self.unreadable_headers.fetch_add(headers, Relaxed);
        self.unreadable_batches.fetch_add(batches, Relaxed);
    }

    /// Count bytes of record batches that a response left out.
    pub fn thinned(&self, bytes: usize) {
        self.thinned_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn add(&self, kind: u8, records: u64) {
        if let Some(count) = self.acknowledged.get(usize::from(kind)) {
            count.fetch_add(records, Relaxed);
        }
    }

    /// Return acquired records by delivery count, up to the highest one.
    pub fn deliveries(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.deliveries.iter().map(|n| n.load(Relaxed)).collect();
        let used = counts.iter().rposition(|&n| n > 0).map_or(0, |at| at + 1);
        counts.truncate(used);
        counts
    }

    /// Return headers with times that are not numbers, and batches that could not be expanded.
    pub fn unreadable(&self) -> (u64, u64) {
        (
            self.unreadable_headers.load(Relaxed),
            self.unreadable_batches.load(Relaxed),
        )
    }

    /// Return bytes of record batches that responses left out.
    pub fn thinned_bytes(&self) -> u64 {
        self.thinned_bytes.load(Relaxed)
    }

    /// Return acknowledged records by type: gap, accept, release, reject, renew.
    pub fn by_type(&self) -> [u64; TYPES] {
        std::array::from_fn(|at| self.acknowledged[at].load(Relaxed))
    }
}

/// Sums over share partitions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Records that are not completed, up to the ends of the logs.
    pub lag: i64,
    /// Records in flight.
    pub in_flight: i64,
    /// Age of the oldest lock.
    pub oldest_ms: i64,
    /// Locks that expired.
    pub timed_out: u64,
    /// Records by acknowledge type.
    pub acknowledged: [u64; TYPES],
    /// Records by delivery count.
    pub deliveries: [u64; DELIVERIES],
}

impl Sum {
    /// Add a share partition; `end`: the end of its log.
    pub fn add(&mut self, engine: &mut Engine, tally: &Tally, end: i64, now_ms: i64) {
        let completed = engine.start_offset() + engine.delivery_complete_count();
        self.lag += (end - completed).max(0);
        self.in_flight += engine.in_flight();
        self.timed_out += engine.timed_out();
        if let Some(deadline_ms) = engine.next_deadline_ms() {
            let age_ms = now_ms + engine.config().lock_ms - deadline_ms;
            self.oldest_ms = self.oldest_ms.max(age_ms);
        }
        for (total, n) in self.deliveries.iter_mut().zip(&tally.deliveries) {
            *total += n.load(Relaxed);
        }
        for (total, n) in self.acknowledged.iter_mut().zip(&tally.acknowledged) {
            *total += n.load(Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use sharecore_engine::{AcquireOptions, Config, OffsetRange};

    use super::*;

    fn acquired(first: i64, last: i64, delivery_count: u16) -> Acquired {
        Acquired {
            first,
            last,
            delivery_count,
        }
    }

    #[test]
    fn deliveries_end_with_the_highest_count() {
        let tally = Tally::default();
        assert_eq!(tally.deliveries(), []);
        tally.acquired(&[acquired(0, 4, 1), acquired(5, 5, 3)]);
        assert_eq!(tally.deliveries(), [5, 0, 1]);
        tally.acquired(&[acquired(6, 7, 16), acquired(8, 8, 500)]);
        assert_eq!(tally.deliveries()[DELIVERIES - 1], 3);
    }

    #[test]
    fn a_type_for_all_counts_for_each_record() {
        let tally = Tally::default();
        let batch = |first, last, types| AckBatch { first, last, types };
        tally.acknowledged(&[batch(0, 9, &[1]), batch(10, 12, &[2, 0, 3])]);
        // A type that this version does not know
        tally.acknowledged(&[batch(20, 20, &[9])]);
        assert_eq!(tally.by_type(), [1, 10, 1, 1, 0]);
    }

    #[test]
    fn partitions_are_summed() {
        let config = Config {
            max_delivery_count: 5,
            max_inflight: 100,
            lock_ms: 1_000,
            renew_enabled: true,
            dead_letters: false,
        };
        let mut engine = Engine::new(config, 10, &[], None, 0).expect("a valid state");
        let options = AcquireOptions {
            fetch_offset: 10,
            max_fetch_records: 5,
            batch_size: 5,
            record_limit: false,
        };
        let (tally, mut sum) = (Tally::default(), Sum::default());
        let mut found = Vec::new();
        engine.acquire(0, "m", &[OffsetRange::new(10, 14)], options, &mut found);
        tally.acquired(&found);
        sum.add(&mut engine, &tally, 30, 400);
        sum.add(&mut engine, &tally, 5, 100);
        assert_eq!((sum.lag, sum.in_flight, sum.oldest_ms), (20, 10, 400));
        assert_eq!(sum.deliveries[..2], [10, 0]);
    }
}
