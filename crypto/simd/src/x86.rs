//! Whole registers of AVX-512. The unsafe parts: loads and stores, which take references, and empty
//! `asm!` that keeps the compiler from reordering sums and from holding keys in registers.

use std::arch::asm;
use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(bytes: &mut [u8; 64], value: __m512i) {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

/// The value unchanged: computed after all such before it and before all such behind it, and the
/// compiler does not know where it is from.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn ordered(mut value: __m512i) -> __m512i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(zmm_reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
