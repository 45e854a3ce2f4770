//! How a key signs: hash and padding, as a program of OpenSSL asks for them and as cryptod does them.

use crate::key::Key;
use keyway_client::{Curve, Hash, MlDsa, PublicKey, integer};
use keyway_engine::{Algorithm, SignatureParameters};
use keyway_wire::der::{SEQUENCE, element};

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
    /// As long as the digest or, where there is no room for that, as possible; of any length to verify.
    Auto,
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
    /// Without a hash, bytes as they are.
    RsaPkcs1(Option<Hash>),
    RsaPss {
        hash: Hash,
        mgf1: Hash,
        salt_bytes: u16,
    },
    /// Without a hash, a digest that any may have made.
    Ecdsa(Curve, Option<Hash>),
    Ed25519,
    MlDsa(MlDsa),
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
        Choices { hash: None, padding: Padding::Pkcs1, salt: Salt::Auto, mgf1: None }
    }
}

impl Choices {
    /// How this key signs with them. A message is hashed with SHA-256 if the program names no hash.
    pub fn of_message(&self, key: &Key) -> Option<Scheme> {
        let hash = Some(self.hash.unwrap_or(Hash::Sha256));
        Choices { hash, ..*self }.of_digest(key)
    }

    /// How this key signs what the program has hashed.
    pub fn of_digest(&self, key: &Key) -> Option<Scheme> {
        Some(match (&key.public, self.padding) {
            (PublicKey::Rsa { .. }, Padding::Pkcs1) => Scheme::RsaPkcs1(self.hash),
            (PublicKey::Rsa { .. }, Padding::Pss) => {
                let hash = self.hash?;
                let most = key.public.salt_bytes_max(hash)?;
                let salt_bytes = match self.salt {
                    Salt::Auto => hash.bytes().min(most),
                    Salt::Digest => hash.bytes(),
                    Salt::Max => most,
                    Salt::Bytes(bytes) => bytes,
                };
                let mgf1 = self.mgf1.unwrap_or(hash);
                let salt_bytes =
                    Some(salt_bytes).filter(|bytes| *bytes <= most)?.try_into().ok()?;
                Scheme::RsaPss { hash, mgf1, salt_bytes }
            }
            (PublicKey::Ec { curve, .. }, _) => Scheme::Ecdsa(*curve, self.hash),
            (PublicKey::Ed25519(_), _) => Scheme::Ed25519,
            (PublicKey::MlDsa { set, .. }, _) => Scheme::MlDsa(*set),
            (PublicKey::X25519(_), _) => return None,
        })
    }
}

impl Scheme {
    /// The one that verifies what was signed with whatever salt.
    pub fn with_any_salt(self) -> Scheme {
        match self {
            Scheme::RsaPss { hash, mgf1, .. } => {
                Scheme::RsaPss { hash, mgf1, salt_bytes: SignatureParameters::ANY_SALT }
            }
            other => other,
        }
    }

    /// The algorithm that does it with a digest, or as Ed25519 and ML-DSA with the message, and what to tell it. One that names
    /// the hash comes before one that leaves it open: a key may be for that one only.
    pub fn request(self) -> (Algorithm, SignatureParameters) {
        use Algorithm::*;
        let given = SignatureParameters { prehashed: true, ..SignatureParameters::default() };
        let of = |hash: Hash| SignatureParameters::digest(hash.algorithm());
        match self {
            Scheme::RsaPkcs1(Some(Hash::Sha256)) => (RsaPkcs1Sha256, given),
            Scheme::RsaPkcs1(Some(Hash::Sha384)) => (RsaPkcs1Sha384, given),
            Scheme::RsaPkcs1(Some(Hash::Sha512)) => (RsaPkcs1Sha512, given),
            Scheme::RsaPkcs1(hash) => (RsaPkcs1, hash.map_or(given, of)),
            Scheme::RsaPss { hash, mgf1, salt_bytes } => {
                let is_usual = mgf1 == hash && usize::from(salt_bytes) == hash.bytes();
                match hash {
                    Hash::Sha256 if is_usual => (RsaPssSha256, given),
                    Hash::Sha384 if is_usual => (RsaPssSha384, given),
                    Hash::Sha512 if is_usual => (RsaPssSha512, given),
                    hash => {
                        let mgf1_hash = Some(mgf1.algorithm());
                        let salt_bytes = Some(salt_bytes);
                        (RsaPss, SignatureParameters { mgf1_hash, salt_bytes, ..of(hash) })
                    }
                }
            }
            Scheme::Ecdsa(Curve::P256, Some(Hash::Sha256)) => (EcdsaP256Sha256, given),
            Scheme::Ecdsa(Curve::P256, Some(Hash::Sha384)) => (EcdsaP256Sha384, given),
            Scheme::Ecdsa(Curve::P384, Some(Hash::Sha256)) => (EcdsaP384Sha256, given),
            Scheme::Ecdsa(Curve::P384, Some(Hash::Sha384)) => (EcdsaP384Sha384, given),
            Scheme::Ecdsa(curve, hash) => (curve.ecdsa(), hash.map_or(given, of)),
            Scheme::Ed25519 => (Ed25519, SignatureParameters::default()),
            Scheme::MlDsa(set) => (set.algorithm(), SignatureParameters::default()),
        }
    }

    /// Its AlgorithmIdentifier (RFC 4055 §§ 3.1 and 5, RFC 5758 § 3.2, RFC 8410 § 3, RFC 9881 § 2).
    /// Empty for bytes that are signed as they are.
    pub fn identifier(self) -> Vec<u8> {
        match self {
            Scheme::RsaPkcs1(None) | Scheme::Ecdsa(_, None) => Vec::new(),
            Scheme::RsaPkcs1(Some(hash)) => {
                let last = match hash {
                    Hash::Sha1 => 5,
                    Hash::Sha224 => 14,
                    Hash::Sha256 => 11,
                    Hash::Sha384 => 12,
                    Hash::Sha512 => 13,
                };
                element(SEQUENCE, &[&element(OID, &[PKCS1, &[last]]), NULL])
            }
            Scheme::RsaPss { hash, mgf1, salt_bytes } => {
                let mask = element(OID, &[PKCS1, &[8]]);
                let mask = element(SEQUENCE, &[&mask, &hash_identifier(mgf1)]);
                let salt = integer(&salt_bytes.to_be_bytes());
                let parameters = element(
                    SEQUENCE,
                    &[
                        &element(0xa0, &[&hash_identifier(hash)]),
                        &element(0xa1, &[&mask]),
                        &element(0xa2, &[&salt]),
                    ],
                );
                element(SEQUENCE, &[&element(OID, &[PKCS1, &[10]]), &parameters])
            }
            Scheme::Ecdsa(_, Some(hash)) => {
                let last: &[u8] = match hash {
                    Hash::Sha1 => &[1],
                    Hash::Sha224 => &[3, 1],
                    Hash::Sha256 => &[3, 2],
                    Hash::Sha384 => &[3, 3],
                    Hash::Sha512 => &[3, 4],
                };
                element(SEQUENCE, &[&element(OID, &[b"\x2a\x86\x48\xce\x3d\x04", last])])
            }
            Scheme::Ed25519 => element(SEQUENCE, &[b"\x06\x03\x2b\x65\x70"]),
            Scheme::MlDsa(set) => {
                let last = match set {
                    MlDsa::MlDsa44 => 17,
                    MlDsa::MlDsa65 => 18,
                    MlDsa::MlDsa87 => 19,
                };
                element(SEQUENCE, &[&element(OID, &[b"\x60\x86\x48\x01\x65\x03\x04\x03", &[last]])])
            }
        }
    }
}

/// The AlgorithmIdentifier of a hash (RFC 4055 § 2.1).
fn hash_identifier(hash: Hash) -> Vec<u8> {
    let last: &[u8] = match hash {
        Hash::Sha1 => return element(SEQUENCE, &[b"\x06\x05\x2b\x0e\x03\x02\x1a", NULL]),
        Hash::Sha224 => &[4],
        Hash::Sha256 => &[1],
        Hash::Sha384 => &[2],
        Hash::Sha512 => &[3],
    };
    let oid = element(OID, &[b"\x60\x86\x48\x01\x65\x03\x04\x02", last]);
    element(SEQUENCE, &[&oid, NULL])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_standards() {
        let rsa = Scheme::RsaPkcs1(Some(Hash::Sha256)).identifier();
        assert_eq!(rsa, b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00");
        let ecdsa = Scheme::Ecdsa(Curve::P256, Some(Hash::Sha256)).identifier();
        assert_eq!(ecdsa, b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02");
        let ml_dsa = Scheme::MlDsa(MlDsa::MlDsa65).identifier();
        assert_eq!(ml_dsa, b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x12");
        let pss = Scheme::RsaPss { hash: Hash::Sha256, mgf1: Hash::Sha256, salt_bytes: 222 };
        assert!(pss.identifier().ends_with(b"\xa2\x04\x02\x02\x00\xde"));
        let (algorithm, parameters) = pss.request();
        assert_eq!((algorithm, parameters.salt_bytes), (Algorithm::RsaPss, Some(222)));
    }
}
