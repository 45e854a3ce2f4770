//! Values that show that the features of a width are there: code that has one may use the width.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::uint8x16_t;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;

/// A register of one block.
#[cfg(target_arch = "aarch64")]
pub(crate) type Vector = uint8x16_t;
/// A register of one block.
#[cfg(target_arch = "x86_64")]
pub(crate) type Vector = __m128i;

/// The width for everything that is done block by block.
#[cfg(target_arch = "aarch64")]
pub(crate) type Width128 = Neon;
/// The width for everything that is done block by block.
#[cfg(target_arch = "x86_64")]
pub(crate) type Width128 = Aesni;

/// Registers of one block, on 64-bit ARM with the crypto extensions.
#[cfg(target_arch = "aarch64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

/// Registers of one block.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aesni(());

/// Registers of two.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(Aesni);

#[cfg(target_arch = "aarch64")]
impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        there.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Aesni {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("ssse3")
            && std::is_x86_feature_detected!("sse4.1")
            && std::is_x86_feature_detected!("avx");
        there.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("vaes")
            && std::is_x86_feature_detected!("vpclmulqdq");
        Aesni::detect().filter(|_| there).map(Self)
    }

    /// Where it is, so are registers of one block.
    #[inline(always)]
    pub(crate) fn aesni(self) -> Aesni {
        self.0
    }
}
