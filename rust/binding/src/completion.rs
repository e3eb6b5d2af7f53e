//! `Completion`: the callback of a write, an append or a response.
//!
//! An enum instead of a callable, so that waiters inside the binding are called without Python. No object stays borrowed while
//! Python code runs: Python may call back into the same object.

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::collected::Refers;
use crate::error::code_of;
use crate::fetching::PyShareFetching;
use crate::gathering::{Part, PyPart};
use crate::produced::PyProduced;
use crate::python;
use crate::slot::PySlot;
use crate::staged_batch::PyStagedBatch;
use crate::waiting::{PyLater, PyTicket};
use crate::written::{Change, PyWritten};

/// A callback that runs once.
pub(crate) enum Completion {
    /// A Python callable.
    Call(Py<PyAny>),
    /// One part of a request.
    Part(Part),
    /// A change of a share partition's state.
    Change(Box<Change>),
    /// An append of coordinator records.
    Append(Py<PyStagedBatch>),
    /// A ticket and its waiters.
    Ticket(Py<PyTicket>),
    /// A batch of a Produce request, by its index.
    Batch(Py<PyProduced>, usize),
    /// A request's slot in the order of responses.
    Slot(Py<PySlot>),
    /// A `ShareFetch` whose response is complete or cancelled.
    Fetch(Py<PyShareFetching>),
}

/// The result that completes a callback.
#[derive(Clone, Copy)]
pub(crate) enum Ended<'a, 'py> {
    /// A write: the error, or None.
    Write(Option<&'a Bound<'py, PyAny>>),
    Ticket(&'a Bound<'py, PyTicket>),
    Answer(&'a Bound<'py, PyLater>),
}

impl<'py> Ended<'_, 'py> {
    fn error(self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let error = match self {
            Ended::Write(error) => return error.cloned(),
            Ended::Ticket(ticket) => ticket.borrow().exception(py),
            Ended::Answer(later) => later.borrow().outcome(py).0,
        };
        error.map(|error| error.into_bound(py))
    }

    /// The argument for a Python callable.
    fn argument(self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Ended::Write(error) => error.map_or_else(|| py.None().into_bound(py), Clone::clone),
            Ended::Ticket(ticket) => ticket.clone().into_any(),
            Ended::Answer(later) => later.clone().into_any(),
        }
    }
}

impl Completion {
    /// Wraps a callback that was passed through Python.
    pub(crate) fn of(done: &Bound<'_, PyAny>) -> Self {
        if let Ok(written) = done.cast::<PyWritten>()
            && let Some(change) = written.borrow_mut().take()
        {
            return Completion::Change(change);
        }
        Completion::Call(done.clone().unbind())
    }

    /// Like `of`, for an optional callback.
    pub(crate) fn of_some(done: Option<&Bound<'_, PyAny>>) -> Option<Self> {
        done.filter(|done| !done.is_none()).map(Self::of)
    }

    /// Converts it to a Python callable.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Completion::Call(call) => call,
            Completion::Change(change) => Py::new(py, PyWritten::new(change))?.into_any(),
            Completion::Part(part) => Py::new(py, PyPart(Some(part)))?.into_any(),
            Completion::Append(_)
            | Completion::Ticket(_)
            | Completion::Batch(..)
            | Completion::Slot(_)
            | Completion::Fetch(_) => {
                return Err(PyTypeError::new_err(
                    "only callbacks of writes can be called from Python",
                ));
            }
        })
    }

    /// Runs the callback; errors are returned.
    pub(crate) fn end<'py>(self, py: Python<'py>, ended: Ended<'_, 'py>) -> PyResult<()> {
        match self {
            Completion::Call(call) => call.call1(py, (ended.argument(py),)).map(|_| ()),
            Completion::Part(part) => part.end(py, ended.error(py).map(Bound::unbind)),
            Completion::Change(change) => change.end(py, ended.error(py)),
            Completion::Append(batch) => {
                let error = ended.error(py).map(Bound::unbind);
                PyStagedBatch::append_ended(batch.bind(py), error, 1)
            }
            Completion::Ticket(ticket) => {
                PyTicket::settle(ticket.bind(py), ended.error(py).map(Bound::unbind))
            }
            Completion::Batch(produced, place) => {
                let error_code = match ended.error(py) {
                    None => 0,
                    Some(error) => code_of(&error)?,
                };
                PyProduced::end(produced.bind(py), place, error_code)
            }
            Completion::Slot(slot) => PySlot::ended(slot.bind(py), &ended.argument(py)),
            Completion::Fetch(fetching) => {
                let is_cancelled = match ended {
                    Ended::Answer(later) => later.borrow().cancelled(),
                    Ended::Write(_) | Ended::Ticket(_) => false,
                };
                PyShareFetching::answered(fetching.bind(py), is_cancelled)
            }
        }
    }

    /// Runs the callback; an `Exception` is logged, anything else is raised again.
    pub(crate) fn settle<'py>(self, py: Python<'py>, ended: Ended<'_, 'py>) -> PyResult<()> {
        let name = match &self {
            Completion::Call(call) => Named::Callable(call.clone_ref(py)),
            Completion::Part(_) => Named::Rust("an operation of a request"),
            Completion::Change(_) => Named::Rust("a change of share state"),
            Completion::Append(_) => Named::Rust("an append of staged records"),
            Completion::Ticket(_) => Named::Rust("a ticket"),
            Completion::Batch(..) => Named::Rust("a batch of a Produce request"),
            Completion::Slot(_) => Named::Rust("an answer of a connection"),
            Completion::Fetch(_) => Named::Rust("a ShareFetch"),
        };
        self.end(py, ended).or_else(|error| name.failed(py, error))
    }
}

impl Refers for Completion {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Completion::Call(call) => call.show(visit),
            Completion::Part(part) => part.show(visit),
            Completion::Change(change) => change.show(visit),
            Completion::Append(batch) => batch.show(visit),
            Completion::Ticket(ticket) => ticket.show(visit),
            Completion::Batch(produced, _) => produced.show(visit),
            Completion::Slot(slot) => slot.show(visit),
            Completion::Fetch(fetching) => fetching.show(visit),
        }
    }
}

/// Runs all callbacks; one that raises is logged and does not stop the others.
pub(crate) fn settle_all<'py>(
    py: Python<'py>,
    completions: Vec<Completion>,
    ended: Ended<'_, 'py>,
) -> PyResult<()> {
    let mut completions = completions.into_iter();
    completions.try_for_each(|each| each.settle(py, ended))
}

/// The name of a callback for the log.
pub(crate) enum Named {
    Callable(Py<PyAny>),
    Rust(&'static str),
}

impl Named {
    /// Logs what a callback raised; anything but an `Exception` is raised again.
    pub(crate) fn failed(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let name = match self {
            Named::Callable(callback) => callback.bind(py).clone(),
            Named::Rust(name) => PyString::new(py, name).into_any(),
        };
        let logger = py
            .import("logging")?
            .call_method1(python::GET_LOGGER, ("sharecore.waiting",))?;
        let how = PyDict::new(py);
        how.set_item("exc_info", error.into_value(py))?;
        logger.call_method(python::ERROR, ("a callback failed: %r", name), Some(&how))?;
        Ok(())
    }
}

/// Calls a callable; an `Exception` is logged, anything else is raised again.
pub(crate) fn call_logged<'py>(
    callback: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<()> {
    let Err(error) = callback.call1(arguments) else {
        return Ok(());
    };
    Named::Callable(callback.clone().unbind()).failed(callback.py(), error)
}
