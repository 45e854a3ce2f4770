//! libFuzzer's entry point to [`keyway_fuzz::access_rule`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::access_rule(data));
