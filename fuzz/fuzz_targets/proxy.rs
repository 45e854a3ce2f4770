//! libFuzzer's entry point to [`keyway_fuzz::proxy`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::proxy(data));
