//! `ShareAnswer`: what `ShareFetch` and `ShareAcknowledge` are answered with, partitions by topic with their leader.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_wire::{Field, Layout, Sink, Value, inner, record, write};

use crate::codes::{
    COORDINATOR_NOT_AVAILABLE, FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
};
use crate::error::kafka_error_in;
use crate::gather::PyPartitionFetch;
use crate::parts::Parts;
use crate::uuids::{PartitionId, partition_id};
use crate::waiting::PyGather;

/// An error code, and its text.
type Refusal = (i16, Option<String>);
/// Id, host, port, rack.
type Node = (i32, String, i32, Option<String>);

/// Errors of acknowledgements that were not written, or not in time.
const UNWRITTEN: [i16; 3] = [
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    REQUEST_TIMED_OUT,
];

/// What is told of one partition.
struct Told {
    partition: Py<PyTuple>,
    id: PartitionId,
    /// Its id and epoch, where the client is sent to it: Apache Kafka's answers have zeros otherwise.
    leader: (i32, i32),
    error: Refusal,
    acknowledge_error: Refusal,
    records: Option<Py<PyBytes>>,
    acquired: Vec<(i64, i64, i64)>,
}

/// An answer while its partitions come together, in the order in which they are first named.
#[pyclass(name = "ShareAnswer", module = "sharecore._core")]
pub(crate) struct PyShareAnswer {
    cluster: Py<PyAny>,
    listener: Py<PyAny>,
    lock_ms: i64,
    throttle_time_ms: i64,
    told: Vec<Told>,
    places: HashMap<PartitionId, usize>,
    /// By topic, which of those that are told.
    topics: Vec<([u8; 16], Vec<usize>)>,
    by_topic: HashMap<[u8; 16], usize>,
    served: Vec<usize>,
    failed: Vec<usize>,
    /// Leaders elsewhere, whom the client is sent to.
    redirected: Vec<i32>,
    endpoints: Vec<Node>,
}

/// Writes a message into parts; what is far are records.
struct Sharing<'a, 'py> {
    py: Python<'py>,
    told: &'a [Told],
    out: Parts,
}

impl Sink for Sharing<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.out.buffer()
    }

    fn far(&mut self, place: usize) -> bool {
        let records = self.told.get(place).and_then(|told| told.records.as_ref());
        let Some(records) = records else { return false };
        self.out.bytes(records.bind(self.py));
        true
    }
}

fn leader_of(cluster: &Bound<'_, PyAny>, partition: &Bound<'_, PyTuple>) -> PyResult<(i32, i32)> {
    let leader = cluster.getattr(intern!(cluster.py(), "leader"))?;
    leader.call1(partition.clone())?.extract()
}

/// Why a broker does not lead a partition, as `check_leader` of its cluster has it.
pub(crate) fn check_led<'py>(
    check_leader: &Bound<'py, PyAny>,
    partition: &Bound<'py, PyTuple>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match check_leader.call1(partition.clone()) {
        Ok(_) => Ok(None),
        Err(error) => kafka_error_in(check_leader.py(), error).map(Some),
    }
}

impl PyShareAnswer {
    /// The place of a partition, which is named from now on.
    fn place(answer: &Bound<'_, Self>, id: PartitionId, partition: &Bound<'_, PyTuple>) -> usize {
        let mut held = answer.borrow_mut();
        let place = held.told.len();
        match held.places.entry(id) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(new) => new.insert(place),
        };
        held.told.push(Told {
            partition: partition.clone().unbind(),
            id,
            leader: (0, 0),
            error: (0, None),
            acknowledge_error: (0, None),
            records: None,
            acquired: Vec::new(),
        });
        let held = &mut *held;
        let at = *held.by_topic.entry(id.0).or_insert(held.topics.len());
        if at == held.topics.len() {
            held.topics.push((id.0, Vec::new()));
        }
        held.topics[at].1.push(place);
        place
    }

    /// Why this broker does not lead a partition any more, where acknowledgements could not be written: a client that
    /// hears of the write alone goes on asking here until its own time is over.
    fn lost<'py>(
        answer: &Bound<'py, Self>,
        partition: &Bound<'py, PyTuple>,
        error: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = answer.py();
        let code: i16 = error.getattr(intern!(py, "code"))?.extract()?;
        if !UNWRITTEN.contains(&code) {
            return Ok(None);
        }
        let cluster = answer.borrow().cluster.clone_ref(py);
        let check_leader = cluster.bind(py).getattr(intern!(py, "check_leader"))?;
        check_led(&check_leader, partition)
    }

    /// The frame of the answer.
    pub(crate) fn frame<'py>(
        &self,
        py: Python<'py>,
        layout: &Layout,
        begun: Vec<u8>,
    ) -> PyResult<Bound<'py, PyList>> {
        let message = self.fields(py, layout);
        let mut sink = Sharing {
            py,
            told: &self.told,
            out: Parts::shared(begun),
        };
        write(layout, &message, &mut sink)
            .map_err(|unfit| PyTypeError::new_err(unfit.to_string()))?;
        sink.out.into_frame(py)
    }

    fn fields(&self, py: Python<'_>, layout: &Layout) -> Value<'_> {
        record(layout, |field| match field.name.as_str() {
            "throttle_time_ms" => Value::Int(self.throttle_time_ms),
            "error_code" => Value::Int(0),
            "acquisition_lock_timeout_ms" => Value::Int(self.lock_ms),
            "responses" => {
                let topics = self
                    .topics
                    .iter()
                    .map(|(id, places)| inner(field, |layout| self.topic(py, layout, *id, places)));
                Value::Array(topics.collect())
            }
            "node_endpoints" => {
                let nodes = self.endpoints.iter().map(|(id, host, port, rack)| {
                    Value::Record(vec![
                        Value::Int((*id).into()),
                        Value::Text(host),
                        Value::Int((*port).into()),
                        rack.as_deref().map_or(Value::Null, Value::Text),
                    ])
                });
                Value::Array(nodes.collect())
            }
            _ => Value::Null,
        })
    }

    fn topic(&self, py: Python<'_>, layout: &Layout, id: [u8; 16], places: &[usize]) -> Value<'_> {
        record(layout, |field| {
            if field.name == "topic_id" {
                return Value::Uuid(id);
            }
            let told = places
                .iter()
                .map(|place| inner(field, |layout| self.partition(py, layout, *place)));
            Value::Array(told.collect())
        })
    }

    fn partition(&self, py: Python<'_>, layout: &Layout, place: usize) -> Value<'_> {
        let told = &self.told[place];
        record(layout, |field: &Field| match field.name.as_str() {
            "partition_index" => Value::Int(told.id.1.into()),
            "error_code" => Value::Int(told.error.0.into()),
            "error_message" => text(&told.error),
            "acknowledge_error_code" => Value::Int(told.acknowledge_error.0.into()),
            "acknowledge_error_message" => text(&told.acknowledge_error),
            "current_leader" => Value::Record(vec![
                Value::Int(told.leader.0.into()),
                Value::Int(told.leader.1.into()),
            ]),
            "records" => match &told.records {
                Some(records) => Value::Far {
                    len: records.as_bytes(py).len(),
                    id: place,
                },
                None => Value::Bytes(&[]),
            },
            "acquired_records" => {
                let acquired = told.acquired.iter().map(|(first, last, count)| {
                    Value::Record(vec![
                        Value::Int(*first),
                        Value::Int(*last),
                        Value::Int(*count),
                    ])
                });
                Value::Array(acquired.collect())
            }
            _ => Value::Absent,
        })
    }

    /// Names a partition with what it gave, or with why that is not told.
    pub(crate) fn put(
        answer: &Bound<'_, Self>,
        fetch: &PyPartitionFetch,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = answer.py();
        let Some(partition) = fetch.partition.borrow(py).id(py) else {
            return Err(PyTypeError::new_err("a share partition without a name"));
        };
        let (records, acquired) = if error.is_some() {
            (PyBytes::new(py, b"").unbind(), Vec::new())
        } else {
            let acquired = fetch.acquired.iter();
            let acquired = acquired.map(|each| (each.first, each.last, each.delivery_count.into()));
            (fetch.records.clone_ref(py), acquired.collect())
        };
        let own = fetch.error.as_ref().map(|error| error.bind(py).clone());
        Self::fetched(answer, partition.bind(py), records, acquired, error.or(own))
    }

    /// Those that it names, those that could not be fetched, and those of which it brings records.
    pub(crate) fn named(&self) -> [Vec<PartitionId>; 3] {
        let at = |places: &[usize]| places.iter().map(|place| self.told[*place].id).collect();
        let all = self.told.iter().map(|told| told.id).collect();
        [all, at(&self.failed), at(&self.served)]
    }

    fn partitions_at(&self, py: Python<'_>, places: &[usize]) -> Vec<Py<PyTuple>> {
        let told = places.iter().map(|place| &self.told[*place]);
        told.map(|told| told.partition.clone_ref(py)).collect()
    }
}

fn text((_, text): &Refusal) -> Value<'_> {
    text.as_deref().map_or(Value::Null, Value::Text)
}

#[pymethods]
impl PyShareAnswer {
    #[new]
    pub(crate) fn new(cluster: Py<PyAny>, listener: Py<PyAny>, lock_ms: i64) -> Self {
        Self {
            cluster,
            listener,
            lock_ms,
            throttle_time_ms: 0,
            told: Vec::new(),
            places: HashMap::new(),
            topics: Vec::new(),
            by_topic: HashMap::new(),
            served: Vec::new(),
            failed: Vec::new(),
            redirected: Vec::new(),
            endpoints: Vec::new(),
        }
    }

    #[getter]
    fn partitions(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        let told = self.told.iter();
        told.map(|told| told.partition.clone_ref(py)).collect()
    }

    #[getter]
    fn served(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        self.partitions_at(py, &self.served)
    }

    #[getter]
    fn failed(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        self.partitions_at(py, &self.failed)
    }

    pub(crate) fn name(answer: &Bound<'_, Self>, partition: &Bound<'_, PyTuple>) -> PyResult<()> {
        Self::place(answer, partition_id(partition)?, partition);
        Ok(())
    }

    #[pyo3(signature = (partition, error, *, acknowledging = false))]
    pub(crate) fn refuse(
        answer: &Bound<'_, Self>,
        partition: &Bound<'_, PyTuple>,
        error: &Bound<'_, PyAny>,
        acknowledging: bool,
    ) -> PyResult<()> {
        let py = answer.py();
        let code: i16 = error.getattr(intern!(py, "code"))?.extract()?;
        let text: Option<String> = error.getattr(intern!(py, "message"))?.extract()?;
        let place = Self::place(answer, partition_id(partition)?, partition);
        let refusal = (code, text.filter(|text| !text.is_empty()));
        let leader = if matches!(code, NOT_LEADER_OR_FOLLOWER | FENCED_LEADER_EPOCH) {
            let cluster = answer.borrow().cluster.clone_ref(py);
            Some(leader_of(cluster.bind(py), partition)?)
        } else {
            None
        };
        let mut held = answer.borrow_mut();
        let told = &mut held.told[place];
        if acknowledging {
            told.acknowledge_error = refusal;
        } else {
            told.error = refusal;
        }
        if let Some(leader) = leader {
            told.leader = leader;
            held.redirected.push(leader.0);
        }
        Ok(())
    }

    /// Names a partition with what was acquired of it; `acquired`: (first offset, last offset, delivery count).
    #[pyo3(signature = (partition, records, acquired, error = None))]
    fn fetched(
        answer: &Bound<'_, Self>,
        partition: &Bound<'_, PyTuple>,
        records: Py<PyBytes>,
        acquired: Vec<(i64, i64, i64)>,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let place = Self::place(answer, partition_id(partition)?, partition);
        {
            let mut held = answer.borrow_mut();
            if !acquired.is_empty() {
                held.served.push(place);
            }
            held.told[place].records = Some(records);
            held.told[place].acquired = acquired;
        }
        if let Some(error) = error {
            Self::refuse(answer, partition, &error, false)?;
            answer.borrow_mut().failed.push(place);
        }
        Ok(())
    }

    /// Names the partitions of which records were acknowledged, each with its error where there is one; passes over
    /// what has no name.
    #[pyo3(signature = (gather, *, beside = false))]
    pub(crate) fn acknowledged(
        answer: &Bound<'_, Self>,
        gather: &Bound<'_, PyGather>,
        beside: bool,
    ) -> PyResult<()> {
        let py = answer.py();
        let told = gather.borrow().told(py);
        for (partition, error) in told {
            let Ok(partition) = partition.bind(py).cast::<PyTuple>() else {
                continue;
            };
            if error.is_none(py) {
                Self::name(answer, partition)?;
            } else {
                let error = error.bind(py);
                let lost = Self::lost(answer, partition, error)?;
                Self::refuse(answer, partition, lost.as_ref().unwrap_or(error), beside)?;
            }
        }
        Ok(())
    }

    /// Itself, as it is to be sent: with the nodes that it sends the client to (KIP-951).
    pub(crate) fn message(answer: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let py = answer.py();
        let (cluster, listener) = {
            let held = answer.borrow();
            if held.redirected.is_empty() {
                return Ok(answer.clone().unbind());
            }
            (held.cluster.clone_ref(py), held.listener.clone_ref(py))
        };
        let nodes = cluster.bind(py).call_method1("nodes", (listener,))?;
        let mut endpoints = Vec::new();
        for node in nodes.try_iter()? {
            let node: Node = node?.extract()?;
            if answer.borrow().redirected.contains(&node.0) {
                endpoints.push(node);
            }
        }
        answer.borrow_mut().endpoints = endpoints;
        Ok(answer.clone().unbind())
    }

    /// The same answer, which says how long the client has to wait.
    fn throttled(answer: &Bound<'_, Self>, throttle_time_ms: i64) -> Py<Self> {
        answer.borrow_mut().throttle_time_ms = throttle_time_ms;
        answer.clone().unbind()
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cluster)
    }
}
