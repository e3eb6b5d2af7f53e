//! `StateSlot`: where the share coordinator of this process keeps a share partition's state, so that its leader's writes need
//! no lookup.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::clock::Clock;
use crate::collected::Refers;
use crate::completion::Completion;
use crate::python;
use crate::staging::PyStaging;
use crate::state_fold::PyStateContent;
use crate::state_write::PyWrite;

/// The state of a share partition; valid until its coordinator moves it.
pub(crate) struct StateSlot {
    pub(crate) shard: Py<PyAny>,
    pub(crate) state: Py<PyAny>,
    pub(crate) content: Py<PyStateContent>,
    pub(crate) update_key: Py<PyBytes>,
    pub(crate) staging: Py<PyStaging>,
    /// The number of moves of the shard's states when this slot was created.
    pub(crate) moves: u64,
    /// A check that raises if another broker owns the shard, with the shard's number; None if no other broker can.
    pub(crate) owner_check: Option<(Py<PyAny>, i32)>,
    pub(crate) clock: Clock,
    pub(crate) updates_per_snapshot: u32,
}

impl StateSlot {
    /// True if a leader may write here: the state has not moved, and no newer leader has superseded it.
    ///
    /// Returns a `KafkaError` if another broker owns the state.
    pub(crate) fn admits(
        &self,
        py: Python<'_>,
        state_epoch: i32,
        leader_epoch: i32,
    ) -> PyResult<bool> {
        if let Some((check, index)) = &self.owner_check {
            check.call1(py, (index,))?;
        }
        Ok(self.staging.borrow(py).inner.is_at(self.moves)
            && state_epoch >= 0
            && leader_epoch >= 0
            && !self
                .content
                .borrow(py)
                .is_superseded(state_epoch, leader_epoch))
    }

    /// Writes a change: to the state in memory at once, and to the log with the other records of this turn.
    pub(crate) fn write(&self, py: Python<'_>, write: &PyWrite, done: Completion) -> PyResult<()> {
        let now_ms = self.clock.ms(py)?;
        let (is_snapshot, value) = {
            let mut content = self.content.borrow_mut(py);
            content.write_begun(py, write, now_ms, self.updates_per_snapshot)
        };
        if !is_snapshot {
            let key = self.update_key.bind(py).clone();
            let record = PyTuple::new(py, [key, value])?;
            return PyStaging::stage(self.staging.bind(py), record, now_ms, done);
        }
        // The shard records the snapshot's offset in the state
        let how = PyDict::new(py);
        let key = self
            .state
            .bind(py)
            .getattr(intern!(py, python::SNAPSHOT_KEY))?;
        how.set_item(intern!(py, python::SNAPSHOT_OF), &self.state)?;
        let arguments = ((key, value), now_ms, done.into_python(py)?);
        let append = intern!(py, python::APPEND);
        self.shard.call_method(py, append, arguments, Some(&how))?;
        Ok(())
    }
}

impl Refers for StateSlot {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.shard.show(visit)?;
        self.state.show(visit)?;
        self.content.show(visit)?;
        self.staging.show(visit)?;
        if let Some((check, _)) = &self.owner_check {
            check.show(visit)?;
        }
        self.clock.show(visit)
    }
}
