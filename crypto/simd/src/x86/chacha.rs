//! ChaCha20's words in registers of 4, 8 and 16.

use super::Gcm512;
use super::width::{Aesni, Avx2};
use crate::chacha::{Block, Lanes, SAMPLES, Words};
use core::arch::asm;
use core::arch::x86_64::*;

/// Where bytes come from when 32 bits turn by 16, and by 8.
static BY_16: Order = Order([[2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13]; 2]);
static BY_8: Order = Order([[3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14]; 2]);

#[repr(align(32))]
struct Order([Block; 2]);

/// Turns words. In assembler, which stays in its place: else the compiler would have more values at a time than there are
/// registers, and turn by 16 in two steps.
macro_rules! turn {
    ($value:ident, $class:ident, $bits:ident) => {
        // SAFETY: whoever calls has the features; the tables have as many bytes as a register.
        unsafe {
            match $bits {
                16 => turn!($value, $class, &BY_16),
                12 => turn!($value, $class, "12", "20"),
                8 => turn!($value, $class, &BY_8),
                _ => turn!($value, $class, "7", "25"),
            }
        }
    };
    ($value:ident, $class:ident, $left:literal, $right:literal) => {
        asm!(
            concat!("vpslld {left}, {value}, ", $left),
            concat!("vpsrld {value}, {value}, ", $right),
            "vpor {value}, {value}, {left}",
            value = inout($class) $value,
            left = out($class) _,
            options(nomem, nostack, preserves_flags),
        )
    };
    ($value:ident, $class:ident, &$order:ident) => {
        asm!(
            "vpshufb {value}, {value}, [{order}]",
            value = inout($class) $value,
            order = in(reg) &$order.0,
            options(readonly, nostack, preserves_flags),
        )
    };
}

impl Lanes for Aesni {
    type Register = __m128i;
    const LANES: usize = 4;

    #[inline(always)]
    fn all(self, word: u32) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [__m128i; 4] {
        // SAFETY: every processor of this kind has the feature.
        unsafe { words_4(&blocks.as_chunks().0[at / 4]) }
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
    fn all(self, word: u32) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [__m256i; 4] {
        // SAFETY: `detect` has seen the feature.
        unsafe { words_8(&blocks.as_chunks().0[at / 8]) }
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
    fn all(self, word: u32) -> __m512i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [__m512i; 4] {
        // SAFETY: `detect` has seen the feature.
        unsafe { words_16(&blocks.as_chunks().0[at / 16]) }
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
        unsafe { _mm512_rol_epi32::<BITS>(value) }
    }
}

/// Blocks to words. With more than four blocks, a register has every fourth: then the words come out in
/// the blocks' order.
#[inline]
#[target_feature(enable = "sse2")]
fn words_4(blocks: &[&Block; 4]) -> [__m128i; 4] {
    let [a, b, c, d] = [load(blocks[0]), load(blocks[1]), load(blocks[2]), load(blocks[3])];
    let (ab, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let (cd, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab, cd),
        _mm_unpackhi_epi64(ab, cd),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn words_8(blocks: &[&Block; 8]) -> [__m256i; 4] {
    let (a, b) = (two(blocks, 0), two(blocks, 1));
    let (c, d) = (two(blocks, 2), two(blocks, 3));
    let (ab, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (cd, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words_16(blocks: &[&Block; 16]) -> [__m512i; 4] {
    transposed([four(blocks, 0), four(blocks, 1), four(blocks, 2), four(blocks, 3)])
}

/// Every first word of four registers of blocks, every second and so on, lane by lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transposed([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (cd, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn two<const N: usize>(blocks: &[&Block; N], at: usize) -> __m256i {
    let low = _mm256_castsi128_si256(load(blocks[at]));
    _mm256_inserti128_si256(low, load(blocks[at + 4]), 1)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn four(blocks: &[&Block; 16], at: usize) -> __m512i {
    let low = _mm512_castsi256_si512(two(blocks, at));
    _mm512_inserti64x4::<1>(low, two(blocks, at + 8))
}

#[inline]
#[target_feature(enable = "avx")]
fn turn_4<const BITS: i32>(mut words: __m128i) -> __m128i {
    turn!(words, xmm_reg, BITS);
    words
}

#[inline]
#[target_feature(enable = "avx2")]
fn turn_8<const BITS: i32>(mut words: __m256i) -> __m256i {
    turn!(words, ymm_reg, BITS);
    words
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(bytes: &Block) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}
