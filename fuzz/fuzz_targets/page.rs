//! libFuzzer's entry point to [`keyway_fuzz::page`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::page(data));
