//! `StateContent` and `StateFold`: what the records of `__share_group_state` say, for the share coordinator.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_state::{Content, Fold, Folded, Kind, RecordFault};

use crate::state::packed;

type State<'py> = (Bound<'py, PyBytes>, i64, PyStateContent);

/// What the records of one share partition say.
#[pyclass(name = "StateContent", module = "sharecore._core")]
#[derive(Default)]
pub(crate) struct PyStateContent(Content);

#[pymethods]
impl PyStateContent {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn replay_snapshot(&mut self, value: &[u8]) -> PyResult<()> {
        self.replay(Kind::Snapshot, value)
    }

    fn replay_update(&mut self, value: &[u8]) -> PyResult<()> {
        self.replay(Kind::Update, value)
    }

    fn batches<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        packed(py, &self.0.batches())
    }

    #[getter]
    fn snapshot_epoch(&self) -> i32 {
        self.0.head().snapshot_epoch
    }

    #[getter]
    fn state_epoch(&self) -> i32 {
        self.0.head().state_epoch.unwrap_or_default()
    }

    #[getter]
    fn leader_epoch(&self) -> i32 {
        self.0.head().leader_epoch
    }

    #[getter]
    fn fence_epoch(&self) -> i32 {
        self.0.fence_epoch()
    }

    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.head().start_offset
    }

    #[getter]
    fn delivery_complete_count(&self) -> i32 {
        self.0.head().delivery_complete_count
    }

    #[getter]
    fn create_ms(&self) -> i64 {
        self.0.head().times.unwrap_or_default().0
    }

    #[getter]
    fn write_ms(&self) -> i64 {
        self.0.head().times.unwrap_or_default().1
    }

    #[getter]
    fn updates(&self) -> u32 {
        self.0.updates()
    }

    #[setter]
    fn set_updates(&mut self, updates: u32) {
        self.0.set_updates(updates);
    }
}

impl PyStateContent {
    fn replay(&mut self, kind: Kind, value: &[u8]) -> PyResult<()> {
        self.0.replay(kind, value).map_err(|fault| damaged(&fault))
    }
}

/// The states in one partition of the topic, built record by record.
#[pyclass(name = "StateFold", module = "sharecore._core")]
#[derive(Default)]
pub(crate) struct PyStateFold(Fold);

#[pymethods]
impl PyStateFold {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn take(
        &mut self,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> PyResult<Option<String>> {
        let taken = self
            .0
            .take(offset, 0, key.unwrap_or_default(), value, |_| true);
        match taken {
            Ok(()) => Ok(None),
            Err(fault) if fault.is_damage() => Err(damaged(&fault)),
            Err(fault) => Ok(Some(format!("passed over: {fault}"))),
        }
    }

    fn states<'py>(&self, py: Python<'py>) -> Vec<State<'py>> {
        let states = self.0.states();
        states
            .map(|(key, state)| told(py, key, state.clone()))
            .collect()
    }

    fn state(&self, key: &[u8]) -> Option<PyStateContent> {
        let state = self.0.get(key)?;
        Some(PyStateContent(state.content.clone()))
    }

    fn drain<'py>(&mut self, py: Python<'py>) -> Vec<State<'py>> {
        let states = self.0.drain();
        states.map(|(key, state)| told(py, &key, state)).collect()
    }
}

fn told<'py>(py: Python<'py>, key: &[u8], state: Folded) -> State<'py> {
    let Folded {
        content,
        snapshot_offset,
        ..
    } = state;
    let key = PyBytes::new(py, key);
    (key, snapshot_offset, PyStateContent(content))
}

fn damaged(fault: &RecordFault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}
