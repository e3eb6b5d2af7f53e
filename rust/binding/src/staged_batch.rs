//! `StagedBatch`: records that go into a coordinator's topic together.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_share::Number;

use crate::collected::collected;
use crate::completion::Completion;
use crate::python;
use crate::staging::PyStaging;

/// Records that go out together, and who waits for them.
#[pyclass(name = "StagedBatch", module = "sharecore._core")]
pub(crate) struct PyStagedBatch {
    pub(crate) staging: Py<PyStaging>,
    /// As its staging knows it.
    pub(crate) number: Number,
    #[pyo3(get)]
    pub(crate) producer: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub(crate) records: Py<PyList>,
    pub(crate) waiting: Vec<Completion>,
    /// Called with how the write has really ended, before `waiting`; a time-out does not end it.
    pub(crate) ended: Vec<Completion>,
    /// Records by their number, and who is told of the offset of each.
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
    /// Has somebody told how it ends.
    fn wait(&mut self, done: &Bound<'_, PyAny>) {
        self.waiting.push(Completion::of(done));
    }

    /// An append of it has ended, whose ticket is not one of the store's.
    fn __call__(batch: &Bound<'_, Self>, ticket: &Bound<'_, PyAny>) -> PyResult<()> {
        let error = ticket
            .getattr(intern!(batch.py(), python::ERROR))?
            .extract()?;
        Self::append_ended(batch, error, 1)
    }
}

collected!(PyStagedBatch { staging, producer, records, waiting, ended, placed, error } cut { waiting, ended, placed, error });
