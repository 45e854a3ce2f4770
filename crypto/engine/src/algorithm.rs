//! The list of algorithms: what each is called, what it is for, which class it runs in.

use std::fmt;

/// The kind of an algorithm, which decides the [`Request`](crate::Request)s that fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Seal and open (RFC 5116).
    Aead,
    /// Protect and unprotect whole packets of QUIC (RFC 9001 § 5).
    Packet,
    /// QUIC's header masks alone (RFC 9001 § 5.4), for those who apply them themselves.
    Mask,
    /// Encrypt and decrypt without authentication; for chains, and for those who know why.
    Cipher,
    /// Compress and decompress.
    Compression,
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
    /// Encrypt to a public key, decrypt under the private one (RFC 8017 § 7).
    Encryption,
    /// Random bytes.
    Random,
    /// A key or verifier derived from a password, slow on purpose.
    Password,
}

impl Kind {
    /// Whether every request of it is of the fast class.
    pub const fn is_fast(self) -> bool {
        !matches!(self, Kind::Signature | Kind::Encryption | Kind::Exchange | Kind::Password)
    }
}

/// How long a request may take, and so where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tens of microseconds at most: where the scheduler says, the caller's stack included.
    Fast,
    /// More than that: in the bounded pool, unless the caller runs it on its own stack.
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

            /// Its kind.
            #[inline]
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
    /// AES-128 in counter with CBC-MAC mode, 16-byte tag (RFC 5116 § 5.3).
    Aes128Ccm "aes-128-ccm" Aead,
    /// AES-256 in counter with CBC-MAC mode, 16-byte tag (RFC 5116 § 5.4).
    Aes256Ccm "aes-256-ccm" Aead,
    /// GMAC with AES-128 (SP 800-38D § 3): seal and open an empty text; the message is the AAD.
    Aes128Gmac "aes-128-gmac" Aead,
    /// GMAC with AES-256 (SP 800-38D § 3): seal and open an empty text; the message is the AAD.
    Aes256Gmac "aes-256-gmac" Aead,
    /// QUIC packets under AES-128 in Galois/counter mode (RFC 9001, RFC 9369).
    QuicAes128Gcm "quic-aes-128-gcm" Packet,
    /// QUIC packets under AES-256 in Galois/counter mode (RFC 9001, RFC 9369).
    QuicAes256Gcm "quic-aes-256-gcm" Packet,
    /// QUIC packets under ChaCha20-Poly1305 (RFC 9001, RFC 9369).
    QuicChaCha20Poly1305 "quic-chacha20-poly1305" Packet,
    /// QUIC's header masks by AES-128 (RFC 9001 § 5.4.3).
    QuicMaskAes128 "quic-mask-aes-128" Mask,
    /// QUIC's header masks by AES-256 (RFC 9001 § 5.4.3).
    QuicMaskAes256 "quic-mask-aes-256" Mask,
    /// QUIC's header masks by ChaCha20 (RFC 9001 § 5.4.4).
    QuicMaskChaCha20 "quic-mask-chacha20" Mask,
    /// AES-128 in cipher block chaining mode, no padding (SP 800-38A).
    Aes128Cbc "aes-128-cbc" Cipher,
    /// AES-192 in cipher block chaining mode, no padding (SP 800-38A).
    Aes192Cbc "aes-192-cbc" Cipher,
    /// AES-256 in cipher block chaining mode, no padding (SP 800-38A).
    Aes256Cbc "aes-256-cbc" Cipher,
    /// AES-128 in counter mode, the whole block a big-endian counter (SP 800-38A).
    Aes128Ctr "aes-128-ctr" Cipher,
    /// AES-256 in counter mode, the whole block a big-endian counter (SP 800-38A).
    Aes256Ctr "aes-256-ctr" Cipher,
    /// AES-128 in XTS mode, a key of 32 bytes, at least 16 bytes of text (IEEE 1619).
    Aes128Xts "aes-128-xts" Cipher,
    /// AES-256 in XTS mode, a key of 64 bytes, at least 16 bytes of text (IEEE 1619).
    Aes256Xts "aes-256-xts" Cipher,
    /// Triple DES in cipher block chaining mode, three keys, no padding (SP 800-67). Legacy: off
    /// unless enabled.
    TripleDesCbc "3des-cbc" Cipher,
    /// DEFLATE without a frame (RFC 1951).
    Deflate "deflate" Compression,
    /// Zstandard frames (RFC 8878).
    Zstd "zstd" Compression,
    /// One LZ4 block, without a frame.
    Lz4 "lz4" Compression,
    /// MD5 (RFC 1321); for verifying old password values only.
    Md5 "md5" Hash,
    /// SHA-1 (FIPS 180-4); for old password values and in HMAC only.
    Sha1 "sha-1" Hash,
    /// SHA-224 (FIPS 180-4).
    Sha224 "sha-224" Hash,
    /// SHA-256 (FIPS 180-4).
    Sha256 "sha-256" Hash,
    /// SHA-384 (FIPS 180-4).
    Sha384 "sha-384" Hash,
    /// SHA-512 (FIPS 180-4).
    Sha512 "sha-512" Hash,
    /// SHA-512/256 (FIPS 180-4).
    Sha512_256 "sha-512-256" Hash,
    /// SHA3-256 (FIPS 202).
    Sha3_256 "sha3-256" Hash,
    /// SHA3-384 (FIPS 202).
    Sha3_384 "sha3-384" Hash,
    /// SHA3-512 (FIPS 202).
    Sha3_512 "sha3-512" Hash,
    /// HMAC with SHA-1 (RFC 2104); for old protocols only.
    HmacSha1 "hmac-sha-1" Mac,
    /// HMAC with SHA-256 (RFC 2104).
    HmacSha256 "hmac-sha-256" Mac,
    /// HMAC with SHA-384 (RFC 2104).
    HmacSha384 "hmac-sha-384" Mac,
    /// HMAC with SHA-512 (RFC 2104).
    HmacSha512 "hmac-sha-512" Mac,
    /// CMAC with AES-128 (SP 800-38B, RFC 4493).
    Aes128Cmac "aes-128-cmac" Mac,
    /// CMAC with AES-256 (SP 800-38B).
    Aes256Cmac "aes-256-cmac" Mac,
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
    /// ECDH on P-521 (SP 800-56A), uncompressed points.
    EcdhP521 "ecdh-p521" Exchange,
    /// Finite-field Diffie-Hellman in ffdhe2048 (RFC 7919).
    Ffdhe2048 "ffdhe2048" Exchange,
    /// Finite-field Diffie-Hellman in ffdhe3072 (RFC 7919).
    Ffdhe3072 "ffdhe3072" Exchange,
    /// Finite-field Diffie-Hellman in ffdhe4096 (RFC 7919).
    Ffdhe4096 "ffdhe4096" Exchange,
    /// ML-KEM-512 (FIPS 203).
    MlKem512 "ml-kem-512" Kem,
    /// ML-KEM-768 (FIPS 203).
    MlKem768 "ml-kem-768" Kem,
    /// ML-KEM-1024 (FIPS 203).
    MlKem1024 "ml-kem-1024" Kem,
    /// ECDSA on P-256 with SHA-256, DER signatures (FIPS 186-5).
    EcdsaP256Sha256 "ecdsa-p256-sha-256" Signature,
    /// ECDSA on P-256 with SHA-384, DER signatures (FIPS 186-5).
    EcdsaP256Sha384 "ecdsa-p256-sha-384" Signature,
    /// ECDSA on P-384 with SHA-256, DER signatures (FIPS 186-5).
    EcdsaP384Sha256 "ecdsa-p384-sha-256" Signature,
    /// ECDSA on P-384 with SHA-384, DER signatures (FIPS 186-5).
    EcdsaP384Sha384 "ecdsa-p384-sha-384" Signature,
    /// ECDSA on P-256, DER signatures (FIPS 186-5); each request names its hash, or brings a digest.
    EcdsaP256 "ecdsa-p256" Signature,
    /// ECDSA on P-384, DER signatures (FIPS 186-5); each request names its hash, or brings a digest.
    EcdsaP384 "ecdsa-p384" Signature,
    /// ECDSA on P-521, DER signatures (FIPS 186-5); each request names its hash, or brings a digest.
    EcdsaP521 "ecdsa-p521" Signature,
    /// Ed25519 (RFC 8032).
    Ed25519 "ed25519" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017).
    RsaPkcs1Sha256 "rsa-pkcs1-sha-256" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-384 (RFC 8017).
    RsaPkcs1Sha384 "rsa-pkcs1-sha-384" Signature,
    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017).
    RsaPkcs1Sha512 "rsa-pkcs1-sha-512" Signature,
    /// RSASSA-PKCS1-v1_5 (RFC 8017); each request names its hash, or brings a digest or a DigestInfo.
    RsaPkcs1 "rsa-pkcs1" Signature,
    /// RSASSA-PSS with SHA-256 (RFC 8017).
    RsaPssSha256 "rsa-pss-sha-256" Signature,
    /// RSASSA-PSS with SHA-384 (RFC 8017).
    RsaPssSha384 "rsa-pss-sha-384" Signature,
    /// RSASSA-PSS with SHA-512 (RFC 8017).
    RsaPssSha512 "rsa-pss-sha-512" Signature,
    /// RSASSA-PSS (RFC 8017); each request names its hash, and may name MGF1's and the salt's length.
    RsaPss "rsa-pss" Signature,
    /// ML-DSA-44 (FIPS 204), empty context.
    MlDsa44 "ml-dsa-44" Signature,
    /// ML-DSA-65 (FIPS 204), empty context.
    MlDsa65 "ml-dsa-65" Signature,
    /// ML-DSA-87 (FIPS 204), empty context.
    MlDsa87 "ml-dsa-87" Signature,
    /// RSAES-OAEP with SHA-1 and MGF1 with SHA-1 (RFC 8017 § 7.1), empty label; for old peers only.
    RsaOaepSha1 "rsa-oaep-sha-1" Encryption,
    /// RSAES-OAEP with SHA-256 and MGF1 with SHA-256 (RFC 8017 § 7.1), empty label.
    RsaOaepSha256 "rsa-oaep-sha-256" Encryption,
    /// RSAES-OAEP (RFC 8017 § 7.1); each request names its hash, and may name MGF1's and a label.
    RsaOaep "rsa-oaep" Encryption,
    /// RSAES-PKCS1-v1_5 (RFC 8017 § 7.2), for old peers only. A ciphertext whose padding is wrong decrypts to a
    /// message that only the key and the ciphertext decide, so that no answer tells of the padding.
    RsaesPkcs1 "rsaes-pkcs1" Encryption,
    /// Random bytes fit for keys.
    Random "random" Random,
    /// PBKDF2 with HMAC-SHA-1 (RFC 8018); for verifying old password values only.
    Pbkdf2Sha1 "pbkdf2-sha-1" Password,
    /// PBKDF2 with HMAC-SHA-256 (RFC 8018).
    Pbkdf2Sha256 "pbkdf2-sha-256" Password,
    /// PBKDF2 with HMAC-SHA-512 (RFC 8018).
    Pbkdf2Sha512 "pbkdf2-sha-512" Password,
    /// scrypt (RFC 7914).
    Scrypt "scrypt" Password,
    /// Argon2id version 1.3 (RFC 9106).
    Argon2id "argon2id" Password,
    /// Argon2i version 1.3 (RFC 9106); for verifying old password values only.
    Argon2i "argon2i" Password,
    /// bcrypt (Provos and Mazières 1999), `$2b$`; output is 23 bytes. For verifying old password
    /// values only: it looks at 72 bytes of a password, and at a NUL behind a shorter one.
    Bcrypt "bcrypt" Password,
    /// MD5-crypt, `$1$`; output is the 22 characters of crypt(3). For verifying old password values
    /// only.
    Md5Crypt "md5-crypt" Password,
    /// SHA-crypt with SHA-256, `$5$`; output is the 43 characters of crypt(3).
    Sha256Crypt "sha-256-crypt" Password,
    /// SHA-crypt with SHA-512, `$6$`; output is the 86 characters of crypt(3).
    Sha512Crypt "sha-512-crypt" Password,
}

impl Algorithm {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether an engine refuses it unless it was enabled.
    pub const fn is_legacy(self) -> bool {
        matches!(self, Algorithm::TripleDesCbc)
    }

    /// Length in bytes of a cipher's initialisation vector (XTS: of its tweak); 0 for the rest.
    pub const fn iv_bytes(self) -> usize {
        match self {
            Algorithm::TripleDesCbc => 8,
            _ if matches!(self.kind(), Kind::Cipher) => 16,
            _ => 0,
        }
    }

    /// Bytes that a cipher's text is a multiple of; 1 for those that take any length.
    #[inline]
    pub const fn block_bytes(self) -> usize {
        match self {
            Algorithm::Aes128Cbc | Algorithm::Aes192Cbc | Algorithm::Aes256Cbc => 16,
            Algorithm::TripleDesCbc => 8,
            _ => 1,
        }
    }

    /// Length in bytes of the secret key, where it is one number: ciphers, AEAD, CMAC; of
    /// QUIC's packets, of each of their keys.
    pub const fn key_bytes(self) -> Option<usize> {
        use Algorithm::*;
        Some(match self {
            Aes128Gcm | Aes128Ccm | Aes128Gmac | Aes128Cbc | Aes128Ctr | Aes128Cmac => 16,
            QuicAes128Gcm | QuicMaskAes128 => 16,
            Aes192Cbc | TripleDesCbc => 24,
            Aes256Gcm | Aes256Ccm | Aes256Gmac | Aes256Cbc | Aes256Ctr | Aes256Cmac => 32,
            ChaCha20Poly1305 | Aes128Xts | QuicAes256Gcm | QuicChaCha20Poly1305 => 32,
            QuicMaskAes256 | QuicMaskChaCha20 => 32,
            Aes256Xts => 64,
            _ => return None,
        })
    }

    /// Length in bytes of what it outputs, where that is one number: the digest, the MAC, the
    /// shared secret, the crypt(3) text. `None` where the caller or the key decides.
    pub const fn output_bytes(self) -> Option<usize> {
        use Algorithm::*;
        Some(match self {
            Aes128Cmac | Aes256Cmac | Md5 => 16,
            Sha1 | HmacSha1 => 20,
            Sha224 => 28,
            Sha256 | Sha512_256 | Sha3_256 | HmacSha256 | HkdfSha256 => 32,
            Sha384 | Sha3_384 | HmacSha384 | HkdfSha384 => 48,
            Sha512 | Sha3_512 | HmacSha512 => 64,
            X25519 | EcdhP256 | MlKem512 | MlKem768 | MlKem1024 => 32,
            EcdhP384 => 48,
            EcdhP521 => 66,
            Ffdhe2048 => 256,
            Ffdhe3072 => 384,
            Ffdhe4096 => 512,
            Bcrypt => 23,
            Md5Crypt => 22,
            Sha256Crypt => 43,
            Sha512Crypt => 86,
            _ => return None,
        })
    }

    /// Length in bytes of the public key that a generated key shows its peer.
    pub const fn public_key_bytes(self) -> Option<usize> {
        use Algorithm::*;
        Some(match self {
            X25519 => 32,
            EcdhP256 => 65,
            EcdhP384 => 97,
            EcdhP521 => 133,
            Ffdhe2048 => 256,
            Ffdhe3072 => 384,
            Ffdhe4096 => 512,
            MlKem512 => 800,
            MlKem768 => 1184,
            MlKem1024 => 1568,
            _ => return None,
        })
    }

    /// Length in bytes of what is sent to the peer who holds a KEM's key; `None` for the rest.
    pub const fn ciphertext_bytes(self) -> Option<usize> {
        Some(match self {
            Algorithm::MlKem512 => 768,
            Algorithm::MlKem768 => 1088,
            Algorithm::MlKem1024 => 1568,
            _ => return None,
        })
    }
}

impl Algorithm {
    /// The hash of a signature algorithm that names one.
    pub const fn signature_hash(self) -> Option<Algorithm> {
        use Algorithm::*;
        Some(match self {
            EcdsaP256Sha256 | EcdsaP384Sha256 | RsaPkcs1Sha256 | RsaPssSha256 => Sha256,
            EcdsaP256Sha384 | EcdsaP384Sha384 | RsaPkcs1Sha384 | RsaPssSha384 => Sha384,
            RsaPkcs1Sha512 | RsaPssSha512 => Sha512,
            _ => return None,
        })
    }

    /// The algorithm that leaves to each request what this one names.
    pub const fn general(self) -> Option<Algorithm> {
        use Algorithm::*;
        Some(match self {
            EcdsaP256Sha256 | EcdsaP256Sha384 => EcdsaP256,
            EcdsaP384Sha256 | EcdsaP384Sha384 => EcdsaP384,
            RsaPkcs1Sha256 | RsaPkcs1Sha384 | RsaPkcs1Sha512 => RsaPkcs1,
            RsaPssSha256 | RsaPssSha384 | RsaPssSha512 => RsaPss,
            RsaOaepSha1 | RsaOaepSha256 => RsaOaep,
            _ => return None,
        })
    }

    /// Whether its signatures are ECDSA's.
    pub const fn is_ecdsa(self) -> bool {
        use Algorithm::*;
        matches!(
            self,
            EcdsaP256
                | EcdsaP256Sha256
                | EcdsaP256Sha384
                | EcdsaP384
                | EcdsaP384Sha256
                | EcdsaP384Sha384
                | EcdsaP521
        )
    }

    /// Whether its signatures are RSASSA-PSS's.
    pub const fn is_pss(self) -> bool {
        matches!(
            self,
            Algorithm::RsaPss
                | Algorithm::RsaPssSha256
                | Algorithm::RsaPssSha384
                | Algorithm::RsaPssSha512
        )
    }

    /// Whether its keys are RSA's.
    pub const fn is_rsa(self) -> bool {
        use Algorithm::*;
        matches!(
            self,
            RsaPkcs1
                | RsaPkcs1Sha256
                | RsaPkcs1Sha384
                | RsaPkcs1Sha512
                | RsaOaep
                | RsaOaepSha1
                | RsaOaepSha256
                | RsaesPkcs1
        ) || self.is_pss()
    }
}

impl std::str::FromStr for Algorithm {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Algorithm::ALL.iter().copied().find(|algorithm| algorithm.name() == name).ok_or(Unknown)
    }
}

/// No algorithm has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no algorithm has that name; `keyway crypto list` shows them all")
    }
}

impl std::error::Error for Unknown {}

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
