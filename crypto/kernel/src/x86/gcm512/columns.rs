//! The data of four messages as long as each other, a column of registers at a time.

use super::hash::{Sums, carry, powers, sum_rows, zero};
use super::register::*;
use super::{BLOCK, CHUNK, LANES};
use crate::packet::GcmKey;
use crate::x86::{load, store};
use core::arch::x86_64::*;

features! {

/// The data of four messages under one key that have as many registers, [`COLUMNS_MAX`] at most: one
/// register of each at a time.
#[inline]
pub(super) fn columns<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonces: __m512i,
    [a, b, c, d]: [&mut [u8]; LANES],
    registers: usize,
    before: __m512i,
) -> Sums {
    let first_key = broadcast(&key.aes.round_keys[0]);
    let bases = spread(_mm512_xor_si512(nonces, first_key));
    let pads = [pad(a.len()), pad(b.len()), pad(c.len()), pad(d.len())];
    let [pa, pb, pc, pd] = pads;
    let mut befores = spread(before);
    for (before, pad) in befores.iter_mut().zip(pads) {
        *before = _mm512_maskz_mov_epi64(3 << (2 * pad), *before);
    }
    if registers == 1 {
        let mut states = bases;
        cipher::<SEAL, ROUNDS>(key, &mut states, 0, pads);
        edge::<SEAL, ROUNDS>(key, &mut states, &mut [a, b, c, d], pads);
        let (power, middle) = powers(key, CHUNK - 1);
        let mut sums = [zero(); LANES];
        for lane in 0..LANES {
            let blocks = _mm512_xor_si512(states[lane], befores[lane]);
            sums[lane] = zero().add(blocks, power, middle);
        }
        return sum_rows(&sums);
    }
    let whole = registers - 2;
    let (head_a, whole_a, tail_a) = parts(a, pa, whole);
    let (head_b, whole_b, tail_b) = parts(b, pb, whole);
    let (head_c, whole_c, tail_c) = parts(c, pc, whole);
    let (head_d, whole_d, tail_d) = parts(d, pd, whole);
    let mut heads = [head_a, head_b, head_c, head_d];
    let mut tails = [tail_a, tail_b, tail_c, tail_d];

    let mut sums = [zero(); LANES];
    // The last columns are yet to be taken into the hash.
    let mut earlier = [_mm512_setzero_si512(); LANES];
    let mut waiting = [_mm512_setzero_si512(); LANES];
    for column in 0..registers {
        let key = again(key);
        let mut states = bases;
        cipher::<SEAL, ROUNDS>(key, &mut states, column, pads);
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        let left = registers - column;
        // They go there in pairs, counted from the end.
        let at = CHUNK - 1 - left % CHUNK;
        if left % 2 == 1 {
            earlier = waiting;
        } else if column == 1 {
            let (power, middle) = powers(key, at);
            for (sums, waiting) in sums.iter_mut().zip(waiting) {
                *sums = sums.add(waiting, power, middle);
            }
        } else if column > 1 {
            for lane in 0..LANES {
                sums[lane] = sums[lane].add_pair(key, [earlier[lane], waiting[lane]], at - 1);
            }
        }
        if column > 0 && column <= whole {
            let at = column - 1;
            let bytes = [&mut whole_a[at], &mut whole_b[at], &mut whole_c[at], &mut whole_d[at]];
            for (lane, bytes) in bytes.into_iter().enumerate() {
                let input = load(bytes);
                let output =
                    _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
                store(bytes, output);
                waiting[lane] = reverse(if SEAL { output } else { input });
            }
        } else {
            let parts = if column == 0 { &mut heads } else { &mut tails };
            for (lane, bytes) in parts.iter_mut().enumerate() {
                let pad = if column == 0 { pads[lane] } else { 0 };
                let (input, mask) = load_some(bytes, pad);
                let output =
                    _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
                store_some(bytes, pad, output);
                let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
                waiting[lane] = reverse(sealed);
            }
            if column == 0 {
                for lane in 0..LANES {
                    waiting[lane] = _mm512_xor_si512(waiting[lane], befores[lane]);
                }
            }
        }
        if left.is_multiple_of(CHUNK) && column > 0 {
            for lane in 0..LANES {
                waiting[lane] = _mm512_xor_si512(waiting[lane], carry(sums[lane]));
                sums[lane] = zero();
            }
        }
    }
    for lane in 0..LANES {
        sums[lane] = sums[lane].add_pair(key, [earlier[lane], waiting[lane]], CHUNK - 2);
    }
    sum_rows(&sums)
}

/// All rounds but the last for a column. `SEAL` makes it a function of its callers' own, which the
/// compiler inlines.
#[inline]
pub(super) fn cipher<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    column: usize,
    pads: [usize; LANES],
) {
    for (state, pad) in states.iter_mut().zip(pads) {
        let from = COUNTERS_BEFORE + 2 + LANES * column - pad;
        *state = _mm512_xor_si512(*state, counters(from));
    }
    for round in 1..ROUNDS {
        let round_key = broadcast(&key.aes.round_keys[round]);
        for state in &mut *states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
}

/// The last round, where registers begin with blocks that are not there, or end early. Leaves what
/// belongs into the hash.
#[inline]
pub(super) fn edge<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    parts: &mut [&mut [u8]; LANES],
    pads: [usize; LANES],
) {
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    for lane in 0..LANES {
        let (bytes, pad) = (&mut *parts[lane], pads[lane]);
        let (input, mask) = load_some(bytes, pad);
        let output = _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
        store_some(bytes, pad, output);
        let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
        states[lane] = reverse(sealed);
    }
}

/// What goes into the first register, which begins with `pad` blocks that are not there, what goes into
/// so many whole ones, and what is left for the last.
#[inline]
pub(super) fn parts(data: &mut [u8], pad: usize, whole: usize) -> (&mut [u8], &mut [[u8; 64]], &mut [u8]) {
    let (head, rest) = data.split_at_mut((64 - BLOCK * pad).min(data.len()));
    let (middle, tail) = rest.split_at_mut((64 * whole).min(rest.len()));
    let (middle, _) = middle.as_chunks_mut();
    (head, &mut middle[..whole], tail)
}

}
