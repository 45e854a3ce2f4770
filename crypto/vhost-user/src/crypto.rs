//! The requests of virtio-crypto (virtio 1.2 § 5.9) as types: a session's parameters, the headers of the control and
//! the data queue, and the configuration space. All numbers are little-endian.

use crate::limits::{KEY_BYTES_MAX, Limits};
use keyway_engine::{Algorithm, Engine};
use std::fmt;

/// Length of the header of a control request and of a data request, in bytes.
pub const REQUEST_HEADER_BYTES: usize = 72;
/// Length of the configuration space, in bytes.
pub const CONFIG_BYTES: usize = 56;

const CIPHER_ENCRYPT: u32 = 0x000;
const CIPHER_DECRYPT: u32 = 0x001;
const CIPHER_CREATE: u32 = 0x002;
const CIPHER_DESTROY: u32 = 0x003;
const AKCIPHER_ENCRYPT: u32 = 0x400;
const AKCIPHER_DECRYPT: u32 = 0x401;
const AKCIPHER_SIGN: u32 = 0x402;
const AKCIPHER_VERIFY: u32 = 0x403;
const AKCIPHER_CREATE: u32 = 0x404;
const AKCIPHER_DESTROY: u32 = 0x405;

const SERVICE_CIPHER: u32 = 0;
const SERVICE_AKCIPHER: u32 = 4;
const AES_CBC: u32 = 3;
const RSA: u32 = 1;
const SYM_OP_CIPHER: u32 = 1;
const HARDWARE_READY: u32 = 1;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// It does not fit its session, or it failed.
    Err = 1,
    /// Its header is not one.
    BadMessage = 2,
    /// The device has no such algorithm.
    NotSupported = 3,
    /// It names no open session.
    InvalidSession = 4,
    /// There are as many sessions as there may be.
    NoSpace = 5,
    /// The key is none, or a signature is not right.
    KeyRejected = 6,
}

/// Which way a cipher's session works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From text to ciphertext.
    Encrypt,
    /// From ciphertext to text.
    Decrypt,
}

/// A session that is to be opened, with its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SessionRequest<'a> {
    /// AES in cipher block chaining mode.
    AesCbc {
        /// Which way.
        direction: Direction,
        /// 16, 24 or 32 bytes; others are refused when it is opened.
        key: &'a [u8],
    },
    /// RSA with the paddings of PKCS#1 v1.5.
    Rsa {
        /// Whether the key is an RSAPrivateKey, and not an RSAPublicKey (RFC 8017 § A.1), DER.
        private: bool,
        /// The hash of the digests that are signed. None where the DER of a DigestInfo is.
        hash: Option<Algorithm>,
        /// The key.
        key: &'a [u8],
    },
}

impl fmt::Debug for SessionRequest<'_> {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionRequest::AesCbc { direction, key } => {
                write!(f, "AesCbc({direction:?}, {} bytes)", key.len())
            }
            SessionRequest::Rsa { private, hash, key } => {
                write!(f, "Rsa(private: {private}, {hash:?}, {} bytes)", key.len())
            }
        }
    }
}

/// The parameters of a session without its key, which comes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionParameters {
    kind: SessionKind,
    /// How long the key is, in bytes.
    pub key_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionKind {
    AesCbc(Direction),
    Rsa { private: bool, hash: Option<Algorithm> },
}

impl SessionParameters {
    /// Those of a cipher, from the specification's numbers.
    ///
    /// # Errors
    /// [`Status::NotSupported`], or [`Status::BadMessage`] for a direction that is none.
    pub fn cipher(algorithm: u32, key_bytes: u32, direction: u32) -> Result<Self, Status> {
        if algorithm != AES_CBC {
            return Err(Status::NotSupported);
        }
        let direction = match direction {
            1 => Direction::Encrypt,
            2 => Direction::Decrypt,
            _ => return Err(Status::BadMessage),
        };
        Self::new(SessionKind::AesCbc(direction), key_bytes)
    }

    /// Those of an asymmetric cipher, from the specification's numbers.
    ///
    /// # Errors
    /// As [`SessionParameters::cipher`]. RSA without padding is not supported.
    pub fn akcipher(
        algorithm: u32,
        key_type: u32,
        key_bytes: u32,
        padding: u32,
        hash: u32,
    ) -> Result<Self, Status> {
        const PKCS1: u32 = 1;
        if algorithm != RSA || padding != PKCS1 {
            return Err(Status::NotSupported);
        }
        let private = match key_type {
            1 => false,
            2 => true,
            _ => return Err(Status::BadMessage),
        };
        let hash = match hash {
            0 => None,
            5 => Some(Algorithm::Sha1),
            6 => Some(Algorithm::Sha256),
            7 => Some(Algorithm::Sha384),
            8 => Some(Algorithm::Sha512),
            9 => Some(Algorithm::Sha224),
            _ => return Err(Status::NotSupported),
        };
        Self::new(SessionKind::Rsa { private, hash }, key_bytes)
    }

    fn new(kind: SessionKind, key_bytes: u32) -> Result<Self, Status> {
        match usize::try_from(key_bytes) {
            Ok(key_bytes @ 1..=KEY_BYTES_MAX) => Ok(SessionParameters { kind, key_bytes }),
            _ => Err(Status::KeyRejected),
        }
    }

    /// These and the key, which is at the front of `key`.
    ///
    /// # Errors
    /// [`Status::BadMessage`] if that is too short.
    pub fn with_key(self, key: &[u8]) -> Result<SessionRequest<'_>, Status> {
        let key = key.get(..self.key_bytes).ok_or(Status::BadMessage)?;
        Ok(match self.kind {
            SessionKind::AesCbc(direction) => SessionRequest::AesCbc { direction, key },
            SessionKind::Rsa { private, hash } => SessionRequest::Rsa { private, hash, key },
        })
    }
}

/// A request as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHeader {
    /// Of the control queue: opens a session, whose key follows the header. Or why it cannot.
    Create(Result<SessionParameters, Status>),
    /// Of the control queue: closes a session.
    Destroy {
        /// The session's number.
        session: u64,
    },
    /// Encrypts or decrypts. IV and source follow the header.
    Cipher {
        /// Which way.
        direction: Direction,
        /// The session's number.
        session: u64,
        /// Bytes of the IV.
        iv_bytes: u32,
        /// Bytes of the source.
        source_bytes: u32,
        /// Bytes of room for the result.
        destination_bytes: u32,
    },
    /// RSA. The source follows the header, and behind it what a verification compares with.
    Akcipher {
        /// What is done.
        operation: AkcipherOperation,
        /// The session's number.
        session: u64,
        /// Bytes of the source: to verify, of the signature.
        source_bytes: u32,
        /// Bytes of room for the result: to verify, of the digest behind the signature.
        destination_bytes: u32,
    },
    /// Anything else.
    Unknown,
}

/// What an asymmetric cipher does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AkcipherOperation {
    /// With the public key.
    Encrypt,
    /// With the private key.
    Decrypt,
    /// With the private key.
    Sign,
    /// With the public key.
    Verify,
}

impl RequestHeader {
    /// Reads a header of either queue: the two have no operation's number in common.
    pub fn decode(bytes: &[u8; REQUEST_HEADER_BYTES]) -> RequestHeader {
        let word = |at: usize| word_at(bytes, at);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        match word(0) {
            CIPHER_CREATE => RequestHeader::Create(match word(64) {
                SYM_OP_CIPHER => SessionParameters::cipher(word(16), word(20), word(24)),
                _ => Err(Status::NotSupported),
            }),
            AKCIPHER_CREATE => {
                let [algorithm, key_type, key_bytes, padding, hash] =
                    [16, 20, 24, 28, 32].map(word);
                let parameters =
                    SessionParameters::akcipher(algorithm, key_type, key_bytes, padding, hash);
                RequestHeader::Create(parameters)
            }
            CIPHER_DESTROY | AKCIPHER_DESTROY => RequestHeader::Destroy { session: long(16) },
            code @ (CIPHER_ENCRYPT | CIPHER_DECRYPT) if word(64) == SYM_OP_CIPHER => {
                RequestHeader::Cipher {
                    direction: match code {
                        CIPHER_ENCRYPT => Direction::Encrypt,
                        _ => Direction::Decrypt,
                    },
                    session: long(8),
                    iv_bytes: word(24),
                    source_bytes: word(28),
                    destination_bytes: word(32),
                }
            }
            code @ AKCIPHER_ENCRYPT..=AKCIPHER_VERIFY => RequestHeader::Akcipher {
                operation: match code {
                    AKCIPHER_ENCRYPT => AkcipherOperation::Encrypt,
                    AKCIPHER_DECRYPT => AkcipherOperation::Decrypt,
                    AKCIPHER_SIGN => AkcipherOperation::Sign,
                    _ => AkcipherOperation::Verify,
                },
                session: long(8),
                source_bytes: word(24),
                destination_bytes: word(28),
            },
            _ => RequestHeader::Unknown,
        }
    }
}

/// Whether a session's operation, as QEMU puts it before a session, is one of the asymmetric ciphers.
pub(crate) fn is_akcipher_create(code: u64) -> Option<bool> {
    match u32::try_from(code) {
        Ok(CIPHER_CREATE) => Some(false),
        Ok(AKCIPHER_CREATE) => Some(true),
        _ => None,
    }
}

/// The 32-bit number there; 0 behind the end.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// The configuration space (§ 5.9.4): what the engine offers, and the limits.
pub(crate) fn config(engine: &Engine, limits: Limits) -> [u8; CONFIG_BYTES] {
    let does = |algorithms: &[Algorithm]| algorithms.iter().all(|it| engine.offers(&[*it]));
    let cipher = does(&[Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc]);
    let rsa = does(&[Algorithm::RsaPkcs1, Algorithm::RsaesPkcs1]);
    let services = u32::from(cipher) << SERVICE_CIPHER | u32::from(rsa) << SERVICE_AKCIPHER;
    let words = [
        HARDWARE_READY,
        1, // Data queues.
        services,
        u32::from(cipher) << AES_CBC,
        0, // More ciphers,
        0, // hashes,
        0, // MACs,
        0, // more of them,
        0, // and AEAD.
        if cipher { 32 } else { 0 },
        0, // Bytes of a key of a MAC.
        u32::from(rsa) << RSA,
    ];
    let mut bytes = [0; CONFIG_BYTES];
    let (heads, _) = bytes.as_chunks_mut::<4>();
    for (to, word) in heads.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes[48..].copy_from_slice(&(limits.request_bytes as u64).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with these words, at these positions.
    fn header(words: &[(usize, u32)]) -> [u8; REQUEST_HEADER_BYTES] {
        let mut bytes = [0; REQUEST_HEADER_BYTES];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn headers_of_both_queues_are_told_apart() {
        let create = header(&[(0, 2), (16, 3), (20, 24), (24, 2), (64, 1)]);
        let RequestHeader::Create(Ok(parameters)) = RequestHeader::decode(&create) else {
            panic!("it opens a session");
        };
        let key = [7; 24];
        let session = SessionRequest::AesCbc { direction: Direction::Decrypt, key: &key };
        assert_eq!(parameters.with_key(&[7; 30]), Ok(session));
        assert_eq!(parameters.with_key(&[7; 23]), Err(Status::BadMessage));
        let destroy = header(&[(0, 0x405), (16, 9), (20, 1)]);
        let session = 1 << 32 | 9;
        assert_eq!(RequestHeader::decode(&destroy), RequestHeader::Destroy { session });
        let data = header(&[(8, 5), (24, 16), (28, 64), (32, 65), (64, 1)]);
        let cipher = RequestHeader::Cipher {
            direction: Direction::Encrypt,
            session: 5,
            iv_bytes: 16,
            source_bytes: 64,
            destination_bytes: 65,
        };
        assert_eq!(RequestHeader::decode(&data), cipher);
        let chained = header(&[(8, 5), (64, 2)]);
        assert_eq!(RequestHeader::decode(&chained), RequestHeader::Unknown);
        assert_eq!(RequestHeader::decode(&header(&[(0, 0x100)])), RequestHeader::Unknown);
    }

    #[test]
    fn parameters_that_the_device_has_not_are_refused() {
        use SessionParameters as It;
        assert_eq!(It::cipher(2, 16, 1), Err(Status::NotSupported));
        assert_eq!(It::cipher(3, 16, 0), Err(Status::BadMessage));
        assert_eq!(It::cipher(3, u32::MAX, 1), Err(Status::KeyRejected));
        assert_eq!(It::cipher(3, 0, 1), Err(Status::KeyRejected));
        assert_eq!(It::akcipher(1, 2, 100, 0, 0), Err(Status::NotSupported), "raw");
        assert_eq!(It::akcipher(1, 2, 100, 1, 4), Err(Status::NotSupported), "MD5");
        assert_eq!(It::akcipher(3, 2, 100, 1, 0), Err(Status::NotSupported), "ECDSA");
        assert_eq!(It::akcipher(1, 3, 100, 1, 0), Err(Status::BadMessage));
        assert!(It::akcipher(1, 1, 100, 1, 0).is_ok());
    }
}
