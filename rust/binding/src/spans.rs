//! `Spans`: durations of repeated work, for metrics.

use pyo3::prelude::*;

/// Durations of repeated work, in milliseconds.
#[pyclass(name = "Spans", module = "sharecore._core", get_all)]
#[derive(Default)]
pub(crate) struct PySpans {
    count: u64,
    items: u64,
    total_ms: f64,
    max_ms: f64,
    failed: u64,
}

#[pymethods]
impl PySpans {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[pyo3(signature = (took_ms, items = 1, *, failed = false))]
    pub(crate) fn add(&mut self, took_ms: f64, items: u64, failed: bool) {
        self.count += 1;
        self.items += items;
        self.total_ms += took_ms;
        self.max_ms = self.max_ms.max(took_ms);
        self.failed += u64::from(failed);
    }
}
