//! `make fuzz`: runs [`sharecore_fuzz::messages`] with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::messages(data));
