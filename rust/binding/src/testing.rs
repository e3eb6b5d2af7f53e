//! What tests need of this module: the feature `testing` brings it, and released wheels are built without.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "testing")]
use pyo3::exceptions::PyValueError;
#[cfg(feature = "testing")]
use sharecore_engine::Bug;

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

/// Plants a bug in all share partitions of the process, or takes it away again.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
#[pyo3(signature = (name = None))]
pub(crate) fn plant_bug(name: Option<&str>) -> pyo3::PyResult<()> {
    let bug = match name {
        None => None,
        Some(name) => {
            let known = Bug::ALL.into_iter().find(|(known, _)| *known == name);
            let known =
                known.ok_or_else(|| PyValueError::new_err(format!("no such bug: {name}")))?;
            Some(known.1)
        }
    };
    sharecore_engine::plant(bug);
    Ok(())
}

/// Has methods of Python's classes looked up, or not any more.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn call_by_name(on: bool) {
    BY_NAME.store(on, Ordering::Relaxed);
}
