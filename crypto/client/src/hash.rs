//! Hashes of signatures and of OAEP: a message is hashed in the program, and its digest signed in cryptod.

use aws_lc_rs::digest;
use keyway_engine::Algorithm;

/// A hash (FIPS 180-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, for old programs only.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// Each of them.
    pub const ALL: [Hash; 5] = [Hash::Sha1, Hash::Sha224, Hash::Sha256, Hash::Sha384, Hash::Sha512];

    /// The hash that OpenSSL calls by one of its names.
    pub fn from_name(name: &str) -> Option<Hash> {
        match &*name.to_ascii_uppercase() {
            "SHA1" | "SHA-1" | "1.3.14.3.2.26" => Some(Hash::Sha1),
            "SHA224" | "SHA2-224" | "SHA-224" | "2.16.840.1.101.3.4.2.4" => Some(Hash::Sha224),
            "SHA256" | "SHA2-256" | "SHA-256" | "2.16.840.1.101.3.4.2.1" => Some(Hash::Sha256),
            "SHA384" | "SHA2-384" | "SHA-384" | "2.16.840.1.101.3.4.2.2" => Some(Hash::Sha384),
            "SHA512" | "SHA2-512" | "SHA-512" | "2.16.840.1.101.3.4.2.3" => Some(Hash::Sha512),
            _ => None,
        }
    }

    /// OpenSSL's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Hash::Sha1 => "SHA1",
            Hash::Sha224 => "SHA224",
            Hash::Sha256 => "SHA256",
            Hash::Sha384 => "SHA384",
            Hash::Sha512 => "SHA512",
        }
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

    /// The digest of some bytes.
    pub fn digest(self, bytes: &[u8]) -> Vec<u8> {
        digest::digest(self.library(), bytes).as_ref().to_vec()
    }

    fn library(self) -> &'static digest::Algorithm {
        match self {
            Hash::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha224 => &digest::SHA224,
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha384 => &digest::SHA384,
            Hash::Sha512 => &digest::SHA512,
        }
    }
}

/// A digest in the making.
#[derive(Clone)]
pub struct Hasher {
    hash: Hash,
    context: digest::Context,
}

impl Hasher {
    /// That of nothing yet.
    pub fn new(hash: Hash) -> Hasher {
        Hasher { hash, context: digest::Context::new(hash.library()) }
    }

    /// Length of the digest, in bytes.
    pub fn bytes(&self) -> usize {
        self.hash.bytes()
    }

    /// Takes the next part of the message.
    pub fn update(&mut self, part: &[u8]) {
        self.context.update(part);
    }

    /// The digest of all parts.
    pub fn finish(self) -> Vec<u8> {
        self.context.finish().as_ref().to_vec()
    }
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
            assert_eq!(digest, hash.digest(b"abc"));
            assert_eq!(Hash::from_name(&hash.name().to_lowercase()), Some(hash));
        }
    }
}
