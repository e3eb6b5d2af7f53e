//! What a read of the store found, as Python's bytes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_store::{Refusal, Slice, Want};

use crate::store::refused;

/// The bytes of a slice; other threads run Python while the disk is read.
pub(crate) fn copied<'py>(py: Python<'py>, slice: &Slice) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, slice.size, |out| {
        let copy = if slice.is_in_memory() {
            slice.copy_to(out)
        } else {
            py.detach(|| slice.copy_to(out))
        };
        copy.map_err(|refusal| refused(py, &refusal))
    })
}

/// The bytes of a slice; `None` when the disk would have to be waited for.
pub(crate) fn copied_cached<'py>(
    py: Python<'py>,
    slice: &Slice,
) -> Result<Option<Bound<'py, PyBytes>>, PyErr> {
    let mut cached = true;
    let bytes = PyBytes::new_with(py, slice.size, |out| {
        cached = slice
            .copy_cached(out)
            .map_err(|refusal| refused(py, &refusal))?;
        Ok(())
    })?;
    Ok(cached.then_some(bytes))
}

pub(crate) fn wanted(
    max_bytes: i64,
    limit: Option<i64>,
    at_least_one: bool,
    max_records: i64,
) -> Want {
    Want {
        max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        max_records,
        limit,
        at_least_one,
    }
}

pub(crate) fn bytes_of(slice: &Slice) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes)?;
    Ok(bytes)
}
