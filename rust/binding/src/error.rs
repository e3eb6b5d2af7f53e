//! Converts engine refusals to exceptions.

use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sharecore_engine::{Refusal, RefusalKind};
use sharecore_guard::Failed;

use crate::codes::{INVALID_RECORD_STATE, INVALID_REQUEST, UNKNOWN_SERVER_ERROR};
use crate::python;

static KAFKA_ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn kafka_error_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let class = KAFKA_ERROR.get_or_try_init(py, || {
        Ok::<_, PyErr>(
            py.import("sharecore.errors")?
                .getattr(python::KAFKA_ERROR)?
                .unbind(),
        )
    });
    Ok(class?.bind(py))
}

/// `sharecore.errors.KafkaError(code, message)`.
pub(crate) fn kafka_error(py: Python<'_>, code: i16, message: &str) -> PyErr {
    match kafka_error_class(py).and_then(|class| class.call1((code, message))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Converts a refusal to a `KafkaError`.
pub(crate) fn refused(py: Python<'_>, refusal: Refusal) -> PyErr {
    match refusal.kind() {
        RefusalKind::InvalidRecordState => {
            kafka_error(py, INVALID_RECORD_STATE, &refusal.to_string())
        }
        RefusalKind::InvalidRequest => kafka_error(py, INVALID_REQUEST, &refusal.to_string()),
    }
}

/// Converts an engine failure to a `KafkaError`; the partition that failed accepts no further calls.
pub(crate) fn failed(py: Python<'_>, failed: &Failed) -> PyErr {
    kafka_error(py, UNKNOWN_SERVER_ERROR, &failed.to_string())
}

/// Returns the `KafkaError` that was raised; any other exception is raised again.
///
/// Drops its traceback. An error stored as an outcome would otherwise form a cycle through the frames that it passed, and the
/// collector frees the cycles of 100,000 outcomes late.
pub(crate) fn kafka_error_in(py: Python<'_>, error: PyErr) -> PyResult<Bound<'_, PyAny>> {
    let class = kafka_error_class(py)?;
    if !error.matches(py, class)? {
        return Err(error);
    }
    let error = error.into_value(py).into_bound(py).into_any();
    drop_traceback(&error)?;
    Ok(error)
}

/// Drops the traceback of an exception; other values are left alone.
pub(crate) fn drop_traceback(outcome: &Bound<'_, PyAny>) -> PyResult<()> {
    if outcome.is_instance_of::<PyBaseException>() {
        outcome.setattr(
            intern!(outcome.py(), python::DUNDER_TRACEBACK),
            outcome.py().None(),
        )?;
    }
    Ok(())
}

/// True if `value` is a `KafkaError`.
pub(crate) fn is_kafka_error(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(kafka_error_class(value.py())?)
}

/// The code of a `KafkaError`.
pub(crate) fn code_of(error: &Bound<'_, PyAny>) -> PyResult<i16> {
    error.getattr(intern!(error.py(), python::CODE))?.extract()
}

/// The code of a `KafkaError`, and its message if it has one.
pub(crate) fn code_and_message(error: &Bound<'_, PyAny>) -> PyResult<(i16, Option<String>)> {
    let message: Option<String> = error
        .getattr(intern!(error.py(), python::MESSAGE))?
        .extract()?;
    Ok((code_of(error)?, message.filter(|text| !text.is_empty())))
}

/// Keeps the first error of work that goes on after it.
pub(crate) fn keep_first(failed: &mut PyResult<()>, result: PyResult<()>) {
    if failed.is_ok() {
        *failed = result;
    }
}
