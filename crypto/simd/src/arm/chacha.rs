//! ChaCha20's words in registers of 4.

use super::Neon;
use crate::chacha::{Block, Lanes, SAMPLES, Words};
use core::arch::aarch64::*;

impl Lanes for Neon {
    type Register = uint32x4_t;
    const LANES: usize = 4;

    #[inline(always)]
    fn all(self, word: u32) -> uint32x4_t {
        // SAFETY: every processor of this kind has the feature.
        unsafe { vdupq_n_u32(word) }
    }

    #[inline(always)]
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [uint32x4_t; 4] {
        // SAFETY: every processor of this kind has the feature.
        unsafe { words(&blocks.as_chunks().0[at / 4]) }
    }

    #[inline(always)]
    fn put(self, words: &mut Words, at: usize, value: uint32x4_t) {
        let words: &mut [u32; 4] = &mut words.as_chunks_mut().0[at / 4];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { vst1q_u32(words.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn add(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        // SAFETY: every processor of this kind has the feature.
        unsafe { vaddq_u32(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        // SAFETY: every processor of this kind has the feature.
        unsafe { veorq_u32(a, b) }
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, value: uint32x4_t) -> uint32x4_t {
        // SAFETY: every processor of this kind has the feature.
        unsafe { turn::<BITS>(value) }
    }
}

/// Blocks to words.
#[inline]
#[target_feature(enable = "neon")]
fn words(blocks: &[&Block; 4]) -> [uint32x4_t; 4] {
    let [a, b, c, d] = [load(blocks[0]), load(blocks[1]), load(blocks[2]), load(blocks[3])];
    let (ab, ab_high) = (double(vzip1q_u32(a, b)), double(vzip2q_u32(a, b)));
    let (cd, cd_high) = (double(vzip1q_u32(c, d)), double(vzip2q_u32(c, d)));
    [
        vreinterpretq_u32_u64(vzip1q_u64(ab, cd)),
        vreinterpretq_u32_u64(vzip2q_u64(ab, cd)),
        vreinterpretq_u32_u64(vzip1q_u64(ab_high, cd_high)),
        vreinterpretq_u32_u64(vzip2q_u64(ab_high, cd_high)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn turn<const BITS: i32>(words: uint32x4_t) -> uint32x4_t {
    match BITS {
        16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(words))),
        12 => vsriq_n_u32::<20>(vshlq_n_u32::<12>(words), words),
        8 => vsriq_n_u32::<24>(vshlq_n_u32::<8>(words), words),
        _ => vsriq_n_u32::<25>(vshlq_n_u32::<7>(words), words),
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn double(words: uint32x4_t) -> uint64x2_t {
    vreinterpretq_u64_u32(words)
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &Block) -> uint32x4_t {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
}
