//! libFuzzer's entry point to [`keyway_fuzz::key_reference`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::key_reference(data));
