//! `sharecore._core.LogCleaner`: runs log compaction on a store.

use pyo3::prelude::*;
use sharecore_store::CleanOptions;

use crate::store::{PyStore, refused};

type Dirt = (u64, u64, Option<i64>, u64, Option<i64>);
type Cleaned = (i64, u64, u64, u64, u64, u64, u64, bool, Option<i64>);

#[pyclass(name = "LogCleaner", module = "sharecore._core", frozen)]
pub(crate) struct PyLogCleaner(Py<PyStore>);

#[pymethods]
impl PyLogCleaner {
    #[new]
    fn new(store: Py<PyStore>) -> Self {
        Self(store)
    }

    fn dirt(&self, py: Python<'_>, log: u64, newest_ms: i64) -> PyResult<Dirt> {
        let store = self.0.get();
        let dirt = py.detach(|| store.0.dirt(log, newest_ms));
        let d = dirt.map_err(|refusal| refused(py, &refusal))?;
        Ok((
            d.clean_bytes,
            d.dirty_bytes,
            d.dirty_since_ms,
            d.active_bytes,
            d.active_since_ms,
        ))
    }

    fn roll(&self, py: Python<'_>) -> PyResult<()> {
        let rolled = self.0.get().0.roll();
        rolled.map_err(|refusal| refused(py, &refusal))
    }

    /// `times_ms`: now, the newest timestamp to compact, tombstone retention; `limits`: bytes for keys, load factor of the key
    /// table, bytes per read, bytes per second.
    #[pyo3(signature = (log, *, times_ms, limits))]
    fn clean(
        &self,
        py: Python<'_>,
        log: u64,
        times_ms: (i64, i64, i64),
        limits: (usize, f64, usize, f64),
    ) -> PyResult<Option<Cleaned>> {
        let (now_ms, newest_ms, delete_retention_ms) = times_ms;
        let (keys_bytes, keys_load, read_bytes, bytes_per_second) = limits;
        let options = CleanOptions {
            now_ms,
            newest_ms,
            delete_retention_ms,
            keys_bytes,
            keys_load,
            read_bytes,
            bytes_per_second,
        };
        let store = self.0.get();
        let cleaned = py.detach(|| store.0.clean(log, &options));
        let cleaned = cleaned.map_err(|refusal| refused(py, &refusal))?;
        Ok(cleaned.map(|c| {
            (
                c.end,
                c.records_read,
                c.records_kept,
                c.bytes_before,
                c.bytes_after,
                c.keys,
                c.keys_bytes,
                c.is_partial,
                c.first_unreadable,
            )
        }))
    }
}
