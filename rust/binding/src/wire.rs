//! Arrays of a hot message, straight into the objects that the engine takes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Bytes that an array is read from.
struct Input<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, size: usize) -> PyResult<&'a [u8]> {
        let taken = self
            .data
            .get(self.at..)
            .and_then(|rest| rest.get(..size))
            .ok_or_else(|| PyValueError::new_err("acknowledgement batches reach past the end"))?;
        self.at += size;
        Ok(taken)
    }

    fn i64(&mut self) -> PyResult<i64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(i64::from_be_bytes(bytes))
    }

    fn uvarint(&mut self) -> PyResult<usize> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value as usize);
            }
        }
        Err(PyValueError::new_err("varint is too long"))
    }

    fn skip_tagged_fields(&mut self) -> PyResult<()> {
        for _ in 0..self.uvarint()? {
            self.uvarint()?;
            let size = self.uvarint()?;
            self.take(size)?;
        }
        Ok(())
    }
}

/// Reads `count` elements of a flexible `AcknowledgementBatches` array from `data[offset..end]`; returns them
/// as (first, last, types), and the offset behind the last.
#[pyfunction]
pub(crate) fn read_acknowledgement_batches<'py>(
    py: Python<'py>,
    data: &[u8],
    offset: usize,
    end: usize,
    count: usize,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let data = data
        .get(..end)
        .ok_or_else(|| PyValueError::new_err("acknowledgement batches reach past the end"))?;
    let mut input = Input { data, at: offset };
    let batches = PyList::empty(py);
    for _ in 0..count {
        let (first, last) = (input.i64()?, input.i64()?);
        let size = input
            .uvarint()?
            .checked_sub(1)
            .ok_or_else(|| PyValueError::new_err("acknowledge_types must not be null"))?;
        let types = PyBytes::new(py, input.take(size)?);
        input.skip_tagged_fields()?;
        batches.append((first, last, types))?;
    }
    Ok((batches, input.at))
}
