//! `sharecore._core.combine`: the state-batch combiner.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_engine::combine as engine_combine;

use crate::convert::{StateBatches, tuple};

/// Joins new state batches with persisted ones.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 extracts owned arguments"
)]
pub(crate) fn combine(
    py: Python<'_>,
    existing: StateBatches,
    new: StateBatches,
    start_offset: i64,
) -> PyResult<Bound<'_, PyList>> {
    let start_offset = (start_offset >= 0).then_some(start_offset);
    let mut out = Vec::new();
    engine_combine(&existing.0, &new.0, start_offset, &mut out);
    PyList::new(py, out.iter().map(tuple))
}
