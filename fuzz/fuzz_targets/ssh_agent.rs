//! libFuzzer's entry point to [`keyway_fuzz::ssh_agent`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::ssh_agent(data));
