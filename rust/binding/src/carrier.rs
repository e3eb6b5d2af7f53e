//! `ClientTransport`: the transport of an exchange; our own sockets are called without Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

use crate::collected::Refers;
use crate::completion::Named;
use crate::python;
use crate::socket::PySocket;

/// A socket of `Sockets`, or an asyncio transport (TLS, or a test's).
pub(crate) enum Carrier {
    Own(Py<PySocket>),
    Other(Py<PyAny>),
}

impl Carrier {
    pub(crate) fn of(transport: &Bound<'_, PyAny>) -> Self {
        match transport.cast::<PySocket>() {
            Ok(socket) => Carrier::Own(socket.clone().unbind()),
            Err(_) => Carrier::Other(transport.clone().unbind()),
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Carrier::Own(socket) => Carrier::Own(socket.clone_ref(py)),
            Carrier::Other(transport) => Carrier::Other(transport.clone_ref(py)),
        }
    }

    pub(crate) fn as_any(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Carrier::Own(socket) => socket.clone_ref(py).into_any(),
            Carrier::Other(transport) => transport.clone_ref(py),
        }
    }

    pub(crate) fn is_closing(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Carrier::Own(socket) => Ok(socket.borrow(py).is_closing()),
            Carrier::Other(transport) => transport
                .call_method0(py, intern!(py, python::IS_CLOSING))?
                .is_truthy(py),
        }
    }

    /// Sends buffers in order.
    pub(crate) fn write(&self, parts: &Bound<'_, PyList>) -> PyResult<()> {
        let py = parts.py();
        match self {
            Carrier::Own(socket) => PySocket::write_all(socket.bind(py), parts),
            Carrier::Other(transport) if parts.len() == 1 => {
                let part = (parts.get_item(0)?,);
                let written = transport.call_method1(py, intern!(py, python::WRITE), part);
                written.map(|_| ())
            }
            Carrier::Other(transport) => {
                let written = transport.call_method1(py, intern!(py, python::WRITELINES), (parts,));
                written.map(|_| ())
            }
        }
    }

    /// Bytes handed to the transport but not sent yet.
    pub(crate) fn unsent_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        match self {
            Carrier::Own(socket) => Ok(PySocket::unsent_bytes(socket.bind(py))? as u64),
            Carrier::Other(transport) => transport
                .call_method0(py, intern!(py, python::GET_WRITE_BUFFER_SIZE))?
                .extract(py),
        }
    }

    /// Closes the connection because its protocol raised `error`: an `Exception` is logged, anything else is raised again.
    pub(crate) fn fail(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        match self {
            Carrier::Own(socket) => PySocket::fail(socket.bind(py), error),
            Carrier::Other(transport) => {
                transport.call_method0(py, python::ABORT)?;
                Named::Rust("a connection").failed(py, error)
            }
        }
    }

    pub(crate) fn pause_reading(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Carrier::Own(socket) => {
                socket.borrow_mut(py).pause_reading();
                Ok(())
            }
            Carrier::Other(transport) => transport
                .call_method0(py, python::PAUSE_READING)
                .map(|_| ()),
        }
    }

    pub(crate) fn resume_reading(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Carrier::Own(socket) => PySocket::resume_reading(socket.bind(py)),
            Carrier::Other(transport) => transport
                .call_method0(py, python::RESUME_READING)
                .map(|_| ()),
        }
    }
}

impl Refers for Carrier {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Carrier::Own(socket) => socket.show(visit),
            Carrier::Other(transport) => transport.show(visit),
        }
    }
}
