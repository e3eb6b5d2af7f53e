//! `ShareAnswer`: the response to `ShareFetch` and `ShareAcknowledge`, with partitions grouped by topic.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sharecore_share::{Answer, Node, Refusal, is_unwritten, redirects};
use sharecore_wire::Sink;
use sharecore_wire::typed::Message;
use sharecore_wire::typed::share_fetch::AcquiredRecords;

use crate::collected::collected;
use crate::error::{code_and_message, code_of, kafka_error_in};
use crate::gather::PyPartitionFetch;
use crate::gathering::PyGather;
use crate::layout::{Answers, PyLayout};
use crate::parts::Parts;
use crate::python;
use crate::uuids::{PartitionId, partition_id};

/// A response whose partitions are named by Python tuples.
type NamedAnswer = Answer<Py<PyTuple>, Py<PyBytes>>;

/// A response to which partitions are added; they keep the order in which they are first named.
#[pyclass(name = "ShareAnswer", module = "sharecore._core")]
pub(crate) struct PyShareAnswer {
    cluster: Py<PyAny>,
    listener: Py<PyAny>,
    inner: NamedAnswer,
}

/// Encodes a message into parts; records become parts of their own.
struct Sharing<'a, 'py> {
    py: Python<'py>,
    inner: &'a NamedAnswer,
    out: Parts,
}

impl Sink for Sharing<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.out.buffer()
    }

    fn far(&mut self, place: usize) -> bool {
        let Some(records) = self.inner.records(place) else {
            return false;
        };
        self.out.bytes(records.bind(self.py));
        true
    }
}

fn leader_of(cluster: &Bound<'_, PyAny>, partition: &Bound<'_, PyTuple>) -> PyResult<(i32, i32)> {
    let leader = cluster.getattr(intern!(cluster.py(), python::LEADER))?;
    leader.call1(partition.clone())?.extract()
}

/// A callable that raises unless this broker leads a partition.
pub(crate) fn leader_check<'py>(cluster: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    cluster.getattr(intern!(cluster.py(), python::CHECK_LEADER))
}

/// Returns the error if this broker does not lead a partition, as `check_leader` of its cluster says.
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
    /// The index of a partition in the response, adding it if necessary.
    fn place(answer: &Bound<'_, Self>, id: PartitionId, partition: &Bound<'_, PyTuple>) -> usize {
        let mut held = answer.borrow_mut();
        held.inner.name(id, || partition.clone().unbind())
    }

    /// Returns the error for a partition that this broker no longer leads, if acknowledgements could not be written.
    fn lost<'py>(
        answer: &Bound<'py, Self>,
        partition: &Bound<'py, PyTuple>,
        error: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = answer.py();
        if !is_unwritten(code_of(error)?) {
            return Ok(None);
        }
        let cluster = answer.borrow().cluster.clone_ref(py);
        check_led(&leader_check(cluster.bind(py))?, partition)
    }

    /// Encodes the response.
    pub(crate) fn frame<'py>(
        &self,
        py: Python<'py>,
        layout: &PyLayout,
        begun: Vec<u8>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut sink = Sharing {
            py,
            inner: &self.inner,
            out: Parts::shared(begun),
        };
        let version = layout.version();
        let written = match layout.answers() {
            Some(Answers::ShareFetch) => {
                let size = |records: &Py<PyBytes>| records.as_bytes(py).len();
                self.inner.of_fetch(size).encode(version, &mut sink)
            }
            Some(Answers::ShareAcknowledge) => {
                self.inner.of_acknowledge().encode(version, &mut sink)
            }
            Some(Answers::Produce) | None => return Err(layout.refuse_answer()),
        };
        written.map_err(|unfit| PyTypeError::new_err(unfit.to_string()))?;
        sink.out.into_frame(py)
    }

    /// Adds a partition with its fetched records, or with `error` instead of them.
    pub(crate) fn put(
        answer: &Bound<'_, Self>,
        fetch: &PyPartitionFetch,
        may_lease: bool,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = answer.py();
        let Some(partition) = fetch.partition.borrow(py).id(py) else {
            return Err(PyTypeError::new_err("the share partition has no id"));
        };
        let (records, acquired) = if error.is_some() || !may_lease {
            (PyBytes::new(py, b"").unbind(), Vec::new())
        } else {
            let acquired = fetch.acquired.iter().map(|each| AcquiredRecords {
                first_offset: each.first,
                last_offset: each.last,
                delivery_count: each.delivery_count as i16,
            });
            (fetch.records.clone_ref(py), acquired.collect())
        };
        let own = fetch.error.as_ref().map(|error| error.bind(py).clone());
        Self::bring(answer, partition.bind(py), records, acquired, error.or(own))
    }

    /// Adds a partition with its acquired records.
    fn bring(
        answer: &Bound<'_, Self>,
        partition: &Bound<'_, PyTuple>,
        records: Py<PyBytes>,
        acquired: Vec<AcquiredRecords>,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let place = Self::place(answer, partition_id(partition)?, partition);
        let mut held = answer.borrow_mut();
        held.inner.bring(place, records, acquired);
        drop(held);
        if let Some(error) = error {
            Self::refuse(answer, partition, &error, false)?;
            answer.borrow_mut().inner.fail(place);
        }
        Ok(())
    }

    /// The response under construction.
    pub(crate) fn inner(&self) -> &NamedAnswer {
        &self.inner
    }
}

#[pymethods]
impl PyShareAnswer {
    #[new]
    pub(crate) fn new(cluster: Py<PyAny>, listener: Py<PyAny>, lock_ms: i64) -> Self {
        Self {
            cluster,
            listener,
            inner: Answer::new(lock_ms),
        }
    }

    #[getter]
    fn partitions(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        let names = self.inner.names();
        names.map(|name| name.clone_ref(py)).collect()
    }

    #[getter]
    fn served(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        let served = self.inner.served();
        served.map(|(_, name)| name.clone_ref(py)).collect()
    }

    #[getter]
    fn failed(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        let failed = self.inner.failed();
        failed.map(|(_, name)| name.clone_ref(py)).collect()
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
        let (code, text) = code_and_message(error)?;
        let place = Self::place(answer, partition_id(partition)?, partition);
        let leader = if redirects(code) {
            let cluster = answer.borrow().cluster.clone_ref(py);
            Some(leader_of(cluster.bind(py), partition)?)
        } else {
            None
        };
        let mut held = answer.borrow_mut();
        let refusal = Refusal { code, text };
        held.inner.refuse(place, refusal, acknowledging, leader);
        Ok(())
    }

    /// Adds a partition with its acquired records; `acquired`: (first offset, last offset, delivery count).
    #[pyo3(signature = (partition, records, acquired, error = None))]
    fn fetched(
        answer: &Bound<'_, Self>,
        partition: &Bound<'_, PyTuple>,
        records: Py<PyBytes>,
        acquired: Vec<(i64, i64, i16)>,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let acquired = acquired.into_iter();
        let acquired =
            acquired.map(
                |(first_offset, last_offset, delivery_count)| AcquiredRecords {
                    first_offset,
                    last_offset,
                    delivery_count,
                },
            );
        Self::bring(answer, partition, records, acquired.collect(), error)
    }

    /// Adds the acknowledged partitions of `gather`, each with its error if it failed; skips outcomes without a partition.
    #[pyo3(signature = (gather, *, beside = false))]
    pub(crate) fn acknowledged(
        answer: &Bound<'_, Self>,
        gather: &Bound<'_, PyGather>,
        beside: bool,
    ) -> PyResult<()> {
        let py = answer.py();
        let outcomes = gather.borrow().named_outcomes(py);
        for (partition, error) in outcomes {
            let Ok(partition) = partition.bind(py).cast::<PyTuple>() else {
                continue;
            };
            match &error {
                None => Self::name(answer, partition)?,
                Some(error) => {
                    let error = error.bind(py);
                    let lost = Self::lost(answer, partition, error)?;
                    Self::refuse(answer, partition, lost.as_ref().unwrap_or(error), beside)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the response with the endpoints of the leaders that it redirects to (KIP-951).
    pub(crate) fn message(answer: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let py = answer.py();
        let (cluster, listener) = {
            let held = answer.borrow();
            if !held.inner.redirects() {
                return Ok(answer.clone().unbind());
            }
            (held.cluster.clone_ref(py), held.listener.clone_ref(py))
        };
        let nodes = cluster.bind(py).call_method1(python::NODES, (listener,))?;
        let nodes = nodes.try_iter()?.map(|node| {
            let (id, host, port, rack) = node?.extract()?;
            Ok(Node {
                id,
                host,
                port,
                rack,
            })
        });
        let nodes: Vec<_> = nodes.collect::<PyResult<_>>()?;
        answer.borrow_mut().inner.send_to(nodes);
        Ok(answer.clone().unbind())
    }

    /// Sets the throttle time and returns the same response.
    fn throttled(answer: &Bound<'_, Self>, throttle_time_ms: i64) -> Py<Self> {
        answer.borrow_mut().inner.throttle_time_ms = throttle_time_ms;
        answer.clone().unbind()
    }
}

collected!(PyShareAnswer { cluster });
