//! `Places`: resolves the logs for the batches of one Produce request, with one Python call per topic.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use sharecore_produce::TopicName;

use crate::codes::UNKNOWN_TOPIC_OR_PARTITION;
use crate::error::{kafka_error, kafka_error_in};
use crate::uuids;

/// The logs of a topic, with an error if appends are refused; or an error if the client may not see the topic.
pub(crate) enum Place {
    Logs(Py<PyAny>, Option<Py<PyAny>>),
    Nowhere(Py<PyAny>),
}

impl Place {
    /// Returns a log by partition index, or a `KafkaError`.
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

/// The topics of a request that were resolved.
#[derive(Default)]
pub(crate) struct Places {
    /// The last resolved topic; a request usually has the batches of a topic together.
    known: Option<(TopicName, Place)>,
    /// Resolves a topic for this client; raises if the client may not see it.
    place: Option<Py<PyAny>>,
    /// True if the result holds for all clients until topics change.
    pub(crate) stay: bool,
}

impl Places {
    pub(crate) fn are_known(&self) -> bool {
        self.place.is_some()
    }

    /// Sets the resolver for the request.
    pub(crate) fn learn(&mut self, (place, stay): (Py<PyAny>, bool)) {
        self.place = Some(place);
        self.stay = stay;
    }

    /// Resolves a topic.
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

    /// Drops the resolved topic if topics have changed since `seen` changes.
    pub(crate) fn update(&mut self, seen: &mut u64, changes: u64) {
        if *seen != changes {
            *seen = changes;
            self.known = None;
        }
    }
}

/// Topics as Python objects.
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

/// The id or the name of a topic as a Python object.
pub(crate) fn named<'py>(py: Python<'py>, name: &TopicName) -> PyResult<Bound<'py, PyAny>> {
    match name {
        TopicName::Id(id) => uuids::object(py, *id),
        TopicName::Name(name) => Ok(PyString::new(py, name).into_any()),
    }
}
