//! The machine's clocks for `sharecore.clock`, which is called several times a request.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::collected::Refers;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTraverseError, PyVisit};
use rustix::time::{ClockId, clock_gettime};

/// Keeps counting while the machine is suspended, so that leases and sessions of a suspended broker have expired when it
/// resumes, as other nodes assume. `std::time::Instant` and Python's `time.monotonic` stop during suspension.
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

/// A clock passed in from Python; the machine's own clocks are read without calling Python.
pub(crate) enum Clock {
    Wall,
    Monotonic,
    Python(Py<PyAny>),
}

static OWN: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

impl Clock {
    /// `clock` must return milliseconds.
    pub(crate) fn of(clock: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = clock.py();
        let own = OWN.get_or_try_init(py, || {
            let module = py.import("sharecore._core")?;
            let get = |name| Ok::<_, PyErr>(module.getattr(name)?.unbind());
            Ok::<_, PyErr>([get("now_ms")?, get("monotonic_ms")?])
        })?;
        Ok(match own {
            [wall, _] if clock.is(wall) => Clock::Wall,
            [_, steady] if clock.is(steady) => Clock::Monotonic,
            _ => Clock::Python(clock.clone().unbind()),
        })
    }

    pub(crate) fn ms(&self, py: Python<'_>) -> PyResult<i64> {
        match self {
            Clock::Wall => now_ms(),
            Clock::Monotonic => Ok(monotonic_ms()),
            Clock::Python(clock) => clock.call0(py)?.extract(py),
        }
    }

    /// The clock as a Python callable.
    pub(crate) fn callable(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let own = |name| Ok(py.import("sharecore._core")?.getattr(name)?.unbind());
        match self {
            Clock::Wall => own("now_ms"),
            Clock::Monotonic => own("monotonic_ms"),
            Clock::Python(clock) => Ok(clock.clone_ref(py)),
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Clock::Wall => Clock::Wall,
            Clock::Monotonic => Clock::Monotonic,
            Clock::Python(clock) => Clock::Python(clock.clone_ref(py)),
        }
    }
}

impl Refers for Clock {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Clock::Wall | Clock::Monotonic => Ok(()),
            Clock::Python(clock) => clock.show(visit),
        }
    }
}
