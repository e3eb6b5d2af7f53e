//! What members of a share group did with the records of one partition, counted beside the engine.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_engine::{AckBatch, Acquired};
use sharecore_lease::Admitted;

use crate::partition::PyPartition;

/// Delivery counts that are counted apart; the last stands for all above it as well.
const DELIVERIES: usize = 16;
/// Acknowledge types as the protocol numbers them, gaps and renewals among them.
const TYPES: usize = 5;

/// Records, since the partition was loaded.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Leased for the first, second, ... time.
    deliveries: [AtomicU64; DELIVERIES],
    /// By acknowledge type, of batches that were not refused.
    acknowledged: [AtomicU64; TYPES],
    /// Headers with times that are no number.
    unreadable_headers: AtomicU64,
    /// Batches that could not be expanded to look for times.
    unreadable_batches: AtomicU64,
    /// Bytes of record batches that answers left out.
    thinned_bytes: AtomicU64,
}

impl Tally {
    pub(crate) fn acquired(&self, acquired: &[Acquired]) {
        for batch in acquired {
            let at = usize::from(batch.delivery_count).clamp(1, DELIVERIES) - 1;
            self.deliveries[at].fetch_add((batch.last - batch.first + 1) as u64, Relaxed);
        }
    }

    pub(crate) fn acknowledged(&self, batches: &[AckBatch<'_>]) {
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

    pub(crate) fn admitted(&self, admitted: &Admitted) {
        self.unreadable_headers
            .fetch_add(admitted.unreadable_headers, Relaxed);
        self.unreadable_batches
            .fetch_add(admitted.unreadable_batches, Relaxed);
    }

    pub(crate) fn thinned(&self, bytes: usize) {
        self.thinned_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn add(&self, kind: u8, records: u64) {
        if let Some(count) = self.acknowledged.get(usize::from(kind)) {
            count.fetch_add(records, Relaxed);
        }
    }

    /// Deliveries up to the highest count that there was.
    pub(crate) fn deliveries(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.deliveries.iter().map(|n| n.load(Relaxed)).collect();
        let used = counts.iter().rposition(|&n| n > 0).map_or(0, |at| at + 1);
        counts.truncate(used);
        counts
    }

    /// Adds what another has counted to running sums.
    fn add_to(&self, sum: &mut Sum) {
        for (total, n) in sum.deliveries.iter_mut().zip(&self.deliveries) {
            *total += n.load(Relaxed);
        }
        for (total, n) in sum.acknowledged.iter_mut().zip(&self.acknowledged) {
            *total += n.load(Relaxed);
        }
    }

    /// Headers that are no number, batches that could not be expanded.
    pub(crate) fn unreadable(&self) -> (u64, u64) {
        (
            self.unreadable_headers.load(Relaxed),
            self.unreadable_batches.load(Relaxed),
        )
    }

    /// Bytes of record batches that answers left out.
    pub(crate) fn thinned_bytes(&self) -> u64 {
        self.thinned_bytes.load(Relaxed)
    }

    pub(crate) fn by_type(&self) -> (u64, u64, u64, u64, u64) {
        let [gap, accept, release, reject, renew] =
            std::array::from_fn(|at| self.acknowledged[at].load(Relaxed));
        (gap, accept, release, reject, renew)
    }
}

/// Share partitions together.
#[derive(Default)]
struct Sum {
    lag: i64,
    in_flight: i64,
    oldest_ms: i64,
    timed_out: u64,
    acknowledged: [u64; TYPES],
    deliveries: [u64; DELIVERIES],
}

/// Lag, in flight, age of the oldest lease, locks that ran out, records by acknowledge type, records by delivery count.
type Summed = (i64, i64, i64, u64, [u64; TYPES], [u64; DELIVERIES]);

/// `Partition.observe` of many, summed; an engine that has failed counts for nothing.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 extracts owned arguments"
)]
pub(crate) fn observe_partitions(
    partitions: Vec<PyRef<'_, PyPartition>>,
    ends: Vec<i64>,
    now_ms: i64,
) -> PyResult<Summed> {
    if partitions.len() != ends.len() {
        return Err(PyValueError::new_err("one end a partition"));
    }
    let mut sum = Sum::default();
    for (partition, end) in partitions.iter().zip(ends) {
        let counted = partition.inner.with(|engine| {
            let settled = engine.start_offset() + engine.delivery_complete_count();
            sum.lag += (end - settled).max(0);
            sum.in_flight += engine.in_flight();
            sum.timed_out += engine.timed_out();
            if let Some(deadline_ms) = engine.next_deadline_ms() {
                let age_ms = now_ms + engine.config().lock_ms - deadline_ms;
                sum.oldest_ms = sum.oldest_ms.max(age_ms);
            }
        });
        if counted.is_ok() {
            partition.tally.add_to(&mut sum);
        }
    }
    Ok((
        sum.lag,
        sum.in_flight,
        sum.oldest_ms,
        sum.timed_out,
        sum.acknowledged,
        sum.deliveries,
    ))
}
