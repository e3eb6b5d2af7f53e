//! Python buffers that an exchange sends.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice};
use sharecore_wire::{Outgoing, Unsent};

/// Adds a response.
pub(crate) fn push(unsent: &mut Unsent<Py<PyBytes>>, parts: &Bound<'_, PyList>) -> PyResult<()> {
    for part in parts.iter() {
        let part = part.cast_into::<PyBytes>()?;
        let size = part.as_bytes().len();
        unsent.push(part.unbind(), size);
    }
    Ok(())
}

/// Returns the next buffers to send; empty if none are left.
pub(crate) fn next<'py>(
    py: Python<'py>,
    unsent: &mut Unsent<Py<PyBytes>>,
    all: bool,
    outgoing: &mut Outgoing,
) -> PyResult<Bound<'py, PyList>> {
    let parts = PyList::empty(py);
    unsent.next(all, outgoing, |buffer, range, size| {
        let buffer = buffer.bind(py);
        if range == (0..size) {
            return parts.append(buffer);
        }
        let range = PySlice::new(py, range.start as isize, range.end as isize, 1);
        parts.append(PyMemoryView::from(buffer)?.get_item(range)?)
    })?;
    Ok(parts)
}

/// Returns the size of a response.
pub(crate) fn size_of(parts: &Bound<'_, PyList>) -> PyResult<usize> {
    let mut size = 0;
    for part in parts.iter() {
        size += part.cast::<PyBytes>()?.as_bytes().len();
    }
    Ok(size)
}
