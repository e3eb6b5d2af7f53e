//! Errors for batches that were not appended.

use pyo3::prelude::*;
use sharecore_produce::{Place, Refused};

use crate::error::code_and_message;
use crate::produced::PyProduced;
use crate::python;
use crate::slot::disconnect;

/// Converts a `KafkaError` to the reason why a batch was refused.
pub(crate) fn by_the_broker(error: &Bound<'_, PyAny>) -> PyResult<Refused> {
    let (code, message) = code_and_message(error)?;
    Ok(Refused::ByTheBroker { code, message })
}

/// Records a refusal as the result at `place`; `log` is the log that refused it, if any.
pub(crate) fn refuse(
    produced: &Bound<'_, PyProduced>,
    place: usize,
    refused: Refused,
    log: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let topic: String = match log {
        Some(log) => log.getattr(python::TOPIC)?.extract()?,
        None => String::new(),
    };
    let log = match log {
        Some(log) => Some(Place {
            topic: &topic,
            index: log.getattr(python::INDEX)?.extract()?,
            start_offset: log.getattr(python::START_OFFSET)?.extract()?,
        }),
        None => None,
    };
    produced.borrow_mut().answer.refuse(place, refused, log);
    Ok(())
}

/// Returns the error that closes the connection of a client that wants no response, as in Kafka, if a batch was not appended.
pub(crate) fn failure(produced: &Bound<'_, PyProduced>) -> PyResult<Option<PyErr>> {
    let py = produced.py();
    let Some(code) = produced.borrow().answer.failure() else {
        return Ok(None);
    };
    let codes = py
        .import("sharecore.errors")?
        .getattr(python::ERROR_CODE_CLASS)?;
    let name = codes.call1((code,))?.getattr(python::NAME)?;
    let why = format!("produce without acknowledgement failed: {name}");
    disconnect(py, &why).map(Some)
}
