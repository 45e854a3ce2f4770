//! The algorithms of a security association, and the lengths that follow from them.

use crate::limits::SEALED_BYTES_MAX;
use keyway_engine::Algorithm;
use std::fmt;

/// SPI and sequence number (RFC 4303 § 2), in bytes.
pub(crate) const HEADER_BYTES: usize = 8;
/// The length of the padding and the next header, behind the padding, in bytes.
pub(crate) const TRAILER_BYTES: usize = 2;

/// The algorithms of a security association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// AES-128-GCM with a tag of 16 bytes (RFC 4106).
    Aes128Gcm,
    /// AES-256-GCM with a tag of 16 bytes (RFC 4106).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868).
    Aes128CbcSha256,
    /// AES-256-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868).
    Aes256CbcSha256,
    /// AES-128-CBC (RFC 3602) and HMAC-SHA-1-96 (RFC 2404), for peers that have no other.
    Aes128CbcSha1,
    /// AES-256-CBC (RFC 3602) and HMAC-SHA-1-96 (RFC 2404), for peers that have no other.
    Aes256CbcSha1,
}

impl Suite {
    /// All of them.
    pub const ALL: [Suite; 7] = [
        Suite::Aes128Gcm,
        Suite::Aes256Gcm,
        Suite::ChaCha20Poly1305,
        Suite::Aes128CbcSha256,
        Suite::Aes256CbcSha256,
        Suite::Aes128CbcSha1,
        Suite::Aes256CbcSha1,
    ];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes128Gcm => "aes-128-gcm",
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
            Suite::Aes128CbcSha256 => "aes-128-cbc-hmac-sha-256",
            Suite::Aes256CbcSha256 => "aes-256-cbc-hmac-sha-256",
            Suite::Aes128CbcSha1 => "aes-128-cbc-hmac-sha-1",
            Suite::Aes256CbcSha1 => "aes-256-cbc-hmac-sha-1",
        }
    }

    /// The suite of this name.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Whether one algorithm encrypts and authenticates. Else a cipher does the one and a MAC the other.
    pub const fn is_aead(self) -> bool {
        matches!(self, Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305)
    }

    /// Length of the key of the AEAD or of the cipher, in bytes.
    pub const fn key_bytes(self) -> usize {
        match self {
            Suite::Aes128Gcm | Suite::Aes128CbcSha256 | Suite::Aes128CbcSha1 => 16,
            _ => 32,
        }
    }

    /// Length of the salt that comes with the key, in bytes: 4, or 0 without an AEAD.
    pub const fn salt_bytes(self) -> usize {
        if self.is_aead() { 4 } else { 0 }
    }

    /// Length of the key of the MAC, in bytes: 0 with an AEAD.
    pub const fn mac_key_bytes(self) -> usize {
        match self {
            Suite::Aes128CbcSha256 | Suite::Aes256CbcSha256 => 32,
            Suite::Aes128CbcSha1 | Suite::Aes256CbcSha1 => 20,
            _ => 0,
        }
    }

    /// Length of the initialisation vector in the packet, in bytes.
    pub const fn iv_bytes(self) -> usize {
        if self.is_aead() { 8 } else { 16 }
    }

    /// Length of the integrity check value, in bytes.
    pub const fn icv_bytes(self) -> usize {
        match self {
            Suite::Aes128CbcSha1 | Suite::Aes256CbcSha1 => 12,
            _ => 16,
        }
    }

    /// Text, padding and trailer are a multiple of so many bytes.
    pub(crate) const fn block_bytes(self) -> usize {
        if self.is_aead() { 4 } else { 16 }
    }

    /// Bytes of the packet before the text: header and initialisation vector.
    pub(crate) const fn front_bytes(self) -> usize {
        HEADER_BYTES + self.iv_bytes()
    }

    /// Length of the text with its padding and trailer, in bytes.
    pub(crate) const fn padded_bytes(self, inner: usize) -> usize {
        (inner + TRAILER_BYTES).next_multiple_of(self.block_bytes())
    }

    /// Length of the ESP packet from the SPI to the ICV that so many bytes make: in tunnel mode a whole IP packet,
    /// in transport mode what is behind the IP header.
    pub const fn sealed_bytes(self, inner: usize) -> usize {
        self.front_bytes() + self.padded_bytes(inner) + self.icv_bytes()
    }

    /// Most bytes that an ESP packet of so many carries; 0 if it is too short for any.
    pub const fn inner_bytes_max(self, sealed: usize) -> usize {
        let sealed = if sealed < SEALED_BYTES_MAX { sealed } else { SEALED_BYTES_MAX };
        let room = sealed.saturating_sub(self.front_bytes() + self.icv_bytes());
        (room - room % self.block_bytes()).saturating_sub(TRAILER_BYTES)
    }

    /// The text with padding and trailer has so many bytes in an ESP packet of `sealed`; `None` if there is no such
    /// packet.
    pub(crate) const fn text_bytes(self, sealed: usize) -> Option<usize> {
        match sealed.checked_sub(self.front_bytes() + self.icv_bytes()) {
            Some(text) if text > 0 && text.is_multiple_of(self.block_bytes()) => Some(text),
            _ => None,
        }
    }

    /// The algorithms that the engine runs when it seals, in this order.
    pub(crate) const fn algorithms(self) -> (Algorithm, Option<Algorithm>) {
        match self {
            Suite::Aes128Gcm => (Algorithm::Aes128Gcm, None),
            Suite::Aes256Gcm => (Algorithm::Aes256Gcm, None),
            Suite::ChaCha20Poly1305 => (Algorithm::ChaCha20Poly1305, None),
            Suite::Aes128CbcSha256 => (Algorithm::Aes128Cbc, Some(Algorithm::HmacSha256)),
            Suite::Aes256CbcSha256 => (Algorithm::Aes256Cbc, Some(Algorithm::HmacSha256)),
            Suite::Aes128CbcSha1 => (Algorithm::Aes128Cbc, Some(Algorithm::HmacSha1)),
            Suite::Aes256CbcSha1 => (Algorithm::Aes256Cbc, Some(Algorithm::HmacSha1)),
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
