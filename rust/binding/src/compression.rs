//! `sharecore._core.decompress` and `crc32c`, for data that clients push outside of record batches; and `java_hash`, Java's string
//! hash, which maps keys to partitions of a coordinator's topic.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_records::{Codec, Compression};

#[pyfunction]
#[pyo3(signature = (data, compression, *, expanded_bytes_max))]
pub(crate) fn decompress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    compression: i16,
    expanded_bytes_max: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let expanded = Compression::from_id(compression)
        .and_then(|kind| sharecore_records::decompress(kind, data.as_bytes(), expanded_bytes_max))
        .map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(match expanded {
        Cow::Borrowed(_) => data.clone(),
        Cow::Owned(expanded) => PyBytes::new(py, &expanded),
    })
}

#[pyfunction]
pub(crate) fn crc32c(data: &[u8]) -> u32 {
    ::crc32c::crc32c(data)
}

/// Return a codec by its number, at a level.
pub(crate) fn codec((number, level): (i16, Option<i32>)) -> PyResult<Codec> {
    let compression =
        Compression::from_id(number).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(Codec { compression, level })
}

#[pyfunction]
pub(crate) fn java_hash(units: &[u8], before: i32) -> i32 {
    sharecore_wire::java_hash(units, before)
}
