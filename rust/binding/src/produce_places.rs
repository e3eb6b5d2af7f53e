//! `Places`: where the batches of one Produce request go, asked of Python once a topic.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use sharecore_produce::TopicName;

use crate::codes::UNKNOWN_TOPIC_OR_PARTITION;
use crate::error::{kafka_error, kafka_error_in};
use crate::uuids;

/// The logs of a topic, and why nothing may be appended to them; or why the client is told of no log.
pub(crate) enum Place {
    Logs(Py<PyAny>, Option<Py<PyAny>>),
    Nowhere(Py<PyAny>),
}

impl Place {
    /// A log by its index, or a `KafkaError`.
    pub(crate) fn at<'py>(
        &self,
        py: Python<'py>,
        index: i32,
    ) -> PyResult<Result<Bound<'py, PyAny>, Py<PyAny>>> {
        let (logs, refusal) = match self {
            Place::Nowhere(error) => return Ok(Err(error.clone_ref(py))),
            Place::Logs(logs, refusal) => (logs.bind(py), refusal),
        };
        let place = usize::try_from(index).ok();
        match (
            place.filter(|place| logs.len().is_ok_and(|count| *place < count)),
            refusal,
        ) {
            (None, _) => {
                let error = kafka_error(py, UNKNOWN_TOPIC_OR_PARTITION, "");
                Ok(Err(error.into_value(py).into_any()))
            }
            (_, Some(error)) => Ok(Err(error.clone_ref(py))),
            (Some(place), None) => logs.get_item(place).map(Ok),
        }
    }
}

/// What is known of the topics of a request.
#[derive(Default)]
pub(crate) struct Places {
    /// The topic whose batches come next: a request has them together.
    known: Option<(TopicName, Place)>,
    /// What tells where a topic's batches go, as this client may have it.
    place: Option<Py<PyAny>>,
    /// Whether it holds for all clients until topics change.
    pub(crate) stay: bool,
}

impl Places {
    pub(crate) fn are_known(&self) -> bool {
        self.place.is_some()
    }

    /// What Python says about the request as a whole.
    pub(crate) fn learn(&mut self, (place, stay): (Py<PyAny>, bool)) {
        self.place = Some(place);
        self.stay = stay;
    }

    /// Where batches of a topic go.
    pub(crate) fn of(&mut self, py: Python<'_>, name: &TopicName) -> PyResult<&Place> {
        if self.known.as_ref().is_none_or(|(known, _)| known != name) {
            let place = self.place.as_ref().expect("places were learned");
            let place = match place.bind(py).call1((named(py, name)?,)) {
                Ok(found) => {
                    let (logs, refusal) = found.extract()?;
                    Place::Logs(logs, refusal)
                }
                Err(error) => Place::Nowhere(kafka_error_in(py, error)?.unbind()),
            };
            self.known = Some((name.clone(), place));
        }
        let (_, place) = self.known.as_ref().expect("it was just put there");
        Ok(place)
    }

    /// Looks for topics again if they have changed; `seen`: how often they had.
    pub(crate) fn update(&mut self, seen: &mut u64, changes: u64) {
        if *seen != changes {
            *seen = changes;
            self.known = None;
        }
    }
}

/// Topics as Python names them.
pub(crate) fn names<'py, 'a>(
    py: Python<'py>,
    names: impl Iterator<Item = &'a TopicName>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for name in names {
        list.append(named(py, name)?)?;
    }
    Ok(list)
}

/// The id or the name of a topic as Python has it.
pub(crate) fn named<'py>(py: Python<'py>, name: &TopicName) -> PyResult<Bound<'py, PyAny>> {
    match name {
        TopicName::Id(id) => uuids::object(py, *id),
        TopicName::Name(name) => Ok(PyString::new(py, name).into_any()),
    }
}
