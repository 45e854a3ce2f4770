//! Keys that are kept: generated, given to an engine, and used with their public halves.

use crate::{agree, open, verify};
use keyway_drivers::generate_private_key;
use keyway_engine::{Algorithm, Error, Key, Request};

const BITS: u32 = 2_048;

#[test]
fn what_is_generated_signs_and_its_public_half_verifies() {
    use Algorithm::*;
    for algorithm in
        [EcdsaP256Sha256, EcdsaP384Sha384, Ed25519, MlDsa44, MlDsa65, MlDsa87, RsaPssSha256]
    {
        let key = generate_private_key(algorithm, BITS).unwrap();
        let [one, again] = [(), ()].map(|()| open(algorithm, Key::Pkcs8(&key)).unwrap());
        let signature = one.sign(b"text").unwrap();
        verify(algorithm, &again.public_key().unwrap(), b"text", &signature).unwrap();
        assert_ne!(key, generate_private_key(algorithm, BITS).unwrap());
    }
}

#[test]
fn what_is_generated_decrypts() {
    let key = generate_private_key(Algorithm::RsaOaepSha256, BITS).unwrap();
    assert_eq!(
        open(Algorithm::RsaOaepSha256, Key::Pkcs8(&key)).unwrap().public_key().unwrap().len(),
        270
    );
}

#[test]
fn a_raw_decapsulation_key_shows_its_public_half() {
    for algorithm in [Algorithm::MlKem512, Algorithm::MlKem768, Algorithm::MlKem1024] {
        let key = generate_private_key(algorithm, 0).unwrap();
        let session = open(algorithm, Key::Secret(&key)).unwrap();
        let peer = session.public_key().unwrap();
        let mut ciphertext = vec![0; algorithm.ciphertext_bytes().unwrap()];
        let [mut sent, mut received] = [[0; 32]; 2];
        let request = &mut Request::Encapsulate {
            peer: &peer,
            ciphertext: &mut ciphertext,
            secret: &mut sent,
        };
        open(algorithm, Key::None).unwrap().run(request).unwrap();
        let request = &mut Request::Decapsulate { ciphertext: &ciphertext, secret: &mut received };
        session.run(request).unwrap();
        assert_eq!(sent, received);
    }
}

#[test]
fn keys_of_curves_agree_from_every_encoding() {
    let raw = [7; 32];
    let pkcs8 = [&crate::hex("302e020100300506032b656e04220420")[..], &raw].concat();
    let peer = open(Algorithm::X25519, Key::Generate).unwrap().public_key().unwrap();
    let [one, other] = [Key::Secret(&raw), Key::Pkcs8(&pkcs8)]
        .map(|key| agree(&open(Algorithm::X25519, key).unwrap(), &peer).unwrap());
    assert_eq!(one, other);
    // A key of a curve, as for signatures.
    let pkcs8 = generate_private_key(Algorithm::EcdsaP256Sha256, 0).unwrap();
    let public = |algorithm| open(algorithm, Key::Pkcs8(&pkcs8)).unwrap().public_key().unwrap();
    assert_eq!(public(Algorithm::EcdhP256), public(Algorithm::EcdsaP256Sha256));
    let wrong = [
        (Algorithm::EcdhP384, Key::Pkcs8(&pkcs8)),
        (Algorithm::X25519, Key::Pkcs8(&pkcs8)),
        (Algorithm::EcdhP256, Key::Sec1(&pkcs8[..20])),
    ];
    for (algorithm, key) in wrong {
        assert!(matches!(open(algorithm, key), Err(Error::InvalidKey(_))), "{algorithm}");
    }
}

#[test]
fn what_has_no_key_to_keep_is_refused() {
    for algorithm in [Algorithm::Sha256, Algorithm::X25519] {
        assert_eq!(generate_private_key(algorithm, 0), Err(Error::Unsupported(algorithm)));
    }
    let short = generate_private_key(Algorithm::RsaPkcs1Sha256, 1_024);
    assert!(matches!(short, Err(Error::InvalidKey(_))));
}
