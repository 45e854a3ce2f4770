//! libFuzzer's entry point to [`keyway_fuzz::cluster_frames`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::cluster_frames(data));
