//! `make fuzz`: runs [`sharecore_fuzz::bucket`] with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::bucket(data));
