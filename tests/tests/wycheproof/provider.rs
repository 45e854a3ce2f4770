//! OpenSSL's provider: public keys that it takes in verify, keys of cryptod decrypt and agree on secrets.

use super::vectors::{self, Case};
use super::{Counts, Site};
use keyway_tests::openssl_provider;
use std::fs;

/// Asserts how many tests there are of each result.
fn agree(cases: &[Case], expected: Counts) {
    let needs = ["/usr/include/openssl/store.h"];
    let Some(site) = Site::new(&needs, "provider.c", &["-lcrypto"]) else { return };
    let file = site.cryptod.folder().path().join("openssl.cnf");
    let configuration = format!(
        "openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\n[algorithms]\n\
         default_properties = ?keyway.key!=yes\n[providers]\ndefault = default_provider\n\
         keyway = keyway_provider\n[default_provider]\nactivate = 1\n[keyway_provider]\nmodule = {}\nactivate = 1\n",
        openssl_provider().display()
    );
    fs::write(&file, configuration).unwrap();
    let mut program = site.command();
    let counts = site.check(program.env("OPENSSL_CONF", file).arg("keyway.key=yes"), cases);
    assert_eq!(counts, expected);
    assert!(site.cryptod.stop().success());
}

#[test]
fn signatures() {
    agree(&vectors::rsa_pkcs1(), [96, 3255, 13, 0]);
    agree(&vectors::rsa_pss(), [959, 452, 0, 0]);
    agree(&vectors::ecdsa(false), [1236, 1862, 0, 0]);
    agree(&vectors::ed25519(), [88, 63, 0, 0]);
}

#[test]
fn decryption() {
    agree(&vectors::oaep(), [526, 314, 3, 120]);
    agree(&vectors::rsaes_pkcs1(), [124, 77, 0, 0]);
}

#[test]
fn agreement() {
    agree(&vectors::ecdh(), [1733, 70, 3, 0]);
    agree(&vectors::x25519(), [264, 0, 254, 0]);
}
