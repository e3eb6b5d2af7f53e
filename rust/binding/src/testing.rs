//! What tests need of this module: the feature `testing` brings it, and released wheels are built without.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "testing")]
use pyo3::exceptions::PyValueError;

#[cfg(feature = "testing")]
static BY_NAME: AtomicBool = AtomicBool::new(false);

/// Whether methods of Python's classes are looked up where Rust would call its own, so that a test may plant others there.
#[cfg(feature = "testing")]
pub(crate) fn calls_by_name() -> bool {
    BY_NAME.load(Ordering::Relaxed)
}

/// Whether methods of Python's classes are looked up where Rust would call its own: never.
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
            Err(PyValueError::new_err(format!("no such bug: {name}")))
        }
        _ => Ok(()),
    }
}

/// Has methods of Python's classes looked up, or not any more.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn call_by_name(on: bool) {
    BY_NAME.store(on, Ordering::Relaxed);
}
