//! `Produce`: appends the batches of a request where they belong, in one call for those of the ordinary kind.
//!
//! Where a partition's batches go, Python says, once for each topic, and once for all where that depends on nothing else;
//! it also decides about batches of transactions. No borrow of an object is held while Python runs, which may come back to the
//! same object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use sharecore_records::layout::{MAGIC, MAGIC_AT, TRANSACTIONAL, attributes};
use sharecore_wire::{Held, Input, Layout, Value, read};

use crate::codes::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
use crate::dispatch::Asked;
use crate::exchange::PyExchange;
use crate::produce_append::{ProducedBatch, Target, Transaction};
use crate::produce_check::check_apart;
use crate::produce_places::{Places, names};
use crate::produce_refused::{Refused, failure, tell};
use crate::produce_work::PyProduceWork;
use crate::produced::{Outcome, PyProduced, TopicName};
use crate::stop::Stop;
use crate::waiting::PyLater;

/// The version of Produce that zstd came with.
const ZSTD_SINCE: i16 = 7;
/// How many expanded bytes of a request's records are checked before it is handed to a thread, or what costs as much.
const CHECKED_AT_ONCE: usize = 128 << 10;
/// A request with more topics and partitions is taken in turns of the event loop.
const TAKEN_AT_ONCE: usize = 1000;

/// Handles Produce requests of one broker.
#[pyclass(name = "Produce", module = "sharecore._core")]
pub(crate) struct PyProduce {
    now_ms: Py<PyAny>,
    places: Py<PyAny>,
    in_turns: Py<PyAny>,
    admit: Py<PyAny>,
    may_begin: Py<PyAny>,
    known: HashMap<TopicName, HashMap<i32, Arc<Target>>>,
    /// How often topics have changed.
    pub(crate) changes: u64,
}

/// A request as it lies in its frame.
struct Request<'a> {
    transactional_id: Option<&'a str>,
    acks: i64,
    topics: Vec<Value<'a>>,
}

fn request<'a>(layout: &Layout, input: &mut Input<'a>) -> Result<Request<'a>, Stop> {
    let Value::Record(mut fields) = read(layout, input, &mut Held)? else {
        return Err(unexpected());
    };
    match (fields.pop(), &fields[..]) {
        (Some(Value::Array(topics)), [id, Value::Int(acks), Value::Int(_)]) => Ok(Request {
            transactional_id: if let Value::Text(id) = id {
                Some(*id)
            } else {
                None
            },
            acks: *acks,
            topics,
        }),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Stop {
    Stop::Bytes("it is no Produce request".into())
}

/// The topic, and its partitions.
fn parts<'b, 'a>(topic: &'b Value<'a>) -> Result<(TopicName, &'b [Value<'a>]), Stop> {
    if let Value::Record(fields) = topic
        && let [name, Value::Array(partitions)] = &fields[..]
    {
        let name = match name {
            Value::Uuid(id) => TopicName::Id(*id),
            Value::Text(name) => TopicName::Name((*name).into()),
            _ => return Err(unexpected()),
        };
        return Ok((name, partitions));
    }
    Err(unexpected())
}

/// The index of a partition, and the batch for it.
fn batch<'a>(partition: &Value<'a>) -> Result<(i32, &'a [u8]), Stop> {
    if let Value::Record(fields) = partition
        && let [Value::Int(index), records] = &fields[..]
    {
        let records: &[u8] = if let Value::Bytes(records) = records {
            records
        } else {
            &[]
        };
        return Ok((*index as i32, records));
    }
    Err(unexpected())
}

/// A topic, and the batches for its partitions.
pub(crate) type Batches<'a> = (TopicName, Vec<(i32, &'a [u8])>);

/// Names each topic and partition once: if a partition repeats, the last batch wins, as on Apache Kafka.
fn each_once(topics: Vec<Batches<'_>>) -> Vec<Batches<'_>> {
    if topics.len() == 1 && topics[0].1.len() == 1 {
        return topics;
    }
    let mut found: Vec<Batches<'_>> = Vec::with_capacity(topics.len());
    let mut places: HashMap<TopicName, (usize, HashMap<i32, usize>)> = HashMap::new();
    for (name, batches) in topics {
        let (topic, indexes) = places.entry(name).or_insert_with_key(|name| {
            found.push((name.clone(), Vec::with_capacity(batches.len())));
            (found.len() - 1, HashMap::with_capacity(batches.len()))
        });
        let kept = &mut found[*topic].1;
        for (index, records) in batches {
            match indexes.entry(index) {
                Entry::Occupied(place) => kept[*place.get()].1 = records,
                Entry::Vacant(place) => {
                    place.insert(kept.len());
                    kept.push((index, records));
                }
            }
        }
    }
    found
}

/// Whether a batch is a transaction's; one that is too short for a header is nobody's, and so is one of a
/// format that there is not.
fn is_transactional(records: &[u8]) -> bool {
    attributes(records)
        .is_some_and(|attributes| attributes & TRANSACTIONAL != 0 && records[MAGIC_AT] == MAGIC)
}

/// What holds for every batch of a request.
pub(crate) struct Terms<'a> {
    pub(crate) transactional_id: Option<&'a str>,
    pub(crate) acks: i64,
    /// Whether the version of the request knows zstd.
    pub(crate) zstd: bool,
    /// False if no batch is appended, because one is a transaction's and the client may not use its id.
    pub(crate) may_begin: bool,
    pub(crate) now_ms: i64,
}

/// A batch as a request has it.
pub(crate) struct One<'a> {
    pub(crate) name: &'a TopicName,
    pub(crate) index: i32,
    pub(crate) records: &'a [u8],
}

/// Appends the batches of a request, and notes why others are refused.
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

    /// The event loop has served others.
    pub(crate) fn begin_turn(&mut self) {
        self.work = CHECKED_AT_ONCE;
    }

    /// Appends the next batch, or keeps it for a thread that checks it, or notes why it is refused.
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
        let place = {
            let mut held = produced.borrow_mut();
            held.outcomes.push(Outcome::of(one.index));
            held.outcomes.len() - 1
        };
        if !terms.may_begin {
            let outcome = &mut produced.borrow_mut().outcomes[place];
            outcome.error_code = TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
            return Ok(());
        }
        match PyProduce::arrive(produce, terms, one, places, context)? {
            Err(refused) => tell(produced, place, refused, None),
            Ok(mut batch) => {
                if batch.check(&mut self.work) {
                    return batch.append(self.admit.bind(py), produced, place);
                }
                self.unchecked.push((place, batch));
                Ok(())
            }
        }
    }

    /// So many batches of a topic were taken, which are all.
    pub(crate) fn end_topic(&mut self, py: Python<'_>, name: TopicName, partitions: usize) {
        let mut held = self.produced.borrow_mut(py);
        held.topics.push((name, partitions));
    }

    /// The answer: a `Produced`, a `Later` of one, or None where the client wants none.
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
        if produced.borrow().left == 0 {
            return Ok(Some(produced.into_any()));
        }
        let later = Bound::new(py, PyLater::default())?;
        produced.borrow_mut().later = Some(later.clone().unbind());
        Ok(Some(later.into_any()))
    }
}

/// Makes the `RequestContext` of a request.
pub(crate) type Context<'a, 'py> = &'a dyn Fn() -> PyResult<Bound<'py, PyAny>>;

impl PyProduce {
    /// The answer: a `Produced`, a `Later` of one, or None where the client wants none.
    pub(crate) fn handle<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        layout: &Layout,
        input: &mut Input<'_>,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = produce.py();
        let request = request(layout, input).map_err(|stop| stop.into_end(py))?;
        let now_ms = {
            let now_ms = produce.borrow().now_ms.clone_ref(py);
            now_ms.call0(py)?.extract(py)?
        };
        let mut topics = Vec::with_capacity(request.topics.len());
        let (mut any_transactional, mut count) = (false, request.topics.len());
        for topic in &request.topics {
            let (name, partitions) = parts(topic).map_err(|stop| stop.into_end(py))?;
            let mut batches = Vec::with_capacity(partitions.len());
            for partition in partitions {
                let (index, records) = batch(partition).map_err(|stop| stop.into_end(py))?;
                any_transactional |= is_transactional(records);
                batches.push((index, records));
            }
            count += batches.len();
            topics.push((name, batches));
        }
        let topics = each_once(topics);
        let context = || asked.context();
        let terms = Terms {
            may_begin: !any_transactional || {
                let may_begin = produce.borrow().may_begin.clone_ref(py);
                let who = (asked.context()?, request.transactional_id);
                may_begin.bind(py).call1(who)?.is_truthy()?
            },
            transactional_id: request.transactional_id,
            acks: request.acks,
            zstd: asked.api_version() >= ZSTD_SINCE,
            now_ms,
        };
        if count > TAKEN_AT_ONCE {
            let work = PyProduceWork::new(produce, asked, &terms, topics, frame)?;
            let in_turns = produce.borrow().in_turns.clone_ref(py);
            let answer = in_turns.bind(py).call1((asked.context()?, work))?;
            return Ok((!answer.is_none()).then_some(answer));
        }
        let mut appender = Appender::new(produce)?;
        let mut places = Places::default();
        for (name, batches) in &topics {
            for (index, records) in batches {
                let one = One {
                    name,
                    index: *index,
                    records,
                };
                if !places.are_known() && !produce.borrow().knows(&one) {
                    let names = names(py, topics.iter().map(|(name, _)| name))?;
                    let told = (asked.context()?, names);
                    let asked = produce.borrow().places.clone_ref(py);
                    places.learn(asked.bind(py).call1(told)?.extract()?);
                }
                appender.take(produce, &terms, &one, &mut places, &context)?;
            }
            appender.end_topic(py, name.clone(), batches.len());
        }
        appender.answer(py, terms.acks, asked.exchange())
    }

    /// A batch that may be appended, as far as its header and its place say.
    fn arrive<'py>(
        produce: &Bound<'py, Self>,
        terms: &Terms<'_>,
        one: &One<'_>,
        places: &mut Places,
        context: Context<'_, 'py>,
    ) -> PyResult<Result<ProducedBatch, Refused>> {
        let target = match Self::target(produce, one, places)? {
            Ok(target) => target,
            Err(error) => return Ok(Err(Refused::ByTheBroker(error))),
        };
        if let Err(refusal) = sharecore_store::check_request(one.records, terms.zstd) {
            return Ok(Err(Refused::ByTheStore(refusal)));
        }
        if !(-1..=1).contains(&terms.acks) {
            return Ok(Err(Refused::Acks));
        }
        let transaction = if is_transactional(one.records) {
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

    /// Whether it is known for everybody where a batch goes.
    fn knows(&self, one: &One<'_>) -> bool {
        let of_topic = self.known.get(one.name);
        of_topic.is_some_and(|of_topic| of_topic.contains_key(&one.index))
    }

    /// The log that a batch goes to, or the `KafkaError` that says why there is none.
    fn target(
        produce: &Bound<'_, Self>,
        one: &One<'_>,
        places: &mut Places,
    ) -> PyResult<Result<Arc<Target>, Py<PyAny>>> {
        if let Some(of_topic) = produce.borrow().known.get(one.name)
            && let Some(target) = of_topic.get(&one.index)
        {
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
        now_ms: Py<PyAny>,
        places: Py<PyAny>,
        in_turns: Py<PyAny>,
        admit: Py<PyAny>,
        may_begin: Py<PyAny>,
    ) -> Self {
        Self {
            now_ms,
            places,
            in_turns,
            admit,
            may_begin,
            known: HashMap::new(),
            changes: 0,
        }
    }

    /// Asks again where batches go.
    fn forget(produce: &Bound<'_, Self>) {
        let known = {
            let mut held = produce.borrow_mut();
            held.changes += 1;
            std::mem::take(&mut held.known)
        };
        drop(known); // objects of Python, whose end may come back here
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let asked = [&self.now_ms, &self.places, &self.in_turns];
        for each in asked.into_iter().chain([&self.admit, &self.may_begin]) {
            visit.call(each)?;
        }
        for target in self.known.values().flat_map(HashMap::values) {
            visit.call(&target.log)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.known.clear();
    }
}

impl PyProduce {
    /// Refuses a schema that this does not read.
    pub(crate) fn check(layout: &Layout) -> PyResult<()> {
        let names = |layout: &Layout| {
            let names = layout.fields.iter().map(|field| field.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        let topic = layout.fields.last().and_then(|field| field.layout.as_ref());
        let part = topic.and_then(|topic| topic.fields.last()?.layout.as_ref());
        let found =
            [Some(layout), topic, part].map(|layout| layout.map_or_else(String::new, names));
        let [whole, topic, part] = found.each_ref().map(String::as_str);
        if whole == "transactional_id acks timeout_ms topic_data"
            && matches!(topic, "name partition_data" | "topic_id partition_data")
            && part == "index records"
        {
            return Ok(());
        }
        Err(PyValueError::new_err("the schema is none of Produce"))
    }
}
