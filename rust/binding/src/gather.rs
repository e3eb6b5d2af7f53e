//! `gather`: what a share fetch gets out of the partitions that it looks at.

use std::collections::VecDeque;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

use crate::codes::OFFSET_OUT_OF_RANGE;
use crate::error::kafka_error_in;
use crate::layout::named;

/// The partitions that a fetch looks at, in their order.
struct Walk<'a, 'py> {
    left: std::vec::IntoIter<Bound<'py, PyAny>>,
    empty: &'a Bound<'py, PyAny>,
    failed: &'a Bound<'py, PyList>,
}

impl<'py> Walk<'_, 'py> {
    /// The next one that has something; those that have nothing leave the ready set.
    fn next(&mut self) -> PyResult<Option<Bound<'py, PyAny>>> {
        for partition in self.left.by_ref() {
            let py = partition.py();
            if partition.getattr(intern!(py, "fetchable"))?.is_truthy()? {
                return Ok(Some(partition));
            }
            if !partition.getattr(intern!(py, "engine"))?.is_none() {
                self.empty.call1((partition,))?;
            } else if !partition.getattr(intern!(py, "error"))?.is_none() {
                self.failed.append(partition)?;
            }
        }
        Ok(None)
    }
}

/// What one lease may take.
struct Share<'a, 'py> {
    member: &'a Bound<'py, PyString>,
    max_bytes: i64,
    max_records: i64,
    batch_size: i64,
    record_limit: bool,
    at_least_one: bool,
}

type Leased<'py> = (Bound<'py, PyBytes>, Bound<'py, PyList>, i64);

/// Record batches, what was acquired of them, and how many records that is; or the `KafkaError` for which there is
/// nothing.
fn lease<'py>(
    partition: &Bound<'py, PyAny>,
    share: &Share<'_, 'py>,
) -> PyResult<Result<Leased<'py>, Bound<'py, PyAny>>> {
    let py = partition.py();
    let engine = partition.getattr(intern!(py, "engine"))?;
    let leasing = partition.getattr(intern!(py, "leasing"))?;
    let now_ms = partition.getattr(intern!(py, "now_ms"))?.call0()?;
    let committed = leasing
        .getattr(intern!(py, "read_committed"))?
        .is_truthy()?;
    let aborted = if committed {
        Some(leasing.getattr(intern!(py, "aborted"))?)
    } else {
        None
    };
    let told = engine.call_method1(
        intern!(py, "lease"),
        (
            leasing.getattr(intern!(py, "stored"))?,
            leasing.getattr(intern!(py, "read"))?,
            aborted,
            &now_ms,
            share.member,
            leasing
                .getattr(intern!(py, "log"))?
                .getattr(intern!(py, "start_offset"))?,
            partition.getattr(intern!(py, "readable_end"))?,
            share.max_bytes,
            share.max_records,
            share.batch_size,
            share.record_limit,
            share.at_least_one,
        ),
    );
    let told = match told {
        Ok(told) => told.cast_into::<PyTuple>()?,
        Err(error) => return Ok(Err(kafka_error_in(py, error)?)),
    };
    let acquired = told.get_item(1)?.cast_into::<PyList>()?;
    let (archived, error) = (told.get_item(3)?, told.get_item(4)?);
    if !acquired.is_empty() || !error.is_none() || archived.is_truthy()? {
        let noted = (engine, now_ms, !acquired.is_empty(), archived, error);
        if let Err(error) = partition.call_method1(intern!(py, "leased"), noted) {
            return Ok(Err(kafka_error_in(py, error)?));
        }
    }
    let records = told.get_item(0)?.cast_into::<PyBytes>()?;
    Ok(Ok((records, acquired, told.get_item(2)?.extract()?)))
}

/// Bytes, records and records of a batch at most, and whether the number of records is exact.
type Limits = (i64, i64, i64, bool);

/// As many partitions that have something as records are wanted get an equal part of the bytes each, others what is left;
/// the first has one batch whatever its size.
#[pyfunction]
pub(crate) fn gather<'py>(
    partitions: Vec<Bound<'py, PyAny>>,
    member: &Bound<'py, PyString>,
    limits: Limits,
    made: &Bound<'py, PyType>,
    empty: &Bound<'py, PyAny>,
    failed: &Bound<'py, PyList>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = member.py();
    let (max_bytes, max_records, batch_size, record_limit) = limits;
    let mut results = Vec::new();
    let mut walk = Walk {
        left: partitions.into_iter(),
        empty,
        failed,
    };
    let mut chosen = VecDeque::new();
    while i64::try_from(chosen.len()).is_ok_and(|chosen| chosen < max_records) {
        match walk.next()? {
            Some(partition) => chosen.push_back(partition),
            None => break,
        }
    }
    let Ok(count @ 1..) = i64::try_from(chosen.len()) else {
        return Ok(results);
    };
    let (mut bytes_left, mut records_left) = (max_bytes, max_records);
    while bytes_left > 0 && records_left > 0 {
        let next = match chosen.pop_front() {
            Some(partition) => Some(partition),
            None => walk.next()?,
        };
        let Some(partition) = next else { break };
        let share = Share {
            member,
            max_bytes: bytes_left.min(max_bytes / count),
            max_records: records_left,
            batch_size,
            record_limit,
            at_least_one: bytes_left == max_bytes,
        };
        match lease(&partition, &share)? {
            Err(error) => {
                let code: i16 = error.getattr(intern!(py, "code"))?.extract()?;
                if code != OFFSET_OUT_OF_RANGE {
                    let values = (partition, PyBytes::new(py, b""), PyList::empty(py), error);
                    results.push(named(made, values.into_pyobject(py)?)?);
                }
            }
            Ok((records, acquired, total)) => {
                if !acquired.is_empty() {
                    bytes_left -= i64::try_from(records.as_bytes().len()).unwrap_or(i64::MAX);
                    records_left -= total;
                    let values = (partition, records, acquired, py.None());
                    results.push(named(made, values.into_pyobject(py)?)?);
                }
            }
        }
    }
    Ok(results)
}
