//! `StateContent` and `StateFold`: replay the records of `__share_group_state` for the share coordinator.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_engine::state_batch;
use sharecore_state::{Change, Content, Fold, Folded, Kind, RecordFault};

use crate::state::{malformed, packed};
use crate::state_write::PyWrite;

const UNINITIALIZED: i32 = -1;

/// True for a snapshot; the value of the record.
type Record<'py> = (bool, Bound<'py, PyBytes>);
type State<'py> = (Bound<'py, PyBytes>, i64, PyStateContent);

/// The state of one share partition, from its records.
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

    fn begin<'py>(
        &mut self,
        py: Python<'py>,
        state_epoch: i32,
        start_offset: i64,
        now_ms: i64,
        updates_per_snapshot: u32,
    ) -> Bound<'py, PyBytes> {
        let value = self
            .0
            .begin(state_epoch, start_offset, now_ms, updates_per_snapshot);
        PyBytes::new(py, &value)
    }

    #[pyo3(signature = (start_offset, delivery_complete_count, batches, now_ms, updates_per_snapshot, leader_epoch = None))]
    #[allow(clippy::too_many_arguments)]
    fn write<'py>(
        &mut self,
        py: Python<'py>,
        start_offset: i64,
        delivery_complete_count: i32,
        batches: &[u8],
        now_ms: i64,
        updates_per_snapshot: u32,
        leader_epoch: Option<i32>,
    ) -> PyResult<Record<'py>> {
        let mut decoded = Vec::new();
        state_batch::decode(batches, &mut decoded).map_err(malformed)?;
        let change = Change {
            start_offset,
            delivery_complete_count,
            leader_epoch,
            batches: &decoded,
        };
        Ok(self.written(py, &change, now_ms, updates_per_snapshot))
    }

    /// Advances the start offset past acknowledged batches that begin there; they need no state any more.
    pub(crate) fn write_begun<'py>(
        &mut self,
        py: Python<'py>,
        write: &PyWrite,
        now_ms: i64,
        updates_per_snapshot: u32,
    ) -> Record<'py> {
        let from = write.start_offset.max(self.0.head().start_offset);
        let (start_offset, passed) = state_batch::pass_acknowledged(from, &write.batches);
        let count = write.delivery_complete_count - (start_offset - write.start_offset);
        let change = Change {
            start_offset,
            delivery_complete_count: i32::try_from(count.max(0)).unwrap_or(i32::MAX),
            leader_epoch: None,
            batches: &write.batches[passed..],
        };
        self.written(py, &change, now_ms, updates_per_snapshot)
    }

    fn snapshot<'py>(
        &mut self,
        py: Python<'py>,
        now_ms: i64,
        create_ms: i64,
    ) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.snapshot(now_ms, create_ms))
    }

    pub(crate) fn is_superseded(&self, state_epoch: i32, leader_epoch: i32) -> bool {
        let older = |epoch: i32, newest: i32| epoch != UNINITIALIZED && epoch < newest;
        older(leader_epoch, self.0.fence_epoch()) || older(state_epoch, self.state_epoch())
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
}

impl PyStateContent {
    fn written<'py>(
        &mut self,
        py: Python<'py>,
        change: &Change<'_>,
        now_ms: i64,
        updates_per_snapshot: u32,
    ) -> Record<'py> {
        let (kind, value) = self.0.write(change, now_ms, updates_per_snapshot);
        (kind == Kind::Snapshot, PyBytes::new(py, &value))
    }

    fn replay(&mut self, kind: Kind, value: &[u8]) -> PyResult<()> {
        self.0.replay(kind, value).map_err(|fault| damaged(&fault))
    }
}

/// The states in one partition of the topic, replayed record by record.
#[pyclass(name = "StateFold", module = "sharecore._core")]
pub(crate) struct PyStateFold(Fold);

#[pymethods]
impl PyStateFold {
    #[new]
    fn new() -> Self {
        Self(Fold::repairing())
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
            Err(fault) => Ok(Some(format!("skipped: {fault}"))),
        }
    }

    #[getter]
    fn repaired(&self) -> usize {
        self.0.repaired()
    }

    fn states<'py>(&self, py: Python<'py>) -> Vec<State<'py>> {
        let states = self.0.states();
        states
            .map(|(key, state)| state_tuple(py, key, state.clone()))
            .collect()
    }

    fn waiting<'py>(
        &mut self,
        py: Python<'py>,
        deliveries: u32,
    ) -> Vec<(Bound<'py, PyBytes>, i64)> {
        let states = self.0.waiting(deliveries);
        states
            .map(|(key, records)| (PyBytes::new(py, key), records))
            .collect()
    }

    fn state(&self, key: &[u8]) -> Option<PyStateContent> {
        let state = self.0.get(key)?;
        Some(PyStateContent(state.content.clone()))
    }

    fn drain<'py>(&mut self, py: Python<'py>) -> Vec<State<'py>> {
        let states = self.0.drain();
        states
            .map(|(key, state)| state_tuple(py, &key, state))
            .collect()
    }
}

fn state_tuple<'py>(py: Python<'py>, key: &[u8], state: Folded) -> State<'py> {
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
