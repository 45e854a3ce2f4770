//! A consumer's request: one operation, with borrowed buffers.

use crate::lengths::LengthLimits;
use crate::{
    Algorithm, Class, Error, ExpectedLength, Field, Kind, OaepParameters, RequestError,
    SignatureParameters, limits,
};
use std::fmt;
use std::ops::Range;
use zeroize::Zeroizing;

/// Nonce length of every AEAD here, in bytes.
pub const NONCE_BYTES: usize = 12;
/// Tag length of every AEAD here, in bytes.
pub const TAG_BYTES: usize = 16;
/// Longest initialisation vector of a cipher, in bytes; [`Algorithm::iv_bytes`] says how many of
/// them count.
pub const IV_BYTES_MAX: usize = 16;

/// Bytes of ciphertext that a QUIC header mask is made from (RFC 9001 § 5.4.2).
pub const SAMPLE_BYTES: usize = 16;
/// Length of a QUIC header mask, in bytes (RFC 9001 § 5.4.1).
pub const MASK_BYTES: usize = 5;

/// The direction that a chain is run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In the session's order: compress, encrypt, write tags.
    Protect,
    /// Backwards: check tags, decrypt, decompress.
    Unprotect,
}

/// The part of the data that one step of a chain works on. Positions count in the request's `data`.
///
/// Compression changes the length of its text. The bytes behind the text move with its end, and the
/// engine moves the positions of the other parts too. So positions are always those of the data as
/// it is when the request begins: not yet compressed when protecting, not yet decompressed when
/// unprotecting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Encrypts or decrypts `text` in place.
    Cipher {
        /// Where its initialisation vector is.
        iv: Iv,
        /// The text; a multiple of [`Algorithm::block_bytes`].
        text: Range<usize>,
    },
    /// Authenticates `over` and writes the tag, or checks it. A tag shorter than
    /// [`Algorithm::output_bytes`] is the front of the whole one; at least
    /// [`CHAIN_TAG_BYTES_MIN`](limits::CHAIN_TAG_BYTES_MIN) bytes.
    Mac {
        /// The authenticated part.
        over: Range<usize>,
        /// Where the tag lies; not within `over`.
        tag: Range<usize>,
    },
    /// Compresses or decompresses `text`.
    Compression {
        /// The text.
        text: Range<usize>,
    },
}

/// Where a cipher's initialisation vector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iv {
    /// Here; of a shorter one, the first bytes.
    Given([u8; IV_BYTES_MAX]),
    /// In the data, at this position; the consumer put it there.
    At(usize),
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
    /// scrypt (RFC 7914 § 2).
    Scrypt {
        /// The binary logarithm of the cost parameter N.
        log_n: u8,
        /// Block size.
        r: u32,
        /// Parallelisation.
        p: u32,
    },
    /// bcrypt.
    Bcrypt {
        /// The binary logarithm of its rounds, 4 to 20.
        log_rounds: u32,
    },
    /// MD5-crypt: 1,000 rounds, always.
    Md5Crypt,
    /// SHA-crypt.
    ShaCrypt {
        /// Rounds, 1,000 to 9,999,999.
        rounds: u32,
    },
}

/// How far [`Request::VerifyPassword`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Only as far as a driver remembers: whether it has found this password right for this entry
    /// and this stored value lately. It runs in the fast class. That it does not know says nothing
    /// of the password.
    Recall,
    /// Until it is known. It runs in the slow class.
    Full,
}

/// The fields that [`Request::Unprotect`] found in a packet that was authentic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Its whole number.
    pub number: u64,
    /// Length of its header with the number, in bytes. The payload lies behind it, and `run`
    /// returns the payload's length.
    pub header_bytes: usize,
    /// Under which of the session's keys it was.
    pub phase: Phase,
}

/// One of the keys of a session for QUIC's packets (RFC 9001 § 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The key in use.
    #[default]
    Current,
    /// The key before it.
    Previous,
    /// The key after it: the peer has updated its keys.
    Next,
}

/// The names of requests and of operations, which are the same.
macro_rules! name_of {
    ($of:ident, $it:expr) => {
        match $it {
            $of::Seal { .. } => "seal",
            $of::Open { .. } => "open",
            $of::Protect { .. } => "protect",
            $of::Unprotect { .. } => "unprotect",
            $of::Mask { .. } => "mask",
            $of::Encrypt { .. } => "encrypt",
            $of::Decrypt { .. } => "decrypt",
            $of::Compress { .. } => "compress",
            $of::Decompress { .. } => "decompress",
            $of::Chain { .. } => "chain",
            $of::Digest { .. } => "digest",
            $of::Mac { .. } => "mac",
            $of::Expand { .. } => "expand",
            $of::PublicKey { .. } => "public key",
            $of::Agree { .. } => "agree",
            $of::Encapsulate { .. } => "encapsulate",
            $of::Decapsulate { .. } => "decapsulate",
            $of::Sign { .. } => "sign",
            $of::Verify { .. } => "verify",
            $of::PublicEncrypt { .. } => "public encrypt",
            $of::PrivateDecrypt { .. } => "private decrypt",
            $of::Random { .. } => "random",
            $of::Derive { .. } => "derive",
            $of::VerifyPassword { .. } => "verify password",
        }
    };
}
pub(crate) use name_of;

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
    /// Protect a QUIC packet in place: its number written, its payload sealed, its header masked.
    Protect {
        /// The packet's number, higher than that of every packet the session protected before; the
        /// lowest bytes of it go to the end of the header, as many as its first byte says.
        number: u64,
        /// Length of the header with the number, in bytes.
        header_bytes: usize,
        /// Header, payload, and [`TAG_BYTES`] of room for the tag. Number and payload have 4 bytes
        /// together, at least (RFC 9001 § 5.4.2).
        packet: &'a mut [u8],
    },
    /// Take the protection off a QUIC packet in place; on failure nothing of the plaintext is
    /// there.
    Unprotect {
        /// The highest number received so far in the packet's number space.
        largest: Option<u64>,
        /// Where its number starts, in bytes from the packet's start.
        number_at: usize,
        /// The packet to its end; afterwards header, plaintext and tag.
        packet: &'a mut [u8],
        /// The fields found, where it was authentic.
        opened: &'a mut Opened,
    },
    /// Make a QUIC header mask.
    Mask {
        /// From the packet's ciphertext.
        sample: &'a [u8; SAMPLE_BYTES],
        /// The mask.
        out: &'a mut [u8; MASK_BYTES],
    },
    /// Encrypt `data` in place with a cipher.
    Encrypt {
        /// [`Algorithm::iv_bytes`] of it count.
        iv: &'a [u8; IV_BYTES_MAX],
        /// A multiple of [`Algorithm::block_bytes`].
        data: &'a mut [u8],
    },
    /// Decrypt `data` in place with a cipher.
    Decrypt {
        /// As it was encrypted.
        iv: &'a [u8; IV_BYTES_MAX],
        /// A multiple of [`Algorithm::block_bytes`].
        data: &'a mut [u8],
    },
    /// Compress.
    Compress {
        /// The text.
        data: &'a [u8],
        /// Room for the result; too little is an error.
        out: &'a mut [u8],
    },
    /// Decompress.
    Decompress {
        /// The compressed bytes.
        data: &'a [u8],
        /// Room for the text; too little is an error, so that no bomb goes off.
        out: &'a mut [u8],
    },
    /// All of a chain's steps.
    Chain {
        /// The direction.
        direction: Direction,
        /// The message, and room behind it if a step makes it longer.
        data: &'a mut [u8],
        /// Length of the message in `data`; `run` returns its length afterwards.
        length: usize,
        /// The part that each step works on, in the session's order.
        parts: &'a [Part],
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
        /// For the peer; [`Algorithm::ciphertext_bytes`].
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
    /// Sign a message.
    Sign {
        /// The message, or its digest where the parameters say so.
        message: &'a [u8],
        /// How.
        parameters: SignatureParameters,
        /// Room for the longest signature of this key; `run` says how much was used.
        out: &'a mut [u8],
    },
    /// Check a signature over a message.
    Verify {
        /// The subjectPublicKey bits of RFC 5280: a point, 32 bytes, or an RSAPublicKey.
        public_key: &'a [u8],
        /// The message, or its digest where the parameters say so.
        message: &'a [u8],
        /// How it was signed.
        parameters: SignatureParameters,
        /// The signature.
        signature: &'a [u8],
    },
    /// Encrypt a short message to the holder of the private key.
    PublicEncrypt {
        /// An RSAPublicKey (RFC 8017 § A.1.1), DER.
        public_key: &'a [u8],
        /// The message.
        message: &'a [u8],
        /// How it is padded.
        parameters: OaepParameters,
        /// OAEP's label.
        label: &'a [u8],
        /// Room for as many bytes as the modulus has.
        out: &'a mut [u8],
    },
    /// Decrypt what was encrypted to this session's key.
    PrivateDecrypt {
        /// From the peer.
        ciphertext: &'a [u8],
        /// How it was padded.
        parameters: OaepParameters,
        /// OAEP's label.
        label: &'a [u8],
        /// Room for as many bytes as the modulus has.
        out: &'a mut [u8],
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
    /// Check a password against what was once derived from it. `run` returns 1 if it is right. It
    /// returns 0 only for [`Effort::Recall`], where the driver does not know;
    /// [`Error::Authentication`], only for [`Effort::Full`], says that it is wrong.
    VerifyPassword {
        /// How far to go.
        effort: Effort,
        /// How much work the derivation is.
        cost: Cost,
        /// The owner of the password: any bytes by which a driver that remembers tells one from
        /// another, [`ENTRY_BYTES_MAX`](limits::ENTRY_BYTES_MAX) at most. Empty for no owner:
        /// nothing is remembered then.
        entry: &'a [u8],
        /// The password.
        password: &'a [u8],
        /// The salt.
        salt: &'a [u8],
        /// The bytes that the derivation has to come to, as many as it makes.
        expected: &'a [u8],
    },
}

impl Request<'_> {
    /// Bytes worked on, for the meters.
    pub fn bytes(&self) -> usize {
        match self {
            Request::Seal { data, .. }
            | Request::Encrypt { data, .. }
            | Request::Decrypt { data, .. } => data.len(),
            Request::Compress { data, .. } | Request::Decompress { data, .. } => data.len(),
            Request::Chain { data, length, .. } => data.len().min(*length),
            Request::Open { data, .. } => data.len().saturating_sub(TAG_BYTES),
            Request::Protect { packet, .. } | Request::Unprotect { packet, .. } => packet.len(),
            Request::Mask { .. } => MASK_BYTES,
            Request::Digest { data, .. } | Request::Mac { data, .. } => {
                data.iter().map(|part| part.len()).sum()
            }
            Request::Sign { message, .. }
            | Request::Verify { message, .. }
            | Request::PublicEncrypt { message, .. } => message.len(),
            Request::PrivateDecrypt { ciphertext, .. } => ciphertext.len(),
            Request::Expand { out, .. } | Request::Random { out } | Request::Derive { out, .. } => {
                out.len()
            }
            Request::VerifyPassword { expected, .. } => expected.len(),
            Request::PublicKey { .. }
            | Request::Agree { .. }
            | Request::Encapsulate { .. }
            | Request::Decapsulate { .. } => 0,
        }
    }

    /// The class that it runs in where the engine chooses. A request that the caller runs on its
    /// own stack takes the caller's time, whatever its class.
    pub fn class(&self, algorithm: Algorithm) -> Class {
        use Algorithm::*;
        let slow = match self {
            Request::Derive { .. }
            | Request::PrivateDecrypt { .. }
            | Request::VerifyPassword { effort: Effort::Full, .. } => true,
            Request::Sign { .. } => !matches!(
                algorithm,
                Ed25519 | EcdsaP256 | EcdsaP256Sha256 | EcdsaP256Sha384 | EcdsaP384Sha256
            ),
            Request::Agree { .. } => matches!(algorithm, Ffdhe2048 | Ffdhe3072 | Ffdhe4096),
            _ => false,
        };
        if slow { Class::Slow } else { Class::Fast }
    }

    /// Whether it only asks what a driver remembers, which the meters count apart.
    pub(crate) fn is_recall(&self) -> bool {
        matches!(self, Request::VerifyPassword { effort: Effort::Recall, .. })
    }

    /// [`Request::bytes`] if it fits the algorithm. This is for the fast path, which needs no
    /// reason for a refusal. Rare kinds return `None`, and [`Request::check`] decides.
    #[inline(always)]
    pub(crate) fn bytes_if_fit(
        &self,
        algorithm: Algorithm,
        limits: &LengthLimits,
    ) -> Option<usize> {
        let (bytes, fits) = match self {
            Request::Seal { data, .. } => (data.len(), limits.fit_kind(Kind::Aead, data.len())),
            Request::Open { data, .. } => {
                let bytes = data.len().checked_sub(TAG_BYTES)?;
                (bytes, limits.fit_kind(Kind::Aead, bytes))
            }
            Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => {
                (data.len(), limits.fit_kind(Kind::Cipher, data.len()))
            }
            Request::Mask { .. } => (MASK_BYTES, limits.kind() == Kind::Mask),
            Request::VerifyPassword { .. } => return None,
            _ => (self.bytes(), self.check(algorithm).is_ok()),
        };
        fits.then_some(bytes)
    }

    /// Refuses what no driver could do, so that the drivers need not check it.
    pub(crate) fn check(&self, algorithm: Algorithm) -> Result<(), Error> {
        let exact = |kind, length: usize| {
            algorithm.kind() == kind && algorithm.output_bytes() == Some(length)
        };
        let fits = match self {
            Request::Seal { data, .. } => {
                algorithm.length_limits().fit_kind(Kind::Aead, data.len())
            }
            Request::Open { data, .. } => {
                let Some(bytes) = data.len().checked_sub(TAG_BYTES) else {
                    return Err(Error::Authentication);
                };
                algorithm.length_limits().fit_kind(Kind::Aead, bytes)
            }
            Request::Protect { number, header_bytes, packet } => {
                return check_packet(algorithm, *number, *header_bytes, packet);
            }
            Request::Unprotect { packet, .. } => {
                algorithm.length_limits().fit_kind(Kind::Packet, packet.len())
            }
            Request::Mask { .. } => algorithm.kind() == Kind::Mask,
            Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => {
                algorithm.length_limits().fit_kind(Kind::Cipher, data.len())
            }
            Request::Compress { data, out } | Request::Decompress { data, out } => {
                algorithm.kind() == Kind::Compression
                    && data.len().max(out.len()) <= limits::REQUEST_BYTES_MAX
            }
            Request::Chain { .. } => false,
            Request::Digest { out, .. } => exact(Kind::Hash, out.len()),
            Request::Mac { out, .. } => exact(Kind::Mac, out.len()),
            Request::Expand { .. } => algorithm.kind() == Kind::Hkdf,
            Request::PublicKey { .. } => self.is_for(algorithm.kind()),
            Request::Agree { out, .. } => exact(Kind::Exchange, out.len()),
            Request::Encapsulate { secret, ciphertext, .. } => {
                exact(Kind::Kem, secret.len())
                    && algorithm.ciphertext_bytes() == Some(ciphertext.len())
            }
            Request::Decapsulate { secret, .. } => exact(Kind::Kem, secret.len()),
            Request::Sign { message, parameters, .. }
            | Request::Verify { message, parameters, .. }
                if algorithm.kind() == Kind::Signature =>
            {
                return parameters.check(algorithm, message.len());
            }
            Request::PublicEncrypt { parameters, label, .. }
            | Request::PrivateDecrypt { parameters, label, .. }
                if algorithm.kind() == Kind::Encryption =>
            {
                return parameters.check(algorithm, label.len());
            }
            Request::Sign { .. }
            | Request::Verify { .. }
            | Request::PublicEncrypt { .. }
            | Request::PrivateDecrypt { .. } => false,
            Request::Random { .. } => algorithm.kind() == Kind::Random,
            Request::Derive { cost, password, salt, out } => {
                return check_derivation(algorithm, *cost, password, salt, (Field::Out, out.len()));
            }
            Request::VerifyPassword { cost, entry, password, salt, expected, .. } => {
                if entry.len() > limits::ENTRY_BYTES_MAX {
                    let expected = ExpectedLength::AtMost(limits::ENTRY_BYTES_MAX);
                    return Err(Error::length(Field::Entry, entry.len(), expected));
                }
                let expected = (Field::Expected, expected.len());
                return check_derivation(algorithm, *cost, password, salt, expected);
            }
        };
        if fits { Ok(()) } else { Err(self.misfit(algorithm)) }
    }

    /// Why it is refused: its kind, or else a length.
    #[cold]
    fn misfit(&self, algorithm: Algorithm) -> Error {
        if !self.is_for(algorithm.kind()) {
            return Error::InvalidRequest(RequestError::Kind { request: self.name(), algorithm });
        }
        let put_out = || ExpectedLength::Exactly(algorithm.output_bytes().unwrap_or(0));
        let (of, given, expected) = match self {
            Request::Seal { data, .. }
            | Request::Encrypt { data, .. }
            | Request::Decrypt { data, .. } => {
                (Field::Data, data.len(), algorithm.length_limits().expected(data.len()))
            }
            Request::Open { data, .. } => {
                let expected =
                    algorithm.length_limits().expected(data.len().saturating_sub(TAG_BYTES));
                (Field::Data, data.len(), expected.and(TAG_BYTES))
            }
            Request::Protect { packet, .. } | Request::Unprotect { packet, .. } => {
                (Field::Packet, packet.len(), ExpectedLength::AtMost(limits::REQUEST_BYTES_MAX))
            }
            Request::Compress { data, out } | Request::Decompress { data, out } => {
                let most = ExpectedLength::AtMost(limits::REQUEST_BYTES_MAX);
                match data.len() > limits::REQUEST_BYTES_MAX {
                    true => (Field::Data, data.len(), most),
                    false => (Field::Out, out.len(), most),
                }
            }
            Request::Digest { out, .. } | Request::Mac { out, .. } | Request::Agree { out, .. } => {
                (Field::Out, out.len(), put_out())
            }
            Request::Encapsulate { ciphertext, .. }
                if algorithm.ciphertext_bytes() != Some(ciphertext.len()) =>
            {
                let bytes = algorithm.ciphertext_bytes().unwrap_or(0);
                (Field::Ciphertext, ciphertext.len(), ExpectedLength::Exactly(bytes))
            }
            Request::Encapsulate { secret, .. } | Request::Decapsulate { secret, .. } => {
                (Field::Secret, secret.len(), put_out())
            }
            _ => return Error::invalid_request("it does not fit the algorithm"),
        };
        Error::length(of, given, expected)
    }

    /// Whether algorithms of this kind do it.
    fn is_for(&self, kind: Kind) -> bool {
        match self {
            Request::Seal { .. } | Request::Open { .. } => kind == Kind::Aead,
            Request::Protect { .. } | Request::Unprotect { .. } => kind == Kind::Packet,
            Request::Mask { .. } => kind == Kind::Mask,
            Request::Encrypt { .. } | Request::Decrypt { .. } => kind == Kind::Cipher,
            Request::Compress { .. } | Request::Decompress { .. } => kind == Kind::Compression,
            Request::Chain { .. } => false,
            Request::Digest { .. } => kind == Kind::Hash,
            Request::Mac { .. } => kind == Kind::Mac,
            Request::Expand { .. } => kind == Kind::Hkdf,
            Request::PublicKey { .. } => {
                matches!(kind, Kind::Exchange | Kind::Kem | Kind::Signature | Kind::Encryption)
            }
            Request::Agree { .. } => kind == Kind::Exchange,
            Request::Encapsulate { .. } | Request::Decapsulate { .. } => kind == Kind::Kem,
            Request::Sign { .. } | Request::Verify { .. } => kind == Kind::Signature,
            Request::PublicEncrypt { .. } | Request::PrivateDecrypt { .. } => {
                kind == Kind::Encryption
            }
            Request::Random { .. } => kind == Kind::Random,
            Request::Derive { .. } | Request::VerifyPassword { .. } => kind == Kind::Password,
        }
    }

    /// The kind of the request, in a word or two, as it is written in messages.
    pub const fn name(&self) -> &'static str {
        name_of!(Request, self)
    }

    /// Checks a request to a session that does these steps.
    pub(crate) fn check_chain(&self, steps: &[Algorithm]) -> Result<(), Error> {
        let Request::Chain { data, length, parts, .. } = self else {
            return Err(Error::invalid_request("this session takes chains only"));
        };
        if *length > data.len() || data.len() > limits::REQUEST_BYTES_MAX {
            return Err(Error::invalid_request("the message is longer than its buffer"));
        }
        if parts.len() != steps.len() {
            return Err(Error::invalid_request("a chain has one part for each step"));
        }
        let within = |range: &Range<usize>| range.start <= range.end && range.end <= *length;
        for (part, algorithm) in parts.iter().zip(steps) {
            let fits = match (part, algorithm.kind()) {
                (Part::Cipher { iv, text }, Kind::Cipher) => {
                    let there = match iv {
                        Iv::Given(_) => true,
                        Iv::At(at) => {
                            at.checked_add(algorithm.iv_bytes()).is_some_and(|end| end <= *length)
                        }
                    };
                    there && within(text)
                }
                (Part::Mac { over, tag }, Kind::Mac) => {
                    let whole = algorithm.output_bytes().unwrap_or(0);
                    let apart = tag.start >= over.end || tag.end <= over.start;
                    within(over)
                        && within(tag)
                        && apart
                        && (limits::CHAIN_TAG_BYTES_MIN..=whole).contains(&tag.len())
                }
                (Part::Compression { text }, Kind::Compression) => within(text),
                _ => return Err(Error::invalid_request("a part is another kind of step's")),
            };
            if !fits {
                return Err(Error::invalid_request("a part reaches out of the message"));
            }
        }
        Ok(())
    }
}

/// Whether a QUIC packet can be protected.
fn check_packet(
    algorithm: Algorithm,
    number: u64,
    header_bytes: usize,
    packet: &[u8],
) -> Result<(), Error> {
    if !algorithm.length_limits().fit_kind(Kind::Packet, packet.len()) {
        let mut packet = [];
        return Err(
            Request::Protect { number, header_bytes, packet: &mut packet }.misfit(algorithm)
        );
    }
    if number >= limits::PACKET_NUMBERS {
        return Err(Error::invalid_request("a packet number has at most 62 bits"));
    }
    let number_bytes = packet.first().map_or(1, |first| usize::from(first & 3) + 1);
    // The header's first byte is not the number's.
    let Some(number_at) = header_bytes.checked_sub(number_bytes).filter(|at| *at > 0) else {
        return Err(Error::invalid_request("the header is too short for its packet number"));
    };
    let fits = packet.len().checked_sub(header_bytes).is_some_and(|rest| rest >= TAG_BYTES);
    if !fits || packet.len() - number_at < 4 + SAMPLE_BYTES {
        return Err(Error::invalid_request(
            "the packet is too short: number and payload have at least 4 bytes, and the tag has room",
        ));
    }
    Ok(())
}

impl fmt::Debug for Request<'_> {
    /// Its name and its bytes. Its contents may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({}, {} bytes)", self.name(), self.bytes())
    }
}

/// A password derivation that owns its inputs, for the slow class.
pub struct Derivation {
    /// One of [`Kind::Password`].
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

impl fmt::Debug for Derivation {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Derivation { algorithm, cost, output_bytes, .. } = self;
        let mut shown = f.debug_struct("Derivation");
        shown.field("algorithm", algorithm).field("cost", cost);
        shown.field("output_bytes", output_bytes).finish_non_exhaustive()
    }
}

impl Derivation {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let out = (Field::Out, self.output_bytes);
        check_derivation(self.algorithm, self.cost, &self.password, &self.salt, out)
    }
}

fn check_derivation(
    algorithm: Algorithm,
    cost: Cost,
    password: &[u8],
    salt: &[u8],
    (output, output_bytes): (Field, usize),
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
        (Scrypt, Cost::Scrypt { log_n, r, p }) => {
            // 128 r (N + p) bytes of memory, 128 r N p of work (RFC 7914 § 2 and 6).
            within(u32::from(log_n), 1, 30)
                && within(r, 1, limits::SCRYPT_R_MAX)
                && within(p, 1, limits::SCRYPT_P_MAX)
                && (u64::from(r) << log_n) <= limits::SCRYPT_MEMORY_BYTES_MAX / 128
        }
        (Bcrypt, Cost::Bcrypt { log_rounds }) => {
            if salt.len() != limits::BCRYPT_SALT_BYTES {
                return Err(Error::invalid_request("bcrypt takes 16 bytes of salt"));
            }
            within(log_rounds, limits::BCRYPT_LOG_ROUNDS_MIN, limits::BCRYPT_LOG_ROUNDS_MAX)
        }
        (Md5Crypt, Cost::Md5Crypt) => true,
        (Sha256Crypt | Sha512Crypt, Cost::ShaCrypt { rounds }) => {
            within(rounds, limits::SHA_CRYPT_ROUNDS_MIN, limits::SHA_CRYPT_ROUNDS_MAX)
        }
        _ => return Err(Error::invalid_request("the cost is another algorithm's")),
    };
    if !cost_fits {
        return Err(Error::invalid_request("the cost is outside its limits"));
    }
    let most = |of, given: usize, most: usize| match given <= most {
        true => Ok(()),
        false => Err(Error::length(of, given, ExpectedLength::AtMost(most))),
    };
    most(Field::Password, password.len(), limits::PASSWORD_BYTES_MAX)?;
    most(Field::Salt, salt.len(), limits::SALT_BYTES_MAX)?;
    match algorithm.output_bytes() {
        Some(exact) if output_bytes == exact => Ok(()),
        Some(exact) => Err(Error::length(output, output_bytes, ExpectedLength::Exactly(exact))),
        None if output_bytes == 0 => Err(Error::length(output, 0, ExpectedLength::AtLeast(1))),
        None => most(output, output_bytes, limits::DERIVED_BYTES_MAX),
    }
}
