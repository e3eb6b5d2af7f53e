//! `ProduceWork`: processes a Produce request with many partitions batch by batch, so that others are served in between.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::mem;

use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_produce::{Contents, Part, Terms, has_zstd};

use crate::collected::collected;
use crate::exchange::PyExchange;
use crate::produce::{Appender, One, PyProduce};
use crate::produce_places::{Places, named};
use crate::python;
use crate::stop::Stop;

/// A Produce request with many partitions that a thread has decoded.
#[pyclass(name = "ProduceContents", module = "sharecore._core")]
pub(crate) struct PyProduceContents {
    frame: Py<PyBytes>,
    /// None once it is taken.
    contents: Option<Contents>,
}

impl PyProduceContents {
    /// Decodes a request without holding the interpreter.
    pub(crate) fn read(frame: &Bound<'_, PyBytes>, at: usize, version: i16) -> PyResult<Self> {
        let bytes = frame.as_bytes();
        let read = frame.py().detach(|| Contents::read(version, bytes, at));
        let contents = read.map_err(|error| Stop::from(error).into_error())?;
        Ok(Self {
            frame: frame.clone().unbind(),
            contents: Some(contents),
        })
    }

    /// Returns the frame and its contents; fails the second time.
    pub(crate) fn take<'py>(read: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyBytes>, Contents)> {
        let mut held = read.borrow_mut();
        let contents = held.contents.take();
        let contents =
            contents.ok_or_else(|| PyRuntimeError::new_err("the request was already taken"))?;
        Ok((held.frame.bind(read.py()).clone(), contents))
    }
}

/// The rest of a request.
struct Remaining {
    contents: Contents,
    may_begin: bool,
    now_ms: i64,
    places: Places,
    /// The number of topic changes when `places` was filled.
    changes: u64,
    appender: Appender,
}

/// A Produce request that is processed batch by batch.
#[pyclass(name = "ProduceWork", module = "sharecore._core")]
pub(crate) struct PyProduceWork {
    produce: Py<PyProduce>,
    context: Py<PyAny>,
    exchange: Option<Py<PyExchange>>,
    frame: Py<PyBytes>,
    /// None while a batch is processed, and at the end.
    remaining: Option<Box<Remaining>>,
}

impl PyProduceWork {
    /// Starts the work; checks the right to the transactional id if a batch needs it.
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
    /// Processes the next batch; returns False if there is none.
    fn step<'py>(
        &mut self,
        produce: &Bound<'py, PyProduce>,
        context: &Bound<'py, PyAny>,
        frame: &[u8],
    ) -> PyResult<bool> {
        let py = produce.py();
        let (acks, version) = (self.contents.acks, self.contents.version);
        while let Some((name, part)) = self.contents.next_part() {
            let (index, records) = match part {
                Part::TopicEnd(batches) => {
                    self.appender.end_topic(py, name.clone(), batches);
                    continue;
                }
                Part::Batch {
                    index,
                    records,
                    begins_turn,
                } => {
                    if begins_turn {
                        self.appender.begin_turn();
                        self.places
                            .update(&mut self.changes, produce.borrow().changes);
                    }
                    (index, records)
                }
            };
            let name = name.clone();
            let terms = Terms {
                transactional_id: self.contents.transactional_id.as_deref(),
                acks,
                zstd: has_zstd(version),
                may_begin: self.may_begin,
                now_ms: self.now_ms,
            };
            let one = One {
                name: &name,
                index,
                records: &frame[records],
                known: produce.borrow().known(&name, index),
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
        remaining.map_or(0, |remaining| remaining.contents.topic_count())
    }

    /// The id or the name of a topic, by its index in the request.
    fn topic<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let remaining = self.remaining.as_ref();
        let topic = remaining.and_then(|remaining| remaining.contents.topic(place));
        let topic = topic.ok_or_else(|| PyIndexError::new_err("no topic has this index"))?;
        named(py, topic)
    }

    /// Sets the resolver for topics, and whether its results hold for all clients.
    fn learn(&mut self, place: Py<PyAny>, stays: bool) {
        if let Some(remaining) = &mut self.remaining {
            remaining.places.learn((place, stays));
        }
    }

    /// Processes the next batch; returns False if there is none.
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
        let mut remaining = remaining
            .ok_or_else(|| PyRuntimeError::new_err("a batch is already being processed"))?;
        let more = remaining.step(produce.bind(py), context.bind(py), frame.as_bytes(py));
        work.borrow_mut().remaining = Some(remaining);
        more
    }

    /// Returns the response; see `Produce`.
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
