//! Private keys as they come in files, and key shares as they come from the network.

use crate::authority::KeyType;
use keyway_engine::{Algorithm, Key, Parameters, Request};
use keyway_tls::provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use rustls::{Error, NamedGroup, PeerMisbehaved, SignatureScheme};
use std::sync::Arc;

fn load(key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
    provider(&keyway_drivers::engine()).key_provider.load_private_key(key)
}

fn pkcs8(bytes: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes))
}

#[test]
fn every_type_says_what_it_signs_with() {
    use SignatureScheme::*;
    let schemes: [(KeyType, &[SignatureScheme]); 4] = [
        (KeyType::P256, &[ECDSA_NISTP256_SHA256]),
        (KeyType::P384, &[ECDSA_NISTP384_SHA384]),
        (KeyType::Ed25519, &[ED25519]),
        (
            KeyType::Rsa,
            &[
                RSA_PSS_SHA256,
                RSA_PSS_SHA384,
                RSA_PSS_SHA512,
                RSA_PKCS1_SHA256,
                RSA_PKCS1_SHA384,
                RSA_PKCS1_SHA512,
            ],
        ),
    ];
    for (key_type, expected) in schemes {
        let key = load(pkcs8(key_type.generate().serialize_der())).unwrap();
        assert_eq!(key.algorithm(), key_type.suite_algorithm());
        let mut offered: Vec<_> = schemes.iter().flat_map(|(_, schemes)| *schemes).collect();
        for scheme in expected {
            let all: Vec<_> = offered.iter().map(|scheme| **scheme).collect();
            let signer = key.choose_scheme(&all).unwrap();
            assert_eq!(signer.scheme(), *scheme);
            assert!(!signer.sign(b"message").unwrap().is_empty());
            offered.retain(|other| *other != scheme);
        }
        let others: Vec<_> = offered.iter().map(|scheme| **scheme).collect();
        assert!(key.choose_scheme(&others).is_none());
    }
}

/// A key in another wrapping is the same key.
#[test]
fn pkcs1_and_sec1() {
    let rsa = KeyType::Rsa.generate().serialize_der();
    // A 2048-bit key's PKCS#8 is 26 bytes of version, algorithm and lengths, then PKCS#1.
    let pkcs1 = PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(rsa[26..].to_vec()));
    assert_eq!(load(pkcs1).unwrap().public_key(), load(pkcs8(rsa)).unwrap().public_key());

    let key = KeyType::P256.generate();
    let der = key.serialize_der();
    let scalar_mark = [0x02, 0x01, 0x01, 0x04, 0x20];
    let at = der.windows(5).position(|window| window == scalar_mark).unwrap();
    let sec1 = [
        // RFC 5915: version 1, the scalar, the curve, the point.
        &[0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20][..],
        &der[at + 5..at + 37],
        &[0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        &[0xa1, 0x44, 0x03, 0x42, 0x00],
        key.public_key_raw(),
    ]
    .concat();
    let sec1 = PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(sec1));
    assert_eq!(load(sec1).unwrap().public_key(), load(pkcs8(der)).unwrap().public_key());
}

#[test]
fn what_is_no_key_is_refused_with_reasons() {
    let mut cut = KeyType::P256.generate().serialize_der();
    cut.truncate(40);
    for bytes in [Vec::new(), vec![0x30; 64], cut] {
        let Err(Error::General(reason)) = load(pkcs8(bytes)) else { panic!("it was loaded") };
        for name in ["ECDSA P-256", "ECDSA P-384", "Ed25519", "RSA"] {
            assert!(reason.contains(name), "{reason}");
        }
    }
}

/// A key or a secret must not show up where a program prints what it holds.
#[test]
fn debug_shows_no_secrets() {
    let der = KeyType::Ed25519.generate().serialize_der();
    let key = load(pkcs8(der)).unwrap();
    assert_eq!(format!("{key:?}"), "Private { of: \"Ed25519\", .. }");
    let signer = key.choose_scheme(&[SignatureScheme::ED25519]).unwrap();
    assert_eq!(format!("{signer:?}"), "ED25519");
}

fn assert_share_refused<T>(result: Result<T, Error>, what: &str) {
    match result {
        Err(Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare)) => {}
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what} was taken"),
    }
}

#[test]
fn bad_shares_are_the_peers_fault() {
    for group in &provider(&keyway_drivers::engine()).kx_groups {
        let name = group.name();
        let client = group.start().unwrap();
        let good = client.pub_key().to_vec();
        let server = group.start_and_complete(&good).unwrap();
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());

        for (from_client, good) in [(true, &good), (false, &server.pub_key)] {
            for bad in bad_shares(name, good) {
                let what = format!("{name:?}, from the client: {from_client}, {} bytes", bad.len());
                if from_client {
                    assert_share_refused(group.start_and_complete(&bad), &what);
                } else {
                    assert_share_refused(group.start().unwrap().complete(&bad), &what);
                }
            }
        }
    }
}

/// The draft's order, seen by a server that does both halves by itself.
#[test]
fn the_hybrid_puts_ml_kem_first() {
    let engine = keyway_drivers::engine();
    let provider = provider(&engine);
    let group = provider.kx_groups[0];
    assert_eq!(group.name(), NamedGroup::X25519MLKEM768);
    let client = group.start().unwrap();
    let (kem_key, x25519_key) = client.pub_key().split_at(1184);
    assert_eq!(client.hybrid_component(), Some((NamedGroup::X25519, x25519_key)));

    let mut ciphertext = vec![0; 1088];
    let mut kem_secret = vec![0; 32];
    let encapsulate = &mut Request::Encapsulate {
        peer: kem_key,
        ciphertext: &mut ciphertext,
        secret: &mut kem_secret,
    };
    engine.run(Algorithm::MlKem768, encapsulate).unwrap();
    let x25519 = engine.session(Parameters::new(Algorithm::X25519, Key::Generate)).unwrap();
    let mut x25519_secret = vec![0; 32];
    let agree = &mut Request::Agree { peer: x25519_key, out: &mut x25519_secret };
    x25519.run(agree).unwrap();

    let share = [ciphertext, x25519.public_key().unwrap()].concat();
    let secret = client.complete(&share).unwrap();
    assert_eq!(secret.secret_bytes(), [kem_secret, x25519_secret].concat());
}

fn bad_shares(name: NamedGroup, good: &[u8]) -> Vec<Vec<u8>> {
    let spoiled = |at: usize, value: u8| {
        let mut bad = good.to_vec();
        bad[at] = value;
        bad
    };
    let mut bad = vec![Vec::new(), good[..good.len() - 1].to_vec(), [good, &[0]].concat()];
    match name {
        // An all-zero secret (RFC 7748 § 6.1).
        NamedGroup::X25519 => bad.push(vec![0; 32]),
        NamedGroup::X25519MLKEM768 => {
            let mut zero = good.to_vec();
            let at = zero.len() - 32;
            zero[at..].fill(0);
            bad.push(zero);
            // Coefficients over the modulus (FIPS 203 § 7.2); a ciphertext has no wrong values.
            if good.len() == 1184 + 32 {
                bad.push([&[0xff; 1184], &good[1184..]].concat());
            }
        }
        // Not on the curve; compressed; the point at infinity.
        _ => {
            bad.push(spoiled(good.len() - 1, good[good.len() - 1] ^ 1));
            bad.push(spoiled(0, 2));
            bad.push([&[2], &good[1..=good.len() / 2]].concat());
            bad.push(vec![0]);
        }
    }
    bad
}
