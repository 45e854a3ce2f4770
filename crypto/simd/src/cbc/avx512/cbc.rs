//! CBC in lanes: four registers hold a block of each of the 16 lanes, so that the latency of one
//! register's round is filled with the other three.

use super::registers::transpose_quarters;
use crate::aes::ROUND_KEYS_MAX;
use crate::cbc::lanes::{BLOCK_BYTES, Chains, LANES};
use crate::x86::{load, store};
use std::arch::x86_64::*;

/// Lanes of one register.
const WIDTH: usize = 4;
/// Registers that hold a block of every lane.
pub(super) const REGISTERS: usize = LANES / WIDTH;
/// Blocks of a lane that are loaded and stored at a time.
pub(super) const STRIDE: usize = 64 / BLOCK_BYTES;

/// See [`Backend::cbc`](crate::cbc::backend::Backend::cbc).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn run<const ROUNDS: usize>(
    chains: &mut Chains,
    data: &mut [&mut [u8]; LANES],
    blocks: usize,
) {
    let Chains { round_keys, last } = chains;
    let mut chain = get(last);
    // Blocks that idle lanes read and write.
    let mut idle = [[0; 64]; LANES];
    for stride in 0..blocks / STRIDE {
        let mut strides = idle.each_mut();
        for (place, lane) in strides.iter_mut().zip(&mut *data) {
            if let Some(bytes) = lane.as_chunks_mut().0.get_mut(stride) {
                *place = bytes;
            }
        }
        chain = four::<ROUNDS>(round_keys, chain, strides);
    }
    // Less than a stride is left of every lane.
    for block in blocks / STRIDE * STRIDE..blocks {
        let mut texts = [[0; BLOCK_BYTES]; LANES];
        for (place, lane) in texts.iter_mut().zip(&*data) {
            if let Some(text) = lane.as_chunks().0.get(block) {
                *place = *text;
            }
        }
        for (chain, text) in chain.iter_mut().zip(get(&texts)) {
            *chain = _mm512_xor_si512(*chain, text);
        }
        chain = encrypt::<ROUNDS>(round_keys, chain);
        put(&mut texts, chain);
        for (place, lane) in texts.iter().zip(&mut *data) {
            if let Some(text) = lane.as_chunks_mut().0.get_mut(block) {
                *text = *place;
            }
        }
    }
    put(last, chain);
}

/// Four blocks of every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn four<const ROUNDS: usize>(
    round_keys: &[[[u8; BLOCK_BYTES]; LANES]; ROUND_KEYS_MAX],
    mut chain: [__m512i; REGISTERS],
    strides: [&mut [u8; 64]; LANES],
) -> [__m512i; REGISTERS] {
    // By register; by lane in memory, by block here.
    let mut texts = [[_mm512_setzero_si512(); STRIDE]; REGISTERS];
    for register in 0..REGISTERS {
        for lane in 0..WIDTH {
            texts[register][lane] = load(strides[WIDTH * register + lane]);
        }
        texts[register] = transpose_quarters(texts[register]);
    }
    for block in 0..STRIDE {
        for (chain, texts) in chain.iter_mut().zip(&texts) {
            *chain = _mm512_xor_si512(*chain, texts[block]);
        }
        chain = encrypt::<ROUNDS>(round_keys, chain);
        for (texts, chain) in texts.iter_mut().zip(chain) {
            texts[block] = chain;
        }
    }
    for register in 0..REGISTERS {
        texts[register] = transpose_quarters(texts[register]);
        for lane in 0..WIDTH {
            store(strides[WIDTH * register + lane], texts[register][lane]);
        }
    }
    chain
}

/// One block of every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn encrypt<const ROUNDS: usize>(
    round_keys: &[[[u8; BLOCK_BYTES]; LANES]; ROUND_KEYS_MAX],
    mut state: [__m512i; REGISTERS],
) -> [__m512i; REGISTERS] {
    for (state, key) in state.iter_mut().zip(get(&round_keys[0])) {
        *state = _mm512_xor_si512(*state, key);
    }
    for round_keys in &round_keys[1..ROUNDS] {
        for (state, key) in state.iter_mut().zip(get(round_keys)) {
            *state = _mm512_aesenc_epi128(*state, key);
        }
    }
    for (state, key) in state.iter_mut().zip(get(&round_keys[ROUNDS])) {
        *state = _mm512_aesenclast_epi128(*state, key);
    }
    state
}

/// A block of every lane, from memory.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn get(blocks: &[[u8; BLOCK_BYTES]; LANES]) -> [__m512i; REGISTERS] {
    let mut registers = [_mm512_setzero_si512(); REGISTERS];
    for (register, bytes) in registers.iter_mut().zip(blocks.as_flattened().as_chunks().0) {
        *register = load(bytes);
    }
    registers
}

/// A block of every lane, to memory.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn put(blocks: &mut [[u8; BLOCK_BYTES]; LANES], registers: [__m512i; REGISTERS]) {
    let (chunks, _) = blocks.as_flattened_mut().as_chunks_mut();
    for (chunk, register) in chunks.iter_mut().zip(registers) {
        store(chunk, register);
    }
}
