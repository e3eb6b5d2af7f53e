//! `decode_share_state` and `ShareStateFold`: decode records of `__share_group_state` into buffers in Arrow's layout.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_records::Batches;
use sharecore_state::{Columns, Live, Options, Unreadable, history};

use crate::columns::{Buffers, binary, data, validity};

type Problem = Option<(i64, String)>;
type Rows<'py> = (usize, Bound<'py, PyList>);
type Decoded<'py> = (Rows<'py>, usize, Option<i64>, Problem);

fn rows<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Rows<'py>> {
    let mut out: Buffers<'py> = Vec::with_capacity(28);
    out.push(data(py, &columns.offsets));
    out.push(validity(py, &columns.timed));
    out.push(data(py, &columns.timestamps));
    binary(py, &columns.types, &mut out);
    binary(py, &columns.groups, &mut out);
    binary(py, &columns.topic_ids, &mut out);
    out.push(data(py, &columns.partitions));
    out.push(validity(py, &columns.stated));
    out.push(validity(py, &columns.whole));
    for column in [
        &columns.snapshot_epochs,
        &columns.state_epochs,
        &columns.leader_epochs,
        &columns.start_offsets,
        &columns.delivery_complete_counts,
        &columns.created,
        &columns.written,
        &columns.batches,
        &columns.firsts,
        &columns.lasts,
        &columns.states,
        &columns.delivery_counts,
    ] {
        out.push(data(py, column));
    }
    binary(py, &columns.errors, &mut out);
    Ok((columns.rows, PyList::new(py, out)?))
}

fn problem(unreadable: Option<&Unreadable>) -> Problem {
    unreadable.map(|unreadable| (unreadable.offset, unreadable.reason.clone()))
}

fn options(
    first: i64,
    end: i64,
    group: Option<String>,
    expanded_bytes_max: usize,
) -> PyResult<Options> {
    if expanded_bytes_max > Options::EXPANDED_MAX {
        return Err(PyValueError::new_err(format!(
            "expanded_bytes_max={expanded_bytes_max} exceeds {}",
            Options::EXPANDED_MAX
        )));
    }
    Ok(Options {
        first,
        end,
        expanded_max: expanded_bytes_max,
        group,
    })
}

/// Decodes records of the share-state topic into buffers in Arrow's layout.
#[pyfunction]
#[pyo3(signature = (
    records, first, end, *, position=0, rows_max=16_384, keep_unreadable=true, group=None, expanded_bytes_max=134_217_728
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn decode_share_state<'py>(
    py: Python<'py>,
    records: &[u8],
    first: i64,
    end: i64,
    position: usize,
    rows_max: usize,
    keep_unreadable: bool,
    group: Option<String>,
    expanded_bytes_max: usize,
) -> PyResult<Decoded<'py>> {
    let options = options(first, end, group, expanded_bytes_max)?;
    let rest = records
        .get(position..)
        .ok_or_else(|| PyValueError::new_err("the position is after the end"))?;
    let read = py.detach(|| history(rest, &options, rows_max, keep_unreadable));
    Ok((
        rows(py, &read.columns)?,
        position + read.taken,
        read.next,
        problem(read.unreadable.as_ref()),
    ))
}

/// Returns the size of the complete batches at the front, and the offset after the last of them.
#[pyfunction]
pub(crate) fn whole_batches(records: &[u8]) -> (usize, Option<i64>) {
    let mut batches = Batches::new(records);
    let last = batches.by_ref().last();
    let next = last.map(|batch| batch.header.last_offset().saturating_add(1));
    (records.len() - batches.rest().len(), next)
}

/// Folds the records of one partition of the share-state topic.
#[pyclass(name = "ShareStateFold", module = "sharecore._core", frozen)]
pub(crate) struct PyShareStateFold(Mutex<Live>);

impl PyShareStateFold {
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyShareStateFold {
    #[new]
    #[pyo3(signature = (first, end, *, unreadable_max=None, group=None, expanded_bytes_max=134_217_728))]
    fn new(
        first: i64,
        end: i64,
        unreadable_max: Option<usize>,
        group: Option<String>,
        expanded_bytes_max: usize,
    ) -> PyResult<Self> {
        let options = options(first, end, group, expanded_bytes_max)?;
        Ok(Self(Mutex::new(Live::new(options, unreadable_max))))
    }

    fn take(&self, py: Python<'_>, records: &[u8]) -> (Option<i64>, Problem) {
        py.detach(|| {
            let mut live = self.lock();
            let next = live.take(records);
            (next, problem(live.unreadable()))
        })
    }

    #[pyo3(signature = (rows_max=16_384))]
    fn drain<'py>(&self, py: Python<'py>, rows_max: usize) -> PyResult<(Rows<'py>, Problem)> {
        let (columns, problem) = py.detach(|| {
            let mut live = self.lock();
            let columns = live.drain(rows_max);
            (columns, problem(live.unreadable()))
        });
        Ok((rows(py, &columns)?, problem))
    }
}
