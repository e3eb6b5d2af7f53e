//! Persists state changes of a share-partition leader.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;

use crate::completion::{Completion, Ended};
use crate::error::kafka_error_in;
use crate::leader::PyLeader;
use crate::python;
use crate::state_write::PyWrite;
use crate::testing::calls_by_name;
use crate::written::{Change, PyWritten};

impl PyLeader {
    /// Persists a state change; looked up by name if a test wants that.
    pub(crate) fn persist(
        leader: &Bound<'_, Self>,
        write: Option<Py<PyWrite>>,
        done: Option<Completion>,
    ) -> PyResult<()> {
        if !calls_by_name() {
            return Self::write(leader, write, done);
        }
        let py = leader.py();
        let done = done.map(|done| done.into_python(py)).transpose()?;
        leader
            .call_method1(python::OWN_PERSIST, (write, done))
            .map(|_| ())
    }

    /// Persists a state change, if there is one.
    pub(crate) fn write(
        leader: &Bound<'_, Self>,
        write: Option<Py<PyWrite>>,
        done: Option<Completion>,
    ) -> PyResult<()> {
        let py = leader.py();
        let (Some(write), Some(engine)) = (write, Self::engine(leader)) else {
            return done.map_or(Ok(()), |done| done.end(py, Ended::Write(None)));
        };
        let (state_epoch, leader_epoch) = {
            let mut held = leader.borrow_mut();
            held.writes.begin();
            (held.state_epoch, held.leader_epoch)
        };
        let change = Box::new(Change {
            leader: leader.clone().unbind(),
            engine: engine.unbind(),
            write: write.clone_ref(py),
            done,
        });
        let slot = leader.borrow().slot.clone();
        if let Some(slot) = slot.filter(|_| !calls_by_name()) {
            match slot.admits(py, state_epoch, leader_epoch) {
                Ok(true) => return slot.write(py, write.get(), Completion::Change(change)),
                Ok(false) => {
                    let before = leader.borrow_mut().slot.take();
                    drop(before);
                }
                Err(error) => return change.end(py, Some(kafka_error_in(py, error)?)),
            }
        }
        let key = leader.getattr(intern!(py, python::KEY))?;
        let persister = leader.getattr(intern!(py, python::OWN_PERSISTER))?;
        let written = Bound::new(py, PyWritten::new(change))?;
        let arguments = (key, state_epoch, leader_epoch, write, &written);
        match persister.call_method1(intern!(py, python::WRITE), arguments) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = kafka_error_in(py, error)?;
                PyWritten::end(&written, Some(error))
            }
        }
    }
}
