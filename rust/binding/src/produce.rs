//! `Produce`: appends the batches of a request where they belong, in one call for those of the ordinary kind.
//!
//! Where a partition's batches go, Python says, once for each partition where that depends on nothing else; it also
//! decides about batches of transactions. No borrow of an object is held while Python runs, which may come back to the
//! same object.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_records::layout::{MAGIC, MAGIC_AT, TRANSACTIONAL, attributes};
use sharecore_store::Appended;
use sharecore_wire::{Held, Input, Layout, Value, read};

use crate::codes::{
    CORRUPT_MESSAGE, INVALID_REQUIRED_ACKS, KAFKA_STORAGE_ERROR, MESSAGE_TOO_LARGE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
};
use crate::dispatch::Asked;
use crate::error::kafka_error_in;
use crate::produced::{Outcome, PyAppendEnded, PyProduced, TopicName};
use crate::slot::disconnect;
use crate::stop::Stop;
use crate::tickets::PyStoredLog;
use crate::uuids;
use crate::waiting::{PyLater, PyTicket};

/// The version of Produce that zstd came with.
const ZSTD_SINCE: i16 = 7;
const OUT_OF_RANGE: &str = "the time of the record is out of the range that the topic allows";
/// Refusals that Kafka answers without the start of the log.
const WITHOUT_START: [i16; 3] = [MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR];

/// A log, and where it lies in the store that has it.
struct Target {
    log: Py<PyAny>,
    stored: Option<Py<PyStoredLog>>,
}

impl Target {
    fn of(log: Bound<'_, PyAny>) -> PyResult<Self> {
        let stored = log.getattr(intern!(log.py(), "stored"))?.extract()?;
        let log = log.unbind();
        Ok(Self { log, stored })
    }
}

/// Why nothing was appended to a partition: a `KafkaError`, or what the store says.
enum Refused {
    Before(Py<PyAny>),
    ByTheLog(Py<PyAny>),
    ByTheStore(sharecore_store::Refusal),
}

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
            for partition in partitions {
                let (_, records) = batch(partition).map_err(Stop::into_error)?;
                any_transactional |= is_transactional(records);
            }
            topics.push((name, partitions));
        }
        let may_begin = !any_transactional || {
            let may_begin = produce.borrow().may_begin.clone_ref(py);
            let who = (asked.context()?, request.transactional_id);
            may_begin.bind(py).call1(who)?.is_truthy()?
        };
        let produced = Bound::new(py, PyProduced::default())?;
        for (name, partitions) in topics {
            for partition in partitions {
                let (index, records) = batch(partition).map_err(Stop::into_error)?;
                if may_begin {
                    let one = One {
                        name: &name,
                        index,
                        records,
                        now_ms,
                    };
                    Self::append(produce, asked, &request, &one, &produced)?;
                } else {
                    let mut outcome = Outcome::of(index);
                    outcome.error_code = TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
                    produced.borrow_mut().outcomes.push(outcome);
                }
            }
            produced.borrow_mut().topics.push((name, partitions.len()));
        }
        if request.acks == 0 {
            close_on_failure(&produced)?;
            return Ok(None);
        }
        if produced.borrow().left == 0 {
            return Ok(Some(produced.into_any()));
        }
        let later = Bound::new(py, PyLater::default())?;
        produced.borrow_mut().later = Some(later.clone().unbind());
        Ok(Some(later.into_any()))
    }

    /// Appends one batch, and notes what is to be told of it.
    fn append<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        request: &Request<'_>,
        one: &One<'_>,
        produced: &Bound<'py, PyProduced>,
    ) -> PyResult<()> {
        let py = produce.py();
        let mut outcome = Outcome::of(one.index);
        let place = produced.borrow().outcomes.len();
        let target = match Self::target(produce, asked, one)? {
            Ok(target) => target,
            Err(refused) => {
                tell(py, &mut outcome, Refused::Before(refused), None)?;
                produced.borrow_mut().outcomes.push(outcome);
                return Ok(());
            }
        };
        let zstd = asked.api_version() >= ZSTD_SINCE;
        if let Err(refusal) = sharecore_store::check_request(one.records, zstd) {
            tell(py, &mut outcome, Refused::ByTheStore(refusal), None)?;
            produced.borrow_mut().outcomes.push(outcome);
            return Ok(());
        }
        if !(-1..=1).contains(&request.acks) {
            outcome.error_code = INVALID_REQUIRED_ACKS;
            produced.borrow_mut().outcomes.push(outcome);
            return Ok(());
        }
        let log = target.log.bind(py);
        let admitted = Self::admit(produce, asked, request, one, log)?;
        let appended = match admitted {
            Err(refused) => Err(Refused::Before(refused)),
            Ok(()) => append(&target, log, one)?,
        };
        // the batch must be among the outcomes before it may end
        match appended {
            Err(refused) => {
                tell(py, &mut outcome, refused, Some(log))?;
                produced.borrow_mut().outcomes.push(outcome);
            }
            Ok((appended, ticket)) => {
                outcome.base_offset = appended.base_offset;
                outcome.append_time_ms = appended.append_time_ms;
                outcome.log_start_offset = appended.start_offset;
                {
                    let mut held = produced.borrow_mut();
                    held.outcomes.push(outcome);
                    held.left += 1;
                }
                let waits = match ticket {
                    None => {
                        let stored = target.stored.as_ref().map(Py::get);
                        let waiting = produced.clone().unbind();
                        stored.is_some_and(|stored| {
                            let mut tickets = stored.tickets.borrow_mut(py);
                            tickets.wait(appended.sequence, waiting, place)
                        })
                    }
                    Some(ticket) => {
                        let ended = PyAppendEnded {
                            produced: produced.clone().unbind(),
                            place,
                        };
                        PyTicket::add_done_callback(&ticket, Py::new(py, ended)?.into_any())?;
                        true
                    }
                };
                if !waits {
                    produced.borrow_mut().left -= 1;
                }
            }
        }
        Ok(())
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

    /// Makes a batch part of its producer's transaction, where it is one's; a refusal is a `KafkaError`.
    fn admit<'py>(
        produce: &Bound<'py, Self>,
        asked: &Asked<'_, 'py>,
        request: &Request<'_>,
        one: &One<'_>,
        log: &Bound<'py, PyAny>,
    ) -> PyResult<Result<(), Py<PyAny>>> {
        if !is_transactional(one.records) {
            return Ok(Ok(()));
        }
        let py = produce.py();
        let admit = produce.borrow().admit.clone_ref(py);
        let records = PyBytes::new(py, one.records);
        let told = (
            asked.context()?,
            log,
            records,
            request.transactional_id,
            one.now_ms,
        );
        match admit.bind(py).call1(told) {
            Ok(_) => Ok(Ok(())),
            Err(error) => Ok(Err(kafka_error_in(py, error)?.unbind())),
        }
    }
}

/// A batch of a request.
struct One<'a> {
    name: &'a TopicName,
    index: i32,
    records: &'a [u8],
    now_ms: i64,
}

type Ended<'py> = (Appended, Option<Bound<'py, PyTicket>>);

/// Appends in the store; or by the log where that is elsewhere, or looks at more than a store does.
fn append<'py>(
    target: &Target,
    log: &Bound<'py, PyAny>,
    one: &One<'_>,
) -> PyResult<Result<Ended<'py>, Refused>> {
    let py = log.py();
    if let Some(stored) = &target.stored
        && !log.getattr(intern!(py, "needs_keys"))?.is_truthy()?
    {
        let stored = stored.get();
        let appended = stored
            .store
            .get()
            .0
            .append(stored.id, one.records, one.now_ms);
        let appended = match appended {
            Ok(appended) => appended,
            Err(refusal) => return Ok(Err(Refused::ByTheStore(refusal))),
        };
        let end_offset = intern!(py, "end_offset");
        if appended.last_offset >= log.getattr(end_offset)?.extract()? {
            log.setattr(end_offset, appended.last_offset + 1)?;
        }
        return Ok(Ok((appended, None)));
    }
    let now = PyDict::new(py);
    now.set_item("now_ms", one.now_ms)?;
    let appended = log.call_method("append", (PyBytes::new(py, one.records),), Some(&now));
    match appended {
        Err(error) => Ok(Err(Refused::ByTheLog(kafka_error_in(py, error)?.unbind()))),
        Ok(appended) => {
            let (base_offset, last_offset, append_time_ms, start_offset, ticket) =
                appended.extract()?;
            let appended = Appended {
                base_offset,
                last_offset,
                append_time_ms,
                start_offset,
                sequence: 0,
            };
            Ok(Ok((appended, Some(ticket))))
        }
    }
}

/// Puts a refusal into what is told of a partition.
fn tell(
    py: Python<'_>,
    outcome: &mut Outcome,
    refused: Refused,
    log: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let by_the_log = !matches!(refused, Refused::Before(_));
    match refused {
        Refused::ByTheStore(refusal) => {
            outcome.error_code = refusal.code();
            outcome.message = Some(refusal.to_string()).filter(|text| !text.is_empty());
            if let sharecore_store::Refusal::InvalidTimestamp(records) = refusal {
                outcome.refused = records;
                outcome.reason = OUT_OF_RANGE.into();
            }
        }
        Refused::Before(error) | Refused::ByTheLog(error) => {
            let error = error.bind(py);
            outcome.error_code = error.getattr("code")?.extract()?;
            let text: Option<String> = error.getattr("message")?.extract()?;
            outcome.message = text.filter(|text| !text.is_empty());
            if let Some(indexes) = error.getattr_opt("indexes")? {
                outcome.refused = indexes.extract()?;
                outcome.reason = error.getattr("reason")?.extract()?;
            }
        }
    }
    if let Some(log) = log
        && by_the_log
        && !WITHOUT_START.contains(&outcome.error_code)
    {
        outcome.log_start_offset = log.getattr("start_offset")?.extract()?;
    }
    Ok(())
}

/// A client that wants no answer learns of a failure by losing its connection, as with Kafka.
fn close_on_failure(produced: &Bound<'_, PyProduced>) -> PyResult<()> {
    let py = produced.py();
    let held = produced.borrow();
    let failed = held.outcomes.iter().find(|each| each.error_code != 0);
    let Some(code) = failed.map(|each| each.error_code) else {
        return Ok(());
    };
    drop(held);
    let codes = py.import("sharecore.errors")?.getattr("ErrorCode")?;
    let name = codes.call1((code,))?.getattr("name")?;
    let why = format!("produce without acknowledgement failed: {name}");
    Err(disconnect(py, &why)?)
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
