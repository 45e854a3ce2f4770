//! libFuzzer's entry point to [`keyway_fuzz::record`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::record(data));
