//! `sharecore._core.combine`: the state-batch combiner.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_engine::Combiner;

use crate::convert::{KeptStateBatches, tuple};

/// Merges new state batches into persisted ones.
#[pyfunction]
pub(crate) fn combine<'py>(
    py: Python<'py>,
    mut existing: KeptStateBatches<'py>,
    mut new: KeptStateBatches<'py>,
    start_offset: i64,
) -> PyResult<Bound<'py, PyList>> {
    let start_offset = (start_offset >= 0).then_some(start_offset);
    let mut room = Combiner::default();
    let combined = room.combine(&existing.batches, &new.batches, start_offset);
    // Most batches are unchanged, so the caller's tuples are reused
    let tuples = combined.iter().map(|batch| {
        let kept = existing.tuple(batch).or_else(|| new.tuple(batch));
        kept.map_or_else(|| tuple(batch).into_pyobject(py), Ok)
    });
    PyList::new(py, tuples.collect::<PyResult<Vec<_>>>()?)
}
