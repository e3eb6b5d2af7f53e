//! Hooks for tests, behind the feature `testing`; released wheels are built without it.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "testing")]
use pyo3::exceptions::PyValueError;

#[cfg(feature = "testing")]
static BY_NAME: AtomicBool = AtomicBool::new(false);

/// True if methods are looked up on Python classes instead of being called directly, so that a test can replace them.
#[cfg(feature = "testing")]
pub(crate) fn calls_by_name() -> bool {
    BY_NAME.load(Ordering::Relaxed)
}

/// Always false without the feature `testing`.
#[cfg(not(feature = "testing"))]
pub(crate) const fn calls_by_name() -> bool {
    false
}

/// Plant a bug in the process; `None` removes it.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
#[pyo3(signature = (name = None))]
pub(crate) fn plant_bug(name: Option<&str>) -> pyo3::PyResult<()> {
    fn of<B: Copy>(all: &[(&'static str, B)], name: Option<&str>) -> Option<B> {
        let known = all.iter().find(|(known, _)| Some(*known) == name);
        known.map(|(_, bug)| *bug)
    }
    let engine = of(sharecore_engine::Bug::ALL, name);
    let produce = of(sharecore_produce::Bug::ALL, name);
    let share = of(sharecore_share::Bug::ALL, name);
    sharecore_engine::plant(engine);
    sharecore_produce::plant(produce);
    sharecore_share::plant(share);
    match name {
        Some(name) if engine.is_none() && produce.is_none() && share.is_none() => {
            Err(PyValueError::new_err(format!("unknown bug: {name}")))
        }
        _ => Ok(()),
    }
}

/// Turns the lookup of methods on Python classes on or off.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn call_by_name(on: bool) {
    BY_NAME.store(on, Ordering::Relaxed);
}
