//! libFuzzer's entry point to [`keyway_fuzz::agent`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::agent(data));
