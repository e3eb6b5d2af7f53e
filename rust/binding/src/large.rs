//! Requests with many entries, which `sharecore.broker.requests.large` has read and answered in a thread.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_wire::{Input, Malformed, count_entries};

use crate::collected::collected;
use crate::layout::PyLayout;

/// A smaller request has few entries.
const LARGE_BYTES: usize = 32 << 10;
/// So many entries are made objects at once; those of a larger request in a thread, in which others may run.
const LARGE_ENTRIES: usize = 5_000;

/// Where the message of a request with many entries begins, and how many there are; None for another one.
///
/// `input` is behind the header, but for its tagged fields, which there are if the message is flexible.
pub(crate) fn entries_of_large(
    layout: &PyLayout,
    input: &Input<'_>,
    entries_max: usize,
) -> Result<Option<(usize, usize)>, Malformed> {
    if input.left() < LARGE_BYTES {
        return Ok(None);
    }
    let mut input = input.clone();
    if layout.fields().flexible {
        input.skip_tagged_fields()?;
    }
    let at = input.at();
    let entries = count_entries(layout.fields(), &mut input, entries_max)?;
    Ok((entries > LARGE_ENTRIES).then_some((at, entries)))
}

/// An answer that is written already.
#[pyclass(name = "WrittenAnswer", module = "sharecore._core", frozen)]
pub(crate) struct PyWritten {
    #[pyo3(get)]
    message: Py<PyAny>,
    parts: Py<PyList>,
}

impl PyWritten {
    /// The message, and its frame.
    pub(crate) fn parts<'a, 'py>(
        &'a self,
        py: Python<'py>,
    ) -> (&'a Bound<'py, PyAny>, Bound<'py, PyList>) {
        (self.message.bind(py), self.parts.bind(py).clone())
    }
}

#[pymethods]
impl PyWritten {
    #[new]
    fn new(message: Py<PyAny>, parts: Py<PyList>) -> Self {
        Self { message, parts }
    }
}

collected!(PyWritten { message, parts });
