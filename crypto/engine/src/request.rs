//! What a consumer hands over: parameters that open a session, requests that run on it.

use crate::{Algorithm, Error, Kind, limits};
use std::fmt;
use zeroize::Zeroizing;

/// Nonce length of every AEAD here, in bytes.
pub const NONCE_BYTES: usize = 12;
/// Tag length of every AEAD here, in bytes.
pub const TAG_BYTES: usize = 16;

/// What a session is opened with. The driver copies what it needs; the caller may wipe his.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// What the session does.
    pub algorithm: Algorithm,
    /// Under which key.
    pub key: Key<'a>,
    /// Demand this driver by name; `None` leaves the choice to the scheduler.
    pub driver: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    /// Parameters that leave the choice of driver to the scheduler.
    pub fn new(algorithm: Algorithm, key: Key<'a>) -> Self {
        Parameters { algorithm, key, driver: None }
    }
}

/// Where a session's key comes from.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    /// No key: hashes, random bytes, verification, encapsulation, password hashing.
    None,
    /// The key itself: AEAD, MAC, or an HKDF pseudo-random key.
    Secret(&'a [u8]),
    /// HKDF-Extract of these (RFC 5869 § 2.2).
    Extract {
        /// The salt; empty stands for a string of zeros.
        salt: &'a [u8],
        /// The input keying material.
        secret: &'a [u8],
    },
    /// A fresh key pair, whose private half never leaves the driver.
    Generate,
    /// A private key as PKCS#8 (RFC 5208, RFC 5958), DER.
    Pkcs8(&'a [u8]),
    /// An RSA private key as PKCS#1 (RFC 8017), DER.
    Pkcs1(&'a [u8]),
    /// An elliptic-curve private key as SEC 1 (RFC 5915), DER.
    Sec1(&'a [u8]),
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::None => "None",
            Key::Secret(_) => "Secret(..)",
            Key::Extract { .. } => "Extract(..)",
            Key::Generate => "Generate",
            Key::Pkcs8(_) => "Pkcs8(..)",
            Key::Pkcs1(_) => "Pkcs1(..)",
            Key::Sec1(_) => "Sec1(..)",
        })
    }
}

/// How much work a password derivation is made to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// PBKDF2 (RFC 8018 § 5.2).
    Pbkdf2 {
        /// Iterations, at least 1.
        iterations: u32,
    },
    /// Argon2 (RFC 9106 § 3.1).
    Argon2 {
        /// Memory in KiB, at least 8 a lane.
        memory_kib: u32,
        /// Passes over it, at least 1.
        passes: u32,
        /// Lanes, at least 1.
        lanes: u32,
    },
    /// SHA-crypt.
    ShaCrypt {
        /// Rounds, 1,000 to 9,999,999.
        rounds: u32,
    },
}

/// One operation, on the caller's stack. `run` returns how many bytes it put out.
pub enum Request<'a> {
    /// Encrypt `data` in place and write the tag.
    Seal {
        /// Never twice under one key.
        nonce: &'a [u8; NONCE_BYTES],
        /// Authenticated, not encrypted.
        aad: &'a [u8],
        /// Plaintext in, ciphertext out.
        data: &'a mut [u8],
        /// The tag.
        tag: &'a mut [u8; TAG_BYTES],
    },
    /// Check and decrypt in place; on failure `data` holds nothing of the plaintext.
    Open {
        /// As it was sealed.
        nonce: &'a [u8; NONCE_BYTES],
        /// As it was sealed.
        aad: &'a [u8],
        /// Ciphertext and then tag in; the plaintext is all but the last [`TAG_BYTES`].
        data: &'a mut [u8],
    },
    /// Hash the parts one after the other.
    Digest {
        /// The message in parts.
        data: &'a [&'a [u8]],
        /// Exactly [`Algorithm::output_bytes`].
        out: &'a mut [u8],
    },
    /// Authenticate the parts one after the other.
    Mac {
        /// The message in parts.
        data: &'a [&'a [u8]],
        /// Exactly [`Algorithm::output_bytes`].
        out: &'a mut [u8],
    },
    /// HKDF-Expand (RFC 5869 § 2.3).
    Expand {
        /// The context in parts.
        info: &'a [&'a [u8]],
        /// At most 255 hash lengths.
        out: &'a mut [u8],
    },
    /// Write the public half of a generated or private key.
    PublicKey {
        /// At least [`Algorithm::public_key_bytes`].
        out: &'a mut [u8],
    },
    /// Diffie-Hellman with the peer's public key.
    Agree {
        /// The peer's share.
        peer: &'a [u8],
        /// Exactly [`Algorithm::output_bytes`].
        out: &'a mut [u8],
    },
    /// Make a shared secret for the peer's encapsulation key.
    Encapsulate {
        /// The peer's encapsulation key.
        peer: &'a [u8],
        /// For the peer; 1,088 bytes with ML-KEM-768.
        ciphertext: &'a mut [u8],
        /// For us.
        secret: &'a mut [u8],
    },
    /// Open the shared secret that a peer encapsulated to our generated key.
    Decapsulate {
        /// From the peer.
        ciphertext: &'a [u8],
        /// For us.
        secret: &'a mut [u8],
    },
    /// Sign the whole message.
    Sign {
        /// The message, not its digest.
        message: &'a [u8],
        /// Room for the longest signature of this key; `run` says how much was used.
        out: &'a mut [u8],
    },
    /// Check a signature over the whole message.
    Verify {
        /// The subjectPublicKey bits of RFC 5280: a point, 32 bytes, or an RSAPublicKey.
        public_key: &'a [u8],
        /// The message, not its digest.
        message: &'a [u8],
        /// The signature.
        signature: &'a [u8],
    },
    /// Random bytes fit for keys.
    Random {
        /// Filled wholly.
        out: &'a mut [u8],
    },
    /// Derive from a password.
    Derive {
        /// How much work.
        cost: Cost,
        /// The password.
        password: &'a [u8],
        /// The salt.
        salt: &'a [u8],
        /// The derived bytes; for SHA-crypt exactly [`Algorithm::output_bytes`].
        out: &'a mut [u8],
    },
}

impl Request<'_> {
    /// Bytes worked on, for the meters.
    pub fn bytes(&self) -> usize {
        match self {
            Request::Seal { data, .. } => data.len(),
            Request::Open { data, .. } => data.len().saturating_sub(TAG_BYTES),
            Request::Digest { data, .. } | Request::Mac { data, .. } => {
                data.iter().map(|part| part.len()).sum()
            }
            Request::Sign { message, .. } | Request::Verify { message, .. } => message.len(),
            Request::Expand { out, .. } | Request::Random { out } | Request::Derive { out, .. } => {
                out.len()
            }
            Request::PublicKey { .. }
            | Request::Agree { .. }
            | Request::Encapsulate { .. }
            | Request::Decapsulate { .. } => 0,
        }
    }

    /// Refuses what no driver could do, so that drivers need not each check it.
    #[inline]
    pub(crate) fn check(&self, algorithm: Algorithm) -> Result<(), Error> {
        let fits = match self {
            Request::Seal { data, .. } => {
                algorithm.kind() == Kind::Aead && data.len() <= limits::REQUEST_BYTES_MAX
            }
            Request::Open { data, .. } => {
                if data.len() < TAG_BYTES {
                    return Err(Error::Authentication);
                }
                algorithm.kind() == Kind::Aead && data.len() <= limits::REQUEST_BYTES_MAX
            }
            Request::Digest { out, .. } => {
                algorithm.kind() == Kind::Hash && algorithm.output_bytes() == Some(out.len())
            }
            Request::Mac { out, .. } => {
                algorithm.kind() == Kind::Mac && algorithm.output_bytes() == Some(out.len())
            }
            Request::Expand { .. } => algorithm.kind() == Kind::Hkdf,
            Request::PublicKey { .. } => {
                matches!(algorithm.kind(), Kind::Exchange | Kind::Kem | Kind::Signature)
            }
            Request::Agree { out, .. } => {
                algorithm.kind() == Kind::Exchange && algorithm.output_bytes() == Some(out.len())
            }
            Request::Encapsulate { secret, .. } | Request::Decapsulate { secret, .. } => {
                algorithm.kind() == Kind::Kem && algorithm.output_bytes() == Some(secret.len())
            }
            Request::Sign { .. } | Request::Verify { .. } => algorithm.kind() == Kind::Signature,
            Request::Random { .. } => algorithm.kind() == Kind::Random,
            Request::Derive { cost, password, salt, out } => {
                return check_derivation(algorithm, *cost, password, salt, out.len());
            }
        };
        if fits { Ok(()) } else { Err(Error::InvalidRequest("it does not fit the algorithm")) }
    }
}

/// A password derivation that owns its inputs, for the slow class.
pub struct Derivation {
    /// Of [`Kind::Password`].
    pub algorithm: Algorithm,
    /// How much work.
    pub cost: Cost,
    /// The password; wiped when done.
    pub password: Zeroizing<Vec<u8>>,
    /// The salt.
    pub salt: Vec<u8>,
    /// How many bytes to derive; for SHA-crypt exactly [`Algorithm::output_bytes`].
    pub output_bytes: usize,
}

impl Derivation {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_derivation(self.algorithm, self.cost, &self.password, &self.salt, self.output_bytes)
    }
}

fn check_derivation(
    algorithm: Algorithm,
    cost: Cost,
    password: &[u8],
    salt: &[u8],
    output_bytes: usize,
) -> Result<(), Error> {
    use Algorithm::*;
    let within = |value: u32, low: u32, high: u32| (low..=high).contains(&value);
    let cost_fits = match (algorithm, cost) {
        (Pbkdf2Sha1 | Pbkdf2Sha256 | Pbkdf2Sha512, Cost::Pbkdf2 { iterations }) => {
            within(iterations, 1, limits::PBKDF2_ITERATIONS_MAX)
        }
        (Argon2id | Argon2i, Cost::Argon2 { memory_kib, passes, lanes }) => {
            within(lanes, 1, limits::ARGON2_LANES_MAX)
                && within(passes, 1, limits::ARGON2_PASSES_MAX)
                && within(memory_kib, 8 * lanes, limits::ARGON2_MEMORY_KIB_MAX)
        }
        (Sha256Crypt | Sha512Crypt, Cost::ShaCrypt { rounds }) => {
            within(rounds, limits::SHA_CRYPT_ROUNDS_MIN, limits::SHA_CRYPT_ROUNDS_MAX)
        }
        _ => return Err(Error::InvalidRequest("the cost is another algorithm's")),
    };
    if !cost_fits {
        return Err(Error::InvalidRequest("the cost is outside its limits"));
    }
    if password.len() > limits::PASSWORD_BYTES_MAX {
        return Err(Error::InvalidRequest("the password is too long"));
    }
    if salt.len() > limits::SALT_BYTES_MAX {
        return Err(Error::InvalidRequest("the salt is too long"));
    }
    let length_fits = match algorithm.output_bytes() {
        Some(exact) => output_bytes == exact,
        None => (1..=limits::DERIVED_BYTES_MAX).contains(&output_bytes),
    };
    if length_fits { Ok(()) } else { Err(Error::InvalidRequest("the output length is wrong")) }
}
