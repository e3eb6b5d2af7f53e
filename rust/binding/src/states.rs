//! `States`: writes of share-partition leaders, as the share coordinator of their process takes them.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::codes::INVALID_REQUEST;
use crate::error::kafka_error;
use crate::partition::PyWrite;
use crate::state_fold::PyStateContent;

/// States of share partitions. `sharecore.sharestate.coordinator.ShareCoordinator` has them.
#[pyclass(name = "States", module = "sharecore._core", subclass)]
pub(crate) struct PyStates {
    /// Shards by the share partitions whose state they hold.
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
            None => states.call_method1(intern!(py, "_find_shard"), (key,))?,
        };
        states
            .getattr(intern!(py, "_runtime"))?
            .getattr(intern!(py, "check_owner"))?
            .call1((shard.getattr(intern!(py, "index"))?,))?;
        let staged = shard.getattr(intern!(py, "_staged"))?;
        if staged.getattr(intern!(py, "stale"))?.is_truthy()? {
            shard.call_method0(intern!(py, "ensure_loaded"))?;
        }
        if known.is_none() && shard.getattr(intern!(py, "states"))?.contains(key)? {
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
            states.call_method1(intern!(py, "_check_epochs"), epochs)?;
        }
        let all = shard.getattr(intern!(py, "states"))?;
        let Some(state) = all.cast::<PyDict>()?.get_item(key)? else {
            let text = "Write operation on uninitialized share partition not allowed.";
            return Err(kafka_error(py, INVALID_REQUEST, text));
        };
        let content = state.getattr(intern!(py, "content"))?;
        let content = content.cast_into::<PyStateContent>()?;
        let is_superseded = content.borrow().is_superseded(state_epoch, leader_epoch);
        if is_superseded {
            state.call_method1(intern!(py, "check"), (state_epoch, leader_epoch))?;
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
        let clock = states.getattr(intern!(py, "_clock"))?;
        let now_ms = clock.call_method0(intern!(py, "now_ms"))?.extract()?;
        let updates = states.getattr(intern!(py, "_updates_per_snapshot"))?;
        let updates = updates.extract()?;
        let content = state.getattr(intern!(py, "content"))?;
        let content = content.cast_into::<PyStateContent>()?;
        let (is_snapshot, value) = {
            let mut content = content.borrow_mut();
            content.write_begun(py, write.get(), now_ms, updates)
        };
        if is_snapshot {
            // which tells the state where it lies
            let named = PyDict::new(py);
            let record = (state.getattr(intern!(py, "snapshot_key"))?, value);
            named.set_item(intern!(py, "snapshot_of"), state)?;
            shard.call_method(intern!(py, "append"), (record, now_ms, done), Some(&named))?;
        } else {
            let record = (state.getattr(intern!(py, "update_key"))?, value);
            let records = PyList::new(py, [record])?;
            let staged = shard.getattr(intern!(py, "_staged"))?;
            staged.call_method1(intern!(py, "append"), (records, now_ms, done))?;
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.routes)
    }
}
