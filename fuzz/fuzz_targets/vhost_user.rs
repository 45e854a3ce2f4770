//! libFuzzer's entry point to [`keyway_fuzz::vhost_user`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::vhost_user(data));
