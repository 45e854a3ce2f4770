//! Certificates of members: which key they are for, and which member they name.

use crate::authority::{cannot_issue, for_member};
use crate::signing::SigningKey;
use keyway_codec::certificate::Certificate;
use keyway_engine::{Algorithm, Engine};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_wire::subject_public_key_info;
use rcgen::{PublicKeyData, SerialNumber, SignatureAlgorithm};
use rustls_pki_types::CertificateDer;

/// The URI of a member is this and its number, 16 hexadecimal digits.
const URI: &str = "keyway-cluster:";
/// Octets of a point on P-256 that is not compressed.
const POINT_BYTES: usize = 65;
const SERIAL_BYTES: usize = 16;

/// The public key of a server that is to be a member, on P-256.
#[derive(Clone, Debug)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Takes it from its SubjectPublicKeyInfo in DER; `None` if it is no key on P-256, or written in another form.
    pub fn read(der: &[u8]) -> Option<PublicKey> {
        let point = der.get(der.len().checked_sub(POINT_BYTES)?..)?;
        let key = PublicKey(point.to_vec());
        (key.der()? == der).then_some(key)
    }

    /// As its SubjectPublicKeyInfo in DER.
    fn der(&self) -> Option<Vec<u8>> {
        subject_public_key_info(Algorithm::EcdsaP256Sha256, &self.0)
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

/// Issues the certificate of a member, in PEM, by the authority with this key and these certificates.
///
/// # Errors
/// If it is not the authority's key, or there is no driver.
pub fn issue(
    engine: &Engine,
    ca_key: SigningKey,
    ca: &[CertificateDer<'_>],
    key: &PublicKey,
    member: u64,
    now: Timestamp,
) -> Result<String, Failure> {
    let mut serial = [0; SERIAL_BYTES];
    engine.random(&mut serial).map_err(cannot_issue)?;
    // It is positive, and has no zeros in front.
    serial[0] = serial[0] & 0x7f | 0x40;
    let uri = format!("{URI}{member:016x}");
    let serial = SerialNumber::from(serial.to_vec());
    Ok(for_member(ca_key, ca, key, (&uri, serial), now)?.pem())
}

/// The member that a certificate in DER names, if it is one of a member.
pub fn member_of(certificate: &[u8]) -> Option<u64> {
    let read = Certificate::read(certificate).ok()?;
    let [uri] = &read.uris[..] else { return None };
    let digits = uri.strip_prefix(URI)?;
    let member = u64::from_str_radix(digits, 16).ok()?;
    (format!("{member:016x}") == digits).then_some(member)
}
