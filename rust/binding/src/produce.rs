//! `Produce`: appends the batches of a request where they belong, in one call for those of the ordinary kind.
//!
//! Where a partition's batches go, Python says, once for each partition where that depends on nothing else; it also
//! decides about batches of transactions. No borrow of an object is held while Python runs, which may come back to the
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
use crate::error::kafka_error_in;
use crate::produce_append::{ProducedBatch, Target, Transaction};
use crate::produce_check::check_apart;
use crate::produce_refused::{Refused, failure, tell};
use crate::produced::{Outcome, PyProduced, TopicName};
use crate::stop::Stop;
use crate::uuids;
use crate::waiting::PyLater;

/// The version of Produce that zstd came with.
const ZSTD_SINCE: i16 = 7;
/// How many expanded bytes of a request's records are checked before it is handed to a thread, or what costs as much.
const CHECKED_AT_ONCE: usize = 128 << 10;

/// Handles Produce requests of one broker.
#[pyclass(name = "Produce", module = "sharecore._core")]
pub(crate) struct PyProduce {
    now_ms: Py<PyAny>,
    place: Py<PyAny>,
    admit: Py<PyAny>,
    may_begin: Py<PyAny>,
    known: HashMap<TopicName, HashMap<i32, Arc<Target>>>,
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
type Batches<'a> = (TopicName, Vec<(i32, &'a [u8])>);

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

impl PyProduce {
    /// The answer: a `Produced`, a `Later` of one, or None where the client wants none.
    pub(crate) fn handle<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        layout: &Layout,
        input: &mut Input<'_>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = produce.py();
        let request = request(layout, input).map_err(Stop::into_error)?;
        let now_ms = {
            let now_ms = produce.borrow().now_ms.clone_ref(py);
            now_ms.call0(py)?.extract(py)?
        };
        let mut topics = Vec::with_capacity(request.topics.len());
        let mut any_transactional = false;
        for topic in &request.topics {
            let (name, partitions) = parts(topic).map_err(Stop::into_error)?;
            let mut batches = Vec::with_capacity(partitions.len());
            for partition in partitions {
                let (index, records) = batch(partition).map_err(Stop::into_error)?;
                any_transactional |= is_transactional(records);
                batches.push((index, records));
            }
            topics.push((name, batches));
        }
        let topics = each_once(topics);
        let may_begin = !any_transactional || {
            let may_begin = produce.borrow().may_begin.clone_ref(py);
            let who = (asked.context()?, request.transactional_id);
            may_begin.bind(py).call1(who)?.is_truthy()?
        };
        let produced = Bound::new(py, PyProduced::default())?;
        let mut work = CHECKED_AT_ONCE;
        let mut unchecked = Vec::new();
        let admit = produce.borrow().admit.clone_ref(py).into_bound(py);
        for (name, batches) in topics {
            let count = batches.len();
            for (index, records) in batches {
                let place = {
                    let mut held = produced.borrow_mut();
                    held.outcomes.push(Outcome::of(index));
                    held.outcomes.len() - 1
                };
                if !may_begin {
                    let outcome = &mut produced.borrow_mut().outcomes[place];
                    outcome.error_code = TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
                    continue;
                }
                let one = One {
                    name: &name,
                    index,
                    records,
                    now_ms,
                };
                match Self::arrive(produce, asked, &request, &one)? {
                    Err(refused) => tell(&produced, place, refused, None)?,
                    Ok(mut batch) => {
                        if batch.check(&mut work) {
                            batch.append(&admit, &produced, place)?;
                        } else {
                            unchecked.push((place, batch));
                        }
                    }
                }
            }
            produced.borrow_mut().topics.push((name, count));
        }
        if !unchecked.is_empty() {
            let wants_answer = request.acks != 0;
            let later = check_apart(asked, &admit, unchecked, &produced, wants_answer)?;
            return Ok(Some(later.into_any()));
        }
        if request.acks == 0 {
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

    /// A batch that may be appended, as far as its header and its place say.
    fn arrive<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        request: &Request<'_>,
        one: &One<'_>,
    ) -> PyResult<Result<ProducedBatch, Refused>> {
        let target = match Self::target(produce, asked, one)? {
            Ok(target) => target,
            Err(error) => return Ok(Err(Refused::ByTheBroker(error))),
        };
        let zstd = asked.api_version() >= ZSTD_SINCE;
        if let Err(refusal) = sharecore_store::check_request(one.records, zstd) {
            return Ok(Err(Refused::ByTheStore(refusal)));
        }
        if !(-1..=1).contains(&request.acks) {
            return Ok(Err(Refused::Acks));
        }
        let transaction = if is_transactional(one.records) {
            Some(Transaction {
                context: asked.context()?.unbind(),
                records: PyBytes::new(produce.py(), one.records).unbind(),
                transactional_id: request.transactional_id.map(str::to_owned),
            })
        } else {
            None
        };
        let batch = ProducedBatch::new(target, transaction, one.records, one.now_ms);
        Ok(Ok(batch))
    }

    /// The log that a batch goes to, or the `KafkaError` that says why there is none.
    fn target<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        one: &One<'_>,
    ) -> PyResult<Result<Arc<Target>, Py<PyAny>>> {
        let py = produce.py();
        let place = {
            let held = produce.borrow();
            let of_topic = held.known.get(one.name);
            if let Some(target) = of_topic.and_then(|logs| logs.get(&one.index)) {
                return Ok(Ok(Arc::clone(target)));
            }
            held.place.clone_ref(py)
        };
        let context = asked.context()?;
        let found = match one.name {
            TopicName::Id(id) => {
                place
                    .bind(py)
                    .call1((context, uuids::object(py, *id)?, one.index))
            }
            TopicName::Name(name) => place.bind(py).call1((context, &**name, one.index)),
        };
        let (log, stays): (Bound<'py, PyAny>, bool) = match found {
            Ok(found) => found.extract()?,
            Err(error) => return Ok(Err(kafka_error_in(py, error)?.unbind())),
        };
        let target = Arc::new(Target::of(log)?);
        if stays {
            let mut held = produce.borrow_mut();
            let of_topic = held.known.entry(one.name.clone()).or_default();
            of_topic.insert(one.index, Arc::clone(&target));
        }
        Ok(Ok(target))
    }
}

/// A batch as a request has it.
struct One<'a> {
    name: &'a TopicName,
    index: i32,
    records: &'a [u8],
    now_ms: i64,
}

#[pymethods]
impl PyProduce {
    #[new]
    fn new(now_ms: Py<PyAny>, place: Py<PyAny>, admit: Py<PyAny>, may_begin: Py<PyAny>) -> Self {
        Self {
            now_ms,
            place,
            admit,
            may_begin,
            known: HashMap::new(),
        }
    }

    /// Asks again where batches go.
    fn forget(produce: &Bound<'_, Self>) {
        let known = std::mem::take(&mut produce.borrow_mut().known);
        drop(known); // objects of Python, whose end may come back here
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for each in [&self.now_ms, &self.place, &self.admit, &self.may_begin] {
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
