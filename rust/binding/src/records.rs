//! `sharecore._core.decode_records`: decodes the result of a share fetch to Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use sharecore_records::{AcquiredRecords, Found, Offsets, Span, TimestampType};

use crate::record::PyRecord;

/// Records, gaps, offsets of truncated batches, offsets of damaged batches.
type Decoded<'py> = (
    Bound<'py, PyList>,
    Vec<Offsets>,
    Vec<Offsets>,
    Vec<(i64, i64, String)>,
);

/// Decodes the acquired records of one share partition in a `ShareFetch` response.
#[pyfunction]
#[pyo3(signature = (records, acquired, topic, partition, lease, *, expanded_bytes_max=1_073_741_824))]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
pub(crate) fn decode_records<'py>(
    py: Python<'py>,
    records: &[u8],
    acquired: Vec<Span>,
    topic: Bound<'py, PyString>,
    partition: i32,
    lease: Bound<'py, PyAny>,
    expanded_bytes_max: usize,
) -> PyResult<Decoded<'py>> {
    let expanded = py.detach(|| AcquiredRecords::expand(records, &acquired, expanded_bytes_max));
    let expanded = expanded.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut found: Vec<Py<PyRecord>> = Vec::new();
    let missing = expanded.for_each(|each| {
        let record = record(py, each, &topic, partition, &lease);
        found.push(Py::new(py, record)?);
        Ok::<_, PyErr>(())
    })?;
    let faults = missing.faults.into_iter();
    let faults = faults.map(|(first, last, fault)| (first, last, fault.to_string()));
    let found = PyList::new(py, found)?;
    Ok((found, missing.gaps, missing.cut_off, faults.collect()))
}

/// Size of a key or value in bytes; -1 if it is null. Record lengths have 32 bits, so the size fits.
fn size(field: Option<&[u8]>) -> i32 {
    field.map_or(-1, |field| i32::try_from(field.len()).unwrap_or(i32::MAX))
}

fn record(
    py: Python<'_>,
    found: Found<'_, '_>,
    topic: &Bound<'_, PyString>,
    partition: i32,
    lease: &Bound<'_, PyAny>,
) -> PyRecord {
    let bytes =
        |field: Option<&[u8]>| field.map(|field| PyBytes::new(py, field).into_any().unbind());
    let (batch, record) = (found.batch, found.record);
    PyRecord {
        topic: topic.clone().unbind(),
        partition,
        offset: record.offset,
        timestamp: record.timestamp,
        log_append_time: batch.timestamp_type() == TimestampType::LogAppendTime,
        key: bytes(record.key),
        value: bytes(record.value),
        serialized_key_size: size(record.key),
        serialized_value_size: size(record.value),
        headers: found.headers,
        delivery_count: found.delivery_count,
        leader_epoch: batch.leader_epoch,
        lease: lease.clone().unbind(),
        position: found.position,
    }
}
