//! `LogOffsets` and `LogAccess`: the offsets of a log, and how a share partition reads it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::collected::collected;
use crate::expanded::PyExpandedCache;
use crate::python;
use crate::tickets::PyStoredLog;

/// The offsets of a log. `sharecore.storage.Log` extends it.
#[pyclass(
    name = "LogOffsets",
    module = "sharecore._core",
    subclass,
    get_all,
    set_all
)]
#[derive(Default)]
pub(crate) struct PyLogOffsets {
    pub(crate) start_offset: i64,
    pub(crate) high_watermark: i64,
    pub(crate) last_stable_offset: i64,
    pub(crate) end_offset: i64,
}

#[pymethods]
impl PyLogOffsets {
    #[new]
    #[pyo3(signature = (*_args, **_rest))]
    fn new(_args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }
}

/// The first readable offset.
pub(crate) fn start_offset(log: &Bound<'_, PyAny>) -> PyResult<i64> {
    match log.cast::<PyLogOffsets>() {
        Ok(offsets) => Ok(offsets.borrow().start_offset),
        Err(_) => log
            .getattr(intern!(log.py(), python::START_OFFSET))?
            .extract(),
    }
}

/// The offset before which records are readable.
pub(crate) fn readable_end(log: &Bound<'_, PyAny>, committed: bool) -> PyResult<i64> {
    match log.cast::<PyLogOffsets>() {
        Ok(offsets) if committed => Ok(offsets.borrow().last_stable_offset),
        Ok(offsets) => Ok(offsets.borrow().high_watermark),
        Err(_) if committed => log
            .getattr(intern!(log.py(), python::LAST_STABLE_OFFSET))?
            .extract(),
        Err(_) => log
            .getattr(intern!(log.py(), python::HIGH_WATERMARK))?
            .extract(),
    }
}

/// Advances the end offset to cover an append that is not yet written.
pub(crate) fn appended(log: &Bound<'_, PyAny>, last_offset: i64) -> PyResult<()> {
    if let Ok(offsets) = log.cast::<PyLogOffsets>() {
        let mut offsets = offsets.borrow_mut();
        offsets.end_offset = offsets.end_offset.max(last_offset + 1);
        return Ok(());
    }
    let end_offset = intern!(log.py(), python::END_OFFSET);
    if last_offset >= log.getattr(end_offset)?.extract()? {
        log.setattr(end_offset, last_offset + 1)?;
    }
    Ok(())
}

/// How to read a log's records for acquisition. `sharecore.partition.leasing.Leasing` extends it with `read` and `aborted`.
#[pyclass(
    name = "LogAccess",
    module = "sharecore._core",
    subclass,
    get_all,
    set_all
)]
#[derive(Default)]
pub(crate) struct PyLogAccess {
    /// Set if the log can be read without Python; None while a thread reads or its result is cached.
    pub(crate) stored: Option<Py<PyStoredLog>>,
    pub(crate) read_committed: bool,
    /// The cache of decompressed batches; None if responses are never thinned.
    pub(crate) expanded: Option<Py<PyExpandedCache>>,
}

#[pymethods]
impl PyLogAccess {
    #[new]
    #[pyo3(signature = (*_args, **_rest))]
    fn new(_args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }
}

collected!(PyLogAccess { stored, expanded });
