//! `Write`: state that has begun to change.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_bounds::Ended;
use sharecore_engine::{RecordState, StateBatch, Write};
use smallvec::SmallVec;

use crate::convert::tuple;

/// State that has begun to change and waits for the persister.
#[pyclass(name = "Write", module = "sharecore._core", frozen)]
pub(crate) struct PyWrite {
    #[pyo3(get)]
    pub(crate) id: u64,
    #[pyo3(get)]
    pub(crate) start_offset: i64,
    #[pyo3(get)]
    pub(crate) delivery_complete_count: i64,
    /// Mostly one, which then needs no memory of its own.
    pub(crate) batches: SmallVec<[StateBatch; 2]>,
    /// How many of its archived records no member has failed at: gaps, records that have expired, and those whose dead
    /// letter is written.
    pub(crate) blameless: i64,
}

impl PyWrite {
    pub(crate) fn of(write: Write<'_>) -> Self {
        Self {
            id: write.id,
            start_offset: write.start_offset,
            delivery_complete_count: write.delivery_complete_count,
            batches: SmallVec::from_slice(write.batches),
            blameless: 0,
        }
    }

    /// What comes to its end with it, and how many records come back to be delivered again.
    pub(crate) fn outcome(&self) -> (Ended, i64) {
        let (mut ended, mut returned) = (Ended::default(), 0);
        for batch in &self.batches {
            let records = batch.last - batch.first + 1;
            match batch.state {
                RecordState::Acknowledged => ended.accepted += records,
                RecordState::Archiving | RecordState::Archived => ended.given_up += records,
                RecordState::Available | RecordState::Acquired => returned += records,
            }
        }
        ended.given_up = (ended.given_up - self.blameless).max(0);
        (ended, returned)
    }
}

#[pymethods]
impl PyWrite {
    fn batches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.batches.iter().map(tuple))
    }

    fn __repr__(&self) -> String {
        let (id, start_offset) = (self.id, self.start_offset);
        let batches = self.batches.len();
        format!("<Write id={id} start_offset={start_offset} batches={batches}>")
    }
}
