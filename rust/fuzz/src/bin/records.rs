//! `make fuzz`: runs [`sharecore_fuzz::records`] with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::records(data));
