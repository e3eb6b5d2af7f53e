//! Why bytes could not be made a message: because of the bytes, or of Python.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use sharecore_wire::{FrameTooLarge, Malformed};

/// Either.
pub(crate) enum Stop {
    Bytes(String),
    Python(PyErr),
}

impl Stop {
    /// A `ValueError` for bytes that cannot be.
    pub(crate) fn into_error(self) -> PyErr {
        match self {
            Stop::Bytes(reason) => PyValueError::new_err(reason),
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
