//! `Write`: a state change that waits for the persister.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_bounds::Ended;
use sharecore_engine::{RecordState, StateBatch, Write};
use smallvec::SmallVec;

use crate::convert::tuple;

/// A state change that waits for the persister.
#[pyclass(name = "Write", module = "sharecore._core", frozen)]
pub(crate) struct PyWrite {
    #[pyo3(get)]
    pub(crate) id: u64,
    #[pyo3(get)]
    pub(crate) start_offset: i64,
    #[pyo3(get)]
    pub(crate) delivery_complete_count: i64,
    /// Usually one, which is stored inline.
    pub(crate) batches: SmallVec<[StateBatch; 2]>,
    /// Archived records for which no member is to blame: gaps, expired records, and those whose dead-letter record is written.
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

    /// Returns the records that this change ends, and the number of records that become available again.
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
