//! `Written`: how a change that a share partition's leader has begun ends.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_engine::RecordState;

use crate::leader::PyLeader;
use crate::partition::{PyPartition, PyWrite};
use crate::waiting::{PyPart, settle_one};

/// What the persister calls when a change is durable, or lost.
#[pyclass(name = "Written", module = "sharecore._core", frozen)]
pub(crate) struct PyWritten {
    pub(crate) leader: Py<PyLeader>,
    pub(crate) engine: Py<PyPartition>,
    pub(crate) write: Py<PyWrite>,
    pub(crate) done: Option<Py<PyAny>>,
}

impl PyWritten {
    /// Its part of what a request waits for.
    fn part<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyPart>> {
        let done = self.done.as_ref();
        done.and_then(|done| done.bind(py).cast().ok())
    }

    /// Whether nobody waits for this change to be durable: it settles records for good, a fetch that has found nothing
    /// brought it along and goes on waiting, and there is nothing that the change could make room for.
    fn lingers(&self, py: Python<'_>) -> PyResult<bool> {
        let part = self.part(py);
        if !part.is_some_and(|part| part.borrow().is_outlasted(py)) {
            return Ok(false);
        }
        let batches = self.write.get().batches.iter();
        if PyLeader::bounds(self.leader.bind(py)).is_some()
            || self.engine.get().is_ordered(py)?
            || !batches
                .map(|batch| batch.state)
                .all(|state| state == RecordState::Acknowledged)
        {
            return Ok(false);
        }
        let end: i64 = PyLeader::readable_end(self.leader.bind(py))?.extract()?;
        Ok(self.engine.get().next_fetch_offset(py)? >= end)
    }

    pub(crate) fn end<'py>(
        written: &Bound<'py, Self>,
        error: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = written.py();
        let this = written.get();
        let (leader, write) = (this.leader.bind(py), this.write.get());
        let engine = this.engine.get();
        let now_ms = PyLeader::now_ms(leader)?;
        let told = match error {
            None => {
                leader.borrow_mut().writes.succeed(write.start_offset);
                let ended = engine.commit(py, write.id, now_ms);
                PyLeader::told(leader, ended)?;
                None
            }
            Some(error) => {
                let last = write.batches.last().map(|batch| batch.last);
                leader.borrow_mut().writes.fail(last);
                let ended = engine.rollback(py, write.id, now_ms);
                PyLeader::told(leader, ended)?;
                // as the client is told of it
                Some(leader.call_method1(intern!(py, "_not_written"), (error,))?)
            }
        };
        if let Some(done) = &this.done {
            settle_one(done.bind(py), told)?;
        }
        if !PyLeader::engine(leader).is_some_and(|now| now.is(&this.engine)) {
            return Ok(());
        }
        PyLeader::_send_letters(leader)?;
        PyLeader::_rearm(leader)?;
        PyLeader::wake_interested(leader)?;
        PyLeader::_freed(leader)
    }
}

#[pymethods]
impl PyWritten {
    fn __call__<'py>(written: &Bound<'py, Self>, error: Option<Bound<'py, PyAny>>) -> PyResult<()> {
        Self::end(written, error)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.leader)?;
        visit.call(&self.engine)?;
        visit.call(&self.done)
    }
}

/// Whether none of those that are called when a write has ended is in a hurry; `log` is told when one is, later.
pub(crate) fn lingers(waiting: &[Py<PyAny>], log: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = log.py();
    let mut all = Vec::new();
    for each in waiting {
        match each.bind(py).cast::<PyWritten>() {
            Ok(written) if written.get().lingers(py)? => all.push(written),
            _ => return Ok(false),
        }
    }
    for part in all.iter().filter_map(|written| written.get().part(py)) {
        part.borrow().linger(log);
    }
    Ok(true)
}
