//! ChaCha20's words in registers of 4, 8 and 16.

use crate::packet::chacha::{Lanes, Words};
use crate::packet::detected::{Aesni, Avx2};
use crate::packet::gcm512::Gcm512;
use std::arch::x86_64::*;

/// The lanes of a width. `$words` is the array that a register holds.
macro_rules! lanes {
    (
        $type:ty, $register:ty, $lanes:literal,
        $load:ident, $store:ident, $add:ident, $xor:ident, $rotate:expr
    ) => {
        impl Lanes for $type {
            type Register = $register;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(self, words: &Words, at: usize) -> $register {
                let words: &[u32; $lanes] = &words.as_chunks().0[at / $lanes];
                // SAFETY: `detect` has seen the feature; the reference is good for a register,
                // aligned or not.
                unsafe { $load(words.as_ptr().cast()) }
            }

            #[inline(always)]
            fn store(self, words: &mut Words, at: usize, value: $register) {
                let words: &mut [u32; $lanes] = &mut words.as_chunks_mut().0[at / $lanes];
                // SAFETY: the same.
                unsafe { $store(words.as_mut_ptr().cast(), value) }
            }

            #[inline(always)]
            fn add(self, a: $register, b: $register) -> $register {
                // SAFETY: `detect` has seen the feature.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            fn xor(self, a: $register, b: $register) -> $register {
                // SAFETY: `detect` has seen the feature.
                unsafe { $xor(a, b) }
            }

            #[inline(always)]
            fn rotate<const LEFT: i32, const RIGHT: i32>(self, value: $register) -> $register {
                // SAFETY: `detect` has seen the feature.
                unsafe { $rotate(value) }
            }
        }
    };
}

lanes!(
    Aesni,
    __m128i,
    4,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_add_epi32,
    _mm_xor_si128,
    |value| _mm_or_si128(_mm_slli_epi32::<LEFT>(value), _mm_srli_epi32::<RIGHT>(value))
);
lanes!(
    Avx2,
    __m256i,
    8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_add_epi32,
    _mm256_xor_si256,
    |value| _mm256_or_si256(_mm256_slli_epi32::<LEFT>(value), _mm256_srli_epi32::<RIGHT>(value))
);
lanes!(
    Gcm512,
    __m512i,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_add_epi32,
    _mm512_xor_si512,
    |value| _mm512_rol_epi32::<LEFT>(value)
);
