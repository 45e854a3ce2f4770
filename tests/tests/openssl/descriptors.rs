//! Descriptors of programs with keys of cryptod.

use super::Site;
use keyway_tests::finish;
use std::process::Command;

#[test]
fn descriptors_are_the_programs_own() {
    let Some(site) = Site::with_keys(&["cc", "/usr/include/openssl/store.h"]) else { return };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openssl/descriptors.c");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).arg(site.file("descriptors")).args([source, "-lcrypto"]);
    finish(&mut compile, "").expect(0);
    for part in ["closed", "standard", "jailed"] {
        let mut command = site.command(site.file("descriptors").to_str().unwrap());
        finish(command.args([part, "rsa.pem"]), "").expect(0);
    }
    assert!(site.cryptod.stop().success());
}
