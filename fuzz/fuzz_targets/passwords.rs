//! libFuzzer's entry point to [`keyway_fuzz::passwords`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::passwords(data));
