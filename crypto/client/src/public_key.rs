//! A public key in its parts, as programs ask for them.

use crate::hash::Hash;
use keyway_engine::Algorithm;
use keyway_wire::der::{INTEGER, SEQUENCE, element, split};
use keyway_wire::{read_subject_public_key_info, subject_public_key_info};

/// A curve of ECDSA and ECDH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256, secp256r1.
    P256,
    /// NIST P-384, secp384r1.
    P384,
    /// NIST P-521, secp521r1.
    P521,
}

impl Curve {
    /// Each of them.
    pub const ALL: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];

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
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// Numbers with the most significant byte first, without zeros before it.
    Rsa {
        /// The modulus.
        n: Vec<u8>,
        /// The public exponent.
        e: Vec<u8>,
    },
    /// A point without compression.
    Ec {
        /// Its curve.
        curve: Curve,
        /// 4, and both coordinates.
        point: Vec<u8>,
    },
    /// 32 bytes.
    Ed25519(Vec<u8>),
    /// 32 bytes.
    X25519(Vec<u8>),
    /// ML-DSA (FIPS 204).
    MlDsa {
        /// Which of the three.
        set: MlDsa,
        /// The key as the standard encodes it.
        key: Vec<u8>,
    },
}

/// A parameter set of ML-DSA (FIPS 204 § 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlDsa {
    /// ML-DSA-44.
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
}

impl MlDsa {
    /// Each of them.
    pub const ALL: [MlDsa; 3] = [MlDsa::MlDsa44, MlDsa::MlDsa65, MlDsa::MlDsa87];

    /// The engine's name for it.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            MlDsa::MlDsa44 => Algorithm::MlDsa44,
            MlDsa::MlDsa65 => Algorithm::MlDsa65,
            MlDsa::MlDsa87 => Algorithm::MlDsa87,
        }
    }

    /// Bytes of a public key.
    pub const fn key_bytes(self) -> usize {
        match self {
            MlDsa::MlDsa44 => 1312,
            MlDsa::MlDsa65 => 1952,
            MlDsa::MlDsa87 => 2592,
        }
    }

    /// Bytes of a signature.
    pub const fn signature_bytes(self) -> usize {
        match self {
            MlDsa::MlDsa44 => 2420,
            MlDsa::MlDsa65 => 3309,
            MlDsa::MlDsa87 => 4627,
        }
    }
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo; `None` for a kind of key that is not offered here.
    pub fn read(info: &[u8]) -> Option<PublicKey> {
        let (algorithms, bits) = read_subject_public_key_info(info)?;
        let curve = Curve::ALL.into_iter().find(|curve| algorithms.contains(&curve.ecdsa()));
        match (algorithms.first()?, curve) {
            (_, Some(curve)) => {
                let fits = bits.first() == Some(&4) && bits.len() == 1 + 2 * curve.bytes();
                fits.then(|| PublicKey::Ec { curve, point: bits.to_vec() })
            }
            (algorithm, _) if algorithm.is_rsa() => read_rsa(bits),
            (Algorithm::Ed25519, _) if bits.len() == 32 => Some(PublicKey::Ed25519(bits.to_vec())),
            (Algorithm::X25519, _) if bits.len() == 32 => Some(PublicKey::X25519(bits.to_vec())),
            (algorithm, _) => {
                let set = MlDsa::ALL.into_iter().find(|set| set.algorithm() == *algorithm)?;
                let fits = bits.len() == set.key_bytes();
                fits.then(|| PublicKey::MlDsa { set, key: bits.to_vec() })
            }
        }
    }

    /// Its SubjectPublicKeyInfo.
    pub fn info(&self) -> Option<Vec<u8>> {
        match self {
            PublicKey::Rsa { n, e } => {
                let bits = element(SEQUENCE, &[&integer(n), &integer(e)]);
                subject_public_key_info(Algorithm::RsaPkcs1Sha256, &bits)
            }
            PublicKey::Ec { curve, point } => subject_public_key_info(curve.ecdsa(), point),
            PublicKey::Ed25519(key) => subject_public_key_info(Algorithm::Ed25519, key),
            PublicKey::X25519(key) => subject_public_key_info(Algorithm::X25519, key),
            PublicKey::MlDsa { set, key } => subject_public_key_info(set.algorithm(), key),
        }
    }

    /// The length of its numbers, in bits.
    pub fn bits(&self) -> usize {
        match self {
            PublicKey::Rsa { n, .. } => {
                8 * n.len() - n.first().map_or(0, |first| first.leading_zeros() as usize)
            }
            PublicKey::Ec { curve, .. } => curve.bits(),
            PublicKey::Ed25519(_) => 256,
            // Of a coordinate in its field (RFC 7748 § 4.1), as OpenSSL counts.
            PublicKey::X25519(_) => 253,
            PublicKey::MlDsa { key, .. } => 8 * key.len(),
        }
    }

    /// Bytes of the longest salt that PSS has room for beside a digest of that hash (RFC 8017 § 9.1.1). `None` if the
    /// digest alone is too long, and for other keys than RSA's.
    pub fn salt_bytes_max(&self, hash: Hash) -> Option<usize> {
        let PublicKey::Rsa { .. } = self else { return None };
        let encoded = self.bits().checked_sub(1)?.div_ceil(8);
        encoded.checked_sub(hash.bytes() + 2)
    }
}

fn read_rsa(bits: &[u8]) -> Option<PublicKey> {
    let (content, []) = split(SEQUENCE, bits)? else { return None };
    let (n, rest) = split(INTEGER, content)?;
    let (e, []) = split(INTEGER, rest)? else { return None };
    Some(PublicKey::Rsa { n: without_zeros(n).to_vec(), e: without_zeros(e).to_vec() })
}

/// A number without zeros before it.
pub fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// An INTEGER of a number that is not negative.
pub fn integer(number: &[u8]) -> Vec<u8> {
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
        for (public, bits) in [
            (PublicKey::Rsa { n, e: vec![1, 0, 1] }, 2048),
            (PublicKey::Ec { curve: Curve::P256, point: [&[4][..], &[9; 64]].concat() }, 256),
            (PublicKey::Ec { curve: Curve::P384, point: [&[4][..], &[9; 96]].concat() }, 384),
            (PublicKey::Ec { curve: Curve::P521, point: [&[4][..], &[9; 132]].concat() }, 521),
            (PublicKey::Ed25519(vec![5; 32]), 256),
            (PublicKey::X25519(vec![5; 32]), 253),
            (PublicKey::MlDsa { set: MlDsa::MlDsa44, key: vec![5; 1312] }, 8 * 1312),
            (PublicKey::MlDsa { set: MlDsa::MlDsa87, key: vec![5; 2592] }, 8 * 2592),
        ] {
            assert_eq!(PublicKey::read(&public.info().unwrap()).unwrap(), public);
            assert_eq!(public.bits(), bits);
        }
        let short = PublicKey::Ed25519(vec![5; 31]).info();
        assert!(short.is_none_or(|info| PublicKey::read(&info).is_none()));
    }

    #[test]
    fn pss_leaves_the_highest_bit_alone() {
        for (first, longest) in [(0x80, 222), (0xff, 222), (1, 221), (2, 222)] {
            let n = [&[first][..], &[7; 255]].concat();
            let key = PublicKey::Rsa { n, e: vec![1, 0, 1] };
            assert_eq!(key.salt_bytes_max(Hash::Sha256), Some(longest), "{first}");
        }
        assert_eq!(PublicKey::Ed25519(vec![5; 32]).salt_bytes_max(Hash::Sha256), None);
    }

    #[test]
    fn an_integer_is_not_negative() {
        assert_eq!(integer(&[0, 0, 0x7f]), [2, 1, 0x7f]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[]), [2, 1, 0]);
    }
}
