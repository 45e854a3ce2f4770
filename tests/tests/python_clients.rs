//! Two Python clients: python-ldap (over libldap) and ldap3 (pure Python, its own codec).

use keyway_tests::{PYTHON, available, finish, sample};
use std::process::Command;

fn run(script: &str) {
    let (_folder, mut server) = sample(30);
    let path = format!("{}/python/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(PYTHON);
    command.arg(path).env("LDAP_URL", server.ldap()).env("LDAPS_URL", server.ldaps());
    command.env("LDAP_CA", server.text("ca_certificate"));
    command.env("LDAP_ADMIN", server.administrator()).env("LDAP_PASSWORD", server.password());
    let done = finish(&mut command, "").expect(0);
    assert!(done.out.ends_with("all well\n"), "{}{}", done.out, done.err);
    assert!(server.is_up());
}

#[test]
fn python_ldap() {
    if available(&["python:ldap"]) {
        run("python_ldap.py");
    }
}

#[test]
fn ldap3() {
    if available(&["python:ldap3"]) {
        run("ldap3_client.py");
    }
}
