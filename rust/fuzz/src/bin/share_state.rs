//! `make fuzz`: runs [`sharecore_fuzz::share_state`] with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::share_state(data));
