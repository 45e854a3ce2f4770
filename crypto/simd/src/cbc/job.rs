//! A request: what to encrypt, what to authenticate, and whether the ranges fit.

use super::hmac::HmacKey;
use super::key::CbcKey;
use crate::fault::FaultKind;
use crate::limits::MESSAGE_BYTES_MAX;
use std::ops::Range;

/// One request. The cipher goes first and works in place; the MAC covers what the cipher left. With
/// neither, nothing happens.
#[derive(Debug)]
pub struct Job<'a> {
    /// The bytes that both ranges count in.
    pub message: &'a mut [u8],
    /// The part to encrypt.
    pub cipher: Option<Cipher<'a>>,
    /// The part to authenticate.
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

impl Job<'_> {
    /// Whether every range fits.
    pub(crate) fn check(&self) -> Result<(), FaultKind> {
        if self.message.len() > MESSAGE_BYTES_MAX {
            return Err(FaultKind::TooLong);
        }
        if let Some(Cipher { range, .. }) = &self.cipher {
            let bytes = self.message.get(range.clone()).ok_or(FaultKind::CipherRange)?;
            if !bytes.len().is_multiple_of(16) {
                return Err(FaultKind::CipherBlocks);
            }
        }
        if let Some(Mac { key, range, front, back, tag }) = &self.mac {
            self.message.get(range.clone()).ok_or(FaultKind::MacRange)?;
            if front.len().max(back.len()) > MESSAGE_BYTES_MAX {
                return Err(FaultKind::TooLong);
            }
            if !(1..=key.hash().digest_bytes()).contains(&tag.len()) {
                return Err(FaultKind::TagLength);
            }
        }
        Ok(())
    }
}
