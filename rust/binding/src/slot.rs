//! Slots of requests in the order of their responses, for `exchange`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

use crate::collected::{Refers, collected};
use crate::cork::corked;
use crate::exchange::PyExchange;
use crate::finishing::{Finishing, PyFinish};
use crate::python;
use crate::unsent::size_of;
use crate::waiting::PyLater;

static DISCONNECT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn disconnect_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let class = DISCONNECT.get_or_try_init(py, || {
        let module = py.import("sharecore.network.disconnect")?;
        Ok::<_, PyErr>(module.getattr(python::DISCONNECT)?.unbind())
    })?;
    Ok(class.bind(py))
}

/// Creates a `Disconnect` exception.
pub(crate) fn disconnect(py: Python<'_>, reason: &str) -> PyResult<PyErr> {
    Ok(PyErr::from_value(disconnect_class(py)?.call1((reason,))?))
}

/// Returns the reason of a `Disconnect`; any other exception is raised again.
pub(crate) fn disconnect_reason(py: Python<'_>, error: PyErr) -> PyResult<String> {
    if error.matches(py, disconnect_class(py)?)? {
        Ok(error.value(py).str()?.to_string())
    } else {
        Err(error)
    }
}

/// Converts a completed future to response buffers.
pub(crate) enum Finish {
    /// A Python callable, called with the future.
    Call(Py<PyAny>),
    Frame(Box<Finishing>),
}

impl Finish {
    fn frame(self, future: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyList>>> {
        match self {
            Finish::Call(call) => Ok(call.call1(future.py(), (future,))?.extract(future.py())?),
            Finish::Frame(finishing) => Ok(finishing.frame(future)?.map(Bound::unbind)),
        }
    }
}

impl Refers for Finish {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Finish::Call(call) => call.show(visit),
            Finish::Frame(finishing) => finishing.show(visit),
        }
    }
}

/// A response that is not complete yet: a future, and how to encode its result.
#[pyclass(name = "Pending", module = "sharecore._core")]
pub(crate) struct PyPending {
    #[pyo3(get)]
    pub(crate) future: Py<PyAny>,
    /// None once the response has a slot.
    finish: Option<Finish>,
}

impl PyPending {
    pub(crate) fn of(future: Py<PyAny>, finish: Finish) -> Self {
        Self {
            future,
            finish: Some(finish),
        }
    }

    /// Takes the future and its `Finish`; works once.
    pub(crate) fn take(&mut self, py: Python<'_>) -> PyResult<(Py<PyAny>, Finish)> {
        let finish = self.finish.take();
        let finish =
            finish.ok_or_else(|| PyRuntimeError::new_err("the response already has a slot"))?;
        Ok((self.future.clone_ref(py), finish))
    }
}

#[pymethods]
impl PyPending {
    #[new]
    fn new(future: Py<PyAny>, finish: Py<PyAny>) -> Self {
        Self::of(future, Finish::Call(finish))
    }

    #[getter]
    fn finish(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let call = match self.take(py)?.1 {
            Finish::Call(call) => call,
            Finish::Frame(finishing) => Py::new(py, PyFinish::new(finishing))?.into_any(),
        };
        self.finish = Some(Finish::Call(call.clone_ref(py)));
        Ok(call)
    }
}

collected!(PyPending { future, finish } cut { finish });

/// The response of a request.
pub(crate) enum Answer {
    /// The future, and how to encode its result.
    Pending(Py<PyAny>, Finish),
    /// The future is done, and its result is being encoded.
    Finishing,
    /// Buffers to send, or None for no response.
    Ready(Option<Py<PyList>>),
    /// The connection is closed at this point.
    Close(String),
}

impl Default for Answer {
    fn default() -> Self {
        Self::Ready(None)
    }
}

impl Refers for Answer {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Answer::Pending(future, finish) => {
                future.show(visit)?;
                finish.show(visit)
            }
            Answer::Finishing | Answer::Ready(_) | Answer::Close(_) => Ok(()),
        }
    }
}

impl Answer {
    /// True if the response is complete.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Answer::Ready(_) | Answer::Close(_))
    }
}

/// A request that was dispatched.
#[pyclass(name = "Slot", module = "sharecore._core")]
pub(crate) struct PySlot {
    pub(crate) exchange: Py<PyExchange>,
    pub(crate) frame_bytes: usize,
    /// True if `frame_bytes` is parked in the budget.
    pub(crate) is_parked: bool,
    /// True if no similar request is dispatched before this one is answered.
    pub(crate) is_alone: bool,
    pub(crate) answer: Answer,
    /// Bytes counted for a complete response that waits behind others.
    pub(crate) answer_bytes: u64,
}

impl PySlot {
    /// Called when the future is done.
    pub(crate) fn ended(slot: &Bound<'_, Self>, future: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slot.py();
        let (exchange, finish) = {
            let mut held = slot.borrow_mut();
            let before = std::mem::replace(&mut held.answer, Answer::Ready(None));
            let Answer::Pending(_, finish) = before else {
                held.answer = before;
                return Ok(());
            };
            (held.exchange.clone_ref(py), finish)
        };
        let exchange = exchange.bind(py);
        if exchange.borrow().is_closed() {
            return Ok(());
        }
        let is_cancelled = match future.cast::<PyLater>() {
            Ok(later) => later.borrow().cancelled(),
            Err(_) => future.call_method0(python::CANCELLED)?.is_truthy()?,
        };
        if !is_cancelled {
            slot.borrow_mut().answer = Answer::Finishing;
            match finish.frame(future) {
                Ok(parts) => slot.borrow_mut().answer = Answer::Ready(parts),
                Err(error) => {
                    let reason = disconnect_reason(py, error);
                    // Responses after this one could never be sent
                    PyExchange::close(exchange, reason.as_deref().unwrap_or_default())?;
                    return reason.map(|_| ());
                }
            }
        }
        let is_first = exchange.borrow().begins_with(slot);
        if is_first {
            return PyExchange::answer_in_order(exchange);
        }
        let bytes = match &slot.borrow().answer {
            Answer::Ready(Some(parts)) => size_of(parts.bind(py))? as u64,
            _ => 0,
        };
        slot.borrow_mut().answer_bytes = bytes;
        PyExchange::note_ready(exchange, bytes)
    }
}

#[pymethods]
impl PySlot {
    /// Called when a Python future is done.
    fn __call__(slot: &Bound<'_, Self>, future: &Bound<'_, PyAny>) -> PyResult<()> {
        corked(slot.py(), || Self::ended(slot, future))
    }
}

collected!(PySlot { exchange, answer } cut { answer });
