//! How a key signs: hash and padding, as a program of OpenSSL asks for them and as cryptod does them.

use crate::key::{Curve, Key, Public};
use keyway_engine::Algorithm;
use keyway_wire::der::{INTEGER, SEQUENCE, element};

/// A hash of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// The hash that OpenSSL calls by one of its names.
    pub fn from_name(name: &str) -> Option<Hash> {
        match &*name.to_ascii_uppercase() {
            "SHA256" | "SHA2-256" | "SHA-256" | "2.16.840.1.101.3.4.2.1" => Some(Hash::Sha256),
            "SHA384" | "SHA2-384" | "SHA-384" | "2.16.840.1.101.3.4.2.2" => Some(Hash::Sha384),
            "SHA512" | "SHA2-512" | "SHA-512" | "2.16.840.1.101.3.4.2.3" => Some(Hash::Sha512),
            _ => None,
        }
    }

    /// OpenSSL's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Hash::Sha256 => "SHA256",
            Hash::Sha384 => "SHA384",
            Hash::Sha512 => "SHA512",
        }
    }

    /// Bytes of a digest.
    pub const fn bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    /// Its AlgorithmIdentifier (RFC 4055 § 2.1).
    fn identifier(self) -> Vec<u8> {
        let last = match self {
            Hash::Sha256 => 1,
            Hash::Sha384 => 2,
            Hash::Sha512 => 3,
        };
        let oid = element(OID, &[b"\x60\x86\x48\x01\x65\x03\x04\x02", &[last]]);
        element(SEQUENCE, &[&oid, NULL])
    }
}

const OID: u8 = 0x06;
const NULL: &[u8] = b"\x05\x00";
/// The start of the object identifiers of PKCS #1.
const PKCS1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01";

/// The padding of an RSA signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    Pkcs1,
    Pss,
}

/// The length of a salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salt {
    /// As long as the digest.
    Digest,
    /// As long as there is room for.
    Max,
    /// So many bytes.
    Bytes(usize),
}

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    RsaPkcs1(Hash),
    RsaPss { hash: Hash, mgf1: Hash, salt_bytes: usize },
    Ecdsa(Curve, Hash),
    Ed25519,
}

/// The choices of a program.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    pub hash: Option<Hash>,
    pub padding: Padding,
    pub salt: Salt,
    /// If another one than the hash.
    pub mgf1: Option<Hash>,
}

impl Default for Choices {
    fn default() -> Self {
        Choices { hash: None, padding: Padding::Pkcs1, salt: Salt::Digest, mgf1: None }
    }
}

impl Choices {
    /// How this key signs with them.
    pub fn scheme(&self, key: &Key) -> Option<Scheme> {
        let hash = self.hash.unwrap_or(Hash::Sha256);
        Some(match (&key.public, self.padding) {
            (Public::Rsa { .. }, Padding::Pkcs1) => Scheme::RsaPkcs1(hash),
            (Public::Rsa { .. }, Padding::Pss) => {
                let most = key.bits().div_ceil(8).checked_sub(hash.bytes() + 2)?;
                let salt_bytes = match self.salt {
                    Salt::Digest => hash.bytes(),
                    Salt::Max => most,
                    Salt::Bytes(bytes) => bytes,
                };
                let mgf1 = self.mgf1.unwrap_or(hash);
                (salt_bytes <= most).then_some(Scheme::RsaPss { hash, mgf1, salt_bytes })?
            }
            (Public::Ec { curve, .. }, _) => Scheme::Ecdsa(*curve, hash),
            (Public::Ed25519(_), _) => Scheme::Ed25519,
        })
    }
}

impl Scheme {
    /// The algorithm that does it with a whole message; `None` if there is none.
    pub fn algorithm(self) -> Option<Algorithm> {
        Some(match self {
            Scheme::RsaPkcs1(Hash::Sha256) => Algorithm::RsaPkcs1Sha256,
            Scheme::RsaPkcs1(Hash::Sha384) => Algorithm::RsaPkcs1Sha384,
            Scheme::RsaPkcs1(Hash::Sha512) => Algorithm::RsaPkcs1Sha512,
            Scheme::RsaPss { hash, mgf1, salt_bytes } => {
                if mgf1 != hash || salt_bytes != hash.bytes() {
                    return None;
                }
                match hash {
                    Hash::Sha256 => Algorithm::RsaPssSha256,
                    Hash::Sha384 => Algorithm::RsaPssSha384,
                    Hash::Sha512 => Algorithm::RsaPssSha512,
                }
            }
            Scheme::Ecdsa(Curve::P256, Hash::Sha256) => Algorithm::EcdsaP256Sha256,
            Scheme::Ecdsa(Curve::P256, Hash::Sha384) => Algorithm::EcdsaP256Sha384,
            Scheme::Ecdsa(Curve::P384, Hash::Sha256) => Algorithm::EcdsaP384Sha256,
            Scheme::Ecdsa(Curve::P384, Hash::Sha384) => Algorithm::EcdsaP384Sha384,
            Scheme::Ecdsa(_, Hash::Sha512) => return None,
            Scheme::Ed25519 => Algorithm::Ed25519,
        })
    }

    /// Its AlgorithmIdentifier (RFC 4055 §§ 3.1 and 5, RFC 5758 § 3.2, RFC 8410 § 3).
    pub fn identifier(self) -> Vec<u8> {
        match self {
            Scheme::RsaPkcs1(hash) => {
                let last = match hash {
                    Hash::Sha256 => 11,
                    Hash::Sha384 => 12,
                    Hash::Sha512 => 13,
                };
                element(SEQUENCE, &[&element(OID, &[PKCS1, &[last]]), NULL])
            }
            Scheme::RsaPss { hash, mgf1, salt_bytes } => {
                let mask = element(OID, &[PKCS1, &[8]]);
                let mask = element(SEQUENCE, &[&mask, &mgf1.identifier()]);
                let digits = salt_bytes.to_be_bytes();
                // One zero more: the number is not negative.
                let zeros = digits.iter().take_while(|digit| **digit == 0).count();
                let digits = &digits[zeros.min(digits.len() - 1)..];
                let sign: &[u8] = if digits[0] & 0x80 == 0 { &[] } else { &[0] };
                let salt = element(INTEGER, &[sign, digits]);
                let parameters = element(
                    SEQUENCE,
                    &[
                        &element(0xa0, &[&hash.identifier()]),
                        &element(0xa1, &[&mask]),
                        &element(0xa2, &[&salt]),
                    ],
                );
                element(SEQUENCE, &[&element(OID, &[PKCS1, &[10]]), &parameters])
            }
            Scheme::Ecdsa(_, hash) => {
                let last = match hash {
                    Hash::Sha256 => 2,
                    Hash::Sha384 => 3,
                    Hash::Sha512 => 4,
                };
                element(SEQUENCE, &[&element(OID, &[b"\x2a\x86\x48\xce\x3d\x04\x03", &[last]])])
            }
            Scheme::Ed25519 => element(SEQUENCE, &[b"\x06\x03\x2b\x65\x70"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_standards() {
        let rsa = Scheme::RsaPkcs1(Hash::Sha256).identifier();
        assert_eq!(rsa, b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00");
        let ecdsa = Scheme::Ecdsa(Curve::P256, Hash::Sha256).identifier();
        assert_eq!(ecdsa, b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02");
        let pss = Scheme::RsaPss { hash: Hash::Sha256, mgf1: Hash::Sha256, salt_bytes: 222 };
        assert!(pss.identifier().ends_with(b"\xa2\x04\x02\x02\x00\xde"));
        assert_eq!(pss.algorithm(), None);
    }
}
