//! `sharecore._core.DeadLetterBatch`: encodes one batch of dead-letter records.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_records::{Cause, DeadLetters, Origin, Range};

/// A batch to which dead-letter records are added.
#[pyclass(name = "DeadLetterBatch", module = "sharecore._core")]
pub(crate) struct PyDeadLetterBatch(DeadLetters);

#[pymethods]
impl PyDeadLetterBatch {
    #[new]
    #[pyo3(signature = (group, topic, partition, *, copy, now_ms, max_bytes))]
    fn new(
        group: String,
        topic: String,
        partition: i32,
        copy: bool,
        now_ms: i64,
        max_bytes: usize,
    ) -> Self {
        let origin = Origin {
            group,
            topic,
            partition,
        };
        Self(DeadLetters::new(origin, copy, now_ms, max_bytes))
    }

    #[getter]
    fn count(&self) -> i32 {
        self.0.count()
    }

    #[allow(clippy::needless_pass_by_value)]
    fn add(
        &mut self,
        py: Python<'_>,
        ranges: Vec<(i64, i64, u16, u8)>,
        source: &[u8],
        read_to: i64,
    ) -> (usize, i64) {
        let ranges: Vec<_> = ranges
            .iter()
            .map(|&(first, last, delivery_count, cause)| Range {
                first,
                last,
                delivery_count,
                cause: Cause::from_id(cause),
            })
            .collect();
        py.detach(|| self.0.add(&ranges, source, read_to))
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.finish())
    }
}
