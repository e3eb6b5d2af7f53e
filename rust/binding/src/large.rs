//! Requests with many entries, which `sharecore.broker.requests.large` decodes and answers in a thread.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_wire::{Input, Malformed, count_entries};

use crate::collected::collected;
use crate::layout::PyLayout;

/// A smaller request cannot have many entries.
const LARGE_BYTES: usize = 32 << 10;
/// Up to this many entries are decoded in one go; a larger request is decoded in a thread, so that others are served meanwhile.
const LARGE_ENTRIES: usize = 5_000;

/// Returns where the message of a request with many entries begins and how many it has; None for any other request.
///
/// `input` is positioned after the header, but before the header's tagged fields, which exist if the message is flexible.
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

/// A response that is already encoded.
#[pyclass(name = "WrittenAnswer", module = "sharecore._core", frozen)]
pub(crate) struct PyWritten {
    #[pyo3(get)]
    message: Py<PyAny>,
    parts: Py<PyList>,
}

impl PyWritten {
    /// The message and its frame.
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
