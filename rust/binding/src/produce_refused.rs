//! What a Produce request is told of a batch that was not appended.

use pyo3::prelude::*;
use sharecore_store::{RecordFault, Refusal, RefusedRecords};

use crate::codes::{
    CORRUPT_MESSAGE, INVALID_REQUIRED_ACKS, KAFKA_STORAGE_ERROR, MESSAGE_TOO_LARGE,
};
use crate::produced::PyProduced;
use crate::slot::disconnect;

const OUT_OF_RANGE: &str = "the time of the record is out of the range that the topic allows";
/// Refusals that Kafka answers without the start of the log.
const WITHOUT_START: [i16; 3] = [MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR];
/// How many records the text of a refusal names.
const NAMED: usize = 3;

/// Why nothing was appended to a partition.
pub(crate) enum Refused {
    /// A `KafkaError`.
    ByTheBroker(Py<PyAny>),
    ByTheStore(Refusal),
    /// The request asks for acknowledgements that there are not.
    Acks,
}

/// Puts a refusal into the outcome at `place`; `log` is the one that refused.
pub(crate) fn tell(
    produced: &Bound<'_, PyProduced>,
    place: usize,
    refused: Refused,
    log: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = produced.py();
    let by_the_store = matches!(refused, Refused::ByTheStore(_));
    let mut records = Vec::new();
    let (error_code, message) = match refused {
        Refused::Acks => (INVALID_REQUIRED_ACKS, None),
        Refused::ByTheBroker(error) => {
            let error = error.bind(py);
            let message: Option<String> = error.getattr("message")?.extract()?;
            (error.getattr("code")?.extract()?, message)
        }
        Refused::ByTheStore(refusal) => {
            let code = refusal.code();
            let message = match (&refusal, log) {
                (Refusal::Records(refused), Some(log)) => {
                    records = reasons(refused, log)?;
                    whole(&refusal, refused, &records)
                }
                _ => refusal.to_string(),
            };
            (code, Some(message))
        }
    };
    let log = log.filter(|_| by_the_store && !WITHOUT_START.contains(&error_code));
    let start = match log {
        Some(log) => log.getattr("start_offset")?.extract()?,
        None => -1,
    };
    let outcome = &mut produced.borrow_mut().outcomes[place];
    outcome.error_code = error_code;
    outcome.message = message.filter(|text| !text.is_empty());
    outcome.refused = records;
    outcome.log_start_offset = start;
    Ok(())
}

/// Each record that is named, with what is wrong with it.
fn reasons(refused: &RefusedRecords, log: &Bound<'_, PyAny>) -> PyResult<Vec<(i32, String)>> {
    let topic: String = log.getattr("topic")?.extract()?;
    let index: i32 = log.getattr("index")?.extract()?;
    let no_key = format!(
        "Compacted topic cannot accept message without key in topic partition {topic}-{index}"
    );
    let told = refused.first.iter().map(|(record, fault)| {
        let reason = match fault {
            RecordFault::Timestamp => OUT_OF_RANGE.to_owned(),
            RecordFault::NoKey => no_key.clone(),
        };
        (*record, reason)
    });
    Ok(told.collect())
}

/// The text about the batch.
fn whole(refusal: &Refusal, refused: &RefusedRecords, records: &[(i32, String)]) -> String {
    if refused.any_timestamp {
        return refusal.to_string();
    }
    let named = records
        .iter()
        .take(NAMED)
        .map(|(index, reason)| format!("RecordError(batchIndex={index}, message='{reason}')"));
    format!(
        "One or more records have been rejected due to {} record errors in total, and only showing the first three \
         errors at most: [{}]",
        refused.count,
        named.collect::<Vec<_>>().join(", ")
    )
}

/// Why a connection whose client wants no answer is closed, as it is with Kafka: a batch was not appended.
pub(crate) fn failure(produced: &Bound<'_, PyProduced>) -> PyResult<Option<PyErr>> {
    let py = produced.py();
    let code = {
        let held = produced.borrow();
        let mut codes = held.outcomes.iter().map(|each| each.error_code);
        codes.find(|code| *code != 0)
    };
    let Some(code) = code else {
        return Ok(None);
    };
    let codes = py.import("sharecore.errors")?.getattr("ErrorCode")?;
    let name = codes.call1((code,))?.getattr("name")?;
    let why = format!("produce without acknowledgement failed: {name}");
    disconnect(py, &why).map(Some)
}
