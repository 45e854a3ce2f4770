//! libFuzzer's entry point to [`keyway_fuzz::backup`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::backup(data));
