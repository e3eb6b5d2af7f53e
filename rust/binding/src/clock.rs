//! The time of this machine, for `sharecore.clock`: asked for several times a request.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// A clock that goes on while the machine is suspended: a lease or a session of a suspended broker has run out
/// when it wakes, as others counted on. `std::time::Instant` and Python's `time.monotonic` stand still meanwhile.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY: ClockId = ClockId::Monotonic;

fn out_of_range() -> PyErr {
    PyOverflowError::new_err("the clock is out of range")
}

#[pyfunction]
pub(crate) fn monotonic_ms() -> i64 {
    let now = clock_gettime(STEADY);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

#[pyfunction]
pub(crate) fn now_ms() -> PyResult<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_err(|_| out_of_range())?;
    i64::try_from(since.as_millis()).map_err(|_| out_of_range())
}
