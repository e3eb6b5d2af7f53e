//! `ExpandedCache`: caches decompressed record batches that are likely to be read again.

use pyo3::prelude::*;
use sharecore_lease::ExpandedCache;

/// See `_core.pyi`.
#[pyclass(name = "ExpandedCache", module = "sharecore._core", frozen)]
pub(crate) struct PyExpandedCache(pub(crate) ExpandedCache);

#[pymethods]
impl PyExpandedCache {
    #[new]
    fn new(bytes_max: usize) -> Self {
        Self(ExpandedCache::new(bytes_max))
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
