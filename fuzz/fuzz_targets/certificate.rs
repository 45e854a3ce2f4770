//! libFuzzer's entry point to [`keyway_fuzz::certificate`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::certificate(data));
