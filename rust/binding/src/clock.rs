//! The time of this machine, for `sharecore.clock`: asked for several times a request.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A moment, and what Python's `time.monotonic_ns` called it.
static BEGAN: PyOnceLock<(Instant, i64)> = PyOnceLock::new();

fn out_of_range() -> PyErr {
    PyOverflowError::new_err("the clock is out of range")
}

#[pyfunction]
pub(crate) fn monotonic_ms(py: Python<'_>) -> PyResult<i64> {
    let (began, began_ns) = BEGAN.get_or_try_init(py, || {
        let told = py.import("time")?.call_method0("monotonic_ns")?;
        Ok::<_, PyErr>((Instant::now(), told.extract()?))
    })?;
    let since = i64::try_from(began.elapsed().as_nanos()).map_err(|_| out_of_range())?;
    Ok((began_ns + since) / 1_000_000)
}

#[pyfunction]
pub(crate) fn now_ms() -> PyResult<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_err(|_| out_of_range())?;
    i64::try_from(since.as_millis()).map_err(|_| out_of_range())
}
