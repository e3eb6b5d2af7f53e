//! State batches for the share coordinator: packed bytes in, packed bytes out.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use sharecore_engine::combine;
use sharecore_engine::state_batch::{self, Malformed};

use crate::partition::PyWrite;

/// One packed list out of many: what holds at each offset from `start_offset` on.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 extracts owned arguments"
)]
pub(crate) fn combine_state_batches(
    py: Python<'_>,
    parts: Vec<PyBackedBytes>,
    start_offset: i64,
) -> PyResult<Bound<'_, PyBytes>> {
    let mut batches = Vec::with_capacity(
        parts.iter().map(|part| part.len()).sum::<usize>() / state_batch::ENCODED_LEN,
    );
    for part in &parts {
        state_batch::decode(part, &mut batches).map_err(malformed)?;
    }
    let start_offset = (start_offset >= 0).then_some(start_offset);
    let mut combined = Vec::new();
    py.detach(|| combine(&[], &batches, start_offset, &mut combined));
    Ok(PyBytes::new(py, &state_batch::encode(&combined)))
}

/// What is to be written of state that has begun to change: start offset, delivery-complete count, packed batches.
///
/// `floor` is the start offset after everything written before. From there the start offset passes the settled batches
/// that touch it; these need no state any more.
#[pyfunction]
pub(crate) fn pack_write<'py>(
    py: Python<'py>,
    write: &PyWrite,
    floor: i64,
) -> (i64, i64, Bound<'py, PyBytes>) {
    let write = &write.inner;
    let from = write.start_offset.max(floor);
    let (start, passed) = state_batch::pass_settled(from, write.batches());
    let count = (write.delivery_complete_count - (start - write.start_offset)).max(0);
    let batches = state_batch::encode(&write.batches()[passed..]);
    (start, count, PyBytes::new(py, &batches))
}

fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(match error {
        Malformed::Length(length) => format!("{length} bytes are no whole number of state batches"),
        Malformed::Batch(index) => format!("state batch {index} is impossible"),
    })
}
