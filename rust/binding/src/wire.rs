//! Frames, and headers of requests.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_wire::{Framer, Input, read_header};

use crate::stop::Stop;

/// Cuts a stream of bytes into frames.
#[pyclass(name = "Framer", module = "sharecore._core")]
pub(crate) struct PyFramer {
    framer: Framer,
    /// A frame that claims more is refused before its body is kept.
    #[pyo3(get, set)]
    frame_bytes_max: usize,
}

#[pymethods]
impl PyFramer {
    #[new]
    fn new(frame_bytes_max: usize) -> Self {
        PyFramer {
            framer: Framer::default(),
            frame_bytes_max,
        }
    }

    fn feed<'py>(&mut self, py: Python<'py>, chunk: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let frames = PyList::empty(py);
        let took = self
            .framer
            .feed(chunk, self.frame_bytes_max, |frame| -> Result<(), Stop> {
                Ok(frames.append(PyBytes::new(py, frame))?)
            });
        took.map_err(Stop::into_error)?;
        Ok(frames)
    }
}

/// API key, version, correlation id, client id, offset behind them.
#[pyfunction]
#[pyo3(signature = (frame, offset=0))]
pub(crate) fn read_request_header(
    frame: &[u8],
    offset: usize,
) -> PyResult<(i16, i16, i32, Option<&str>, usize)> {
    let mut input = Input::new(frame, offset);
    let header =
        read_header(&mut input).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((
        header.api_key,
        header.api_version,
        header.correlation_id,
        header.client_id,
        input.at(),
    ))
}

/// The offset behind a section of tagged fields.
#[pyfunction]
pub(crate) fn skip_tagged_fields(data: &[u8], offset: usize) -> PyResult<usize> {
    let mut input = Input::new(data, offset);
    let skipped = input.skip_tagged_fields();
    skipped.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(input.at())
}
