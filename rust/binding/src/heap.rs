//! The heap of a process that is a broker's alone.

use pyo3::prelude::*;

/// Lets all threads of this process allocate from one heap; only the C library of GNU has more than one.
///
/// There each thread has a heap of its own. What the threads of a store allocate is often given back by the event loop,
/// and of such heaps much stays resident that nobody uses. They allocate too little to wait for each other.
#[pyfunction]
pub(crate) fn use_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const ARENA_MAX: std::ffi::c_int = -8;
        unsafe extern "C" {
            fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        // SAFETY: it takes two numbers, at any time and on any thread; the parameter is `M_ARENA_MAX` of malloc.h
        unsafe { mallopt(ARENA_MAX, 1) };
    }
}
