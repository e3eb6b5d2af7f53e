//! `sharecore._core.combine`: the state-batch combiner.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_engine::combine as engine_combine;

use crate::convert::{StateTuple, state_batches, tuple};

/// Joins new state batches with persisted ones.
#[pyfunction]
pub(crate) fn combine(
    py: Python<'_>,
    existing: Vec<StateTuple>,
    new: Vec<StateTuple>,
    start_offset: i64,
) -> PyResult<Bound<'_, PyList>> {
    let (existing, new) = (state_batches(existing)?, state_batches(new)?);
    let start_offset = (start_offset >= 0).then_some(start_offset);
    let mut out = Vec::new();
    engine_combine(&existing, &new, start_offset, &mut out);
    PyList::new(py, out.iter().map(tuple))
}
