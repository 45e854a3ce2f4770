//! Keys of certificates, in the engine. rcgen writes certificates; each signature, digest and
//! random byte in them is an engine's request.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_engine::{Algorithm, Engine, Error, Key, Parameters, Session};
use rcgen::{PublicKeyData, SignatureAlgorithm};
use rustls_pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

/// The algorithms that can sign a certificate, and their names in rcgen.
type KeyKind = (Algorithm, &'static SignatureAlgorithm);

static KINDS: [KeyKind; 4] = [
    (Algorithm::EcdsaP256Sha256, &rcgen::PKCS_ECDSA_P256_SHA256),
    (Algorithm::EcdsaP384Sha384, &rcgen::PKCS_ECDSA_P384_SHA384),
    (Algorithm::Ed25519, &rcgen::PKCS_ED25519),
    (Algorithm::RsaPkcs1Sha256, &rcgen::PKCS_RSA_SHA256),
];

/// The signature schemes of an RSA key in TLS.
const RSA: [Algorithm; 6] = [
    Algorithm::RsaPssSha256,
    Algorithm::RsaPssSha384,
    Algorithm::RsaPssSha512,
    Algorithm::RsaPkcs1Sha256,
    Algorithm::RsaPkcs1Sha384,
    Algorithm::RsaPkcs1Sha512,
];

const DIGEST_BYTES: usize = 32;
/// Length of a key's identifier and of a serial number made from it, in bytes.
const IDENTIFIER_BYTES: usize = 20;
/// A random number is no private key once in 2^32.
const TRIES_MAX: usize = 3;

/// A private key in the engine.
pub struct SigningKey {
    engine: Engine,
    session: Session,
    public_key: Vec<u8>,
    kind: &'static KeyKind,
}

impl SigningKey {
    /// Makes a key on P-256. With it comes what is to be kept: PKCS#8.
    ///
    /// # Errors
    /// If no driver does that.
    pub fn generate(engine: &Engine) -> Result<(SigningKey, PrivateKeyDer<'static>), Error> {
        let mut tries = 0;
        loop {
            let mut secret = Zeroizing::new([0; p256::SECRET_BYTES]);
            engine.random(&mut *secret)?;
            match SigningKey::of(engine, Key::Sec1(&p256::sec1(&secret)), &KINDS[0]) {
                Ok(key) => {
                    let der = p256::pkcs8(&secret, &key.public_key);
                    return Ok((key, PrivateKeyDer::Pkcs8(der.into())));
                }
                Err(Error::InvalidKey(_)) if tries < TRIES_MAX => tries += 1,
                Err(why) => return Err(why),
            }
        }
    }

    /// Takes a key of any kind that certificates can be signed with.
    ///
    /// # Errors
    /// If it is none.
    pub fn load(engine: &Engine, key: &PrivateKeyDer<'_>) -> Result<SigningKey, Error> {
        let key = match key {
            PrivateKeyDer::Pkcs8(der) => Key::Pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => Key::Pkcs1(der.secret_pkcs1_der()),
            PrivateKeyDer::Sec1(der) => Key::Sec1(der.secret_sec1_der()),
            _ => return Err(Error::InvalidKey("the private key's format is not known")),
        };
        // The engine parses keys, so of which kind one is is found by trying.
        let none = Error::InvalidKey("it is no key that certificates can be signed with");
        KINDS.iter().find_map(|kind| SigningKey::of(engine, key, kind).ok()).ok_or(none)
    }

    /// Takes one that a driver of the engine holds under this name, for one of these algorithms.
    ///
    /// # Errors
    /// If it is none, or not for this process.
    pub fn held(
        engine: &Engine,
        name: &str,
        algorithms: &[Algorithm],
    ) -> Result<SigningKey, Error> {
        let none = Error::InvalidKey("it is no key that certificates can be signed with");
        let kind = KINDS.iter().find(|(algorithm, _)| algorithms.contains(algorithm));
        SigningKey::of(engine, Key::Named(name), kind.ok_or(none)?)
    }

    fn of(engine: &Engine, key: Key<'_>, kind: &'static KeyKind) -> Result<SigningKey, Error> {
        let session = engine.session(Parameters::new(kind.0, key))?;
        let public_key = session.public_key()?;
        Ok(SigningKey { engine: engine.clone(), session, public_key, kind })
    }

    /// The signature schemes of a server under it.
    pub fn algorithms(&self) -> &[Algorithm] {
        match self.kind.0 {
            Algorithm::RsaPkcs1Sha256 => &RSA,
            _ => std::slice::from_ref(&self.kind.0),
        }
    }

    /// The key's identifier (RFC 7093 § 2): the beginning of the SHA-256 digest of its
    /// SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// If no driver digests.
    pub fn identifier(&self) -> Result<[u8; IDENTIFIER_BYTES], Error> {
        self.digest(&self.subject_public_key_info())
    }

    /// A serial number that is always the same for this key (RFC 5280 § 4.1.2.2).
    ///
    /// # Errors
    /// As [`SigningKey::identifier`].
    pub fn serial(&self) -> Result<[u8; IDENTIFIER_BYTES], Error> {
        let mut serial = self.digest(&self.public_key)?;
        // It is positive.
        serial[0] &= 0x7f;
        Ok(serial)
    }

    fn digest(&self, bytes: &[u8]) -> Result<[u8; IDENTIFIER_BYTES], Error> {
        let mut digest = [0; DIGEST_BYTES];
        self.engine.digest(Algorithm::Sha256, &[bytes], &mut digest)?;
        let mut first = [0; IDENTIFIER_BYTES];
        first.copy_from_slice(&digest[..IDENTIFIER_BYTES]);
        Ok(first)
    }
}

impl PublicKeyData for SigningKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public_key
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.kind.1
    }
}

impl rcgen::SigningKey for SigningKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.session.sign(message).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}

/// A public key as a SubjectPublicKeyInfo in PEM; `None` for an algorithm whose keys have none here.
pub fn public_pem(algorithm: Algorithm, key: &[u8]) -> Option<Zeroizing<String>> {
    keyway_wire::subject_public_key_info(algorithm, key).map(|der| armoured("PUBLIC KEY", &der))
}

/// A private key as PEM (RFC 7468).
pub fn pem(key: &PrivateKeyDer<'_>) -> Zeroizing<String> {
    let label = match key {
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    };
    armoured(label, key.secret_der())
}

fn armoured(label: &str, der: &[u8]) -> Zeroizing<String> {
    const LINE_CHARACTERS: usize = 64;
    let text = Zeroizing::new(BASE64_STANDARD.encode(der));
    // With room for all of it no copy is left behind where it outgrew its place.
    let mut pem = Zeroizing::new(String::with_capacity(2 * text.len() + 128));
    pem.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARACTERS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

/// Private keys on P-256, encoded.
mod p256 {
    use zeroize::Zeroizing;

    pub const SECRET_BYTES: usize = 32;

    /// id-ecPublicKey and prime256v1, in a SEQUENCE (RFC 5480 § 2.1.1).
    const ALGORITHM: [u8; 21] = [
        0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
        0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ];
    /// prime256v1.
    const CURVE: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

    /// An ECPrivateKey with its curve and without its public half (RFC 5915 § 3).
    pub fn sec1(secret: &[u8; SECRET_BYTES]) -> Zeroizing<Vec<u8>> {
        concat(&[&[0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20], secret, &[0xa0, 0x0a], &CURVE])
    }

    /// A PrivateKeyInfo with both halves (RFC 5958 § 2); the public one is an uncompressed point.
    pub fn pkcs8(secret: &[u8; SECRET_BYTES], public_key: &[u8]) -> Vec<u8> {
        let before = [0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20];
        let between = [0xa1, 0x44, 0x03, 0x42, 0x00];
        let version = [0x30, 0x81, 0x87, 0x02, 0x01, 0x00];
        let parts: [&[u8]; 6] = [&version, &ALGORITHM, &before, secret, &between, public_key];
        std::mem::take(&mut concat(&parts))
    }

    /// In one piece, so that no copy is left behind.
    fn concat(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::SigningKey as _;

    #[test]
    fn a_key_that_is_kept_is_the_same_again() {
        let engine = keyway_drivers::engine();
        let (made, der) = SigningKey::generate(&engine).unwrap();
        let again = SigningKey::load(&engine, &der).unwrap();
        assert_eq!(made.der_bytes(), again.der_bytes());
        assert_eq!(made.identifier(), again.identifier());
        // rcgen, which has a parser of its own, reads it too, and makes the same identifier.
        let theirs = rcgen::KeyPair::from_pem(&pem(&der)).unwrap();
        assert_eq!(theirs.public_key_raw(), made.der_bytes());
        let identifier = rcgen::CertificateParams::default().key_identifier(&theirs);
        assert_eq!(identifier, made.identifier().unwrap());
    }

    #[test]
    fn every_kind_of_key_signs() {
        let engine = keyway_drivers::engine();
        for (_, name) in &KINDS[..3] {
            let theirs = rcgen::KeyPair::generate_for(name).unwrap();
            let der = PrivateKeyDer::try_from(theirs.serialize_der()).unwrap();
            let key = SigningKey::load(&engine, &der).unwrap();
            assert!(key.algorithm() == *name);
            assert_eq!(key.algorithms().len(), 1);
            assert_eq!(key.der_bytes(), theirs.public_key_raw());
            let pem = public_pem(key.algorithms()[0], key.der_bytes()).unwrap();
            assert_eq!(
                pem.lines().collect::<String>(),
                theirs.public_key_pem().lines().collect::<String>()
            );
            assert!(!key.sign(b"message").unwrap().is_empty());
        }
    }
}
