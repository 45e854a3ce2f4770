//! Keys, in the form that a backend likes best.

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::detected::Width128;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::gcm::GcmKey;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::mask_key::{ChaChaKey, MaskKey};
use super::sizes::NONCE_BYTES;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use crate::aes::Schedule;
use aws_lc_rs::aead::quic::HeaderProtectionKey;
use aws_lc_rs::aead::{self, LessSafeKey, UnboundKey};
use std::fmt;
use zeroize::ZeroizeOnDrop;

/// The AEADs of QUIC (RFC 9001 § 5.3), of TLS 1.3 and of ESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aead {
    /// AES-128 in GCM (SP 800-38D).
    Aes128Gcm,
    /// AES-256 in GCM (SP 800-38D).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
}

impl Aead {
    /// Length of its keys, in bytes; header keys have the same.
    pub const fn key_bytes(self) -> usize {
        match self {
            Aead::Aes128Gcm => 16,
            Aead::Aes256Gcm | Aead::ChaCha20Poly1305 => 32,
        }
    }
}

/// A key for messages. Wiped when it is dropped.
pub struct AeadKey(pub(crate) AeadForm);

// A key lies where its owner put it, so that one miss less stands between a packet and it.
#[allow(clippy::large_enum_variant)]
pub(crate) enum AeadForm {
    Library(LessSafeKey),
    /// Only our own backends make these, and each of them can use them.
    #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
    Gcm(GcmKey),
}

/// A key for header masks. Wiped when it is dropped.
pub struct HeaderKey(pub(crate) HeaderForm);

#[allow(clippy::large_enum_variant)]
pub(crate) enum HeaderForm {
    Library(HeaderProtectionKey),
    /// Only our own backends make these, and each of them can use them.
    #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
    Aes(MaskKey),
    /// As `Aes`.
    #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
    ChaCha(ChaChaKey),
}

/// Protects QUIC's packets in one direction: a key, and the IV that packet numbers are xored into
/// (RFC 9001 § 5.3). TLS 1.3's records have the same.
#[derive(ZeroizeOnDrop)]
pub struct PacketKey {
    #[zeroize(skip)]
    key: AeadKey,
    /// And four zeros, little-endian.
    iv: u128,
}

/// A key is not as long as its algorithm's keys are: the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLength {
    /// How long it must be, in bytes.
    pub expected: usize,
    /// How long it was.
    pub given: usize,
}

/// The round keys of AES, or nothing where there is no AES.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub(super) fn schedule(
    backend: Width128,
    aead: Aead,
    key: &[u8],
) -> Option<Result<Schedule, KeyLength>> {
    let wrong = |_| KeyLength::of(aead, key);
    let substitute = &|word| backend.substitute(word);
    match aead {
        Aead::Aes128Gcm => {
            Some(key.try_into().map(|key| Schedule::aes128(key, substitute)).map_err(wrong))
        }
        Aead::Aes256Gcm => {
            Some(key.try_into().map(|key| Schedule::aes256(key, substitute)).map_err(wrong))
        }
        Aead::ChaCha20Poly1305 => None,
    }
}

impl AeadKey {
    pub(crate) fn library(aead: Aead, key: &[u8]) -> Result<Self, KeyLength> {
        let algorithm = match aead {
            Aead::Aes128Gcm => &aead::AES_128_GCM,
            Aead::Aes256Gcm => &aead::AES_256_GCM,
            Aead::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let unbound = UnboundKey::new(algorithm, key).map_err(|_| KeyLength::of(aead, key))?;
        Ok(Self(AeadForm::Library(LessSafeKey::new(unbound))))
    }
}

impl HeaderKey {
    pub(crate) fn library(aead: Aead, key: &[u8]) -> Result<Self, KeyLength> {
        let algorithm = match aead {
            Aead::Aes128Gcm => &aead::quic::AES_128,
            Aead::Aes256Gcm => &aead::quic::AES_256,
            Aead::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        };
        let key = HeaderProtectionKey::new(algorithm, key).map_err(|_| KeyLength::of(aead, key))?;
        Ok(Self(HeaderForm::Library(key)))
    }
}

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
impl HeaderKey {
    /// A key for backends of our own.
    pub(crate) fn own(backend: Width128, aead: Aead, key: &[u8]) -> Result<Self, KeyLength> {
        Ok(Self(match schedule(backend, aead, key) {
            Some(schedule) => HeaderForm::Aes(MaskKey { aes: schedule? }),
            None => HeaderForm::ChaCha(
                key.try_into().map(ChaChaKey).map_err(|_| KeyLength::of(aead, key))?,
            ),
        }))
    }
}

impl PacketKey {
    /// A key with its IV.
    pub const fn new(key: AeadKey, iv: [u8; NONCE_BYTES]) -> Self {
        Self { key, iv: number(&iv) }
    }

    /// The key without its IV.
    pub const fn key(&self) -> &AeadKey {
        &self.key
    }

    /// The IV, its last eight bytes xored with a packet's or a record's number (RFC 9001 § 5.3,
    /// RFC 8446 § 5.3).
    pub fn nonce(&self, number: u64) -> [u8; NONCE_BYTES] {
        // In one piece: parts in memory, read as other parts, would be waited for.
        let nonce = self.iv_number() ^ u128::from(number.swap_bytes()) << 32;
        let [nonce @ .., _, _, _, _] = nonce.to_le_bytes();
        nonce
    }
}

impl PacketKey {
    /// The IV and four zeros, little-endian.
    pub(crate) fn iv_number(&self) -> u128 {
        self.iv
    }
}

/// A nonce and four zeros, little-endian.
pub(super) const fn number(&[a, b, c, d, e, f, g, h, i, j, k, l]: &[u8; NONCE_BYTES]) -> u128 {
    u128::from_le_bytes([a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0])
}

impl KeyLength {
    pub(super) fn of(aead: Aead, key: &[u8]) -> Self {
        Self { expected: aead.key_bytes(), given: key.len() }
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AeadKey").finish_non_exhaustive()
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey").finish_non_exhaustive()
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey").finish_non_exhaustive()
    }
}

impl fmt::Display for KeyLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key has {} bytes, not the {} of its algorithm", self.given, self.expected)
    }
}

impl std::error::Error for KeyLength {}
