//! `decode_columns`: decodes records into buffers in Arrow's layout, which a columnar reader can adopt without a copy.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_records::columns::{self, Binary, Columns, Validity};

pub(crate) type Buffers<'py> = Vec<(usize, Option<Bound<'py, PyBytes>>)>;
type Decoded<'py> = (
    usize,
    Bound<'py, PyList>,
    Option<i64>,
    Vec<(i64, i64, String)>,
);

pub(crate) fn data<'py>(py: Python<'py>, bytes: &[u8]) -> (usize, Option<Bound<'py, PyBytes>>) {
    (0, Some(PyBytes::new(py, bytes)))
}

pub(crate) fn validity<'py>(
    py: Python<'py>,
    bits: &Validity,
) -> (usize, Option<Bound<'py, PyBytes>>) {
    (bits.nulls, bits.bits().map(|bits| PyBytes::new(py, bits)))
}

pub(crate) fn binary<'py>(py: Python<'py>, column: &Binary, out: &mut Buffers<'py>) {
    out.push(validity(py, &column.validity));
    out.push(data(py, &column.offsets));
    out.push(data(py, &column.data));
}

fn buffers<'py>(py: Python<'py>, columns: &Columns) -> Buffers<'py> {
    let mut out = Vec::with_capacity(17);
    binary(py, &columns.keys, &mut out);
    binary(py, &columns.values, &mut out);
    out.push(data(py, &columns.offsets));
    out.push(data(py, &columns.timestamps));
    out.push(data(py, &columns.timestamp_types));
    out.push(data(py, &columns.tags));
    if let Some(headers) = &columns.headers {
        out.push(validity(py, &headers.validity));
        out.push(data(py, &headers.offsets));
        out.push(data(py, &headers.keys.offsets));
        out.push(data(py, &headers.keys.data));
        binary(py, &headers.values, &mut out);
    }
    out
}

/// Decodes records into buffers in Arrow's layout.
#[pyfunction]
#[pyo3(signature = (records, ranges, *, headers=true, expanded_bytes_max=1_073_741_824))]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn decode_columns<'py>(
    py: Python<'py>,
    records: &[u8],
    ranges: Vec<(i64, i64, i32)>,
    headers: bool,
    expanded_bytes_max: usize,
) -> PyResult<Decoded<'py>> {
    if ranges.iter().any(|(first, last, _)| first > last)
        || ranges.windows(2).any(|pair| pair[0].1 >= pair[1].0)
    {
        return Err(PyValueError::new_err(
            "ranges must ascend and must not overlap",
        ));
    }
    let read = py.detach(|| columns::read(records, &ranges, headers, expanded_bytes_max));
    let faults = read
        .faults
        .iter()
        .map(|(first, last, fault)| (*first, *last, fault.to_string()))
        .collect();
    let list = PyList::new(py, buffers(py, &read.columns))?;
    Ok((read.columns.rows, list, read.next, faults))
}

/// Lists the batches with acquired offsets whose format or checksum is wrong.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn damaged_batches(
    py: Python<'_>,
    records: &[u8],
    ranges: Vec<(i64, i64)>,
) -> Vec<(i64, i64, String)> {
    py.detach(|| columns::damaged(records, &ranges))
        .into_iter()
        .map(|(first, last, fault)| (first, last, fault.to_string()))
        .collect()
}
