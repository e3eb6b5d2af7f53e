//! `LogOffsets` and `LogAccess`: the offsets of a log with who listens to them, and how a share partition reads it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sharecore_store::Offsets;
use smallvec::SmallVec;

use crate::collected::collected;
use crate::completion::call_logged;
use crate::expanded::PyExpandedCache;
use crate::python;
use crate::tickets::PyStoredLog;

/// The offsets of a log, and who listens to them. `sharecore.storage.Log` extends it.
#[pyclass(name = "LogOffsets", module = "sharecore._core", subclass)]
#[derive(Default)]
pub(crate) struct PyLogOffsets {
    #[pyo3(get, set)]
    pub(crate) start_offset: i64,
    #[pyo3(get, set)]
    pub(crate) high_watermark: i64,
    #[pyo3(get, set)]
    pub(crate) last_stable_offset: i64,
    #[pyo3(get, set)]
    pub(crate) end_offset: i64,
    /// The log in the store; None if only the Python class may be used.
    #[pyo3(get, set)]
    pub(crate) stored: Option<Py<PyStoredLog>>,
    listeners: Vec<Py<PyAny>>,
}

impl PyLogOffsets {
    /// Sets what a store has reported.
    pub(crate) fn set(&mut self, offsets: Offsets) {
        self.start_offset = offsets.start;
        self.high_watermark = offsets.high_watermark;
        self.last_stable_offset = offsets.last_stable;
        self.end_offset = offsets.end;
    }
}

#[pymethods]
impl PyLogOffsets {
    #[new]
    #[pyo3(signature = (*_args, **_rest))]
    fn new(_args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Calls back after a change of high watermark, last stable offset or start offset.
    fn on_advance(&mut self, callback: Py<PyAny>) {
        self.listeners.push(callback);
    }

    /// Removes a callback.
    fn off_advance(log: &Bound<'_, Self>, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let listeners = Self::listeners(log);
        for (place, each) in listeners.iter().enumerate() {
            // two references to one method are equal
            if each.eq(callback)? {
                let gone = log.borrow_mut().listeners.remove(place);
                drop(gone); // an object of Python, whose end may come back here
                break;
            }
        }
        Ok(())
    }

    /// Whether anybody listens.
    #[getter]
    fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Calls the listeners; one that raises is logged and does not stop the others.
    pub(crate) fn notify(log: &Bound<'_, Self>) -> PyResult<()> {
        let listeners = Self::listeners(log);
        if listeners.is_empty() {
            return Ok(());
        }
        let own = PyTuple::new(log.py(), [log])?;
        listeners
            .iter()
            .try_for_each(|listener| call_logged(listener, &own))
    }
}

/// The log in the store, if it can be used without the Python class.
pub(crate) fn stored(log: &Bound<'_, PyAny>) -> Option<Py<PyStoredLog>> {
    let offsets = log.cast::<PyLogOffsets>().ok()?;
    let stored = offsets.borrow().stored.as_ref()?.clone_ref(log.py());
    Some(stored)
}

impl PyLogOffsets {
    fn listeners<'py>(log: &Bound<'py, Self>) -> SmallVec<[Bound<'py, PyAny>; 2]> {
        let held = log.borrow();
        let listeners = held.listeners.iter();
        listeners.map(|each| each.bind(log.py()).clone()).collect()
    }
}

collected!(PyLogOffsets { stored, listeners } cut { listeners });

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
