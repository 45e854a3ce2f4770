//! Hashes: a message is hashed here, and its digest signed in cryptod.

use crate::abi::{self, Ulong};
use keyway_engine::Algorithm;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A hash of signatures and of OAEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub const ALL: [Hash; 5] = [Hash::Sha1, Hash::Sha224, Hash::Sha256, Hash::Sha384, Hash::Sha512];

    /// The hash of a mechanism that digests.
    pub fn from_mechanism(mechanism: Ulong) -> Option<Hash> {
        Some(match mechanism {
            abi::SHA_1 => Hash::Sha1,
            abi::SHA224 => Hash::Sha224,
            abi::SHA256 => Hash::Sha256,
            abi::SHA384 => Hash::Sha384,
            abi::SHA512 => Hash::Sha512,
            _ => return None,
        })
    }

    /// The hash of a mask generation function.
    pub fn from_mgf(mgf: Ulong) -> Option<Hash> {
        Some(match mgf {
            abi::MGF1_SHA1 => Hash::Sha1,
            abi::MGF1_SHA224 => Hash::Sha224,
            abi::MGF1_SHA256 => Hash::Sha256,
            abi::MGF1_SHA384 => Hash::Sha384,
            abi::MGF1_SHA512 => Hash::Sha512,
            _ => return None,
        })
    }

    /// The engine's name for it.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Hash::Sha1 => Algorithm::Sha1,
            Hash::Sha224 => Algorithm::Sha224,
            Hash::Sha256 => Algorithm::Sha256,
            Hash::Sha384 => Algorithm::Sha384,
            Hash::Sha512 => Algorithm::Sha512,
        }
    }

    /// Length of a digest, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha224 => 28,
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }
}

/// A digest in the making.
#[derive(Clone)]
pub enum Hasher {
    Sha1(Sha1),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    pub fn new(hash: Hash) -> Hasher {
        match hash {
            Hash::Sha1 => Hasher::Sha1(Sha1::new()),
            Hash::Sha224 => Hasher::Sha224(Sha224::new()),
            Hash::Sha256 => Hasher::Sha256(Sha256::new()),
            Hash::Sha384 => Hasher::Sha384(Sha384::new()),
            Hash::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }

    /// Length of the digest, in bytes.
    pub const fn bytes(&self) -> usize {
        match self {
            Hasher::Sha1(_) => Hash::Sha1.bytes(),
            Hasher::Sha224(_) => Hash::Sha224.bytes(),
            Hasher::Sha256(_) => Hash::Sha256.bytes(),
            Hasher::Sha384(_) => Hash::Sha384.bytes(),
            Hasher::Sha512(_) => Hash::Sha512.bytes(),
        }
    }

    pub fn update(&mut self, part: &[u8]) {
        match self {
            Hasher::Sha1(it) => it.update(part),
            Hasher::Sha224(it) => it.update(part),
            Hasher::Sha256(it) => it.update(part),
            Hasher::Sha384(it) => it.update(part),
            Hasher::Sha512(it) => it.update(part),
        }
    }

    pub fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Sha1(it) => it.finalize().to_vec(),
            Hasher::Sha224(it) => it.finalize().to_vec(),
            Hasher::Sha256(it) => it.finalize().to_vec(),
            Hasher::Sha384(it) => it.finalize().to_vec(),
            Hasher::Sha512(it) => it.finalize().to_vec(),
        }
    }
}

/// The SHA-1 of some bytes: a name for them, and no proof of anything.
pub fn sha1(bytes: &[u8]) -> Vec<u8> {
    Sha1::digest(bytes).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4's example "abc".
    #[test]
    fn digests_are_those_of_the_standard() {
        let starts = [[0xa9, 0x99], [0x23, 0x09], [0xba, 0x78], [0xcb, 0x00], [0xdd, 0xaf]];
        for (hash, start) in Hash::ALL.into_iter().zip(starts) {
            let mut hasher = Hasher::new(hash);
            assert_eq!(hasher.bytes(), hash.bytes());
            hasher.update(b"a");
            hasher.update(b"bc");
            let digest = hasher.finish();
            assert_eq!((digest.len(), &digest[..2]), (hash.bytes(), &start[..]));
        }
    }
}
