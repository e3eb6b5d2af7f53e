//! `StateSlot`: where a share-partition leader's state lies in the share coordinator of its process, so that a write looks up nothing.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

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

/// The state of a share partition, as long as its coordinator keeps it where it is.
pub(crate) struct StateSlot {
    pub(crate) shard: Py<PyAny>,
    pub(crate) state: Py<PyAny>,
    pub(crate) content: Py<PyStateContent>,
    pub(crate) update_key: Py<PyBytes>,
    pub(crate) staging: Py<PyStaging>,
    /// How often states of the shard had moved when this was made.
    pub(crate) moves: u64,
    /// The shard's number, and what refuses it where it is another broker's; None where it cannot be.
    pub(crate) owner_check: Option<(Py<PyAny>, i32)>,
    pub(crate) clock: Clock,
    pub(crate) updates_per_snapshot: u32,
}

impl StateSlot {
    /// Whether a leader may write here: its state has not moved, and nobody has superseded the leader.
    ///
    /// Raises a `KafkaError` where the state is another broker's.
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

    /// Writes a change: to the content at once, and to the log with what else comes in this turn.
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
        // which notes in the state where it lies
        let how = PyDict::new(py);
        let key = self
            .state
            .bind(py)
            .getattr(intern!(py, python::SNAPSHOT_KEY))?;
        how.set_item(intern!(py, python::SNAPSHOT_OF), &self.state)?;
        let asked = ((key, value), now_ms, done.into_python(py)?);
        let append = intern!(py, python::APPEND);
        self.shard.call_method(py, append, asked, Some(&how))?;
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
