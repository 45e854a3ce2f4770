//! A request: what to encrypt, what to authenticate, and whether the ranges fit.

use crate::limits::MESSAGE_BYTES_MAX;
use crate::{CbcKey, HmacKey};
use std::fmt;
use std::ops::Range;

/// One request. The cipher goes first and works in place; the MAC covers what the cipher left. With
/// neither, nothing happens.
#[derive(Debug)]
pub struct Job<'a> {
    /// The bytes that both ranges count in.
    pub message: &'a mut [u8],
    /// What to encrypt.
    pub cipher: Option<Cipher<'a>>,
    /// What to authenticate.
    pub mac: Option<Mac<'a>>,
}

/// AES-CBC encryption without padding (SP 800-38A § 6.2).
#[derive(Debug)]
pub struct Cipher<'a> {
    /// AES-128 or AES-256.
    pub key: &'a CbcKey,
    /// The initialisation vector; unpredictable, which is the caller's concern.
    pub iv: [u8; 16],
    /// Where in the message; its length is a multiple of 16 bytes.
    pub range: Range<usize>,
}

/// HMAC (RFC 2104) of `front`, a range of the message, and `back`, in this order.
#[derive(Debug)]
pub struct Mac<'a> {
    /// The key, which knows its hash.
    pub key: &'a HmacKey,
    /// Where in the message, as encryption left it.
    pub range: Range<usize>,
    /// Authenticated before the range: a header that lies elsewhere. May be empty.
    pub front: &'a [u8],
    /// Authenticated after the range: the high half of an extended sequence number, say (RFC 4303
    /// § 2.2.1). May be empty.
    pub back: &'a [u8],
    /// Receives the tag, cut to this length: 1 byte to the digest's length.
    pub tag: &'a mut [u8],
}

/// A request that cannot be right: the caller's fault. Nothing of the batch was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which request, counted from 0.
    pub job: usize,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The range to encrypt is not within the message.
    CipherRange,
    /// The range to encrypt is not a multiple of 16 bytes long.
    CipherBlocks,
    /// The range to authenticate is not within the message.
    MacRange,
    /// The tag is empty or longer than the digest.
    TagLength,
    /// A part is longer than [`MESSAGE_BYTES_MAX`].
    TooLong,
    /// A packet's number does not fit into 62 bits.
    Number,
    /// A packet's header is shorter than its packet number and one byte.
    HeaderLength,
    /// A packet has no space for its tag, or its number and payload have less than 4 bytes
    /// together.
    TooShort,
}

impl Job<'_> {
    /// Whether every range fits.
    pub(crate) fn check(&self) -> Result<(), Why> {
        if self.message.len() > MESSAGE_BYTES_MAX {
            return Err(Why::TooLong);
        }
        if let Some(Cipher { range, .. }) = &self.cipher {
            let bytes = self.message.get(range.clone()).ok_or(Why::CipherRange)?;
            if !bytes.len().is_multiple_of(16) {
                return Err(Why::CipherBlocks);
            }
        }
        if let Some(Mac { key, range, front, back, tag }) = &self.mac {
            self.message.get(range.clone()).ok_or(Why::MacRange)?;
            if front.len().max(back.len()) > MESSAGE_BYTES_MAX {
                return Err(Why::TooLong);
            }
            if !(1..=key.hash().digest_bytes()).contains(&tag.len()) {
                return Err(Why::TagLength);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::CipherRange => "the range to encrypt reaches out of the message",
            Why::CipherBlocks => {
                "the range to encrypt is not a multiple of 16 bytes long; pad it first"
            }
            Why::MacRange => "the range to authenticate reaches out of the message",
            Why::TagLength => "the tag must have at least 1 byte and at most the digest's",
            Why::Number => "a packet number has at most 62 bits",
            Why::HeaderLength => "the header is too short for its packet number",
            Why::TooShort => {
                "the packet is too short: pad number and payload to 4 bytes, and leave space for the tag"
            }
            Why::TooLong => {
                return write!(
                    f,
                    "request {} of the batch: a part is over {MESSAGE_BYTES_MAX} bytes",
                    self.job
                );
            }
        };
        write!(f, "request {} of the batch: {why}", self.job)
    }
}

impl std::error::Error for Fault {}
