//! The list of algorithms: what each is called, what it is for, which class it runs in.

use std::fmt;

/// What an algorithm does, which decides the [`Request`](crate::Request)s that fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Seal and open (RFC 5116).
    Aead,
    /// Digest, in one request or as a stream.
    Hash,
    /// Message authentication under a key.
    Mac,
    /// HKDF (RFC 5869): extract when the session is opened, expand as a request.
    Hkdf,
    /// Diffie-Hellman: generate, public key, agree.
    Exchange,
    /// Key encapsulation: generate, public key, encapsulate, decapsulate.
    Kem,
    /// Sign under a private key, verify under a public one.
    Signature,
    /// Random bytes.
    Random,
    /// A key or verifier derived from a password, slow on purpose.
    Password,
}

/// How long a request may take, and so where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nanoseconds to a millisecond: on the caller's stack.
    Fast,
    /// Milliseconds and up, by design: in the bounded pool.
    Slow,
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $id:ident $name:literal $kind:ident,)*) => {
        /// Everything the framework can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Algorithm { $($(#[$doc])* $id,)* }

        impl Algorithm {
            /// Every algorithm, in declaration order; an algorithm's index here is `self as usize`.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$id,)*];

            /// The name used in metrics, flags and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Algorithm::$id => $name,)* }
            }

            /// What it does.
            pub const fn kind(self) -> Kind {
                match self { $(Algorithm::$id => Kind::$kind,)* }
            }
        }
    };
}

algorithms! {
    /// AES-128 in Galois/counter mode (SP 800-38D).
    Aes128Gcm "aes-128-gcm" Aead,
    /// AES-256 in Galois/counter mode (SP 800-38D).
    Aes256Gcm "aes-256-gcm" Aead,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305 "chacha20-poly1305" Aead,
    /// SHA-1 (FIPS 180-4); for verifying old password values only.
    Sha1 "sha-1" Hash,
    /// SHA-256 (FIPS 180-4).
    Sha256 "sha-256" Hash,
    /// SHA-384 (FIPS 180-4).
    Sha384 "sha-384" Hash,
    /// SHA-512 (FIPS 180-4).
    Sha512 "sha-512" Hash,
    /// HMAC with SHA-256 (RFC 2104).
    HmacSha256 "hmac-sha-256" Mac,
    /// HMAC with SHA-384 (RFC 2104).
    HmacSha384 "hmac-sha-384" Mac,
    /// HMAC with SHA-512 (RFC 2104).
    HmacSha512 "hmac-sha-512" Mac,
    /// HKDF with SHA-256 (RFC 5869).
    HkdfSha256 "hkdf-sha-256" Hkdf,
    /// HKDF with SHA-384 (RFC 5869).
    HkdfSha384 "hkdf-sha-384" Hkdf,
    /// X25519 (RFC 7748).
    X25519 "x25519" Exchange,
    /// ECDH on P-256 (SP 800-56A), uncompressed points.
    EcdhP256 "ecdh-p256" Exchange,
    /// ECDH on P-384 (SP 800-56A), uncompressed points.
    EcdhP384 "ecdh-p384" Exchange,
    /// ML-KEM-768 (FIPS 203).
    MlKem768 "ml-kem-768" Kem,
    /// ECDSA on P-256 with SHA-256, DER signatures (FIPS 186-5).
    EcdsaP256Sha256 "ecdsa-p256-sha-256" Signature,
    /// ECDSA on P-256 with SHA-384, DER signatures; verification only.
    EcdsaP256Sha384 "ecdsa-p256-sha-384" Signature,
    /// ECDSA on P-384 with SHA-256, DER signatures; verification only.
    EcdsaP384Sha256 "ecdsa-p384-sha-256" Signature,
    /// ECDSA on P-384 with SHA-384, DER signatures (FIPS 186-5).
    EcdsaP384Sha384 "ecdsa-p384-sha-384" Signature,
    /// Ed25519 (RFC 8032).
    Ed25519 "ed25519" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017).
    RsaPkcs1Sha256 "rsa-pkcs1-sha-256" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-384 (RFC 8017).
    RsaPkcs1Sha384 "rsa-pkcs1-sha-384" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017).
    RsaPkcs1Sha512 "rsa-pkcs1-sha-512" Signature,
    /// RSASSA-PSS with SHA-256 (RFC 8017).
    RsaPssSha256 "rsa-pss-sha-256" Signature,
    /// RSASSA-PSS with SHA-384 (RFC 8017).
    RsaPssSha384 "rsa-pss-sha-384" Signature,
    /// RSASSA-PSS with SHA-512 (RFC 8017).
    RsaPssSha512 "rsa-pss-sha-512" Signature,
    /// Random bytes fit for keys.
    Random "random" Random,
    /// PBKDF2 with HMAC-SHA-1 (RFC 8018); for verifying old password values only.
    Pbkdf2Sha1 "pbkdf2-sha-1" Password,
    /// PBKDF2 with HMAC-SHA-256 (RFC 8018).
    Pbkdf2Sha256 "pbkdf2-sha-256" Password,
    /// PBKDF2 with HMAC-SHA-512 (RFC 8018).
    Pbkdf2Sha512 "pbkdf2-sha-512" Password,
    /// Argon2id version 1.3 (RFC 9106).
    Argon2id "argon2id" Password,
    /// Argon2i version 1.3 (RFC 9106); for verifying old password values only.
    Argon2i "argon2i" Password,
    /// SHA-crypt with SHA-256, `$5$`; output is the 43 characters of crypt(3).
    Sha256Crypt "sha-256-crypt" Password,
    /// SHA-crypt with SHA-512, `$6$`; output is the 86 characters of crypt(3).
    Sha512Crypt "sha-512-crypt" Password,
}

impl Algorithm {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The class its requests run in.
    pub const fn class(self) -> Class {
        match self.kind() {
            Kind::Password => Class::Slow,
            _ => Class::Fast,
        }
    }

    /// Length in bytes of what it outputs, where that is one number: the digest, the MAC, the
    /// shared secret, the crypt(3) text. `None` where the caller or the key decides.
    pub const fn output_bytes(self) -> Option<usize> {
        Some(match self {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 | Algorithm::HmacSha256 | Algorithm::HkdfSha256 => 32,
            Algorithm::Sha384 | Algorithm::HmacSha384 | Algorithm::HkdfSha384 => 48,
            Algorithm::Sha512 | Algorithm::HmacSha512 => 64,
            Algorithm::X25519 | Algorithm::EcdhP256 | Algorithm::MlKem768 => 32,
            Algorithm::EcdhP384 => 48,
            Algorithm::Sha256Crypt => 43,
            Algorithm::Sha512Crypt => 86,
            _ => return None,
        })
    }

    /// Length in bytes of the public key that a generated key shows its peer.
    pub const fn public_key_bytes(self) -> Option<usize> {
        Some(match self {
            Algorithm::X25519 => 32,
            Algorithm::EcdhP256 => 65,
            Algorithm::EcdhP384 => 97,
            Algorithm::MlKem768 => 1184,
            _ => return None,
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_position_and_names_differ() {
        let mut names: Vec<_> = Algorithm::ALL.iter().map(|a| a.name()).collect();
        for (index, algorithm) in Algorithm::ALL.iter().enumerate() {
            assert_eq!(*algorithm as usize, index);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Algorithm::COUNT);
    }
}
