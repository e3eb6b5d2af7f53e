//! Decodes record batches to Python objects, for replaying a log.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_records::{Batches, EXPANDED_BYTES_MAX};

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
