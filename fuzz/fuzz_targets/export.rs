//! libFuzzer's entry point to [`keyway_fuzz::export`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::export(data));
