//! Private keys: RSA, ECDSA on P-256 and P-384, Ed25519, as PKCS#8, PKCS#1 or SEC 1.
//!
//! A key is handed to the engine when it is loaded, once for each scheme it may sign with; after
//! that this side only holds sessions. One that a driver of the engine holds is only named.

use crate::random_fallback::fault;
use keyway_engine::{Algorithm, Engine, Key, Parameters, Session};
use rustls::crypto::KeyProvider;
use rustls::pki_types::{
    AlgorithmIdentifier, CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id,
};
use rustls::sign::{Signer, SigningKey, public_key_to_spki};
use rustls::{CertificateError, Error, SignatureAlgorithm, SignatureScheme};
use std::fmt;
use std::sync::Arc;
use webpki::EndEntityCert;
use zeroize::Zeroizing;

/// One type of key, and the schemes it signs with, the one we like best first.
struct Type {
    name: &'static str,
    algorithm: SignatureAlgorithm,
    public_key: AlgorithmIdentifier,
    schemes: &'static [(SignatureScheme, Algorithm)],
}

const TYPES: &[Type] = &[
    Type {
        name: "ECDSA P-256",
        algorithm: SignatureAlgorithm::ECDSA,
        public_key: alg_id::ECDSA_P256,
        schemes: &[(SignatureScheme::ECDSA_NISTP256_SHA256, Algorithm::EcdsaP256Sha256)],
    },
    Type {
        name: "ECDSA P-384",
        algorithm: SignatureAlgorithm::ECDSA,
        public_key: alg_id::ECDSA_P384,
        schemes: &[(SignatureScheme::ECDSA_NISTP384_SHA384, Algorithm::EcdsaP384Sha384)],
    },
    Type {
        name: "Ed25519",
        algorithm: SignatureAlgorithm::ED25519,
        public_key: alg_id::ED25519,
        schemes: &[(SignatureScheme::ED25519, Algorithm::Ed25519)],
    },
    Type {
        name: "RSA",
        algorithm: SignatureAlgorithm::RSA,
        public_key: alg_id::RSA_ENCRYPTION,
        schemes: &[
            (SignatureScheme::RSA_PSS_SHA256, Algorithm::RsaPssSha256),
            (SignatureScheme::RSA_PSS_SHA384, Algorithm::RsaPssSha384),
            (SignatureScheme::RSA_PSS_SHA512, Algorithm::RsaPssSha512),
            (SignatureScheme::RSA_PKCS1_SHA256, Algorithm::RsaPkcs1Sha256),
            (SignatureScheme::RSA_PKCS1_SHA384, Algorithm::RsaPkcs1Sha384),
            (SignatureScheme::RSA_PKCS1_SHA512, Algorithm::RsaPkcs1Sha512),
        ],
    },
];

impl Type {
    /// Whether it is that of a SubjectPublicKeyInfo, which begins with its AlgorithmIdentifier:
    /// before the latter's content are two tags and their lengths, 4 bytes or up to 3 more.
    fn is_of(&self, public_key: &[u8]) -> bool {
        let identifier = self.public_key.as_ref();
        public_key.windows(identifier.len()).take(8).any(|it| it == identifier)
    }
}

pub(crate) struct Keys {
    pub engine: &'static Engine,
}

impl KeyProvider for Keys {
    fn load_private_key(
        &self,
        key_der: PrivateKeyDer<'static>,
    ) -> Result<Arc<dyn SigningKey>, Error> {
        let key_der = Zeroizing::new(key_der);
        let key = match &*key_der {
            PrivateKeyDer::Pkcs8(der) => Key::Pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => Key::Pkcs1(der.secret_pkcs1_der()),
            PrivateKeyDer::Sec1(der) => Key::Sec1(der.secret_sec1_der()),
            _ => return Err(Error::General("the private key's format is not known".into())),
        };
        // The engine parses keys, so whether one is of a type is found by trying.
        let mut reasons = String::new();
        for of in TYPES {
            match Private::load(self.engine, of, key) {
                Ok(private) => return Ok(Arc::new(private)),
                Err(error) => reasons += &format!("; as {}: {error}", of.name),
            }
        }
        Err(Error::General(format!("the private key is of no type that can be used{reasons}")))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// The key that a driver of the engine holds under this name, for those schemes that it may be used
/// for there. Its type is that of the certificate's.
pub(crate) fn held(
    engine: &Engine,
    name: &str,
    certificate: &CertificateDer<'_>,
) -> Result<Arc<dyn SigningKey>, Error> {
    let malformed = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    let certificate = EndEntityCert::try_from(certificate).map_err(malformed)?;
    let public_key = certificate.subject_public_key_info();
    let Some(of) = TYPES.iter().find(|of| of.is_of(&public_key)) else {
        return Err(Error::General("the certificate's key is of no type that can be used".into()));
    };
    let private = Private::load(engine, of, Key::Named(name)).map_err(|why| {
        let algorithms: Vec<_> = of.schemes.iter().map(|(_, algorithm)| algorithm.name()).collect();
        Error::General(format!("the key {name} for {}: {why}", algorithms.join(" or ")))
    })?;
    Ok(Arc::new(private))
}

/// A private key in the engine.
struct Private {
    of: &'static Type,
    /// DER, to compare with the certificate's.
    public_key: SubjectPublicKeyInfoDer<'static>,
    signers: Vec<Scheme>,
}

impl Private {
    fn load(
        engine: &Engine,
        of: &'static Type,
        key: Key<'_>,
    ) -> Result<Self, keyway_engine::Error> {
        let mut signers = Vec::new();
        let mut unsupported = None;
        let is_held = matches!(key, Key::Named(_));
        for &(scheme, algorithm) in of.schemes {
            match engine.session(Parameters::new(algorithm, key)) {
                Ok(session) => signers.push(Scheme { scheme, session }),
                // No driver for one scheme leaves the others.
                Err(error @ keyway_engine::Error::Unsupported(_)) => unsupported = Some(error),
                // Nor does one that a key which is held may not be used for.
                Err(error) if is_held && error != keyway_engine::Error::Gone => {
                    unsupported = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        let Some(first) = signers.first() else {
            let none = keyway_engine::Error::InvalidKey("it has no scheme to sign with");
            return Err(unsupported.unwrap_or(none));
        };
        let public_key = public_key_to_spki(&of.public_key, first.session.public_key()?);
        Ok(Private { of, public_key, signers })
    }
}

impl SigningKey for Private {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let chosen = self.signers.iter().find(|signer| offered.contains(&signer.scheme))?;
        Some(Box::new(chosen.clone()))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.public_key.clone())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.of.algorithm
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("of", &self.of.name).finish_non_exhaustive()
    }
}

/// A private key's session for one scheme.
#[derive(Clone)]
struct Scheme {
    scheme: SignatureScheme,
    session: Session,
}

impl Signer for Scheme {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.session.sign(message).map_err(fault)
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheme.fmt(f)
    }
}
