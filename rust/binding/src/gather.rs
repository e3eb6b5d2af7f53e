//! `PartitionFetch`, and how a share fetch acquires records from leaders.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_engine::Acquired;
use sharecore_lease::{AcquireRequest, LogCache};
use sharecore_share::{Given, Limits, Partitions, Ration, Readiness};

use crate::codes::OFFSET_OUT_OF_RANGE;
use crate::collected::collected;
use crate::convert::span;
use crate::error::{code_of, kafka_error_in};
use crate::leader::PyLeader;
use crate::lease::{Lease, lease};
use crate::log_offsets;
use crate::python;
use crate::testing::calls_by_name;

/// Records that a fetch acquired from one share partition, or its error.
#[pyclass(name = "PartitionFetch", module = "sharecore._core", frozen)]
pub(crate) struct PyPartitionFetch {
    #[pyo3(get)]
    pub(crate) partition: Py<PyLeader>,
    #[pyo3(get)]
    pub(crate) records: Py<PyBytes>,
    pub(crate) acquired: Vec<Acquired>,
    #[pyo3(get)]
    pub(crate) error: Option<Py<PyAny>>,
}

impl PyPartitionFetch {
    /// An empty result with an error.
    pub(crate) fn refused(partition: &Bound<'_, PyLeader>, error: Py<PyAny>) -> Self {
        Self {
            partition: partition.clone().unbind(),
            records: PyBytes::new(partition.py(), b"").unbind(),
            acquired: Vec::new(),
            error: Some(error),
        }
    }

    pub(crate) fn size(&self, py: Python<'_>) -> i64 {
        self.records.bind(py).as_bytes().len() as i64
    }
}

#[pymethods]
impl PyPartitionFetch {
    #[getter]
    fn acquired<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.acquired.iter().map(span))
    }
}

collected!(PyPartitionFetch { partition, error });

/// The leaders that a fetch visits, in the order of its session, and its results so far.
pub(crate) struct Leaders<'l, 'py, L> {
    pub(crate) order: &'l mut L,
    pub(crate) member: &'l str,
    pub(crate) fetched: Vec<Bound<'py, PyPartitionFetch>>,
}

/// An iterator over the leaders that a fetch visits.
pub(crate) trait Order<'py> {
    fn next(&mut self) -> Option<Bound<'py, PyLeader>>;
    /// Called for a leader without acquirable records.
    fn empty(&mut self, leader: &Bound<'py, PyLeader>) -> PyResult<()>;
    /// Called for a leader that has failed or was fenced.
    fn failed(&mut self, leader: Bound<'py, PyLeader>);
}

fn readiness(leader: &Bound<'_, PyLeader>) -> PyResult<Readiness> {
    let is_fetchable = if calls_by_name() {
        leader.getattr(python::FETCHABLE)?.is_truthy()?
    } else {
        PyLeader::fetchable(leader)?
    };
    let held = leader.borrow();
    Ok(match (&held.engine, &held.error) {
        _ if is_fetchable => Readiness::Ready,
        (Some(_), _) => Readiness::Empty,
        (None, Some(_)) => Readiness::Failed,
        (None, None) => Readiness::Loading,
    })
}

impl<'py, L: Order<'py>> Partitions for Leaders<'_, 'py, L> {
    type Partition = Bound<'py, PyLeader>;
    type Error = PyErr;

    fn next(&mut self) -> Option<Self::Partition> {
        self.order.next()
    }

    fn readiness(&mut self, leader: &Self::Partition) -> PyResult<Readiness> {
        readiness(leader)
    }

    fn empty(&mut self, leader: &Self::Partition) -> PyResult<()> {
        self.order.empty(leader)
    }

    fn failed(&mut self, leader: Self::Partition) {
        self.order.failed(leader);
    }

    fn acquire(
        &mut self,
        leader: Self::Partition,
        ration: Ration,
        limits: &Limits,
    ) -> PyResult<Given> {
        let py = leader.py();
        let mut given = Given::default();
        let lease = match lease_of(&leader, self.member, ration, limits)? {
            Ok(lease) => lease,
            Err(error) => {
                if code_of(&error)? != OFFSET_OUT_OF_RANGE {
                    let refused = PyPartitionFetch::refused(&leader, error.unbind());
                    self.fetched.push(Bound::new(py, refused)?);
                }
                return Ok(given);
            }
        };
        if lease.reading {
            let leasing = PyLeader::leasing(&leader)?;
            given.reading_bytes = leasing
                .getattr(intern!(py, python::READING_BYTES))?
                .extract()?;
        }
        if !lease.acquired.is_empty() {
            given.bytes = lease.records.as_bytes().len();
            given.records = lease.total;
            let fetched = PyPartitionFetch {
                partition: leader.unbind(),
                records: lease.records.unbind(),
                acquired: lease.acquired,
                error: None,
            };
            self.fetched.push(Bound::new(py, fetched)?);
        }
        Ok(given)
    }
}

/// Acquires records from one leader after the other until the fetch has enough.
pub(crate) fn gather<'py>(
    order: &mut impl Order<'py>,
    member: &str,
    limits: &Limits,
) -> PyResult<Vec<Py<PyPartitionFetch>>> {
    let mut leaders = Leaders {
        order,
        member,
        fetched: Vec::new(),
    };
    sharecore_share::gather(&mut leaders, limits)?;
    Ok(leaders.fetched.into_iter().map(Bound::unbind).collect())
}

/// Acquires records of a partition; returns a `KafkaError` if it has none to give.
fn lease_of<'py>(
    partition: &Bound<'py, PyLeader>,
    member: &str,
    ration: Ration,
    limits: &Limits,
) -> PyResult<Result<Lease<'py>, Bound<'py, PyAny>>> {
    let Some(engine) = PyLeader::engine(partition) else {
        return Ok(Err(PyLeader::no_engine(partition)));
    };
    let leasing = PyLeader::leasing(partition)?;
    let has_rules = engine.get().has_rules();
    let expanded = if has_rules {
        let held = leasing.borrow();
        held.expanded
            .as_ref()
            .map(|it| it.clone_ref(partition.py()))
    } else {
        None
    };
    let request = AcquireRequest {
        now_ms: PyLeader::now_ms(partition)?,
        wall_ms: if has_rules {
            PyLeader::wall_ms(partition)?
        } else {
            0
        },
        member,
        log_start: log_offsets::start_offset(&PyLeader::log(partition)?)?,
        end: PyLeader::end_of(partition)?,
        max_bytes: ration.max_bytes,
        max_records: ration.max_records,
        batch_size: limits.batch_size,
        record_limit: limits.record_limit,
        at_least_one: ration.at_least_one,
        log_cache: expanded.as_ref().map(|expanded| LogCache {
            cache: &expanded.get().0,
            log: partition.borrow().name,
            // an upstream cluster may lose records and reuse their offsets
            is_read: leasing.borrow().stored.is_some(),
        }),
    };
    let lease = match lease(engine.get(), &leasing, &request) {
        Ok(lease) => lease,
        Err(error) => return Ok(Err(kafka_error_in(partition.py(), error)?)),
    };
    let any = !lease.acquired.is_empty();
    if any || lease.archived || lease.stopped.is_some() {
        let stopped = lease.stopped.clone();
        let noted = PyLeader::leased(
            partition,
            &engine,
            request.now_ms,
            any,
            lease.archived,
            stopped,
        );
        if let Err(error) = noted {
            return Ok(Err(kafka_error_in(partition.py(), error)?));
        }
    }
    if let Some(admitted) = lease.admitted
        && let Err(error) = PyLeader::admitted(partition, &engine, admitted)
    {
        return Ok(Err(kafka_error_in(partition.py(), error)?));
    }
    Ok(Ok(lease))
}
