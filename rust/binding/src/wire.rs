//! Frames and messages: bytes to the objects that handlers take, and what they answer to bytes.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sharecore_wire::{Framer, Input, read_header};

use crate::layout::PyLayout;
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

struct Route {
    layout: Py<PyLayout>,
    flexible: bool,
    to: Py<PyAny>,
}

/// Reads requests whose API and version it has been told of.
#[pyclass(name = "RequestReader", module = "sharecore._core")]
pub(crate) struct PyRequestReader {
    routes: HashMap<(i16, i16), Route>,
}

#[pymethods]
impl PyRequestReader {
    #[new]
    fn new() -> Self {
        PyRequestReader {
            routes: HashMap::new(),
        }
    }

    fn add(
        &mut self,
        api_key: i16,
        api_version: i16,
        layout: Py<PyLayout>,
        flexible: bool,
        to: Py<PyAny>,
    ) {
        let route = Route {
            layout,
            flexible,
            to,
        };
        self.routes.insert((api_key, api_version), route);
    }

    fn read<'py>(&self, py: Python<'py>, frame: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let mut input = Input::new(frame, 0);
        let header = read_header(&mut input).map_err(|error| Stop::from(error).into_error())?;
        let (to, message) = match self.routes.get(&(header.api_key, header.api_version)) {
            None => (None, None),
            Some(route) => {
                let message = route
                    .layout
                    .get()
                    .read_request(py, &mut input, route.flexible)?;
                (Some(route.to.bind(py)), Some(message))
            }
        };
        (
            to,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            message,
        )
            .into_pyobject(py)
    }
}
