//! `StagedBatch`: records that are appended to a coordinator's topic together.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_share::Number;

use crate::collected::collected;
use crate::completion::Completion;
use crate::python;
use crate::staging::PyStaging;

/// Records that are appended together, and their waiters.
#[pyclass(name = "StagedBatch", module = "sharecore._core")]
pub(crate) struct PyStagedBatch {
    pub(crate) staging: Py<PyStaging>,
    /// Its number in the staging.
    pub(crate) number: Number,
    #[pyo3(get)]
    pub(crate) producer: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub(crate) records: Py<PyList>,
    pub(crate) waiting: Vec<Completion>,
    /// Called with the real result of the write, before `waiting`; a timeout does not complete these.
    pub(crate) ended: Vec<Completion>,
    /// Callbacks for the offsets of records, by the record's index.
    pub(crate) placed: Vec<(usize, Py<PyAny>)>,
    pub(crate) now_ms: i64,
    pub(crate) began_ms: i64,
    pub(crate) error: Option<Py<PyAny>>,
}

impl PyStagedBatch {
    pub(crate) fn append_ended(
        batch: &Bound<'_, Self>,
        error: Option<Py<PyAny>>,
        pieces: usize,
    ) -> PyResult<()> {
        let py = batch.py();
        let (staging, number) = {
            let mut held = batch.borrow_mut();
            if held.error.is_none() {
                held.error = error;
            }
            (held.staging.clone_ref(py).into_bound(py), held.number)
        };
        if !staging.borrow_mut().inner.end_appends(number, pieces) {
            return Ok(());
        }
        let error = batch.borrow_mut().error.take();
        PyStaging::ended(&staging, batch, error)
    }
}

#[pymethods]
impl PyStagedBatch {
    /// Adds a callback for the end of the write.
    fn wait(&mut self, done: &Bound<'_, PyAny>) {
        self.waiting.push(Completion::of(done));
    }

    /// Called when an append of the batch has ended whose ticket is not the store's.
    fn __call__(batch: &Bound<'_, Self>, ticket: &Bound<'_, PyAny>) -> PyResult<()> {
        let error = ticket
            .getattr(intern!(batch.py(), python::ERROR))?
            .extract()?;
        Self::append_ended(batch, error, 1)
    }
}

collected!(PyStagedBatch { staging, producer, records, waiting, ended, placed, error } cut { waiting, ended, placed, error });
