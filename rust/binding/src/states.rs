//! `States`: accepts writes of share-partition leaders for the share coordinator of their process.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::clock::Clock;
use crate::codes::INVALID_REQUEST;
use crate::collected::collected;
use crate::completion::Completion;
use crate::error::kafka_error;
use crate::python;
use crate::staging::PyStaging;
use crate::state_fold::PyStateContent;
use crate::state_slot::StateSlot;
use crate::state_write::PyWrite;

/// States of share partitions. `sharecore.sharestate.coordinator.ShareCoordinator` extends it.
#[pyclass(name = "States", module = "sharecore._core", subclass)]
pub(crate) struct PyStates {
    /// Shards by the share partitions that they hold.
    #[pyo3(get, set, name = "_routes")]
    routes: Py<PyDict>,
}

#[pymethods]
impl PyStates {
    #[new]
    #[pyo3(signature = (*args, **_rest))]
    fn new(args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            routes: PyDict::new(args.py()).unbind(),
        }
    }

    fn _shard<'py>(
        states: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = states.py();
        let routes = states.borrow().routes.clone_ref(py);
        let known = routes.bind(py).get_item(key)?;
        let shard = match &known {
            Some(shard) => shard.clone(),
            None => states.call_method1(intern!(py, python::OWN_FIND_SHARD), (key,))?,
        };
        let runtime = states.getattr(intern!(py, python::OWN_RUNTIME))?;
        let check = runtime.getattr(intern!(py, python::OWNER_CHECK))?;
        if !check.is_none() {
            check.call1((shard.getattr(intern!(py, python::INDEX))?,))?;
        }
        let staged = shard.getattr(intern!(py, python::OWN_STAGED))?;
        if staged.getattr(intern!(py, python::STALE))?.is_truthy()? {
            shard.call_method0(intern!(py, python::ENSURE_LOADED))?;
        }
        if known.is_none() && shard.getattr(intern!(py, python::STATES))?.contains(key)? {
            routes.bind(py).set_item(key, &shard)?;
        }
        Ok(shard)
    }

    fn _writable<'py>(
        states: &Bound<'py, Self>,
        shard: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        state_epoch: i32,
        leader_epoch: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = states.py();
        if leader_epoch < 0 || state_epoch < 0 {
            let epochs = (leader_epoch, state_epoch);
            states.call_method1(intern!(py, python::OWN_CHECK_EPOCHS), epochs)?;
        }
        let all = shard.getattr(intern!(py, python::STATES))?;
        let Some(state) = all.cast::<PyDict>()?.get_item(key)? else {
            let text = "Write operation on uninitialized share partition not allowed.";
            return Err(kafka_error(py, INVALID_REQUEST, text));
        };
        let content = state.getattr(intern!(py, python::CONTENT))?;
        let content = content.cast_into::<PyStateContent>()?;
        let is_superseded = content.borrow().is_superseded(state_epoch, leader_epoch);
        if is_superseded {
            state.call_method1(intern!(py, python::CHECK), (state_epoch, leader_epoch))?;
        }
        Ok(state)
    }

    fn write_begun<'py>(
        states: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        state_epoch: i32,
        leader_epoch: i32,
        write: &Bound<'py, PyWrite>,
        done: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = states.py();
        let shard = Self::_shard(states, key)?;
        let state = Self::_writable(states, &shard, key, state_epoch, leader_epoch)?;
        let clock = states.getattr(intern!(py, python::OWN_CLOCK))?;
        let clock = clock.getattr(intern!(py, python::NOW_MS))?;
        let updates = states.getattr(intern!(py, python::OWN_UPDATES_PER_SNAPSHOT))?;
        let content = state.getattr(intern!(py, python::CONTENT))?;
        let update_key = state.getattr(intern!(py, python::UPDATE_KEY))?;
        let runtime = states.getattr(intern!(py, python::OWN_RUNTIME))?;
        let check = runtime.getattr(intern!(py, python::OWNER_CHECK))?;
        let owner_check = if check.is_none() {
            None
        } else {
            let index = shard.getattr(intern!(py, python::INDEX))?.extract()?;
            Some((check.unbind(), index))
        };
        let staging = shard.getattr(intern!(py, python::OWN_STAGED))?;
        let staging = staging.cast_into::<PyStaging>()?;
        let moves = staging.borrow().inner.moves();
        let slot = StateSlot {
            shard: shard.unbind(),
            content: content.cast_into::<PyStateContent>()?.unbind(),
            update_key: update_key.cast_into()?.unbind(),
            state: state.unbind(),
            staging: staging.unbind(),
            moves,
            owner_check,
            clock: Clock::of(&clock)?,
            updates_per_snapshot: updates.extract()?,
        };
        let done = Completion::of(done);
        let slot = Arc::new(slot);
        if let Completion::Change(change) = &done {
            // Its later writes then need no lookup
            let mut leader = change.leader.borrow_mut(py);
            leader.slot = Some(Arc::clone(&slot));
        }
        slot.write(py, write.get(), done)
    }
}

collected!(PyStates { routes });
