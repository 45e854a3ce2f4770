//! libFuzzer's entry point to [`keyway_fuzz::capture`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::capture(data));
