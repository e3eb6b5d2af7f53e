//! What tests need of this module: the feature `testing` brings it, and released wheels are built without.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Has methods of Python's classes looked up, or not any more.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn call_by_name(on: bool) {
    BY_NAME.store(on, Ordering::Relaxed);
}
