//! `Change` and `Written`: completes a state change of a share-partition leader.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_share::settles_for_good;

use crate::bounds::PyGroupBounds;
use crate::collected::{Refers, collected};
use crate::completion::{Completion, Ended};
use crate::gathering::Part;
use crate::leader::PyLeader;
use crate::partition::PyPartition;
use crate::python;
use crate::state_write::PyWrite;

/// A state change that becomes durable or is lost.
pub(crate) struct Change {
    pub(crate) leader: Py<PyLeader>,
    pub(crate) engine: Py<PyPartition>,
    pub(crate) write: Py<PyWrite>,
    pub(crate) done: Option<Completion>,
}

impl Change {
    /// The part of a request that waits for this change.
    fn part(&self) -> Option<&Part> {
        match &self.done {
            Some(Completion::Part(part)) => Some(part),
            _ => None,
        }
    }

    /// True if no one needs this change to be durable soon: it only ends records, its request is a fetch that found nothing and
    /// still waits, and it makes no room that others wait for.
    fn lingers(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.part().is_some_and(|part| part.is_outlasted(py)) {
            return Ok(false);
        }
        if PyLeader::bounds(self.leader.bind(py)).is_some()
            || self.engine.get().is_ordered(py)?
            || !settles_for_good(&self.write.get().batches)
        {
            return Ok(false);
        }
        let end = PyLeader::end_of(self.leader.bind(py))?;
        Ok(self.engine.get().next_fetch_offset(py)? >= end)
    }

    pub(crate) fn end(self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let (leader, write) = (self.leader.bind(py), self.write.get());
        let engine = self.engine.get();
        let now_ms = PyLeader::now_ms(leader)?;
        let outcome = match error {
            None => {
                leader.borrow_mut().writes.succeed(write.start_offset);
                let ended = engine.commit(py, write.id, now_ms);
                PyLeader::engine_result(leader, ended)?;
                if let Some(bounds) = PyLeader::bounds(leader) {
                    PyGroupBounds::ended(&bounds, write, now_ms)?;
                }
                None
            }
            Some(error) => {
                let last = write.batches.last().map(|batch| batch.last);
                leader.borrow_mut().writes.fail(last);
                let ended = engine.rollback(py, write.id, now_ms);
                PyLeader::engine_result(leader, ended)?;
                // The error as the client sees it
                Some(leader.call_method1(intern!(py, python::OWN_NOT_WRITTEN), (error,))?)
            }
        };
        let is_current = || PyLeader::engine(leader).is_some_and(|now| now.is(&self.engine));
        // Wake sessions before `done`: a fetch held for this write retries when `done` is settled, and would otherwise overtake
        // longer-waiting fetches, so that one member could acquire all records of a key
        let woken = if engine.has_rules() && is_current() {
            PyLeader::wake_interested(leader)
        } else {
            Ok(())
        };
        if let Some(done) = self.done {
            done.settle(py, Ended::Write(outcome.as_ref()))?;
        }
        woken?;
        if !is_current() {
            return Ok(());
        }
        PyLeader::_send_dead_letters(leader)?;
        PyLeader::_rearm(leader)?;
        PyLeader::wake_interested(leader)?;
        PyLeader::_freed(leader)
    }
}

impl Refers for Change {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.leader.show(visit)?;
        self.engine.show(visit)?;
        self.done.as_ref().map_or(Ok(()), |done| done.show(visit))
    }
}

/// The callback for a Python persister when a change is durable or lost; only the first call counts.
#[pyclass(name = "Written", module = "sharecore._core")]
pub(crate) struct PyWritten(Option<Box<Change>>);

impl PyWritten {
    pub(crate) fn new(change: Box<Change>) -> Self {
        Self(Some(change))
    }

    /// The change, unless it was already completed or taken over.
    pub(crate) fn take(&mut self) -> Option<Box<Change>> {
        self.0.take()
    }

    pub(crate) fn end<'py>(
        written: &Bound<'py, Self>,
        error: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let change = written.borrow_mut().take();
        change.map_or(Ok(()), |change| change.end(written.py(), error))
    }
}

#[pymethods]
impl PyWritten {
    fn __call__<'py>(written: &Bound<'py, Self>, error: Option<Bound<'py, PyAny>>) -> PyResult<()> {
        Self::end(written, error)
    }
}

collected!(PyWritten { 0 } cut { 0 });

/// True if no callback needs this write soon; `log` is asked to hurry if that changes later.
pub(crate) fn lingers(waiting: &[Completion], log: &Bound<'_, PyAny>) -> PyResult<bool> {
    let mut parts = Vec::new();
    for each in waiting {
        match each {
            Completion::Change(change) if change.lingers(log.py())? => parts.extend(change.part()),
            _ => return Ok(false),
        }
    }
    for part in parts {
        part.linger(log);
    }
    Ok(true)
}
