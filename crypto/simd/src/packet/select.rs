//! Which backends there are, and a batch's way to one.

use super::aead::{self, Open, Seal};
use super::backend::{self, Backend};
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::detected::Width128;
#[cfg(target_arch = "x86_64")]
use super::detected::{Aesni, Avx2};
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::gcm::GcmKey;
#[cfg(target_arch = "x86_64")]
use super::gcm512::Gcm512;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::key::{self, AeadForm};
use super::key::{Aead, AeadKey, HeaderKey, KeyLength};
use super::library::Library;
use super::quic::{Protect, Unprotect};
use super::sizes::{MASK_BYTES, SAMPLE_BYTES};
use crate::fault::Fault;

/// A way to protect packets. Cheap to copy, and as good in any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketBackend(Which);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon(Width128),
    #[cfg(target_arch = "x86_64")]
    Aesni(Aesni),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Gcm512),
}

/// Does the same in whichever backend it is.
macro_rules! dispatch {
    ($which:expr, $backend:ident => $do:expr) => {
        match $which {
            Which::Portable => {
                let $backend = Library;
                $do
            }
            #[cfg(target_arch = "aarch64")]
            Which::Neon($backend) => $do,
            #[cfg(target_arch = "x86_64")]
            Which::Aesni($backend) => $do,
            #[cfg(target_arch = "x86_64")]
            Which::Avx2($backend) => $do,
            #[cfg(target_arch = "x86_64")]
            Which::Avx512($backend) => $do,
        }
    };
}

impl PacketBackend {
    /// The fastest backend that was measured on processors like this one. Asks the processor only.
    /// ARM's is chosen by name only, since it was run in an emulator but never measured.
    pub fn detect() -> Self {
        Self::available()
            .filter(|backend| backend.is_measured())
            .last()
            .unwrap_or(Self(Which::Portable))
    }

    /// Whether its speed is known from hardware.
    const fn is_measured(self) -> bool {
        #[cfg(target_arch = "aarch64")]
        return matches!(self.0, Which::Portable);
        #[cfg(not(target_arch = "aarch64"))]
        true
    }

    /// The backend of this name, if there is one and it can run here.
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|backend| backend.name() == name)
    }

    /// Every backend that can run here, the fastest last.
    pub fn available() -> impl Iterator<Item = Self> {
        let portable = Some(Self(Which::Portable));
        #[cfg(target_arch = "x86_64")]
        let backends = [
            portable,
            Aesni::detect().map(|backend| Self(Which::Aesni(backend))),
            Avx2::detect().map(|backend| Self(Which::Avx2(backend))),
            Gcm512::detect().map(|backend| Self(Which::Avx512(backend))),
        ];
        #[cfg(target_arch = "aarch64")]
        let backends = [portable, Width128::detect().map(|backend| Self(Which::Neon(backend)))];
        #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
        let backends = [portable];
        backends.into_iter().flatten()
    }

    /// A short name for tables, logs and flags.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Which::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            Which::Neon(_) => "neon",
            #[cfg(target_arch = "x86_64")]
            Which::Aesni(_) => "aesni",
            #[cfg(target_arch = "x86_64")]
            Which::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Which::Avx512(_) => "avx512",
        }
    }

    /// Prepares a key of this AEAD. Keys are for the backend that made them and for every other;
    /// theirs is only the fastest.
    ///
    /// # Errors
    /// The key does not have [`Aead::key_bytes`].
    pub fn aead_key(self, aead: Aead, key: &[u8]) -> Result<AeadKey, KeyLength> {
        #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
        if self.0 != Which::Portable
            && let Some(backend) = Width128::detect()
            && let Some(schedule) = key::schedule(backend, aead, key)
        {
            return Ok(AeadKey(AeadForm::Gcm(GcmKey::new(backend, schedule?))));
        }
        AeadKey::library(aead, key)
    }

    /// Prepares a key for QUIC's header masks beside this AEAD (RFC 9001 § 5.4.3, § 5.4.4).
    ///
    /// # Errors
    /// The key does not have [`Aead::key_bytes`].
    pub fn header_key(self, aead: Aead, key: &[u8]) -> Result<HeaderKey, KeyLength> {
        #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
        if self.0 != Which::Portable
            && let Some(backend) = Width128::detect()
        {
            return HeaderKey::own(backend, aead, key);
        }
        HeaderKey::library(aead, key)
    }

    /// Encrypts and authenticates every message of the batch, in the caller's thread.
    ///
    /// # Errors
    /// The first message that is too long; then nothing was touched.
    pub fn seal(self, messages: &mut [Seal<'_>]) -> Result<(), Fault> {
        aead::check(messages.iter().map(|message| (message.aad.len(), message.data.len())))?;
        dispatch!(self.0, backend => backend.seal(messages));
        Ok(())
    }

    /// Checks and decrypts every message of the batch, each with its own verdict. A message that is
    /// not what was sealed leaves nothing but zeros.
    ///
    /// # Errors
    /// The first message that is too long; then nothing was touched.
    pub fn open(self, messages: &mut [Open<'_>]) -> Result<(), Fault> {
        aead::check(messages.iter().map(|message| (message.aad.len(), message.data.len())))?;
        dispatch!(self.0, backend => backend.open(messages));
        Ok(())
    }

    /// Protects every packet of the batch: packet number written, payload sealed, header masked.
    ///
    /// # Errors
    /// The first packet that cannot be right; then nothing was touched.
    pub fn protect(self, packets: &mut [Protect<'_>]) -> Result<(), Fault> {
        dispatch!(self.0, backend => backend::protect(backend, packets))
    }

    /// Takes the protection off every packet of the batch, each with its own verdict.
    pub fn unprotect(self, packets: &mut [Unprotect<'_>]) {
        dispatch!(self.0, backend => backend::unprotect(backend, packets))
    }

    /// One header mask, for those who apply it themselves.
    pub fn mask(self, key: &HeaderKey, sample: &[u8; SAMPLE_BYTES]) -> [u8; MASK_BYTES] {
        let mut samples = [(key, *sample)];
        dispatch!(self.0, backend => backend.masks(&mut samples));
        let [(_, [a, b, c, d, e, ..])] = samples;
        [a, b, c, d, e]
    }
}
