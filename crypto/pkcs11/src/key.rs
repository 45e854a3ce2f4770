//! A key of cryptod's: the kind that PKCS #11 has for it, its public half in parts, and what the grant lets it do.

use crate::hash::sha1;
use keyway_client::NamedKey;
use keyway_engine::Algorithm;
use keyway_wire::der::{INTEGER, SEQUENCE, split};
use keyway_wire::read_subject_public_key_info;

/// A curve of ECDSA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Bytes of a coordinate.
    pub const fn bytes(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }

    /// ECDSA that leaves the hash to each request.
    pub const fn ecdsa(self) -> Algorithm {
        match self {
            Curve::P256 => Algorithm::EcdsaP256,
            Curve::P384 => Algorithm::EcdsaP384,
            Curve::P521 => Algorithm::EcdsaP521,
        }
    }

    /// ECDH.
    pub const fn ecdh(self) -> Algorithm {
        match self {
            Curve::P256 => Algorithm::EcdhP256,
            Curve::P384 => Algorithm::EcdhP384,
            Curve::P521 => Algorithm::EcdhP521,
        }
    }

    /// Its object identifier in DER (RFC 5480 § 2.1.1.1).
    pub const fn oid(self) -> &'static [u8] {
        match self {
            Curve::P256 => b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
            Curve::P384 => b"\x06\x05\x2b\x81\x04\x00\x22",
            Curve::P521 => b"\x06\x05\x2b\x81\x04\x00\x23",
        }
    }
}

/// The object identifier of Ed25519 in DER (RFC 8410 § 3).
pub const ED25519_OID: &[u8] = b"\x06\x03\x2b\x65\x70";

/// A public key, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicParts {
    /// Modulus and exponent, the most significant byte first, without zeros before it.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// A point without compression.
    Ec { curve: Curve, point: Vec<u8> },
    /// 32 bytes.
    Ed25519(Vec<u8>),
}

impl PublicParts {
    /// Reads a SubjectPublicKeyInfo; `None` for a kind of key that is not offered here.
    pub fn read(info: &[u8]) -> Option<PublicParts> {
        let (algorithms, bits) = read_subject_public_key_info(info)?;
        let curves = [Curve::P256, Curve::P384, Curve::P521];
        let curve = curves.into_iter().find(|curve| algorithms.contains(&curve.ecdsa()));
        let curve = match (algorithms.first()?, curve) {
            (_, Some(curve)) => curve,
            (algorithm, _) if algorithm.is_rsa() => return read_rsa(bits),
            (Algorithm::Ed25519, _) => return Some(PublicParts::Ed25519(bits.to_vec())),
            _ => return None,
        };
        let fits = bits.first() == Some(&4) && bits.len() == 1 + 2 * curve.bytes();
        fits.then(|| PublicParts::Ec { curve, point: bits.to_vec() })
    }

    /// CKA_ID: the SHA-1 of the modulus, the point, or the 32 bytes. NSS computes it of a certificate in the same way.
    pub fn id(&self) -> Vec<u8> {
        match self {
            PublicParts::Rsa { n, .. } => sha1(n),
            PublicParts::Ec { point, .. } => sha1(point),
            PublicParts::Ed25519(key) => sha1(key),
        }
    }

    /// Length of a signature as PKCS #11 has it, in bytes.
    pub fn signature_bytes(&self) -> usize {
        match self {
            PublicParts::Rsa { n, .. } => n.len(),
            PublicParts::Ec { curve, .. } => 2 * curve.bytes(),
            PublicParts::Ed25519(_) => 64,
        }
    }
}

fn read_rsa(bits: &[u8]) -> Option<PublicParts> {
    let (content, []) = split(SEQUENCE, bits)? else { return None };
    let (n, rest) = split(INTEGER, content)?;
    let (e, []) = split(INTEGER, rest)? else { return None };
    Some(PublicParts::Rsa { n: without_zeros(n).to_vec(), e: without_zeros(e).to_vec() })
}

/// A number without zeros before it.
pub fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// A key that this process may use.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenKey {
    pub name: String,
    /// A SubjectPublicKeyInfo.
    pub info: Vec<u8>,
    pub public: PublicParts,
    /// The algorithms that it is for.
    pub algorithms: Vec<Algorithm>,
    pub can_sign: bool,
    pub can_decrypt: bool,
    pub can_agree: bool,
}

impl TokenKey {
    /// `None` for a kind of key that is not offered here.
    pub fn new(key: NamedKey) -> Option<TokenKey> {
        let public = PublicParts::read(&key.public_key)?;
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

    /// The curve on which it may agree on a secret.
    pub fn agrees_on(&self) -> Option<Curve> {
        match &self.public {
            PublicParts::Ec { curve, .. } if self.can_agree && self.is_for(curve.ecdh()) => {
                Some(*curve)
            }
            _ => None,
        }
    }

    /// The public key as the engine has it.
    pub fn public_bits(&self) -> &[u8] {
        read_subject_public_key_info(&self.info).map_or(&[], |(_, bits)| bits)
    }
}
