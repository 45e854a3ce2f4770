//! ChaCha20's words in registers of 4, 8 and 16.

use super::Gcm512;
use super::width::{Aesni, Avx2};
use crate::chacha::{Lanes, Words};
use core::arch::x86_64::*;

/// Where bytes come from when 32 bits turn by 16, and by 8.
const BY_16: [u8; 16] = [2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13];
const BY_8: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];

impl Lanes for Aesni {
    type Register = __m128i;
    const LANES: usize = 4;

    #[inline(always)]
    fn get(self, words: &Words, at: usize) -> __m128i {
        let words: &[u32; 4] = &words.as_chunks().0[at / 4];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn put(self, words: &mut Words, at: usize, value: __m128i) {
        let words: &mut [u32; 4] = &mut words.as_chunks_mut().0[at / 4];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn add(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_add_epi32(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, value: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the features.
        unsafe { turn_4::<BITS>(value) }
    }
}

impl Lanes for Avx2 {
    type Register = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    fn get(self, words: &Words, at: usize) -> __m256i {
        let words: &[u32; 8] = &words.as_chunks().0[at / 8];
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn put(self, words: &mut Words, at: usize, value: __m256i) {
        let words: &mut [u32; 8] = &mut words.as_chunks_mut().0[at / 8];
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, value: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { turn_8::<BITS>(value) }
    }
}

impl Lanes for Gcm512 {
    type Register = __m512i;
    const LANES: usize = 16;

    #[inline(always)]
    fn get(self, words: &Words, _: usize) -> __m512i {
        // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn put(self, words: &mut Words, _: usize, value: __m512i) {
        // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, value: __m512i) -> __m512i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm512_rol_epi32(value, BITS) }
    }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn turn_4<const BITS: i32>(value: __m128i) -> __m128i {
    match BITS {
        16 | 8 => _mm_shuffle_epi8(value, table(if BITS == 16 { &BY_16 } else { &BY_8 })),
        12 => _mm_or_si128(_mm_slli_epi32(value, 12), _mm_srli_epi32(value, 20)),
        _ => _mm_or_si128(_mm_slli_epi32(value, 7), _mm_srli_epi32(value, 25)),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn turn_8<const BITS: i32>(value: __m256i) -> __m256i {
    match BITS {
        16 | 8 => {
            let table = table(if BITS == 16 { &BY_16 } else { &BY_8 });
            _mm256_shuffle_epi8(value, _mm256_broadcastsi128_si256(table))
        }
        12 => _mm256_or_si256(_mm256_slli_epi32(value, 12), _mm256_srli_epi32(value, 20)),
        _ => _mm256_or_si256(_mm256_slli_epi32(value, 7), _mm256_srli_epi32(value, 25)),
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn table(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}
