//! The backends of x86-64. What is unsafe here: calling code that needs features, which
//! only those can do who have seen that they are there; loads and stores, which take references, or
//! the part of a register that a mask stands for; empty `asm!` that keeps the compiler from
//! reordering sums and from holding keys in registers, and that of `strides`, which is a loop's
//! whole body; and the cursors of `stitched`, two into each message.

mod cbc;
mod chacha;
mod gcm512;
mod sha;
mod stitched;
mod strides;
mod width;

pub(crate) use gcm512::Gcm512;
pub(crate) use width::{Aesni, Avx2, Vector};

use crate::cbc::Chains;
use crate::cbc::hmac::Hash;
use crate::cbc::uniform;
use crate::cbc::{Backend, LANES, States};
use std::arch::asm;
use std::arch::x86_64::*;
use std::ptr;

/// That the features are there: whoever has one may call what needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("vaes");
        there.then_some(Self(()))
    }
}

impl Backend for Avx512 {
    fn cbc<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        data: &mut [&mut [u8]; LANES],
        blocks: usize,
    ) {
        // SAFETY: `detect` has seen the features.
        unsafe { cbc::run::<ROUNDS>(chains, data, blocks) }
    }

    fn stitch<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        states: &mut States,
        lanes: &mut [uniform::Lane<'_>; LANES],
        steps: usize,
    ) {
        // SAFETY: `detect` has seen the features.
        unsafe { stitched::run::<ROUNDS>(chains, states, lanes, steps) }
    }

    fn compress(self, hash: Hash, states: &mut States, inputs: &[&[u8]; LANES], blocks: usize) {
        match hash {
            // SAFETY: `detect` has seen the features.
            Hash::Sha1 => unsafe { sha::sha1(states, inputs, blocks) },
            // SAFETY: `detect` has seen the features.
            Hash::Sha256 => unsafe { sha::sha256(states, inputs, blocks) },
        }
    }

    fn finish(self, hash: Hash, digests: &States, outer: &mut States) {
        match hash {
            // SAFETY: `detect` has seen the features.
            Hash::Sha1 => unsafe { sha::finish_sha1(digests, outer) },
            // SAFETY: `detect` has seen the features.
            Hash::Sha256 => unsafe { sha::finish_sha256(digests, outer) },
        }
    }
}

/// Starts to bring a key into the cache.
#[inline]
pub(crate) fn fetch<T>(key: &T) {
    let lines = ptr::from_ref(key).cast::<[i8; 64]>();
    for line in 0..size_of::<T>().div_ceil(64) {
        // SAFETY: every processor of this kind has the feature, and no address is wrong.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(lines.wrapping_add(line).cast()) };
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(bytes: &mut [u8; 64], value: __m512i) {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_words(words: &[u32; LANES]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_words(words: &mut [u32; LANES], value: __m512i) {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}

/// The same value: computed after all such before it and before all such behind it, and the
/// compiler does not know where it is from.
#[inline]
#[target_feature(enable = "avx512f")]
fn ordered(mut value: __m512i) -> __m512i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(zmm_reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Transposes four by four 128-bit quarters.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_low, ab_high) =
        (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
    let (cd_low, cd_high) =
        (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(ab_low, cd_low),
        _mm512_shuffle_i32x4::<0xdd>(ab_low, cd_low),
        _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
        _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
    ]
}
