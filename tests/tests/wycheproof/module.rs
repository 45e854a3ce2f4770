//! The PKCS#11 module: keys of cryptod decrypt, and agree on secrets. It verifies with these keys only, so the vectors
//! are signatures that are not theirs.

use super::vectors::{self, Case};
use super::{Counts, Site};
use keyway_tests::pkcs11_module;

/// Asserts how many tests there are of each result.
fn agree(cases: &[Case], expected: Counts) {
    let needs = ["/usr/include/p11-kit-1/p11-kit/pkcs11.h"];
    let options = ["-I/usr/include/p11-kit-1", "-ldl"];
    let Some(site) = Site::new(&needs, "module.c", &options) else { return };
    assert_eq!(site.check(site.command().arg(pkcs11_module()), cases), expected);
    assert!(site.cryptod.stop().success());
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

#[test]
fn signatures_of_others() {
    for (cases, count) in [
        (vectors::rsa_pkcs1(), 3364),
        (vectors::rsa_pss(), 1411),
        (vectors::ecdsa(true), 1510),
        (vectors::ecdsa(false), 3098),
        (vectors::ed25519(), 151),
    ] {
        agree(&vectors::with_own_keys(cases), [0, count, 0, 0]);
    }
}
