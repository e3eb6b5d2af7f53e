//! Memory allocators: the one of this extension, and settings of the C library's, which Python uses.

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// A request allocates some forty small buffers and frees them once its response is sent. With a thousand clients that is
/// thousands at a time, more than the C library keeps at hand: it merges them and splits them again.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Lets all threads allocate from one heap. Only glibc has more than one.
///
/// With glibc, each thread has its own heap, with unused memory of its own. Python and the C libraries that this extension links
/// allocate from them, too little to contend for one heap.
#[pyfunction]
pub(crate) fn use_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const ARENA_MAX: std::ffi::c_int = -8;
        unsafe extern "C" {
            fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        // SAFETY: `mallopt` takes two integers and may be called at any time on any thread; `ARENA_MAX` is `M_ARENA_MAX` of
        // malloc.h
        unsafe { mallopt(ARENA_MAX, 1) };
    }
}

/// Returns memory that this extension has freed to the system after a fifth of the usual second.
///
/// A broker frees and allocates in bursts, such as those of records with delivery times, and the memory of a burst should
/// not stay until the next ones. Ten milliseconds would return more of it, and cost a twentieth of the throughput.
/// The environment's `MIMALLOC_PURGE_DELAY` overrides it. Call it before starting other threads.
#[pyfunction]
pub(crate) fn return_memory_soon() {
    const PURGE_DELAY: std::ffi::c_int = 15;
    const DELAY_MS: std::ffi::c_long = 200;
    unsafe extern "C" {
        fn mi_option_set_default(option: std::ffi::c_int, value: std::ffi::c_long);
    }
    // SAFETY: mimalloc, the allocator of this extension, sets an integer of the option with this number, which is
    // `mi_option_purge_delay` in mimalloc.h. It is read without a lock: this is called before there are other threads
    unsafe { mi_option_set_default(PURGE_DELAY, DELAY_MS) };
}
