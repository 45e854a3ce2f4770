//! A key of cryptod's: the kind that PKCS #11 has for it, its public half in parts, and what the grant lets it do.

use keyway_client::{Curve, Hash, NamedKey, PublicKey};
use keyway_engine::Algorithm;
use keyway_wire::read_subject_public_key_info;

/// The object identifier of a curve in DER (RFC 5480 § 2.1.1.1).
pub const fn oid(curve: Curve) -> &'static [u8] {
    match curve {
        Curve::P256 => b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
        Curve::P384 => b"\x06\x05\x2b\x81\x04\x00\x22",
        Curve::P521 => b"\x06\x05\x2b\x81\x04\x00\x23",
    }
}

/// The object identifier of Ed25519 in DER (RFC 8410 § 3).
pub const ED25519_OID: &[u8] = b"\x06\x03\x2b\x65\x70";
/// The object identifier of X25519 in DER (RFC 8410 § 3).
pub const X25519_OID: &[u8] = b"\x06\x03\x2b\x65\x6e";

/// CKA_ID: the SHA-1 of the modulus, the point, or the 32 bytes. NSS computes it of a certificate in the same way.
pub fn id(public: &PublicKey) -> Vec<u8> {
    match public {
        PublicKey::Rsa { n, .. } => Hash::Sha1.digest(n),
        PublicKey::Ec { point, .. } => Hash::Sha1.digest(point),
        PublicKey::Ed25519(key) | PublicKey::X25519(key) => Hash::Sha1.digest(key),
        PublicKey::MlDsa { key, .. } => Hash::Sha1.digest(key),
    }
}

/// Length of a signature as PKCS #11 has it, in bytes; of a shared secret, where nothing is signed.
pub fn signature_bytes(public: &PublicKey) -> usize {
    match public {
        PublicKey::Rsa { n, .. } => n.len(),
        PublicKey::Ec { curve, .. } => 2 * curve.bytes(),
        PublicKey::Ed25519(_) => 64,
        PublicKey::X25519(_) => 32,
        PublicKey::MlDsa { set, .. } => set.signature_bytes(),
    }
}

/// How a key agrees on a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub algorithm: Algorithm,
    /// Of the peer's public key, a point or a number.
    pub peer_bytes: usize,
    pub secret_bytes: usize,
}

/// A key that this process may use.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenKey {
    pub name: String,
    /// A SubjectPublicKeyInfo.
    pub info: Vec<u8>,
    pub public: PublicKey,
    /// The algorithms that it is for.
    pub algorithms: Vec<Algorithm>,
    pub can_sign: bool,
    pub can_decrypt: bool,
    pub can_agree: bool,
}

impl TokenKey {
    /// `None` for a kind of key that PKCS #11 3.0 has no name for.
    pub fn new(key: NamedKey) -> Option<TokenKey> {
        let public = PublicKey::read(&key.public_key)?;
        if let PublicKey::MlDsa { .. } = public {
            return None;
        }
        let can = |purpose: &str| key.purposes.iter().any(|it| it == purpose);
        Some(TokenKey {
            can_sign: can("sign"),
            can_decrypt: can("decrypt"),
            can_agree: can("agree"),
            name: key.name,
            info: key.public_key,
            public,
            algorithms: key.algorithms,
        })
    }

    /// Whether it is for an algorithm.
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// How it may agree on a secret.
    pub fn agreement(&self) -> Option<Agreement> {
        let agreement = match &self.public {
            PublicKey::Ec { curve, point } => Agreement {
                algorithm: curve.ecdh(),
                peer_bytes: point.len(),
                secret_bytes: curve.bytes(),
            },
            PublicKey::X25519(key) => Agreement {
                algorithm: Algorithm::X25519,
                peer_bytes: key.len(),
                secret_bytes: key.len(),
            },
            _ => return None,
        };
        (self.can_agree && self.is_for(agreement.algorithm)).then_some(agreement)
    }

    /// The public key as the engine has it.
    pub fn public_bits(&self) -> &[u8] {
        read_subject_public_key_info(&self.info).map_or(&[], |(_, bits)| bits)
    }
}
