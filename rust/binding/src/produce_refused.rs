//! What a Produce request is told of a batch that was not appended.

use pyo3::prelude::*;
use sharecore_produce::{Place, Refused};

use crate::error::code_and_message;
use crate::produced::PyProduced;
use crate::python;
use crate::slot::disconnect;

/// Why a batch was refused, as a `KafkaError` says it.
pub(crate) fn by_the_broker(error: &Bound<'_, PyAny>) -> PyResult<Refused> {
    let (code, message) = code_and_message(error)?;
    Ok(Refused::ByTheBroker { code, message })
}

/// Puts a refusal into the outcome at `place`; `log` is the one that refused.
pub(crate) fn tell(
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

/// Why a connection whose client wants no answer is closed, as it is with Kafka: a batch was not appended.
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
