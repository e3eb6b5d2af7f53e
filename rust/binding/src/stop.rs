//! Why a message could not be decoded: malformed bytes, or a Python exception.

use crate::dispatch::malformed;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, Python};
use sharecore_wire::{FrameTooLarge, Malformed};

/// Malformed bytes, or a Python exception.
pub(crate) enum Stop {
    Bytes(String),
    Python(PyErr),
}

impl Stop {
    /// Converts to the exception to raise: a `ValueError` for malformed bytes.
    pub(crate) fn into_error(self) -> PyErr {
        match self {
            Stop::Bytes(reason) => PyValueError::new_err(reason),
            Stop::Python(error) => error,
        }
    }

    /// Converts to the exception to raise if malformed bytes must close the connection.
    pub(crate) fn into_end(self, py: Python<'_>) -> PyErr {
        match self {
            Stop::Bytes(reason) => malformed(py, &reason),
            Stop::Python(error) => error,
        }
    }
}

impl From<Malformed> for Stop {
    fn from(error: Malformed) -> Self {
        Stop::Bytes(error.to_string())
    }
}

impl From<FrameTooLarge> for Stop {
    fn from(error: FrameTooLarge) -> Self {
        Stop::Bytes(error.to_string())
    }
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Self {
        Stop::Python(error)
    }
}
