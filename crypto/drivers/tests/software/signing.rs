//! Keys that sign, in every form they come in.

use crate::{ENGINE, open, verify};
use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    ML_DSA_44_SIGNING, ML_DSA_65_SIGNING, ML_DSA_87_SIGNING, PqdsaKeyPair,
};
use keyway_engine::{Algorithm, Error, Key, Request, SignatureParameters};
use proptest::prelude::*;

/// Signs and verifies, and checks that nothing else verifies.
fn signs(algorithm: Algorithm, key: Key<'_>) {
    let session = open(algorithm, key).unwrap();
    let public = session.public_key().unwrap();
    let mut signature = session.sign(b"message").unwrap();
    verify(algorithm, &public, b"message", &signature).unwrap();
    // A session that signs verifies as well.
    let request = &mut Request::Verify {
        parameters: Default::default(),
        public_key: &public,
        message: b"message",
        signature: &signature,
    };
    assert_eq!(session.run(request), Ok(0));

    let authentication = Err(Error::Authentication);
    assert_eq!(verify(algorithm, &public, b"massage", &signature), authentication);
    assert_eq!(verify(algorithm, &public, b"message", b""), authentication);
    assert_eq!(verify(algorithm, &public[1..], b"message", &signature), authentication);
    assert_eq!(verify(algorithm, b"", b"message", &signature), authentication);
    let last = signature.len() - 1;
    signature[last] ^= 1;
    assert_eq!(verify(algorithm, &public, b"message", &signature), authentication);

    let no_room = &mut Request::Sign {
        parameters: Default::default(),
        message: b"message",
        out: &mut [0; 8],
    };
    assert!(matches!(session.run(no_room), Err(Error::InvalidRequest(_))));
    let no_room = &mut Request::PublicKey { out: &mut [0; 8] };
    assert!(matches!(session.run(no_room), Err(Error::InvalidRequest(_))));
}

/// The algorithms whose keys the driver generates.
const GENERATED: [Algorithm; 6] = [
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::Ed25519,
    Algorithm::MlDsa44,
    Algorithm::MlDsa65,
    Algorithm::MlDsa87,
];

#[test]
fn generated_keys_sign() {
    for algorithm in GENERATED {
        signs(algorithm, Key::Generate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn what_was_changed_does_not_verify(
        mut message in proptest::collection::vec(any::<u8>(), 1..300),
        at: prop::sample::Index,
        bit in 0..8u8,
    ) {
        for algorithm in GENERATED {
            let session = open(algorithm, Key::Generate).unwrap();
            let public = session.public_key().unwrap();
            let mut signature = session.sign(&message).unwrap();
            prop_assert_eq!(verify(algorithm, &public, &message, &signature), Ok(()));
            let other = open(algorithm, Key::Generate).unwrap().public_key().unwrap();
            let authentication = Err(Error::Authentication);
            prop_assert_eq!(verify(algorithm, &other, &message, &signature), authentication);
            *at.get_mut(&mut message) ^= 1u8 << bit;
            prop_assert_eq!(verify(algorithm, &public, &message, &signature), authentication);
            *at.get_mut(&mut message) ^= 1u8 << bit;
            *at.get_mut(&mut signature) ^= 1u8 << bit;
            prop_assert_eq!(verify(algorithm, &public, &message, &signature), authentication);
        }
    }
}

#[test]
fn elliptic_curve_keys_sign() {
    for (algorithm, named) in [
        (Algorithm::EcdsaP256Sha256, &ECDSA_P256_SHA256_ASN1_SIGNING),
        (Algorithm::EcdsaP384Sha384, &ECDSA_P384_SHA384_ASN1_SIGNING),
    ] {
        let pair = EcdsaKeyPair::generate(named).unwrap();
        let pkcs8 = pair.to_pkcs8v1().unwrap();
        let sec1: EcPrivateKeyRfc5915Der = pair.private_key().as_der().unwrap();
        signs(algorithm, Key::Pkcs8(pkcs8.as_ref()));
        signs(algorithm, Key::Sec1(sec1.as_ref()));
        for other in [Algorithm::EcdsaP256Sha256, Algorithm::EcdsaP384Sha384, Algorithm::Ed25519] {
            if other != algorithm {
                let wrong = open(other, Key::Pkcs8(pkcs8.as_ref()));
                assert!(matches!(wrong, Err(Error::InvalidKey(_))));
            }
        }
    }
}

#[test]
fn ed25519_keys_sign_with_and_without_their_public_half() {
    let pair = Ed25519KeyPair::generate().unwrap();
    signs(Algorithm::Ed25519, Key::Pkcs8(pair.to_pkcs8v1().unwrap().as_ref()));
    let with_public = pair.to_pkcs8().unwrap();
    signs(Algorithm::Ed25519, Key::Pkcs8(with_public.as_ref()));
    let mut spoiled = with_public.as_ref().to_vec();
    let last = spoiled.len() - 1;
    spoiled[last] ^= 1;
    let inconsistent = open(Algorithm::Ed25519, Key::Pkcs8(&spoiled));
    assert!(matches!(inconsistent, Err(Error::InvalidKey(_))));
}

#[test]
fn ml_dsa_keys_sign() {
    // Lengths of public key and signature: FIPS 204 table 2.
    let named = [
        (Algorithm::MlDsa44, &ML_DSA_44_SIGNING, 1312, 2420),
        (Algorithm::MlDsa65, &ML_DSA_65_SIGNING, 1952, 3309),
        (Algorithm::MlDsa87, &ML_DSA_87_SIGNING, 2592, 4627),
    ];
    for (algorithm, signing, public_key_bytes, signature_bytes) in named {
        let pair = PqdsaKeyPair::generate(signing).unwrap();
        let pkcs8 = pair.to_pkcs8v1().unwrap();
        signs(algorithm, Key::Pkcs8(pkcs8.as_ref()));
        let session = open(algorithm, Key::Pkcs8(pkcs8.as_ref())).unwrap();
        assert_eq!(session.public_key().unwrap().len(), public_key_bytes);
        assert_eq!(session.signature_bytes_max(), signature_bytes);
        let signature = session.sign(b"message").unwrap();
        assert_eq!(signature.len(), signature_bytes);
        assert_ne!(signature, session.sign(b"message").unwrap(), "it is hedged");
        for (other, ..) in named.iter().filter(|other| other.0 != algorithm) {
            let wrong = open(*other, Key::Pkcs8(pkcs8.as_ref()));
            assert!(matches!(wrong, Err(Error::InvalidKey(_))));
        }
        for key in [Key::Secret(&[7; 32]), Key::Pkcs1(pkcs8.as_ref()), Key::Sec1(pkcs8.as_ref())] {
            assert!(matches!(open(algorithm, key), Err(Error::Unsupported(_))));
        }
    }
}

#[test]
fn rsa_keys_sign() {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der = pair.as_der().unwrap();
    let pkcs8 = pkcs8.as_ref();
    // The PKCS#1 key is the last field of the PKCS#8 one (RFC 5208 § 5): 26 bytes in.
    let pkcs1 = &pkcs8[26..];
    for algorithm in [
        Algorithm::RsaPkcs1Sha256,
        Algorithm::RsaPkcs1Sha384,
        Algorithm::RsaPkcs1Sha512,
        Algorithm::RsaPssSha256,
        Algorithm::RsaPssSha384,
        Algorithm::RsaPssSha512,
    ] {
        signs(algorithm, Key::Pkcs8(pkcs8));
        signs(algorithm, Key::Pkcs1(pkcs1));
        assert!(matches!(open(algorithm, Key::Pkcs8(pkcs1)), Err(Error::InvalidKey(_))));
        assert!(matches!(open(algorithm, Key::Pkcs1(pkcs8)), Err(Error::InvalidKey(_))));
        assert!(matches!(open(algorithm, Key::Generate), Err(Error::Unsupported(_))));
    }
}

/// A verification finds out a salt's length by itself if it is told so; a signature is told one.
#[test]
fn a_salt_of_any_length_is_verified() {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der = pair.as_der().unwrap();
    let session = open(Algorithm::RsaPss, Key::Pkcs8(pkcs8.as_ref())).unwrap();
    let public_key = &session.public_key().unwrap();
    let salted = |salt_bytes| SignatureParameters {
        salt_bytes: Some(salt_bytes),
        ..SignatureParameters::message(Algorithm::Sha256)
    };
    let any = salted(SignatureParameters::ANY_SALT);
    for salt_bytes in [0, 20, 32, 222] {
        let (mut out, parameters) = ([0; 256], salted(salt_bytes));
        let sign = &mut Request::Sign { parameters, message: b"message", out: &mut out };
        assert_eq!(session.run(sign), Ok(256));
        let verify = |parameters, message| {
            let signature = &out;
            session.run(&mut Request::Verify { parameters, public_key, message, signature })
        };
        assert_eq!(verify(any, b"message"), Ok(0));
        assert_eq!(verify(any, b"massage"), Err(Error::Authentication));
        assert_eq!(verify(salted(21), b"message"), Err(Error::Authentication));
    }
    let sign = &mut Request::Sign { parameters: any, message: b"message", out: &mut [0; 256] };
    assert!(session.run(sign).is_err());
}

#[test]
fn a_session_without_a_private_key_only_verifies() {
    let mut out = [0; 512];
    let algorithm = Algorithm::Ed25519;
    for request in [
        &mut Request::Sign { parameters: Default::default(), message: b"", out: &mut out },
        &mut Request::PublicKey { out: &mut [0; 512] },
    ] {
        assert!(matches!(ENGINE.run(algorithm, request), Err(Error::InvalidRequest(_))));
    }
}
