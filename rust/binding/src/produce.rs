//! `Produce`: appends the batches of a request to their logs; ordinary batches need a single call.
//!
//! Python resolves the log of a partition: once per topic and request, or once for all requests if the result depends on
//! nothing else. It also decides about transactional batches. No object stays borrowed while Python code runs: Python may call
//! back into the same object.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_produce::{
    Contents, Refused, Terms, TopicName, any_transactional, each_once, has_zstd, topics,
};
use sharecore_share::IdMap;
use sharecore_wire::typed::produce::ProduceRequest;

use crate::clock::Clock;
use crate::collected::collected;
use crate::exchange::PyExchange;
use crate::incoming_request::IncomingRequest;
use crate::produce_append::{ProducedBatch, Target, Transaction};
use crate::produce_check::check_apart;
use crate::produce_places::{Places, names};
use crate::produce_refused::{by_the_broker, failure, refuse};
use crate::produce_work::{PyProduceContents, PyProduceWork};
use crate::produced::PyProduced;
use crate::waiting::PyLater;

/// Check at most this many decompressed bytes (or work that costs as much) of a request before the rest goes to a thread.
const CHECKED_AT_ONCE: usize = 128 << 10;
/// A request with more topics and partitions is processed in several turns of the event loop.
const TAKEN_AT_ONCE: usize = 1000;

/// Handler of a broker's Produce requests.
#[pyclass(name = "Produce", module = "sharecore._core")]
pub(crate) struct PyProduce {
    clock: Clock,
    places: Py<PyAny>,
    in_turns: Py<PyAny>,
    admit: Py<PyAny>,
    may_begin: Py<PyAny>,
    known: IdMap<TopicName, IdMap<i32, Arc<Target>>>,
    /// Number of topic changes so far.
    pub(crate) changes: u64,
}

/// One batch of a request.
pub(crate) struct One<'a> {
    pub(crate) name: &'a TopicName,
    pub(crate) index: i32,
    pub(crate) records: &'a [u8],
    /// Its log, if that is cached for all clients.
    pub(crate) known: Option<Arc<Target>>,
}

/// Appends the batches of a request and records why others are refused.
pub(crate) struct Appender {
    admit: Py<PyAny>,
    produced: Py<PyProduced>,
    work: usize,
    unchecked: Vec<(usize, ProducedBatch)>,
}

impl Appender {
    pub(crate) fn new(produce: &Bound<'_, PyProduce>) -> PyResult<Self> {
        let py = produce.py();
        Ok(Self {
            admit: produce.borrow().admit.clone_ref(py),
            produced: Py::new(py, PyProduced::default())?,
            work: CHECKED_AT_ONCE,
            unchecked: Vec::new(),
        })
    }

    /// Renews the work limit after the event loop has served others.
    pub(crate) fn begin_turn(&mut self) {
        self.work = CHECKED_AT_ONCE;
    }

    /// Appends the next batch, keeps it for a checking thread, or records why it is refused.
    pub(crate) fn take<'py>(
        &mut self,
        produce: &Bound<'py, PyProduce>,
        terms: &Terms<'_>,
        one: &One<'_>,
        places: &mut Places,
        context: Context<'_, 'py>,
    ) -> PyResult<()> {
        let py = produce.py();
        let produced = self.produced.bind(py);
        let place = produced.borrow_mut().answer.name(one.index);
        if !terms.may_begin {
            return refuse(produced, place, Refused::TransactionalId, None);
        }
        match PyProduce::arrive(produce, terms, one, places, context)? {
            Err(refused) => refuse(produced, place, refused, None),
            Ok(mut batch) => {
                if batch.check(&mut self.work) {
                    return batch.append(self.admit.bind(py), produced, place);
                }
                self.unchecked.push((place, batch));
                Ok(())
            }
        }
    }

    /// Ends a topic with the number of batches it had.
    pub(crate) fn end_topic(&mut self, py: Python<'_>, name: TopicName, partitions: usize) {
        let mut held = self.produced.borrow_mut(py);
        held.answer.end_topic(name, partitions);
    }

    /// Returns a `Produced`, a `Later` of one, or None if the client wants no response.
    pub(crate) fn answer<'py>(
        self,
        py: Python<'py>,
        acks: i64,
        exchange: Option<Bound<'py, PyExchange>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let produced = self.produced.into_bound(py);
        if !self.unchecked.is_empty() {
            let admit = self.admit.bind(py);
            let later = check_apart(exchange, admit, self.unchecked, &produced, acks != 0)?;
            return Ok(Some(later.into_any()));
        }
        if acks == 0 {
            return match failure(&produced)? {
                None => Ok(None),
                Some(error) => Err(error),
            };
        }
        if produced.borrow().answer.is_known() {
            return Ok(Some(produced.into_any()));
        }
        let later = Bound::new(py, PyLater::default())?;
        produced.borrow_mut().later = Some(later.clone().unbind());
        Ok(Some(later.into_any()))
    }
}

/// Creates the `RequestContext` of a request.
pub(crate) type Context<'a, 'py> = &'a dyn Fn() -> PyResult<Bound<'py, PyAny>>;

impl PyProduce {
    /// Returns a `Produced`, a `Later` of one, or None if the client wants no response.
    pub(crate) fn handle<'py>(
        produce: &Bound<'py, Self>,
        incoming: &IncomingRequest<'_, 'py>,
        request: &ProduceRequest<'_>,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = produce.py();
        let topics = topics(request, incoming.api_version());
        let sizes = topics.iter().map(|(_, batches)| 1 + batches.len());
        if sizes.sum::<usize>() > TAKEN_AT_ONCE {
            let contents = Contents::of(request, topics, incoming.api_version(), frame.as_bytes());
            let answer = Self::take_in_turns(produce, &incoming.context()?, contents, frame)?;
            return Ok((!answer.is_none()).then_some(answer));
        }
        let any_transactional = any_transactional(&topics);
        let topics = each_once(topics);
        let context = || incoming.context();
        let terms = Terms {
            may_begin: !any_transactional
                || Self::may_begin(produce, &incoming.context()?, request.transactional_id)?,
            transactional_id: request.transactional_id,
            acks: request.acks.into(),
            zstd: has_zstd(incoming.api_version()),
            now_ms: Self::now_ms(produce)?,
        };
        let mut appender = Appender::new(produce)?;
        let mut places = Places::default();
        for (name, batches) in &topics {
            for (index, records) in batches {
                let one = One {
                    name,
                    index: *index,
                    records,
                    known: produce.borrow().known(name, *index),
                };
                if one.known.is_none() && !places.are_known() {
                    let names = names(py, topics.iter().map(|(name, _)| name))?;
                    let arguments = (incoming.context()?, names);
                    let resolve = produce.borrow().places.clone_ref(py);
                    places.learn(resolve.bind(py).call1(arguments)?.extract()?);
                }
                appender.take(produce, &terms, &one, &mut places, &context)?;
            }
            appender.end_topic(py, name.clone(), batches.len());
        }
        appender.answer(py, terms.acks, incoming.exchange())
    }

    /// Processes a request with many partitions batch by batch; returns a response like `handle`, or None.
    fn take_in_turns<'py>(
        produce: &Bound<'py, Self>,
        context: &Bound<'py, PyAny>,
        contents: Contents,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let work = PyProduceWork::new(produce, context, contents, frame)?;
        let in_turns = produce.borrow().in_turns.clone_ref(produce.py());
        in_turns.bind(produce.py()).call1((context, work))
    }

    /// The append time of the batches.
    pub(crate) fn now_ms(produce: &Bound<'_, Self>) -> PyResult<i64> {
        let clock = produce.borrow().clock.clone_ref(produce.py());
        clock.ms(produce.py())
    }

    /// True if the client may use the transactional id.
    pub(crate) fn may_begin(
        produce: &Bound<'_, Self>,
        context: &Bound<'_, PyAny>,
        transactional_id: Option<&str>,
    ) -> PyResult<bool> {
        let may_begin = produce.borrow().may_begin.clone_ref(produce.py());
        let who = (context, transactional_id);
        may_begin.bind(produce.py()).call1(who)?.is_truthy()
    }

    /// Checks a batch's header and resolves its log.
    fn arrive<'py>(
        produce: &Bound<'py, Self>,
        terms: &Terms<'_>,
        one: &One<'_>,
        places: &mut Places,
        context: Context<'_, 'py>,
    ) -> PyResult<Result<ProducedBatch, Refused>> {
        let target = match Self::target(produce, one, places)? {
            Ok(target) => target,
            Err(error) => return by_the_broker(error.bind(produce.py())).map(Err),
        };
        let is_transactional = match terms.admit(one.records) {
            Ok(is_transactional) => is_transactional,
            Err(refused) => return Ok(Err(refused)),
        };
        let transaction = if is_transactional {
            Some(Transaction {
                context: context()?.unbind(),
                records: PyBytes::new(produce.py(), one.records).unbind(),
                transactional_id: terms.transactional_id.map(str::to_owned),
            })
        } else {
            None
        };
        let batch = ProducedBatch::new(target, transaction, one.records, terms.now_ms);
        Ok(Ok(batch))
    }

    /// The log of a partition, if it is cached for all clients.
    pub(crate) fn known(&self, name: &TopicName, index: i32) -> Option<Arc<Target>> {
        self.known.get(name)?.get(&index).map(Arc::clone)
    }

    /// Returns the log for a batch, or the `KafkaError` why there is none.
    fn target(
        produce: &Bound<'_, Self>,
        one: &One<'_>,
        places: &mut Places,
    ) -> PyResult<Result<Arc<Target>, Py<PyAny>>> {
        if let Some(target) = &one.known {
            return Ok(Ok(Arc::clone(target)));
        }
        let py = produce.py();
        let found = match places.of(py, one.name)?.at(py, one.index)? {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let target = Arc::new(Target::of(found)?);
        if places.stay {
            let mut held = produce.borrow_mut();
            let of_topic = held.known.entry(one.name.clone()).or_default();
            of_topic.insert(one.index, Arc::clone(&target));
        }
        Ok(Ok(target))
    }
}

#[pymethods]
impl PyProduce {
    #[new]
    fn new(
        now_ms: &Bound<'_, PyAny>,
        places: Py<PyAny>,
        in_turns: Py<PyAny>,
        admit: Py<PyAny>,
        may_begin: Py<PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            clock: Clock::of(now_ms)?,
            places,
            in_turns,
            admit,
            may_begin,
            known: IdMap::default(),
            changes: 0,
        })
    }

    /// Decodes a request with many partitions, in a thread.
    #[staticmethod]
    fn read_apart(
        frame: &Bound<'_, PyBytes>,
        at: usize,
        api_version: i16,
    ) -> PyResult<PyProduceContents> {
        PyProduceContents::read(frame, at, api_version)
    }

    /// Handles a request that a thread has decoded.
    fn __call__<'py>(
        produce: &Bound<'py, Self>,
        context: &Bound<'py, PyAny>,
        request: &Bound<'py, PyProduceContents>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (frame, contents) = PyProduceContents::take(request)?;
        Self::take_in_turns(produce, context, contents, &frame)
    }

    /// Drops the cached logs of topics.
    fn forget(produce: &Bound<'_, Self>) {
        let known = {
            let mut held = produce.borrow_mut();
            held.changes += 1;
            std::mem::take(&mut held.known)
        };
        drop(known); // objects of Python, whose end may come back here
    }
}

collected!(PyProduce { clock, places, in_turns, admit, may_begin, known } cut { known });
