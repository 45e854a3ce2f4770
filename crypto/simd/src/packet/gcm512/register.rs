//! Registers of four blocks: how bytes get into them and out of them.

use super::sizes::{BLOCK, LANES, STRIDE};
use crate::x86::ordered;
use std::arch::asm;
use std::arch::x86_64::*;

features! {

/// A number as a register. In one piece from here on: the compiler would put its halves into memory
/// for a function that loads the whole, which then waits for both.
#[inline]
pub(super) fn block(number: u128) -> __m128i {
    let block = _mm_set_epi64x((number >> 64) as i64, number as i64);
    _mm512_castsi512_si128(ordered(_mm512_castsi128_si512(block)))
}

/// A block for each lane.
#[inline]
pub(super) fn of_lanes([a, b, c, d]: [&[u8; BLOCK]; LANES]) -> __m512i {
    join([load_block(a), load_block(b), load_block(c), load_block(d)])
}

#[inline]
pub(super) fn broadcast(block: &[u8; BLOCK]) -> __m512i {
    _mm512_broadcast_i32x4(load_block(block))
}

#[inline]
pub(super) fn broadcast_cross_term(pair: &[u64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(load_pair(pair))
}

#[inline]
pub(super) fn load_block(block: &[u8; BLOCK]) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
pub(super) fn load_pair(pair: &[u64; 2]) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(pair.as_ptr().cast()) }
}

#[inline]
pub(super) fn load_pairs(pairs: &[[u64; 2]; LANES]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) }
}

#[inline]
pub(super) fn load_blocks(blocks: &[[u8; BLOCK]; LANES]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
pub(super) fn join([a, b, c, d]: [__m128i; LANES]) -> __m512i {
    let ab = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    let cd = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(ab), cd)
}

/// Each lane in all lanes of a register.
#[inline]
pub(super) fn broadcast_each(value: __m512i) -> [__m512i; LANES] {
    [
        _mm512_shuffle_i32x4::<0x00>(value, value),
        _mm512_shuffle_i32x4::<0x55>(value, value),
        _mm512_shuffle_i32x4::<0xaa>(value, value),
        _mm512_shuffle_i32x4::<0xff>(value, value),
    ]
}

#[inline]
pub(super) fn split(value: __m512i) -> [__m128i; LANES] {
    [
        _mm512_castsi512_si128(value),
        _mm512_extracti32x4_epi32::<1>(value),
        _mm512_extracti32x4_epi32::<2>(value),
        _mm512_extracti32x4_epi32::<3>(value),
    ]
}

/// The lanes in memory.
#[inline]
pub(super) fn blocks_of(value: __m512i) -> [[u8; BLOCK]; LANES] {
    let mut bytes = [[0; BLOCK]; LANES];
    // SAFETY: the array has 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) };
    bytes
}

/// A block in memory.
#[inline]
pub(super) fn bytes_of(value: __m128i) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    // SAFETY: the array has 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) };
    bytes
}

/// A number in the last word of each lane, where the counter is.
#[inline]
pub(super) fn every_lane(number: i32) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi32(number, 0, 0, 0))
}

/// Reverses the bytes of each lane.
#[inline]
pub(super) fn reverse(value: __m512i) -> __m512i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(order))
}

/// The bytes of a register that are there, after so many blocks that are not, and a mask of them.
#[inline]
pub(super) fn load_some(bytes: &[u8], pad: usize) -> (__m512i, u64) {
    let mask = mask(bytes, pad);
    let from = bytes.as_ptr().wrapping_sub(BLOCK * pad);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not read.
    (unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }, mask)
}

/// Replaces what of a register there is.
#[inline]
pub(super) fn store_some(bytes: &mut [u8], pad: usize, value: __m512i) {
    let mask = mask(bytes, pad);
    let to = bytes.as_mut_ptr().wrapping_sub(BLOCK * pad);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not written.
    unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, value) }
}

/// The blocks behind so many, then these.
#[inline]
pub(super) fn rotate(value: __m512i, blocks: usize) -> __m512i {
    let order = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    let order = _mm512_add_epi64(order, _mm512_set1_epi64(2 * blocks as i64));
    _mm512_permutexvar_epi64(order, value)
}

/// A bit for each byte of a register that there is.
#[inline]
pub(super) fn mask(bytes: &[u8], pad: usize) -> u64 {
    _bzhi_u64(u64::MAX, bytes.len().min(64) as u32) << (BLOCK * (pad % LANES))
}

#[inline]
pub(super) fn reverse_block(block: __m128i) -> __m128i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(block, order)
}

/// A bit for each byte of a block that there is: for fewer, if there are more than a block.
#[inline]
pub(super) fn mask_of(bytes: &[u8]) -> u16 {
    _bzhi_u32(0xffff, bytes.len() as u32) as u16
}

/// Up to a block.
#[inline]
pub(super) fn load_masked(bytes: &[u8]) -> __m128i {
    let mask = mask_of(bytes);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not read.
    unsafe { _mm_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

/// Replaces up to a block.
#[inline]
pub(super) fn store_masked(bytes: &mut [u8], value: __m128i) {
    let mask = mask_of(bytes);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not written.
    unsafe { _mm_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, value) }
}

/// A block in this place of a register, zeros around it.
#[inline]
pub(super) fn at_block(place: usize, block: __m128i) -> __m512i {
    _mm512_maskz_broadcast_i32x4(0x000f << (LANES * place), block)
}

/// Four counters from here on.
#[inline]
pub(super) fn counters(from: usize) -> __m512i {
    load_blocks(COUNTERS.0[from..].first_chunk().expect("at most a stride behind 255"))
}

/// The key itself, from memory: the compiler does not know that it is the same. It would keep all of
/// it in registers, for which there are too few.
#[inline]
pub(super) fn reload<T>(key: &T) -> &T {
    let mut address: *const T = key;
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(reg) address, options(readonly, nostack, preserves_flags)) };
    // SAFETY: it is the address of the key.
    unsafe { &*address }
}

}

/// A register in memory, whose words can be written one by one: that takes none of the pipes that
/// compute.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Words(pub(super) [[u64; 2]; LANES]);

impl Words {
    pub(super) const NONE: Self = Self([[0; 2]; LANES]);

    features! {

    #[inline]
    pub(super) fn load(&self) -> __m512i {
        load_pairs(&self.0)
    }

    #[inline]
    pub(super) fn store(&mut self, value: __m512i) {
        // SAFETY: the array has 64 bytes, and the instruction asks for no alignment.
        unsafe { _mm512_storeu_si512(self.0.as_mut_ptr().cast(), value) };
    }

    }
}

/// Counter blocks with counters of one byte, before the first of them and behind the last those
/// that wrapped around: as many behind it as go through the cipher together.
#[repr(align(64))]
pub(super) struct Counters(pub(super) [[u8; BLOCK]; COUNTERS_BEFORE + 256 + LANES * STRIDE]);

/// How many blocks a first register may begin with besides: counters that belong to no block of data.
pub(super) const COUNTERS_BEFORE: usize = 2;

pub(super) static COUNTERS: Counters = {
    let mut blocks = [[0; BLOCK]; COUNTERS_BEFORE + 256 + LANES * STRIDE];
    let mut at = 0;
    while at < blocks.len() {
        blocks[at][BLOCK - 1] = (at as u8).wrapping_sub(COUNTERS_BEFORE as u8);
        at += 1;
    }
    Counters(blocks)
};

/// Blocks that are missing in the first register of so many bytes.
pub(super) fn pad(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).wrapping_neg() % LANES
}

/// Registers that so many bytes take.
pub(super) fn registers(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).div_ceil(LANES)
}
