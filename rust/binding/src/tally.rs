//! Totals over share partitions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_share::{DELIVERIES, Sum, TYPES};

use crate::partition::PyPartition;

/// Lag, in-flight records, age of the oldest lock, expired locks, records by acknowledge type, records by delivery count.
type Summed = (i64, i64, i64, u64, [u64; TYPES], [u64; DELIVERIES]);

/// Sums `Partition.observe` over many partitions; failed engines are skipped.
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
        return Err(PyValueError::new_err("pass one end offset per partition"));
    }
    let mut sum = Sum::default();
    for (partition, end) in partitions.iter().zip(ends) {
        let tally = &partition.tally;
        let _ = partition
            .inner
            .with(|engine| sum.add(engine, tally, end, now_ms));
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
