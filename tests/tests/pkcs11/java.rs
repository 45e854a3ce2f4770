//! Java's SunPKCS11.

use super::Site;
use keyway_tests::{finish, pkcs11_module};
use std::fs;

#[test]
fn java_signs_and_decrypts() {
    let Some(site) = Site::with_certificates(&["java", "javac"]) else { return };
    let library = pkcs11_module().display();
    fs::write(site.file("java.cfg"), format!("name = Keyway\nlibrary = {library}\n")).unwrap();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pkcs11/Pkcs11.java");
    let run = |keys: &str| {
        let mut java = site.command("java");
        finish(java.args([program, "java.cfg"]).env("KEYWAY_KEYS", keys), "")
    };
    let said = run("ec,ec384,ec521,one,rsa").expect(0).out;
    // A key without a certificate is not there for it.
    let entries: Vec<_> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(entries, ["ec EC 2", "ec384 EC 2", "ec521 EC 2", "rsa RSA 1"], "{said}");
    assert!(site.cryptod.stop().success());
}
