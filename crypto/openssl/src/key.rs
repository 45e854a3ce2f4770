//! A key as OpenSSL sees it: its kind, its public half, and the name that it has in cryptod.

use crate::provider::Provider;
use keyway_client::KeyReference;
use keyway_engine::Algorithm;
use keyway_wire::der::{INTEGER, SEQUENCE, element, split};
use keyway_wire::{read_subject_public_key_info, subject_public_key_info};
use std::ffi::CStr;
use std::sync::Arc;

/// A kind of keys: what OpenSSL calls a key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rsa,
    Ec,
    Ed25519,
}

impl Kind {
    /// OpenSSL's name for it.
    pub const fn name(self) -> &'static CStr {
        match self {
            Kind::Rsa => c"RSA",
            Kind::Ec => c"EC",
            Kind::Ed25519 => c"ED25519",
        }
    }
}

/// A curve of ECDSA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// OpenSSL's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Curve::P256 => "prime256v1",
            Curve::P384 => "secp384r1",
            Curve::P521 => "secp521r1",
        }
    }

    /// The curve of a name that OpenSSL, NIST or SECG gives it.
    pub fn from_name(name: &str) -> Option<Curve> {
        match name {
            "prime256v1" | "P-256" | "secp256r1" => Some(Curve::P256),
            "secp384r1" | "P-384" => Some(Curve::P384),
            "secp521r1" | "P-521" => Some(Curve::P521),
            _ => None,
        }
    }

    /// Bytes of a coordinate.
    pub const fn bytes(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }

    /// Bits of the order of its group.
    const fn bits(self) -> usize {
        match self {
            Curve::P521 => 521,
            _ => 8 * self.bytes(),
        }
    }

    /// The algorithm whose requests name the hash.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Curve::P256 => Algorithm::EcdsaP256,
            Curve::P384 => Algorithm::EcdsaP384,
            Curve::P521 => Algorithm::EcdsaP521,
        }
    }
}

/// A public key, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Public {
    /// Modulus and exponent, the most significant byte first, without zeros before it.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// A point without compression.
    Ec { curve: Curve, point: Vec<u8> },
    /// 32 bytes.
    Ed25519(Vec<u8>),
}

/// A key of cryptod or, without a name, a public key.
#[derive(Debug)]
pub struct Key {
    pub name: Option<String>,
    /// A SubjectPublicKeyInfo.
    pub info: Vec<u8>,
    pub public: Public,
}

impl Key {
    /// `None` for a kind of key that is not offered here.
    pub fn new(name: Option<String>, info: Vec<u8>) -> Option<Key> {
        let (algorithms, bits) = read_subject_public_key_info(&info)?;
        let curves = [Curve::P256, Curve::P384, Curve::P521];
        let curve = curves.into_iter().find(|curve| algorithms.contains(&curve.algorithm()));
        let public = match (algorithms.first()?, curve) {
            (_, Some(curve)) => read_point(curve, bits)?,
            (algorithm, _) if algorithm.is_rsa() => read_rsa(bits)?,
            (Algorithm::Ed25519, _) if bits.len() == 32 => Public::Ed25519(bits.to_vec()),
            _ => return None,
        };
        Some(Key { name, public, info })
    }

    /// A public key of its parts.
    pub fn from_public(public: &Public) -> Option<Key> {
        let info = match public {
            Public::Rsa { n, e } => {
                let bits = element(SEQUENCE, &[&integer(n), &integer(e)]);
                subject_public_key_info(Algorithm::RsaPkcs1Sha256, &bits)
            }
            Public::Ec { curve, point } => subject_public_key_info(curve.algorithm(), point),
            Public::Ed25519(key) => subject_public_key_info(Algorithm::Ed25519, key),
        };
        Key::new(None, info?)
    }

    pub fn kind(&self) -> Kind {
        match self.public {
            Public::Rsa { .. } => Kind::Rsa,
            Public::Ec { .. } => Kind::Ec,
            Public::Ed25519(_) => Kind::Ed25519,
        }
    }

    /// The public key as the engine has it.
    pub fn public_bits(&self) -> &[u8] {
        read_subject_public_key_info(&self.info).map_or(&[], |(_, bits)| bits)
    }

    /// The length of its numbers, in bits.
    pub fn bits(&self) -> usize {
        match &self.public {
            Public::Rsa { n, .. } => {
                8 * n.len() - n.first().map_or(0, |first| first.leading_zeros() as usize)
            }
            Public::Ec { curve, .. } => curve.bits(),
            Public::Ed25519(_) => 256,
        }
    }

    /// Its strength (SP 800-57 part 1, and for RSA as OpenSSL counts it).
    pub fn security_bits(&self) -> usize {
        match (&self.public, self.bits()) {
            (Public::Rsa { .. }, 0..1024) => 0,
            (Public::Rsa { .. }, 1024..2048) => 80,
            (Public::Rsa { .. }, 2048..3072) => 112,
            (Public::Rsa { .. }, 3072..4096) => 128,
            (Public::Rsa { .. }, 4096..7680) => 152,
            (Public::Rsa { .. }, _) => 192,
            (_, bits) => (bits / 2).min(256),
        }
    }

    /// Longest signature, in bytes.
    pub fn signature_bytes_max(&self) -> usize {
        match &self.public {
            Public::Rsa { n, .. } => n.len(),
            // A SEQUENCE of two INTEGERs, each with a zero before it. On P-521 none has one, and a length is longer.
            Public::Ec { curve, .. } => 2 * (curve.bytes() + 3) + 2,
            Public::Ed25519(_) => 64,
        }
    }

    /// Finds the key that a file or a URI names; from cryptod, unless the file has its public half.
    ///
    /// An error is in OpenSSL's queue.
    pub fn load(provider: &Arc<Provider>, reference: KeyReference) -> Option<Key> {
        // A program may change its root before it signs.
        provider.client.prepare();
        let info = match reference.public_key {
            Some(info) => info,
            None => match provider.client.find(&reference.name) {
                Ok(found) => found.public_key,
                Err(why) => {
                    provider.raise(&why);
                    return None;
                }
            },
        };
        let name = reference.name;
        let key = Key::new(Some(name.clone()), info);
        if key.is_none() {
            provider.raise_unfit(&format!(
                "key {name} is of a kind that OpenSSL gets no signatures from"
            ));
        }
        key
    }
}

fn read_rsa(bits: &[u8]) -> Option<Public> {
    let (content, []) = split(SEQUENCE, bits)? else { return None };
    let (n, rest) = split(INTEGER, content)?;
    let (e, []) = split(INTEGER, rest)? else { return None };
    Some(Public::Rsa { n: without_zeros(n).to_vec(), e: without_zeros(e).to_vec() })
}

fn read_point(curve: Curve, point: &[u8]) -> Option<Public> {
    let fits = point.first() == Some(&4) && point.len() == 1 + 2 * curve.bytes();
    fits.then(|| Public::Ec { curve, point: point.to_vec() })
}

/// A number without zeros before it.
pub fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// An INTEGER of a number that is not negative.
fn integer(number: &[u8]) -> Vec<u8> {
    let number = without_zeros(number);
    let is_plain = number.first().is_some_and(|first| first & 0x80 == 0);
    element(INTEGER, &[if is_plain { &[] } else { &[0] }, number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_parts() {
        let n = [&[0xc5][..], &[7; 255]].concat();
        for public in [
            Public::Rsa { n, e: vec![1, 0, 1] },
            Public::Ec { curve: Curve::P256, point: [&[4][..], &[9; 64]].concat() },
            Public::Ec { curve: Curve::P384, point: [&[4][..], &[9; 96]].concat() },
            Public::Ec { curve: Curve::P521, point: [&[4][..], &[9; 132]].concat() },
            Public::Ed25519(vec![5; 32]),
        ] {
            let key = Key::from_public(&public).unwrap();
            assert_eq!(key.public, public);
            assert!(key.security_bits() >= 112);
        }
        assert!(Key::from_public(&Public::Ed25519(vec![5; 31])).is_none());
    }
}
