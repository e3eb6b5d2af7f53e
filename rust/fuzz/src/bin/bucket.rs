//! `make fuzz`: [`sharecore_fuzz::bucket`] on whatever libFuzzer finds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sharecore_fuzz::bucket(data));
