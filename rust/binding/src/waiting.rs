//! `Later`, `Ticket` and `settle`: callbacks instead of tasks and futures, for `sharecore.waiting`.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use crate::collected::collected;
use crate::completion::{Completion, Ended, call_logged, settle_all};
use crate::python;

/// Calls each callback; one that raises is logged and does not stop the others.
#[pyfunction]
#[pyo3(signature = (callbacks, *outcome))]
pub(crate) fn settle<'py>(
    callbacks: &Bound<'py, PyAny>,
    outcome: &Bound<'py, PyTuple>,
) -> PyResult<()> {
    if let Ok(list) = callbacks.cast::<PyList>() {
        return list.iter().try_for_each(|each| call_logged(&each, outcome));
    }
    callbacks
        .try_iter()?
        .try_for_each(|each| call_logged(&each?, outcome))
}

static AWAIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Creates the iterator of an `await` with `sharecore.waiting.later`.
fn awaited<'py>(pending: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = pending.py();
    let steps = AWAIT.get_or_try_init(py, || {
        let module = py.import("sharecore.waiting.later")?;
        Ok::<_, PyErr>(module.getattr(python::AWAITED)?.unbind())
    })?;
    steps.bind(py).call1((pending,))
}

/// A result that completes later, once.
#[pyclass(name = "Later", module = "sharecore._core", generic)]
#[derive(Default)]
pub(crate) struct PyLater {
    callbacks: Vec<Completion>,
    done: bool,
    cancelled: bool,
    error: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
}

impl PyLater {
    /// Returns the error and the value.
    pub(crate) fn outcome(&self, py: Python<'_>) -> (Option<Py<PyAny>>, Option<Py<PyAny>>) {
        let value = self.value.as_ref().map(|value| value.clone_ref(py));
        (self.exception(py), value)
    }

    /// Notifies when it is done; at once if it already is.
    pub(crate) fn when_done(later: &Bound<'_, Self>, completion: Completion) -> PyResult<()> {
        {
            let mut held = later.borrow_mut();
            if !held.done {
                held.callbacks.push(completion);
                return Ok(());
            }
        }
        completion.end(later.py(), Ended::Answer(later))
    }

    fn end(later: &Bound<'_, Self>, change: impl FnOnce(&mut PyLater)) -> PyResult<()> {
        let callbacks = {
            let mut held = later.borrow_mut();
            if held.done {
                return Ok(());
            }
            held.done = true;
            change(&mut held);
            std::mem::take(&mut held.callbacks)
        };
        settle_all(later.py(), callbacks, Ended::Answer(later))
    }
}

#[pymethods]
impl PyLater {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    pub(crate) fn done(&self) -> bool {
        self.done
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancelled
    }

    fn exception(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match &self.error {
            Some(error) => Err(PyErr::from_value(error.bind(py).clone())),
            None => Ok(self.value.as_ref().map(|value| value.clone_ref(py))),
        }
    }

    pub(crate) fn set_result(later: &Bound<'_, Self>, value: Py<PyAny>) -> PyResult<()> {
        Self::end(later, |held| held.value = Some(value))
    }

    pub(crate) fn set_exception(later: &Bound<'_, Self>, error: Py<PyAny>) -> PyResult<()> {
        Self::end(later, |held| held.error = Some(error))
    }

    fn cancel(later: &Bound<'_, Self>) -> PyResult<bool> {
        if later.borrow().done {
            return Ok(false);
        }
        let error = later
            .py()
            .import("asyncio")?
            .call_method0(python::CANCELLED_ERROR)?
            .unbind();
        Self::end(later, |held| {
            held.cancelled = true;
            held.error = Some(error);
        })?;
        Ok(true)
    }

    fn __await__<'py>(later: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        awaited(later)
    }

    fn add_done_callback(later: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        Self::when_done(later, Completion::Call(callback))
    }
}

collected!(PyLater { callbacks, error, value } cut { callbacks, error, value });

/// A write that is not durable yet.
#[pyclass(name = "Ticket", module = "sharecore._core")]
pub(crate) struct PyTicket {
    #[pyo3(get)]
    sequence: u64,
    done: bool,
    error: Option<Py<PyAny>>,
    callbacks: Vec<Completion>,
}

impl PyTicket {
    pub(crate) fn of(sequence: u64) -> Self {
        Self {
            sequence,
            done: false,
            error: None,
            callbacks: Vec::new(),
        }
    }

    /// Notifies when the write has ended; at once if it already has.
    pub(crate) fn when_done(ticket: &Bound<'_, Self>, completion: Completion) -> PyResult<()> {
        {
            let mut held = ticket.borrow_mut();
            if !held.done {
                held.callbacks.push(completion);
                return Ok(());
            }
        }
        completion.end(ticket.py(), Ended::Ticket(ticket))
    }
}

#[pymethods]
impl PyTicket {
    #[new]
    fn new(sequence: u64) -> Self {
        Self::of(sequence)
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.exception(py)
    }

    fn done(&self) -> bool {
        self.done
    }

    pub(crate) fn exception(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    fn __await__<'py>(ticket: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        awaited(ticket)
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        self.error.as_ref().map_or(Ok(()), |error| {
            Err(PyErr::from_value(error.bind(py).clone()))
        })
    }

    fn add_done_callback(ticket: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        Self::when_done(ticket, Completion::Call(callback))
    }

    #[pyo3(signature = (error = None))]
    pub(crate) fn settle(ticket: &Bound<'_, Self>, error: Option<Py<PyAny>>) -> PyResult<()> {
        let callbacks = {
            let mut held = ticket.borrow_mut();
            held.error = error;
            held.done = true;
            std::mem::take(&mut held.callbacks)
        };
        settle_all(ticket.py(), callbacks, Ended::Ticket(ticket))
    }
}

collected!(PyTicket { callbacks, error } cut { callbacks, error });
