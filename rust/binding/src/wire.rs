//! Request headers.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_wire::{Input, read_header};

/// API key, version, correlation id, client id, offset after the header.
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

/// Returns the offset after a section of tagged fields.
#[pyfunction]
pub(crate) fn skip_tagged_fields(data: &[u8], offset: usize) -> PyResult<usize> {
    let mut input = Input::new(data, offset);
    let skipped = input.skip_tagged_fields();
    skipped.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(input.at())
}
