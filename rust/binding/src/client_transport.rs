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
pub(crate) enum ClientTransport {
    Own(Py<PySocket>),
    Other(Py<PyAny>),
}

impl ClientTransport {
    pub(crate) fn of(transport: &Bound<'_, PyAny>) -> Self {
        match transport.cast::<PySocket>() {
            Ok(socket) => ClientTransport::Own(socket.clone().unbind()),
            Err(_) => ClientTransport::Other(transport.clone().unbind()),
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            ClientTransport::Own(socket) => ClientTransport::Own(socket.clone_ref(py)),
            ClientTransport::Other(transport) => ClientTransport::Other(transport.clone_ref(py)),
        }
    }

    pub(crate) fn as_any(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            ClientTransport::Own(socket) => socket.clone_ref(py).into_any(),
            ClientTransport::Other(transport) => transport.clone_ref(py),
        }
    }

    pub(crate) fn is_closing(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            ClientTransport::Own(socket) => Ok(socket.borrow(py).is_closing()),
            ClientTransport::Other(transport) => transport
                .call_method0(py, intern!(py, python::IS_CLOSING))?
                .is_truthy(py),
        }
    }

    /// Sends buffers in order.
    pub(crate) fn write(&self, parts: &Bound<'_, PyList>) -> PyResult<()> {
        let py = parts.py();
        match self {
            ClientTransport::Own(socket) => PySocket::write_all(socket.bind(py), parts),
            ClientTransport::Other(transport) if parts.len() == 1 => {
                let part = (parts.get_item(0)?,);
                let written = transport.call_method1(py, intern!(py, python::WRITE), part);
                written.map(|_| ())
            }
            ClientTransport::Other(transport) => {
                let written = transport.call_method1(py, intern!(py, python::WRITELINES), (parts,));
                written.map(|_| ())
            }
        }
    }

    /// Bytes handed to the transport but not sent yet.
    pub(crate) fn unsent_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        match self {
            ClientTransport::Own(socket) => Ok(PySocket::unsent_bytes(socket.bind(py))? as u64),
            ClientTransport::Other(transport) => transport
                .call_method0(py, intern!(py, python::GET_WRITE_BUFFER_SIZE))?
                .extract(py),
        }
    }

    /// Closes the connection because its protocol raised `error`: an `Exception` is logged, anything else is raised again.
    pub(crate) fn fail(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        match self {
            ClientTransport::Own(socket) => PySocket::fail(socket.bind(py), error),
            ClientTransport::Other(transport) => {
                transport.call_method0(py, python::ABORT)?;
                Named::Rust("a connection").failed(py, error)
            }
        }
    }

    pub(crate) fn pause_reading(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            ClientTransport::Own(socket) => {
                socket.borrow_mut(py).pause_reading();
                Ok(())
            }
            ClientTransport::Other(transport) => transport
                .call_method0(py, python::PAUSE_READING)
                .map(|_| ()),
        }
    }

    pub(crate) fn resume_reading(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            ClientTransport::Own(socket) => PySocket::resume_reading(socket.bind(py)),
            ClientTransport::Other(transport) => transport
                .call_method0(py, python::RESUME_READING)
                .map(|_| ()),
        }
    }
}

impl Refers for ClientTransport {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            ClientTransport::Own(socket) => socket.show(visit),
            ClientTransport::Other(transport) => transport.show(visit),
        }
    }
}
