//! Every algorithm opens and runs, and what is wrong is an error and never a panic.

use crate::{ENGINE, agree, expand, open};
use keyway_engine::{
    Algorithm, Cost, Effort, Error, Key, Kind, Opened, Parameters, Request, limits, workload,
};
use proptest::prelude::*;

/// Bytes that are all different, as the halves of an XTS key are.
static BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};

/// A key that the algorithm takes.
fn some_key(algorithm: Algorithm) -> Key<'static> {
    match algorithm.kind() {
        Kind::Hkdf => Key::Extract { salt: b"salt", secret: b"secret" },
        Kind::Signature => Key::None,
        _ => {
            let bytes = workload::secret_bytes(algorithm).unwrap_or(0);
            workload::key(algorithm, &BYTES[..bytes])
        }
    }
}

/// The algorithms of the software driver.
fn algorithms() -> Vec<Algorithm> {
    let software = ENGINE.drivers().into_iter().find(|driver| driver.name == "software").unwrap();
    software.algorithms
}

#[test]
fn every_algorithm_opens_and_runs() {
    assert_eq!(algorithms(), Algorithm::ALL);
    for algorithm in algorithms() {
        let session = open(algorithm, some_key(algorithm)).unwrap();
        assert_eq!(session.driver(), "software", "the null driver is never chosen");
        let mut out = vec![0; algorithm.output_bytes().unwrap_or(32)];
        let used = match algorithm.kind() {
            Kind::Aead => {
                let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
                let mut data = if gmac { vec![] } else { b"some text".to_vec() };
                let tag = session.seal(&[0; 12], b"", &mut data).unwrap();
                let mut sealed = [&data[..], &tag].concat();
                session.open_in_place(&[0; 12], b"", &mut sealed)
            }
            Kind::Packet => {
                let mut packet = [0x40; 2 + 20 + 16];
                let (number, header_bytes) = (7, 2);
                let request = &mut Request::Protect { number, header_bytes, packet: &mut packet };
                assert_eq!(session.run(request), Ok(38));
                let (largest, opened) = (Some(6), &mut Opened::default());
                let used = session.run(&mut Request::Unprotect {
                    largest,
                    number_at: 1,
                    packet: &mut packet,
                    opened,
                });
                assert_eq!((used, opened.number, opened.header_bytes), (Ok(20), 7, 2));
                assert_eq!(packet[2..22], [0x40; 20]);
                used
            }
            Kind::Mask => session.run(&mut Request::Mask { sample: &[0; 16], out: &mut [0; 5] }),
            Kind::Cipher => {
                let (iv, data) = (&[7; 16], &mut out[..]);
                session.run(&mut Request::Encrypt { iv, data }).unwrap();
                assert_ne!(out, [0; 32]);
                let used = session.run(&mut Request::Decrypt { iv, data: &mut out });
                assert_eq!(out, [0; 32]);
                used
            }
            Kind::Compression => {
                let mut small = [0; 64];
                let request = &mut Request::Compress { data: &[7; 32], out: &mut small };
                let used = session.run(request).unwrap();
                let request = &mut Request::Decompress { data: &small[..used], out: &mut out };
                let used = session.run(request);
                assert_eq!(out, [7; 32]);
                used
            }
            Kind::Hash => session.run(&mut Request::Digest { data: &[], out: &mut out }),
            Kind::Mac => session.run(&mut Request::Mac { data: &[], out: &mut out }),
            Kind::Hkdf => session.run(&mut Request::Expand { info: &[], out: &mut out }),
            Kind::Exchange => {
                let other = open(algorithm, Key::Generate).unwrap();
                let ours = agree(&session, &other.public_key().unwrap());
                assert_eq!(ours, agree(&other, &session.public_key().unwrap()));
                ours.map(|secret| secret.len())
            }
            Kind::Kem => {
                let peer = &session.public_key().unwrap();
                let bytes = algorithm.ciphertext_bytes().unwrap();
                let (mut ciphertext, mut secret) = (vec![0; bytes], [0; 32]);
                let request = &mut Request::Encapsulate {
                    peer,
                    ciphertext: &mut ciphertext,
                    secret: &mut secret,
                };
                assert_eq!(ENGINE.run(algorithm, request), Ok(bytes));
                let ciphertext = &ciphertext[..];
                let used = session.run(&mut Request::Decapsulate { ciphertext, secret: &mut out });
                assert_eq!(out, secret);
                used
            }
            Kind::Signature => {
                let request = &mut Request::Verify {
                    parameters: workload::signature_parameters(algorithm),
                    public_key: b"",
                    message: b"",
                    signature: b"",
                };
                assert_eq!(session.run(request), Err(Error::Authentication));
                Ok(0)
            }
            Kind::Encryption => {
                let request = &mut Request::PublicEncrypt {
                    parameters: workload::oaep_parameters(algorithm),
                    label: &[],
                    public_key: b"",
                    message: b"",
                    out: &mut out,
                };
                assert!(session.run(request).is_err());
                Ok(0)
            }
            Kind::Random => session.run(&mut Request::Random { out: &mut out }),
            Kind::Password => session.run(&mut Request::Derive {
                cost: workload::least_cost(algorithm),
                password: b"password",
                salt: b"sixteen-byte-slt",
                out: &mut out,
            }),
        };
        assert!(used.is_ok(), "{algorithm}: {used:?}");
    }
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let keys = [
        Key::None,
        Key::Secret(b""),
        Key::Secret(&[1; 15]),
        Key::Secret(&[1; 4096]),
        Key::Generate,
        Key::Pkcs8(b"not DER"),
        Key::Pkcs1(b"\x30\x80"),
        Key::Sec1(&[0x30; 64]),
        Key::Extract { salt: b"", secret: b"" },
    ];
    for algorithm in algorithms() {
        for key in keys {
            let fits = match (algorithm.kind(), key) {
                (Kind::Hash | Kind::Compression | Kind::Random | Kind::Password, Key::None)
                | (Kind::Signature | Kind::Encryption | Kind::Kem, Key::None)
                | (Kind::Hkdf, Key::Extract { .. })
                | (Kind::Exchange | Kind::Kem, Key::Generate) => true,
                // Any key fits HMAC; the others have a length.
                (Kind::Mac, Key::Secret(_)) => algorithm.key_bytes().is_none(),
                (Kind::Password, Key::Secret(pepper)) => pepper.len() >= limits::PEPPER_BYTES_MIN,
                (Kind::Signature, Key::Generate) => {
                    matches!(
                        algorithm,
                        Algorithm::Ed25519
                            | Algorithm::MlDsa44
                            | Algorithm::MlDsa65
                            | Algorithm::MlDsa87
                    ) || algorithm.is_ecdsa()
                }
                _ => false,
            };
            match open(algorithm, key) {
                Ok(_) => assert!(fits, "{algorithm} {key:?}"),
                Err(Error::InvalidKey(_) | Error::Unsupported(_)) => {
                    assert!(!fits, "{algorithm} {key:?}");
                }
                Err(other) => panic!("{algorithm} {key:?}: {other}"),
            }
        }
    }
}

#[test]
fn shares_that_are_none_fail_authentication() {
    for (algorithm, point) in
        [(Algorithm::X25519, 32), (Algorithm::EcdhP256, 65), (Algorithm::EcdhP384, 97)]
    {
        let session = open(algorithm, Key::Generate).unwrap();
        let mut share = open(algorithm, Key::Generate).unwrap().public_key().unwrap();
        for length in [0, 1, point - 1, point + 1] {
            assert_eq!(agree(&session, &vec![4; length]), Err(Error::Authentication));
        }
        // A point of low order, or not on the curve.
        assert_eq!(agree(&session, &vec![0; point]), Err(Error::Authentication));
        if algorithm != Algorithm::X25519 {
            share[0] = 6 | share[point - 1] & 1;
            assert_eq!(agree(&session, &share), Err(Error::Authentication), "hybrid");
            share[0] = 2 | share[point - 1] & 1;
            let compressed = &share[..point / 2 + 1];
            assert_eq!(agree(&session, compressed), Err(Error::Authentication), "compressed");
            share[0] = 4;
            share[point - 1] ^= 1;
            assert_eq!(agree(&session, &share), Err(Error::Authentication), "off the curve");
        }
    }
    for algorithm in [Algorithm::MlKem512, Algorithm::MlKem768, Algorithm::MlKem1024] {
        let session = open(algorithm, Key::Generate).unwrap();
        let bytes = algorithm.ciphertext_bytes().unwrap();
        for length in [0, bytes - 1, bytes + 1] {
            let ciphertext = &vec![0; length][..];
            let request = &mut Request::Decapsulate { ciphertext, secret: &mut [0; 32] };
            assert_eq!(session.run(request), Err(Error::Authentication));
        }
        let peer = &session.public_key().unwrap();
        let encapsulate = |peer: &[u8], capacity: usize| {
            let ciphertext = &mut vec![0; capacity][..];
            session.run(&mut Request::Encapsulate { peer, ciphertext, secret: &mut [0; 32] })
        };
        let too_little = encapsulate(peer, bytes - 1);
        assert!(matches!(too_little, Err(Error::InvalidRequest(_))));
        // The wrong length, and coefficients that are not below the modulus.
        for other in [&peer[1..], &vec![0xff; peer.len()]] {
            assert_eq!(encapsulate(other, bytes), Err(Error::Authentication));
        }
    }
}

#[test]
fn expansion_has_its_limit() {
    for (algorithm, most) in [(Algorithm::HkdfSha256, 255 * 32), (Algorithm::HkdfSha384, 255 * 48)]
    {
        let session = open(algorithm, some_key(algorithm)).unwrap();
        assert!(expand(&session, &[b"info"], most).is_ok());
        let too_long = expand(&session, &[b"info"], most + 1);
        assert!(matches!(too_long, Err(Error::InvalidRequest(_))));
        // More context than the library's buffer on the stack.
        let long = vec![7; 10_000];
        assert!(expand(&session, &[&long], 32).is_ok());
    }
}

#[test]
fn costs_and_lengths_outside_their_limits_are_refused() {
    let refused = |algorithm, cost, salt: &[u8], bytes| {
        let mut out = vec![0; bytes];
        let request = &mut Request::Derive { cost, password: b"x", salt, out: &mut out };
        let result = ENGINE.run(algorithm, request);
        assert!(matches!(result, Err(Error::InvalidRequest(_))), "{algorithm} {cost:?} {result:?}");
        let (expected, password) = (&vec![0; bytes][..], &b"x"[..]);
        for effort in [Effort::Recall, Effort::Full] {
            let request =
                &mut Request::VerifyPassword { effort, cost, entry: b"", password, salt, expected };
            // A caller that asks without a derivation is not told of faults that only the library
            // finds.
            match ENGINE.run(algorithm, request) {
                Err(Error::InvalidRequest(_)) => {}
                result => assert_eq!((effort, result), (Effort::Recall, Ok(0)), "{algorithm}"),
            }
        }
    };
    let argon2 = |memory_kib, passes, lanes| Cost::Argon2 { memory_kib, passes, lanes };
    refused(Algorithm::Argon2id, argon2(8, 1, 1), b"2short", 32);
    refused(Algorithm::Argon2id, argon2(8, 1, 1), b"somesalt", 3);
    refused(Algorithm::Argon2id, argon2(7, 1, 1), b"somesalt", 32);
    refused(Algorithm::Argon2id, argon2(8, 0, 1), b"somesalt", 32);
    refused(Algorithm::Argon2id, argon2(8, 1, 0), b"somesalt", 32);
    refused(Algorithm::Argon2i, argon2(u32::MAX, 1, 1), b"somesalt", 32);
    refused(Algorithm::Argon2i, Cost::Pbkdf2 { iterations: 1 }, b"somesalt", 32);
    refused(Algorithm::Pbkdf2Sha256, Cost::Pbkdf2 { iterations: 0 }, b"", 32);
    refused(Algorithm::Pbkdf2Sha256, Cost::Pbkdf2 { iterations: 1 }, b"", 0);
    let long = limits::DERIVED_BYTES_MAX + 1;
    refused(Algorithm::Pbkdf2Sha256, Cost::Pbkdf2 { iterations: 1 }, b"", long);
    let bcrypt = |log_rounds| Cost::Bcrypt { log_rounds };
    refused(Algorithm::Bcrypt, bcrypt(3), &[0; 16], 23);
    refused(Algorithm::Bcrypt, bcrypt(21), &[0; 16], 23);
    refused(Algorithm::Bcrypt, bcrypt(4), &[0; 15], 23);
    refused(Algorithm::Bcrypt, bcrypt(4), &[0; 16], 24);
    refused(Algorithm::Md5Crypt, bcrypt(4), b"salt", 22);
    refused(Algorithm::Sha512Crypt, Cost::ShaCrypt { rounds: 999 }, b"", 86);
    refused(Algorithm::Sha512Crypt, Cost::ShaCrypt { rounds: 1_000 }, b"", 85);
}

#[test]
fn random_bytes_differ() {
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let mut out = [0; 16];
        ENGINE.random(&mut out).unwrap();
        assert!(seen.insert(out));
    }
}

#[test]
fn a_session_is_shared_by_threads() {
    let key = &[9; 32];
    let session = open(Algorithm::Aes256Gcm, Key::Secret(key)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let session = session.clone();
            scope.spawn(move || {
                for count in 0..200u8 {
                    let nonce = [thread, count, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                    let mut data = [thread; 100];
                    let tag = session.seal(&nonce, &[count], &mut data).unwrap();
                    let mut sealed = [&data[..], &tag].concat();
                    assert_eq!(session.open_in_place(&nonce, &[count], &mut sealed), Ok(100));
                    assert_eq!(sealed[..100], [thread; 100]);
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn noise_is_never_a_key_nor_a_signature(
        noise in proptest::collection::vec(any::<u8>(), 0..600),
        cut in 0..600usize,
    ) {
        for algorithm in algorithms().into_iter().filter(|a| a.kind() == Kind::Signature) {
            for key in [Key::Pkcs8(&noise), Key::Pkcs1(&noise), Key::Sec1(&noise)] {
                prop_assert!(open(algorithm, key).is_err());
            }
            let (public_key, signature) = noise.split_at(cut.min(noise.len()));
            let parameters = workload::signature_parameters(algorithm);
            let request = &mut Request::Verify { public_key, message: b"", parameters, signature };
            prop_assert_eq!(ENGINE.run(algorithm, request), Err(Error::Authentication));
        }
        for algorithm in algorithms().into_iter().filter(|a| a.kind() == Kind::Encryption) {
            for key in [Key::Pkcs8(&noise), Key::Pkcs1(&noise)] {
                prop_assert!(open(algorithm, key).is_err());
            }
            let out = &mut [0; 1024];
            let parameters = workload::oaep_parameters(algorithm);
            let request = &mut Request::PublicEncrypt { public_key: &noise, message: b"", parameters, label: &[], out };
            prop_assert_eq!(ENGINE.run(algorithm, request), Err(Error::Authentication));
        }
    }

    #[test]
    fn seal_and_open_are_inverse(
        text in proptest::collection::vec(any::<u8>(), 0..600),
        aad in proptest::collection::vec(any::<u8>(), 0..40),
        nonce: [u8; 12],
        key: [u8; 32],
    ) {
        for algorithm in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
            let key = if algorithm == Algorithm::Aes128Gcm { &key[..16] } else { &key };
            let parameters = Parameters::new(algorithm, Key::Secret(key));
            let session = ENGINE.session(parameters).unwrap();
            let mut data = text.clone();
            let tag = session.seal(&nonce, &aad, &mut data).unwrap();
            data.extend_from_slice(&tag);
            prop_assert_eq!(session.open_in_place(&nonce, &aad, &mut data), Ok(text.len()));
            prop_assert_eq!(&data[..text.len()], &text);
        }
    }
}
