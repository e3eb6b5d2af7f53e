//! `make fuzz`: runs [`sharecore_fuzz::recovery`] with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::recovery(data));
