//! The making of AES-GCM keys, for every room of x86-64.

use crate::aes::{ROUND_KEYS_MAX, Schedule};
use crate::packet::{GcmKey, MANY, Powers};
use alloc::boxed::Box;
use core::arch::x86_64::*;
use once_cell::race::OnceBox;
use zeroize::Zeroizing;

/// The top half of POLYVAL's polynomial, x¹²⁸ + x¹²⁷ + x¹²⁶ + x¹²¹ + 1 (RFC 8452 § 3).
pub(super) const POLYNOMIAL: u64 = 0xc2 << 56;

impl GcmKey {
    /// The key with these round keys.
    #[target_feature(enable = "aes,pclmulqdq")]
    pub(super) fn new(aes: Schedule) -> Self {
        let h = Zeroizing::new(u128::from_be_bytes(bytes(encrypt(&aes, _mm_setzero_si128()))));
        // Times x: what is shifted out comes back as the polynomial.
        let carry = 0_u128.wrapping_sub(*h >> 127);
        let first = number((*h << 1) ^ (carry & ((u128::from(POLYNOMIAL) << 64) | 1)));
        let mut powers = Powers::none();
        powers.fill(first);
        let (first, first_middle) = (bytes(first), [middle(first); 2]);
        Self { powers, first, first_middle, aes, many: OnceBox::new() }
    }

    /// The powers that are made when they are first asked for.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn many(&self) -> &Powers<{ MANY / 8 }> {
        match self.many.get() {
            Some(many) => many,
            None => self.make_many(),
        }
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "pclmulqdq")]
    fn make_many(&self) -> &Powers<{ MANY / 8 }> {
        let mut many = Box::new(Powers::none());
        many.fill(number(u128::from_le_bytes(self.first)));
        self.many.get_or_init(|| many)
    }
}

impl<const EIGHTS: usize> Powers<EIGHTS> {
    /// All of H⁽¹⁾'s that there is room for.
    #[target_feature(enable = "pclmulqdq")]
    fn fill(&mut self, first: __m128i) {
        // Four products at a time do not wait for each other: H⁽²⁾ to H⁽⁵⁾, and then each times H⁽⁴⁾.
        let mut four = [first; 4];
        let mut step = first;
        for power in &mut four {
            step = dot(step, first);
            *power = step;
        }
        let step = four[2];
        let Powers { powers, middles } = self;
        for (powers, middles) in powers.iter_mut().zip(middles).rev() {
            for (half, place) in powers.as_chunks_mut::<4>().0.iter_mut().enumerate().rev() {
                for (lane, power) in four.iter_mut().rev().enumerate() {
                    place[lane] = bytes(*power);
                    middles[lane][half] = middle(*power);
                    *power = dot(*power, step);
                }
            }
        }
    }
}

/// A block through the cipher.
#[target_feature(enable = "aes")]
fn encrypt(aes: &Schedule, block: __m128i) -> __m128i {
    let key = |at: usize| number(u128::from_le_bytes(aes.round_keys[at]));
    let last = (aes.rounds as usize).min(ROUND_KEYS_MAX - 1);
    let state =
        (1..last).fold(_mm_xor_si128(block, key(0)), |state, at| _mm_aesenc_si128(state, key(at)));
    _mm_aesenclast_si128(state, key(last))
}

/// dot(a, b) of RFC 8452 § 3: a · b · x⁻¹²⁸.
#[target_feature(enable = "pclmulqdq")]
fn dot(a: __m128i, b: __m128i) -> __m128i {
    let low = _mm_clmulepi64_si128(a, b, 0x00);
    let high = _mm_clmulepi64_si128(a, b, 0x11);
    let middle = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
    let low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
    let high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
    _mm_xor_si128(high, fold(fold(low)))
}

/// Takes the lowest 64 bits of a product up by 64, modulo the polynomial.
#[target_feature(enable = "pclmulqdq")]
fn fold(low: __m128i) -> __m128i {
    let polynomial = _mm_set_epi64x(0, POLYNOMIAL as i64);
    let folded = _mm_clmulepi64_si128(low, polynomial, 0x00);
    _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), folded)
}

/// The halves, xored.
#[inline]
#[target_feature(enable = "sse2")]
fn middle(power: __m128i) -> u64 {
    _mm_cvtsi128_si64(_mm_xor_si128(power, _mm_unpackhi_epi64(power, power))) as u64
}

#[inline]
#[target_feature(enable = "sse2")]
fn number(value: u128) -> __m128i {
    _mm_set_epi64x((value >> 64) as i64, value as i64)
}

#[inline]
#[target_feature(enable = "sse2")]
fn bytes(value: __m128i) -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the array has 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) };
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    /// RFC 8452 appendix A.
    #[test]
    fn products_are_those_of_polyval() {
        if !std::is_x86_feature_detected!("pclmulqdq") {
            return;
        }
        // SAFETY: the feature is there.
        unsafe { product() }
    }

    #[target_feature(enable = "pclmulqdq")]
    fn product() {
        let element = |bytes: u128| number(bytes.swap_bytes());
        let a = element(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        let b = element(0xff00_0000_0000_0000_0000_0000_0000_0000);
        let dot = u128::from_be_bytes(bytes(dot(a, b)));
        assert_eq!(dot, 0xebe5_6340_1e7e_91ea_3ad6_426b_8140_c394);
    }
}
