//! The cipher suites.

use crate::aead::Aead;
use crate::hash::{Function, Hasher};
use crate::hkdf::Schedule;
use crate::limits::GCM_RECORDS_MAX;
use crate::prf::Tls12Prf;
use crate::quic::quic;
use crate::table::{leak, offers};
use keyway_engine::{Algorithm, Engine};
use rustls::crypto::KeyExchangeAlgorithm;
use rustls::{
    CipherSuite, CipherSuiteCommon, SignatureScheme, SupportedCipherSuite, Tls12CipherSuite,
    Tls13CipherSuite,
};

type Suite = (CipherSuite, Algorithm, Function);

/// TLS 1.3's suites (RFC 8446 § B.4), best first.
const TLS13: &[Suite] = &[
    (CipherSuite::TLS13_AES_256_GCM_SHA384, Algorithm::Aes256Gcm, Function::Sha384),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, Algorithm::Aes128Gcm, Function::Sha256),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, Algorithm::ChaCha20Poly1305, Function::Sha256),
];

/// TLS 1.2's suites for ECDSA and Ed25519 keys (RFC 5289, RFC 7905, RFC 8422), best first.
const TLS12_ECDSA: &[Suite] = &[
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, Algorithm::Aes256Gcm, Function::Sha384),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, Algorithm::Aes128Gcm, Function::Sha256),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        Algorithm::ChaCha20Poly1305,
        Function::Sha256,
    ),
];

/// TLS 1.2's suites for RSA keys (RFC 5289, RFC 7905), best first.
const TLS12_RSA: &[Suite] = &[
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, Algorithm::Aes256Gcm, Function::Sha384),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, Algorithm::Aes128Gcm, Function::Sha256),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        Algorithm::ChaCha20Poly1305,
        Function::Sha256,
    ),
];

const ECDSA_SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP256_SHA256,
];

const RSA_SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// All suites that there can be, under their names in IANA's registry, best first.
pub fn suites_by_name() -> impl Iterator<Item = (String, CipherSuite)> {
    let all = [TLS13, TLS12_ECDSA, TLS12_RSA].into_iter().flatten();
    // rustls has its own names for those of TLS 1.3.
    all.map(|(suite, ..)| (format!("{suite:?}").replace("TLS13_", "TLS_"), *suite))
}

/// The suites that the engine's drivers can do, best first.
pub(crate) fn suites(engine: &'static Engine) -> Vec<SupportedCipherSuite> {
    let tls13 = TLS13.iter().filter_map(|suite| tls13(engine, suite));
    let ecdsa = TLS12_ECDSA.iter().filter_map(|suite| tls12(engine, suite, ECDSA_SCHEMES));
    let rsa = TLS12_RSA.iter().filter_map(|suite| tls12(engine, suite, RSA_SCHEMES));
    tls13.chain(ecdsa).chain(rsa).collect()
}

fn tls13(
    engine: &'static Engine,
    &(suite, algorithm, function): &Suite,
) -> Option<SupportedCipherSuite> {
    let needed = [algorithm, function.digest(), function.mac(), function.hkdf()];
    needed.iter().all(|needed| offers(engine, *needed)).then(|| {
        SupportedCipherSuite::Tls13(leak(Tls13CipherSuite {
            common: common(engine, suite, algorithm, function),
            hkdf_provider: leak(Schedule { engine, function }),
            aead_alg: leak(Aead { engine, algorithm }),
            quic: quic(engine, algorithm),
        }))
    })
}

fn tls12(
    engine: &'static Engine,
    &(suite, algorithm, function): &Suite,
    sign: &'static [SignatureScheme],
) -> Option<SupportedCipherSuite> {
    let needed = [algorithm, function.digest(), function.mac()];
    needed.iter().all(|needed| offers(engine, *needed)).then(|| {
        SupportedCipherSuite::Tls12(leak(Tls12CipherSuite {
            common: common(engine, suite, algorithm, function),
            prf_provider: leak(Tls12Prf { engine, function }),
            kx: KeyExchangeAlgorithm::ECDHE,
            sign,
            aead_alg: leak(Aead { engine, algorithm }),
        }))
    })
}

fn common(
    engine: &'static Engine,
    suite: CipherSuite,
    algorithm: Algorithm,
    function: Function,
) -> CipherSuiteCommon {
    let confidentiality_limit = match algorithm {
        // As many records as there are sequence numbers stay safe (draft-irtf-cfrg-aead-limits).
        Algorithm::ChaCha20Poly1305 => u64::MAX,
        _ => GCM_RECORDS_MAX,
    };
    let hash_provider = leak(Hasher { engine, function });
    CipherSuiteCommon { suite, hash_provider, confidentiality_limit }
}
