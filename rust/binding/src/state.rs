//! Combines state batches: lists of tuples, and packed ones for the share coordinator.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_engine::state_batch::{self, Malformed};
use sharecore_engine::{Combiner, StateBatch};

use crate::convert::{KeptStateBatches, tuple};

/// From this many batches on, the interpreter is released while they are combined.
const LONG_LIST: usize = 4096;

/// Combines packed lists into one; later lists win, and offsets before `start_offset` are dropped.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 extracts owned arguments"
)]
pub(crate) fn combine_state_batches<'py>(
    py: Python<'py>,
    parts: Vec<Bound<'py, PyBytes>>,
    start_offset: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    // The first part is the largest and already combined, so it is in order
    let (mut existing, mut new) = (Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        let batches = if index == 0 { &mut existing } else { &mut new };
        state_batch::decode(part.as_bytes(), batches).map_err(malformed)?;
    }
    let start_offset = (start_offset >= 0).then_some(start_offset);
    let mut room = Combiner::default();
    let combined = if existing.len() + new.len() < LONG_LIST {
        room.combine(&existing, &new, start_offset)
    } else {
        py.detach(|| room.combine(&existing, &new, start_offset))
    };
    packed(py, combined)
}

pub(crate) fn packed<'py>(
    py: Python<'py>,
    batches: &[StateBatch],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, batches.len() * state_batch::ENCODED_LEN, |out| {
        state_batch::encode(batches, out);
        Ok(())
    })
}

pub(crate) fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(match error {
        Malformed::Length(length) => {
            format!("{length} bytes are not a whole number of state batches")
        }
        Malformed::Batch(index) => format!("state batch {index} is invalid"),
    })
}

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
