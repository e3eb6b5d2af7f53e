//! `Finish`: encodes the response that a handler completed later.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};
use sharecore_wire::Header;

use crate::collected::{Refers, collected};
use crate::dispatch::{Ending, PyDispatch, Route};
use crate::incoming_request::{LaterContext, context_of};
use crate::python;
use crate::waiting::PyLater;

/// Encodes the result of a handler's future as its response.
pub(crate) struct Finishing {
    pub(crate) dispatch: Py<PyDispatch>,
    pub(crate) route: Arc<Route>,
    pub(crate) context: LaterContext,
    pub(crate) correlation_id: i32,
    pub(crate) meter: Option<Py<PyAny>>,
}

impl Finishing {
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.context {
            LaterContext::Made(context) => Ok(context.bind(py).clone()),
            LaterContext::Of {
                connection,
                api_key,
                api_version,
                client_id,
            } => {
                let header = Header {
                    api_key: *api_key,
                    api_version: *api_version,
                    correlation_id: self.correlation_id,
                    client_id: client_id.as_deref(),
                };
                context_of(self.dispatch.bind(py), connection.bind(py), &header)
            }
        }
    }

    /// Returns the response frame. `done` is the handler's future.
    pub(crate) fn frame<'py>(
        &self,
        done: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let py = done.py();
        let meter = self.meter.as_ref().map(|meter| meter.bind(py).clone());
        if let Some(meter) = &meter {
            meter.call_method0(python::RESUME)?;
        }
        let ending = Ending {
            dispatch: self.dispatch.bind(py),
            route: &self.route,
            correlation_id: self.correlation_id,
            meter: meter.as_ref(),
        };
        let context = || self.context(py);
        let (error, value) = if let Ok(later) = done.cast::<PyLater>() {
            later.borrow().outcome(py)
        } else {
            let error = done.call_method0(python::EXCEPTION)?;
            if error.is_none() {
                (None, Some(done.call_method0(python::RESULT)?.unbind()))
            } else {
                (Some(error.unbind()), None)
            }
        };
        if let Some(error) = error {
            let error = PyErr::from_value(error.into_bound(py));
            return ending.refuse(error, &context).map(Some);
        }
        match value {
            Some(value) if !value.is_none(py) => ending.encode(value.bind(py), &context).map(Some),
            _ => Ok(None),
        }
    }
}

impl Refers for Finishing {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.dispatch.show(visit)?;
        match &self.context {
            LaterContext::Made(context) => context.show(visit)?,
            LaterContext::Of { connection, .. } => connection.show(visit)?,
        }
        self.meter.show(visit)
    }
}

/// A `Finishing` that Python can call.
#[pyclass(name = "Finish", module = "sharecore._core", frozen)]
pub(crate) struct PyFinish(Box<Finishing>);

impl PyFinish {
    pub(crate) fn new(finishing: Box<Finishing>) -> Self {
        Self(finishing)
    }
}

#[pymethods]
impl PyFinish {
    fn __call__<'py>(&self, done: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.0.frame(done)
    }
}

collected!(PyFinish { 0 });
