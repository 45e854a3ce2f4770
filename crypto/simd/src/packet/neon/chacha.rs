//! ChaCha20's words in registers of 4.

use crate::packet::chacha::{Lanes, Words};
use crate::packet::detected::Neon;
use std::arch::aarch64::*;

impl Lanes for Neon {
    type Register = uint32x4_t;
    const LANES: usize = 4;

    #[inline(always)]
    fn load(self, words: &Words, at: usize) -> uint32x4_t {
        let words: &[u32; 4] = &words.as_chunks().0[at / 4];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { vld1q_u32(words.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, words: &mut Words, at: usize, value: uint32x4_t) {
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
    fn rotate<const LEFT: i32, const RIGHT: i32>(self, value: uint32x4_t) -> uint32x4_t {
        // SAFETY: every processor of this kind has the feature.
        unsafe { vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(value), value) }
    }
}
