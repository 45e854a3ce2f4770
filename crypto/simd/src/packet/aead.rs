//! Messages: what an AEAD takes.

use super::key::AeadKey;
use super::sizes::{NONCE_BYTES, TAG_BYTES};
use crate::fault::{Fault, FaultKind};
use crate::limits::MESSAGE_BYTES_MAX;

/// A message to encrypt and authenticate.
#[derive(Debug)]
pub struct Seal<'a> {
    /// The key.
    pub key: &'a AeadKey,
    /// Never twice under one key.
    pub nonce: [u8; NONCE_BYTES],
    /// Authenticated, not encrypted.
    pub aad: &'a [u8],
    /// Plaintext in, ciphertext out.
    pub data: &'a mut [u8],
    /// Receives the tag.
    pub tag: &'a mut [u8; TAG_BYTES],
}

/// A message to check and decrypt.
#[derive(Debug)]
pub struct Open<'a> {
    /// The key.
    pub key: &'a AeadKey,
    /// As it was sealed.
    pub nonce: [u8; NONCE_BYTES],
    /// As it was sealed.
    pub aad: &'a [u8],
    /// Ciphertext in, plaintext out; zeros where the tag is not right.
    pub data: &'a mut [u8],
    /// As it came with the message.
    pub tag: [u8; TAG_BYTES],
    /// Receives whether the message is what was sealed.
    pub authentic: bool,
}

/// Refuses a part that is too long.
pub(super) fn check(lengths: impl Iterator<Item = (usize, usize)>) -> Result<(), Fault> {
    for (job, (aad, data)) in lengths.enumerate() {
        if aad.max(data) > MESSAGE_BYTES_MAX {
            return Err(Fault { job, kind: FaultKind::TooLong });
        }
    }
    Ok(())
}
