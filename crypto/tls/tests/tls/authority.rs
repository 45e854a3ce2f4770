//! Certificates for the tests, made by rcgen and so not by the code under test.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, RsaKeySize,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, SignatureAlgorithm};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    P256,
    P384,
    Ed25519,
    Rsa,
}

impl KeyType {
    pub const ALL: [KeyType; 4] = [KeyType::P256, KeyType::P384, KeyType::Ed25519, KeyType::Rsa];

    pub fn generate(self) -> KeyPair {
        match self {
            KeyType::P256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
            KeyType::P384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
            KeyType::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
            KeyType::Rsa => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        }
        .unwrap()
    }

    /// What TLS 1.2's suites call it.
    pub fn suite_algorithm(self) -> SignatureAlgorithm {
        match self {
            KeyType::P256 | KeyType::P384 => SignatureAlgorithm::ECDSA,
            KeyType::Ed25519 => SignatureAlgorithm::ED25519,
            KeyType::Rsa => SignatureAlgorithm::RSA,
        }
    }
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

/// A certificate and its key.
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub chain_pem: String,
}

impl Authority {
    pub fn new(key_type: KeyType) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Of two authorities with one name it would depend on chance which is tried.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = key_type.generate();
        let certificate = params.self_signed(&key).unwrap();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        roots
    }

    /// A certificate for "localhost", for servers and clients alike.
    pub fn issue(&self, key_type: KeyType) -> Identity {
        let key = key_type.generate();
        let params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            chain_pem: certificate.pem(),
        }
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Identity {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
            chain_pem: self.chain_pem.clone(),
        }
    }
}
