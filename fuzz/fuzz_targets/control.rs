//! libFuzzer's entry point to [`keyway_fuzz::control`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::control(data));
