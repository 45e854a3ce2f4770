//! libFuzzer's entry point to [`keyway_fuzz::etcd_rows`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::etcd_rows(data));
