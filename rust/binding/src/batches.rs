//! Record batches as Python objects: `encode_batch` and `encode_records` for another broker, `decoded` to replay a log.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList};
use sharecore_records::{Batches, EXPANDED_BYTES_MAX, Producer, headed_batch, local_batch};

type Field = Option<PyBackedBytes>;
type Fields = (Field, Field, Vec<(PyBackedStr, Field)>);

/// Encodes records as one uncompressed, non-transactional batch.
#[pyfunction]
#[pyo3(signature = (records, *, now_ms, producer = None))]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn encode_batch(
    py: Python<'_>,
    records: Vec<(Option<PyBackedBytes>, Option<PyBackedBytes>)>,
    now_ms: i64,
    producer: Option<(i64, i16, i32)>,
) -> PyResult<Bound<'_, PyBytes>> {
    if records.is_empty() {
        return Err(PyValueError::new_err("a batch needs at least one record"));
    }
    let producer = producer.map_or(Producer::NONE, |(id, epoch, sequence)| Producer {
        id,
        epoch,
        sequence,
        transactional: false,
    });
    let records: Vec<_> = records
        .iter()
        .map(|(key, value)| (key.as_deref(), value.as_deref()))
        .collect();
    Ok(PyBytes::new(py, &local_batch(&records, producer, now_ms).0))
}

/// Encodes records with headers as one uncompressed batch.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn encode_records(
    py: Python<'_>,
    records: Vec<Fields>,
    now_ms: i64,
) -> PyResult<Bound<'_, PyBytes>> {
    if records.is_empty() {
        return Err(PyValueError::new_err("a batch needs at least one record"));
    }
    let headers: Vec<Vec<_>> = records
        .iter()
        .map(|(_, _, headers)| {
            let pairs = headers.iter();
            pairs
                .map(|(name, held)| (&**name, held.as_deref()))
                .collect()
        })
        .collect();
    let records: Vec<_> = records
        .iter()
        .zip(&headers)
        .map(|((key, value, _), headers)| ((key.as_deref(), value.as_deref()), headers.as_slice()))
        .collect();
    Ok(PyBytes::new(py, &headed_batch(&records, now_ms)))
}

/// For each batch: the id of its transactional producer or -1, whether it is a control batch, its records.
pub(crate) fn decoded<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let found = PyList::empty(py);
    for batch in Batches::new(bytes) {
        let header = &batch.header;
        let damaged = |fault: &dyn std::fmt::Display| {
            PyValueError::new_err(format!("batch at {}: {fault}", header.base_offset))
        };
        let expanded = batch
            .expand(EXPANDED_BYTES_MAX)
            .map_err(|fault| damaged(&fault))?;
        let records = PyList::empty(py);
        for record in batch.records(&expanded) {
            let record = record.map_err(|fault| damaged(&fault))?;
            let bytes = |field: Option<&[u8]>| field.map(|field| PyBytes::new(py, field));
            records.append((
                record.offset,
                record.timestamp,
                bytes(record.key),
                bytes(record.value),
            ))?;
        }
        let producer_id = if header.is_transactional() {
            header.producer_id
        } else {
            -1
        };
        found.append((producer_id, header.is_control(), records))?;
    }
    Ok(found)
}
