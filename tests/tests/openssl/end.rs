//! The end of a process that has keys, and one that has none: no crash, no thread, no file.

use super::Site;
use keyway_tests::{finish, nightly};
use std::process::Command;

#[test]
fn processes_end_in_any_order() {
    let Some(site) = Site::with_keys(&["cc", "/usr/include/openssl/store.h"]) else { return };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openssl/end.c");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).arg(site.file("end")).args([source, "-lcrypto", "-lpthread"]);
    finish(&mut compile, "").expect(0);
    let run = |how: &str| {
        finish(site.command(site.file("end").to_str().unwrap()).arg(how), "").expect(0);
    };
    for _ in 0..if nightly() { 100 } else { 10 } {
        run("exit");
    }
    run("unused");
    run("contexts");
    if nightly() {
        run("many");
    }
    assert!(site.cryptod.stop().success());
}
