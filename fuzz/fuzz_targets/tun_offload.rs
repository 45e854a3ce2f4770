//! libFuzzer's entry point to [`keyway_fuzz::tun_offload`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::tun_offload(data));
