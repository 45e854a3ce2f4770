//! libFuzzer's entry point to [`keyway_fuzz::tree`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::tree(data));
