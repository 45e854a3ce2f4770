//! The offer follows from what the engine's drivers can do.

use crate::authority::KeyType;
use crate::probe::Probe;
use keyway_engine::{Algorithm, Engine};
use keyway_tls::provider;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SignatureScheme};

fn without(algorithms: &'static [Algorithm]) -> CryptoProvider {
    (*provider(&Probe::without(algorithms).engine())).clone()
}

fn groups(provider: &CryptoProvider) -> Vec<NamedGroup> {
    provider.kx_groups.iter().map(|group| group.name()).collect()
}

fn suites(provider: &CryptoProvider) -> Vec<CipherSuite> {
    provider.cipher_suites.iter().map(|suite| suite.suite()).collect()
}

#[test]
fn everything_and_in_which_order() {
    let whole = without(&[]);
    use NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp384r1};
    assert_eq!(groups(&whole), [X25519MLKEM768, X25519, secp256r1, secp384r1]);
    let versions: Vec<_> =
        whole.cipher_suites.iter().map(|suite| suite.version().version).collect();
    assert_eq!(versions[..3], [ProtocolVersion::TLSv1_3; 3]);
    assert_eq!(versions[3..], [ProtocolVersion::TLSv1_2; 6]);
    assert_eq!(whole.signature_verification_algorithms.all.len(), 14);
    assert_eq!(whole.signature_verification_algorithms.mapping.len(), 9);
}

#[test]
fn groups_need_each_of_their_parts() {
    use NamedGroup::{X25519, secp256r1, secp384r1};
    assert_eq!(groups(&without(&[Algorithm::MlKem768])), [X25519, secp256r1, secp384r1]);
    assert_eq!(groups(&without(&[Algorithm::X25519])), [secp256r1, secp384r1]);
}

#[test]
fn suites_need_each_of_their_parts() {
    let suite = CipherSuite::TLS13_AES_256_GCM_SHA384;
    for (algorithm, left) in [
        (Algorithm::Aes256Gcm, 6),
        (Algorithm::Sha384, 6),
        (Algorithm::HmacSha384, 6),
        // Only TLS 1.3 uses HKDF.
        (Algorithm::HkdfSha384, 8),
    ] {
        let suites = suites(&without(Vec::leak(vec![algorithm])));
        assert_eq!(suites.len(), left, "without {algorithm}");
        assert!(!suites.contains(&suite), "without {algorithm}");
    }
}

/// To TLS 1.3 a scheme means its first curve, so without that one there is no scheme.
#[test]
fn schemes_need_their_first_algorithm() {
    let scheme = SignatureScheme::ECDSA_NISTP256_SHA256;
    let first = without(&[Algorithm::EcdsaP256Sha256]).signature_verification_algorithms;
    assert!(!first.supported_schemes().contains(&scheme));
    assert_eq!(first.all.len(), 13);
    let second = without(&[Algorithm::EcdsaP384Sha256]).signature_verification_algorithms;
    assert!(second.supported_schemes().contains(&scheme));
    assert_eq!(second.all.len(), 13);
}

#[test]
fn a_key_signs_with_what_is_left() {
    let key = KeyType::Rsa.generate().serialize_der();
    let load = |provider: &CryptoProvider| {
        let der = PrivateKeyDer::try_from(key.clone()).unwrap();
        provider.key_provider.load_private_key(der)
    };
    let offered = [SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PSS_SHA384];
    let chosen = |provider: &CryptoProvider| {
        load(provider).unwrap().choose_scheme(&offered).unwrap().scheme()
    };
    assert_eq!(chosen(&without(&[])), SignatureScheme::RSA_PSS_SHA256);
    assert_eq!(chosen(&without(&[Algorithm::RsaPssSha256])), SignatureScheme::RSA_PSS_SHA384);
    let none = &without(&[
        Algorithm::RsaPssSha256,
        Algorithm::RsaPssSha384,
        Algorithm::RsaPssSha512,
        Algorithm::RsaPkcs1Sha256,
        Algorithm::RsaPkcs1Sha384,
        Algorithm::RsaPkcs1Sha512,
    ]);
    assert!(load(none).is_err());
}

/// The null driver does every algorithm, wrongly, for those who name it; TLS does not.
#[test]
fn drivers_that_must_be_named_are_not_counted_on() {
    let engine = Engine::builder().driver(keyway_test_drivers::null()).slow_pool(0, 0).build();
    let provider = provider(&engine);
    assert_eq!((suites(&provider).len(), groups(&provider).len()), (0, 0));
    assert!(provider.signature_verification_algorithms.all.is_empty());
}
