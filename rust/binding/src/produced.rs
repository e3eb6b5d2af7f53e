//! `Produced`: the answer to a Produce request, which waits until what was appended is durable.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_wire::{Layout, Value, inner, record, write};

use crate::parts::Parts;
use crate::waiting::PyLater;

/// How a request names a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicName {
    Id([u8; 16]),
    Name(Box<str>),
}

/// What is told of one partition.
pub(crate) struct Outcome {
    pub(crate) index: i32,
    pub(crate) error_code: i16,
    pub(crate) base_offset: i64,
    pub(crate) append_time_ms: i64,
    pub(crate) log_start_offset: i64,
    pub(crate) message: Option<String>,
    /// Records that are refused, and what is wrong with each of them.
    pub(crate) refused: Vec<(i32, String)>,
}

impl Outcome {
    pub(crate) fn of(index: i32) -> Self {
        Self {
            index,
            error_code: 0,
            base_offset: -1,
            append_time_ms: -1,
            log_start_offset: -1,
            message: None,
            refused: Vec::new(),
        }
    }
}

/// The answer to a Produce request.
#[pyclass(name = "Produced", module = "sharecore._core")]
#[derive(Default)]
pub(crate) struct PyProduced {
    /// Each with the number of its partitions.
    pub(crate) topics: Vec<(TopicName, usize)>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Appends whose end is not known.
    pub(crate) left: usize,
    /// Who waits for the answer.
    pub(crate) later: Option<Py<PyLater>>,
    throttle_time_ms: i64,
}

impl PyProduced {
    /// One append has ended: the last of them is the answer.
    pub(crate) fn end(produced: &Bound<'_, Self>, place: usize, error_code: i16) -> PyResult<()> {
        let later = {
            let mut held = produced.borrow_mut();
            if error_code != 0 {
                held.outcomes[place].error_code = error_code;
                held.outcomes[place].base_offset = -1;
            }
            held.left -= 1;
            if held.left > 0 {
                return Ok(());
            }
            held.later.take()
        };
        match later {
            Some(later) => {
                let whole = produced.clone().into_any().unbind();
                PyLater::set_result(later.bind(produced.py()), whole)
            }
            None => Ok(()),
        }
    }

    /// The frame of the answer.
    pub(crate) fn frame<'py>(
        &self,
        py: Python<'py>,
        layout: &Layout,
        begun: Vec<u8>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut out = Parts::joined(begun);
        write(layout, &self.message(layout), out.buffer())
            .map_err(|unfit| pyo3::exceptions::PyTypeError::new_err(unfit.to_string()))?;
        out.into_frame(py)
    }

    fn message(&self, layout: &Layout) -> Value<'_> {
        record(layout, |field| match field.name.as_str() {
            "responses" => {
                let mut rest = &self.outcomes[..];
                let topics = self.topics.iter().map(|(name, count)| {
                    let (here, others) = rest.split_at(*count);
                    rest = others;
                    inner(field, |layout| topic(layout, name, here))
                });
                Value::Array(topics.collect())
            }
            "throttle_time_ms" => Value::Int(self.throttle_time_ms),
            _ => Value::Absent,
        })
    }
}

fn topic<'a>(layout: &Layout, name: &'a TopicName, outcomes: &'a [Outcome]) -> Value<'a> {
    record(layout, |field| match (field.name.as_str(), name) {
        ("topic_id", TopicName::Id(id)) => Value::Uuid(*id),
        ("name", TopicName::Name(name)) => Value::Text(name),
        ("partition_responses", _) => {
            let told = outcomes.iter();
            Value::Array(
                told.map(|outcome| inner(field, |layout| partition(layout, outcome)))
                    .collect(),
            )
        }
        _ => Value::Absent,
    })
}

fn partition<'a>(layout: &Layout, outcome: &'a Outcome) -> Value<'a> {
    record(layout, |field| match field.name.as_str() {
        "index" => Value::Int(outcome.index.into()),
        "error_code" => Value::Int(outcome.error_code.into()),
        "base_offset" => Value::Int(outcome.base_offset),
        "log_append_time_ms" => Value::Int(outcome.append_time_ms),
        "log_start_offset" => Value::Int(outcome.log_start_offset),
        "record_errors" => {
            let refused = outcome.refused.iter().map(|(index, reason)| {
                let values = vec![Value::Int((*index).into()), Value::Text(reason)];
                Value::Record(values)
            });
            Value::Array(refused.collect())
        }
        "error_message" => outcome.message.as_deref().map_or(Value::Null, Value::Text),
        _ => Value::Absent,
    })
}

#[pymethods]
impl PyProduced {
    /// The same answer, which says how long the client has to wait.
    fn throttled(produced: &Bound<'_, Self>, throttle_time_ms: i64) -> Py<Self> {
        produced.borrow_mut().throttle_time_ms = throttle_time_ms;
        produced.clone().unbind()
    }
}
