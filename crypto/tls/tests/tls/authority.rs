//! Certificates for the tests, made by rcgen and so not by the code under test.

use keyway_engine::Engine;
use keyway_tls::{ClientVerifier, ConfigError, ServerOptions};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, RsaKeySize, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, SignatureAlgorithm};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server of its own; with `roots`, clients may show a certificate of theirs.
pub fn server_config(
    engine: &Engine,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<RootCertStore>,
) -> Result<ServerConfig, ConfigError> {
    let mut options = ServerOptions::new(engine)?;
    if let Some(roots) = roots {
        options.clients = Arc::new(ClientVerifier::new(&options.provider, roots, &[], false)?);
    }
    keyway_tls::server_config(&options, chain, key)
}

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

    /// The name in TLS 1.2's suites.
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
        // With two authorities of one name it would depend on chance which is tried.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
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
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        self.issue_for(key_type, &[ServerAuth, ClientAuth], 1)
    }

    /// A certificate for these purposes, or any if there are none, with this serial number.
    pub fn issue_for(
        &self,
        key_type: KeyType,
        purposes: &[ExtendedKeyUsagePurpose],
        serial: u64,
    ) -> Identity {
        let key = key_type.generate();
        let mut params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        params.extended_key_usages = purposes.to_vec();
        params.serial_number = Some(SerialNumber::from(serial));
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            chain_pem: certificate.pem(),
        }
    }

    /// A list that revokes these serial numbers, and is out of date after the year.
    pub fn revoke(&self, serials: &[u64], year: i32) -> CertificateRevocationListDer<'static> {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(year, 12, 31),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().der().clone()
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
