//! `ProduceWork`: a Produce request with many partitions, batch by batch, so that others are served in between.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use std::mem;
use std::ops::Range;

use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_produce::{Batches, TopicName, any_transactional, each_once, has_zstd, topics};
use sharecore_wire::typed::Message;
use sharecore_wire::typed::produce::ProduceRequest;
use sharecore_wire::{Input, Malformed};

use crate::collected::collected;
use crate::exchange::PyExchange;
use crate::produce::{Appender, One, PyProduce, Terms};
use crate::produce_places::{Places, named};
use crate::python;
use crate::stop::Stop;

/// Batches of a turn of the event loop; see `sharecore.waiting.Turns`.
const BATCHES_A_TURN: usize = 256;

/// A topic, and where in the frame the records for its partitions lie.
struct Topic {
    name: TopicName,
    batches: Vec<(i32, Range<usize>)>,
}

/// What a request says, and where in its frame the batches lie.
pub(crate) struct Contents {
    transactional_id: Option<String>,
    acks: i64,
    version: i16,
    any_transactional: bool,
    topics: Vec<Topic>,
}

impl Contents {
    /// `topics`: of the request, whose bytes are in `frame`.
    pub(crate) fn of(
        request: &ProduceRequest<'_>,
        topics: Vec<Batches<'_>>,
        version: i16,
        frame: &[u8],
    ) -> Self {
        let any_transactional = any_transactional(&topics);
        let begin = frame.as_ptr() as usize;
        let topics = each_once(topics).into_iter().map(|(name, batches)| {
            let batches = batches.into_iter().map(|(index, records)| {
                let at = if records.is_empty() {
                    0
                } else {
                    records.as_ptr() as usize - begin
                };
                (index, at..at + records.len())
            });
            let batches = batches.collect();
            Topic { name, batches }
        });
        Self {
            transactional_id: request.transactional_id.map(str::to_owned),
            acks: request.acks.into(),
            version,
            any_transactional,
            topics: topics.collect(),
        }
    }

    fn read(version: i16, frame: &[u8], at: usize) -> Result<Self, Malformed> {
        let request = ProduceRequest::decode(version, &mut Input::new(frame, at))?;
        let topics = topics(&request, version);
        Ok(Self::of(&request, topics, version, frame))
    }
}

/// A Produce request with many partitions, which a thread has read.
#[pyclass(name = "ProduceContents", module = "sharecore._core")]
pub(crate) struct PyProduceContents {
    frame: Py<PyBytes>,
    /// None once it is taken.
    contents: Option<Contents>,
}

impl PyProduceContents {
    /// Reads a request; others have the interpreter meanwhile.
    pub(crate) fn read(frame: &Bound<'_, PyBytes>, at: usize, version: i16) -> PyResult<Self> {
        let bytes = frame.as_bytes();
        let read = frame.py().detach(|| Contents::read(version, bytes, at));
        let contents = read.map_err(|error| Stop::from(error).into_error())?;
        Ok(Self {
            frame: frame.clone().unbind(),
            contents: Some(contents),
        })
    }

    /// The frame, and what it says; an error the second time.
    pub(crate) fn take<'py>(read: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyBytes>, Contents)> {
        let mut held = read.borrow_mut();
        let contents = held.contents.take();
        let contents = contents.ok_or_else(|| PyRuntimeError::new_err("the request was taken"))?;
        Ok((held.frame.bind(read.py()).clone(), contents))
    }
}

/// What remains of a request.
struct Remaining {
    contents: Contents,
    may_begin: bool,
    now_ms: i64,
    /// Topics and, of the next one, batches that were taken.
    at: (usize, usize),
    taken: usize,
    places: Places,
    /// How often topics had changed when `places` were asked for.
    changes: u64,
    appender: Appender,
}

/// A Produce request that is taken batch by batch.
#[pyclass(name = "ProduceWork", module = "sharecore._core")]
pub(crate) struct PyProduceWork {
    produce: Py<PyProduce>,
    context: Py<PyAny>,
    exchange: Option<Py<PyExchange>>,
    frame: Py<PyBytes>,
    /// None while a batch is taken, and at the end.
    remaining: Option<Box<Remaining>>,
}

impl PyProduceWork {
    /// Begins the work; asks whether the client may use the transactional id, where a batch needs one.
    pub(crate) fn new<'py>(
        produce: &Bound<'py, PyProduce>,
        context: &Bound<'py, PyAny>,
        contents: Contents,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Self> {
        let transactional_id = contents.transactional_id.as_deref();
        let may_begin = !contents.any_transactional
            || PyProduce::may_begin(produce, context, transactional_id)?;
        let connection = context.getattr(intern!(context.py(), python::CONNECTION))?;
        let remaining = Remaining {
            may_begin,
            now_ms: PyProduce::now_ms(produce)?,
            at: (0, 0),
            taken: 0,
            places: Places::default(),
            changes: produce.borrow().changes,
            appender: Appender::new(produce)?,
            contents,
        };
        Ok(Self {
            produce: produce.clone().unbind(),
            context: context.clone().unbind(),
            exchange: connection.cast_into().ok().map(Bound::unbind),
            frame: frame.clone().unbind(),
            remaining: Some(Box::new(remaining)),
        })
    }
}

impl Remaining {
    /// Takes the next batch; false if there is none.
    fn step<'py>(
        &mut self,
        produce: &Bound<'py, PyProduce>,
        context: &Bound<'py, PyAny>,
        frame: &[u8],
    ) -> PyResult<bool> {
        let py = produce.py();
        while let Some(topic) = self.contents.topics.get_mut(self.at.0) {
            let Some((index, records)) = topic.batches.get(self.at.1) else {
                self.appender
                    .end_topic(py, topic.name.clone(), topic.batches.len());
                topic.batches = Vec::new();
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            if self.taken.is_multiple_of(BATCHES_A_TURN) {
                self.appender.begin_turn();
                let changes = produce.borrow().changes;
                if changes != self.changes {
                    self.changes = changes;
                    self.places.forget();
                }
            }
            self.at.1 += 1;
            self.taken += 1;
            let terms = Terms {
                transactional_id: self.contents.transactional_id.as_deref(),
                acks: self.contents.acks,
                zstd: has_zstd(self.contents.version),
                may_begin: self.may_begin,
                now_ms: self.now_ms,
            };
            let one = One {
                name: &topic.name,
                index: *index,
                records: &frame[records.clone()],
            };
            let context = || Ok(context.clone());
            self.appender
                .take(produce, &terms, &one, &mut self.places, &context)?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[pymethods]
impl PyProduceWork {
    #[getter]
    fn topic_count(&self) -> usize {
        let remaining = self.remaining.as_ref();
        remaining.map_or(0, |remaining| remaining.contents.topics.len())
    }

    /// The id or the name of a topic, by its place in the request.
    fn topic<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let remaining = self.remaining.as_ref();
        let topic = remaining.and_then(|remaining| remaining.contents.topics.get(place));
        let topic = topic.ok_or_else(|| PyIndexError::new_err("there is no such topic"))?;
        named(py, &topic.name)
    }

    /// What tells where batches go, and whether that holds for everybody.
    fn learn(&mut self, place: Py<PyAny>, stays: bool) {
        if let Some(remaining) = &mut self.remaining {
            remaining.places.learn((place, stays));
        }
    }

    /// Takes the next batch; false if there is none.
    fn step(work: &Bound<'_, Self>) -> PyResult<bool> {
        let py = work.py();
        let (produce, context, frame, remaining) = {
            let mut held = work.borrow_mut();
            let remaining = held.remaining.take();
            let context = held.context.clone_ref(py);
            (
                held.produce.clone_ref(py),
                context,
                held.frame.clone_ref(py),
                remaining,
            )
        };
        let mut remaining =
            remaining.ok_or_else(|| PyRuntimeError::new_err("a batch is being taken"))?;
        let more = remaining.step(produce.bind(py), context.bind(py), frame.as_bytes(py));
        work.borrow_mut().remaining = Some(remaining);
        more
    }

    /// The answer; see `Produce`.
    fn end<'py>(work: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = work.py();
        let (remaining, exchange) = {
            let mut held = work.borrow_mut();
            (
                mem::take(&mut held.remaining),
                mem::take(&mut held.exchange),
            )
        };
        let remaining =
            remaining.ok_or_else(|| PyRuntimeError::new_err("the request has ended"))?;
        let exchange = exchange.map(|exchange| exchange.into_bound(py));
        remaining
            .appender
            .answer(py, remaining.contents.acks, exchange)
    }
}

collected!(PyProduceWork { produce, context, exchange } cut { remaining, exchange });
