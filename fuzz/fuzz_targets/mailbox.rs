//! libFuzzer's entry point to [`keyway_fuzz::mailbox`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyway_fuzz::mailbox(data));
