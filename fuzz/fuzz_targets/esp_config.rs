//! libFuzzer's entry point to [`keyway_fuzz::esp_config`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::esp_config(data));
