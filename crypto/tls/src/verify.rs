//! Checking signatures: of certificates, and of handshakes.

use crate::table::{leak, offers};
use keyway_engine::{Algorithm, Engine, Request};
use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};
use std::fmt;

/// An algorithm and the identifiers of its keys and its signatures in certificates.
type Row = (Algorithm, AlgorithmIdentifier, AlgorithmIdentifier);

const ROWS: &[Row] = &[
    (Algorithm::EcdsaP256Sha256, alg_id::ECDSA_P256, alg_id::ECDSA_SHA256),
    (Algorithm::EcdsaP256Sha384, alg_id::ECDSA_P256, alg_id::ECDSA_SHA384),
    (Algorithm::EcdsaP384Sha256, alg_id::ECDSA_P384, alg_id::ECDSA_SHA256),
    (Algorithm::EcdsaP384Sha384, alg_id::ECDSA_P384, alg_id::ECDSA_SHA384),
    (Algorithm::Ed25519, alg_id::ED25519, alg_id::ED25519),
    (Algorithm::RsaPssSha256, alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA256),
    (Algorithm::RsaPssSha384, alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA384),
    (Algorithm::RsaPssSha512, alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA512),
    (Algorithm::RsaPkcs1Sha256, alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA256),
    (Algorithm::RsaPkcs1Sha384, alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA384),
    (Algorithm::RsaPkcs1Sha512, alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA512),
    // RFC 4055 § 5 wants these taken without their NULL parameters too.
    (Algorithm::RsaPkcs1Sha256, alg_id::RSA_ENCRYPTION, pkcs1_without_null(&PKCS1_SHA256)),
    (Algorithm::RsaPkcs1Sha384, alg_id::RSA_ENCRYPTION, pkcs1_without_null(&PKCS1_SHA384)),
    (Algorithm::RsaPkcs1Sha512, alg_id::RSA_ENCRYPTION, pkcs1_without_null(&PKCS1_SHA512)),
];

const PKCS1_SHA256: [u8; 11] = pkcs1_oid(11);
const PKCS1_SHA384: [u8; 11] = pkcs1_oid(12);
const PKCS1_SHA512: [u8; 11] = pkcs1_oid(13);

/// The object identifier 1.2.840.113549.1.1.`last` in DER.
const fn pkcs1_oid(last: u8) -> [u8; 11] {
    [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last]
}

const fn pkcs1_without_null(oid: &'static [u8; 11]) -> AlgorithmIdentifier {
    AlgorithmIdentifier::from_slice(oid)
}

/// The schemes of handshakes, the one we like best first. TLS 1.3 binds an ECDSA scheme to the
/// first curve here, TLS 1.2 to none.
const SCHEMES: &[(SignatureScheme, &[Algorithm])] = &[
    (
        SignatureScheme::ECDSA_NISTP384_SHA384,
        &[Algorithm::EcdsaP384Sha384, Algorithm::EcdsaP256Sha384],
    ),
    (
        SignatureScheme::ECDSA_NISTP256_SHA256,
        &[Algorithm::EcdsaP256Sha256, Algorithm::EcdsaP384Sha256],
    ),
    (SignatureScheme::ED25519, &[Algorithm::Ed25519]),
    (SignatureScheme::RSA_PSS_SHA512, &[Algorithm::RsaPssSha512]),
    (SignatureScheme::RSA_PSS_SHA384, &[Algorithm::RsaPssSha384]),
    (SignatureScheme::RSA_PSS_SHA256, &[Algorithm::RsaPssSha256]),
    (SignatureScheme::RSA_PKCS1_SHA512, &[Algorithm::RsaPkcs1Sha512]),
    (SignatureScheme::RSA_PKCS1_SHA384, &[Algorithm::RsaPkcs1Sha384]),
    (SignatureScheme::RSA_PKCS1_SHA256, &[Algorithm::RsaPkcs1Sha256]),
];

type Verifiers = &'static [&'static dyn SignatureVerificationAlgorithm];

/// The algorithms that the engine's drivers can verify.
pub(crate) fn algorithms(engine: &'static Engine) -> WebPkiSupportedAlgorithms {
    let rows = ROWS.iter().filter(|(algorithm, ..)| offers(engine, *algorithm));
    let all: Vec<&'static Verifier> = rows
        .map(|&(algorithm, public_key, signature)| {
            leak(Verifier { engine, algorithm, public_key, signature })
        })
        .collect();
    let find = |algorithm: &Algorithm| all.iter().copied().find(|v| v.algorithm == *algorithm);
    let mapping = SCHEMES.iter().filter_map(|(scheme, algorithms)| {
        // Without its first algorithm a scheme would mean another curve to TLS 1.3.
        find(algorithms.first()?)?;
        Some((*scheme, listed(algorithms.iter().filter_map(find))))
    });
    WebPkiSupportedAlgorithms {
        mapping: Vec::leak(mapping.collect()),
        all: listed(all.iter().copied()),
    }
}

fn listed(verifiers: impl Iterator<Item = &'static Verifier>) -> Verifiers {
    Vec::leak(verifiers.map(|v| v as &'static dyn SignatureVerificationAlgorithm).collect())
}

struct Verifier {
    engine: &'static Engine,
    algorithm: Algorithm,
    public_key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
}

impl SignatureVerificationAlgorithm for Verifier {
    /// The engine's failure counts as the signature's: the trait knows no other.
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let request =
            &mut Request::Verify { parameters: Default::default(), public_key, message, signature };
        self.engine.run(self.algorithm, request).map(drop).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.public_key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.algorithm.fmt(f)
    }
}
