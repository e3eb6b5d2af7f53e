//! `PartitionFetch`, and what a share fetch gets out of the partitions that it looks at.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_engine::Acquired;
use sharecore_lease::Wish;
use sharecore_share::{Limits, Ration, Rations};

use crate::codes::OFFSET_OUT_OF_RANGE;
use crate::convert::span;
use crate::error::kafka_error_in;
use crate::leader::PyLeader;
use crate::lease::{Lease, lease};
use crate::log_offsets;
use crate::testing::calls_by_name;

/// What one share partition gave.
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
    /// Nothing, and why.
    pub(crate) fn refused(partition: &Bound<'_, PyLeader>, error: Py<PyAny>) -> Self {
        Self {
            partition: partition.clone().unbind(),
            records: PyBytes::new(partition.py(), b"").unbind(),
            acquired: Vec::new(),
            error: Some(error),
        }
    }

    /// Bytes of its records.
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

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.partition)?;
        visit.call(&self.error)
    }
}

/// The partitions that a fetch looks at, in their order.
pub(crate) trait Look<'py> {
    /// The next one.
    fn next(&mut self) -> Option<Bound<'py, PyLeader>>;
    /// One has nothing.
    fn empty(&mut self, partition: &Bound<'py, PyLeader>) -> PyResult<()>;
    /// One has no engine, but an error.
    fn failed(&mut self, partition: Bound<'py, PyLeader>);
}

/// Whether a partition may have something.
fn is_fetchable(partition: &Bound<'_, PyLeader>) -> PyResult<bool> {
    if calls_by_name() {
        return partition.getattr("fetchable")?.is_truthy();
    }
    PyLeader::fetchable(partition)
}

/// The next one that has something.
pub(crate) fn next<'py>(look: &mut impl Look<'py>) -> PyResult<Option<Bound<'py, PyLeader>>> {
    while let Some(partition) = look.next() {
        if is_fetchable(&partition)? {
            return Ok(Some(partition));
        }
        let (has_engine, has_error) = {
            let held = partition.borrow();
            (held.engine.is_some(), held.error.is_some())
        };
        if has_engine {
            look.empty(&partition)?;
        } else if has_error {
            look.failed(partition);
        }
    }
    Ok(None)
}

/// What was leased of a partition; or the `KafkaError` for which there is nothing.
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
    let wish = Wish {
        now_ms: PyLeader::now_ms(partition)?,
        wall_ms: if engine.get().has_rules() {
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
    };
    let lease = match lease(engine.get(), &leasing, &wish) {
        Ok(lease) => lease,
        Err(error) => return Ok(Err(kafka_error_in(partition.py(), error)?)),
    };
    let any = !lease.acquired.is_empty();
    if any || lease.archived || lease.stopped.is_some() {
        let stopped = lease.stopped.clone();
        let noted = PyLeader::leased(
            partition,
            &engine,
            wish.now_ms,
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

/// Leases from partition to partition until the fetch has enough.
pub(crate) fn gather<'py>(
    py: Python<'py>,
    look: &mut impl Look<'py>,
    member: &str,
    limits: &Limits,
) -> PyResult<Vec<Py<PyPartitionFetch>>> {
    let mut results = Vec::new();
    let mut chosen = VecDeque::new();
    while i64::try_from(chosen.len()).is_ok_and(|chosen| chosen < limits.max_records) {
        match next(look)? {
            Some(partition) => chosen.push_back(partition),
            None => break,
        }
    }
    if chosen.is_empty() {
        return Ok(results);
    }
    let mut rations = Rations::among(limits, chosen.len());
    while let Some(ration) = rations.ration() {
        let next = match chosen.pop_front() {
            Some(partition) => Some(partition),
            None => next(look)?,
        };
        let Some(partition) = next else { break };
        let lease = lease_of(&partition, member, ration, limits)?;
        if lease.as_ref().is_ok_and(|lease| lease.reading) {
            let leasing = PyLeader::leasing(&partition)?;
            let bytes = leasing.getattr(intern!(py, "reading_bytes"))?;
            rations.read_later(bytes.extract()?);
        }
        match lease {
            Err(error) => {
                let code: i16 = error.getattr(intern!(py, "code"))?.extract()?;
                if code != OFFSET_OUT_OF_RANGE {
                    let refused = PyPartitionFetch::refused(&partition, error.unbind());
                    results.push(Py::new(py, refused)?);
                }
            }
            Ok(lease) if lease.acquired.is_empty() => {}
            Ok(lease) => {
                rations.take(lease.records.as_bytes().len(), lease.total);
                let fetch = PyPartitionFetch {
                    partition: partition.unbind(),
                    records: lease.records.unbind(),
                    acquired: lease.acquired,
                    error: None,
                };
                results.push(Py::new(py, fetch)?);
            }
        }
    }
    Ok(results)
}
