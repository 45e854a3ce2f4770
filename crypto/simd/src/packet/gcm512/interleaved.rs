//! The data of four messages as long as each other, a register of registers at a time.

use super::hash::{Sums, powers, sum_messages, two_powers, xor3, zero};
use super::register::*;
use super::sizes::{BLOCK, LANES, STRIDE};
use super::stride::{Schedule, Stride, last_round, round, rounds_and_products};
use crate::packet::gcm::{GcmKey, MANY, POWERS};
use crate::x86::ordered;
use std::arch::x86_64::*;

/// Registers of a message between one reduction and the next.
pub(super) const INTERLEAVED_MAX: usize = MANY / LANES;
const EIGHTS: usize = MANY / 8;

features! {

/// The data of four messages under one key that have one register each.
#[inline]
pub(super) fn interleaved_one<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonces: __m512i,
    mut data: [&mut [u8]; LANES],
    before: __m512i,
) -> Sums {
    let first_key = broadcast(&key.aes.round_keys[0]);
    let mut states = broadcast_each(_mm512_xor_si512(nonces, first_key));
    let pads = [pad(data[0].len()), pad(data[1].len()), pad(data[2].len()), pad(data[3].len())];
    cipher::<SEAL, ROUNDS>(key, &mut states, 0, pads);
    partial_last_round::<SEAL, ROUNDS>(key, &mut states, &mut data, pads);
    let (power, cross) = powers(&key.powers, POWERS / LANES - 1);
    let mut sums = [zero(); LANES];
    for (lane, before) in first_blocks(before, pads).into_iter().enumerate() {
        let blocks = _mm512_xor_si512(states[lane], before);
        sums[lane] = zero().add(reverse(blocks), power, cross);
    }
    sum_messages(&sums)
}

/// Each lane where the first block of a register is that begins with so many that are not there, as
/// data is sent.
#[inline]
fn first_blocks(lanes: __m512i, pads: [usize; LANES]) -> [__m512i; LANES] {
    let mut blocks = broadcast_each(reverse(lanes));
    for (block, pad) in blocks.iter_mut().zip(pads) {
        *block = _mm512_maskz_mov_epi64(3 << (2 * pad), *block);
    }
    blocks
}

/// The data of four messages under one key that have as many registers, two at least and
/// [`INTERLEAVED_MAX`] at most: one register of each at a time.
#[inline(never)]
pub(super) fn interleaved<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    schedule: Schedule<'_, ROUNDS, EIGHTS>,
    nonces: __m512i,
    [a, b, c, d]: [&mut [u8]; LANES],
    registers: usize,
    before: __m512i,
) -> Sums {
    let first_key = broadcast(&key.aes.round_keys[0]);
    let bases = broadcast_each(_mm512_xor_si512(nonces, first_key));
    let pads = [pad(a.len()), pad(b.len()), pad(c.len()), pad(d.len())];
    let [pa, pb, pc, pd] = pads;
    let earlier = first_blocks(before, pads);
    let whole = registers - 2;
    let (head_a, whole_a, tail_a) = parts(a, pa, whole);
    let (head_b, whole_b, tail_b) = parts(b, pb, whole);
    let (head_c, whole_c, tail_c) = parts(c, pc, whole);
    let (head_d, whole_d, tail_d) = parts(d, pd, whole);
    let mut heads = [head_a, head_b, head_c, head_d];
    let mut tails = [tail_a, tail_b, tail_c, tail_d];

    let mut sums = [zero(); LANES];
    // Registers go in pairs, counted from the end. The last pair is yet to be taken into the hash:
    // that is done between the rounds of the next.
    let mut waiting = [[_mm512_setzero_si512(); 2]; LANES];
    let mut register = registers % 2;
    if register == 1 {
        let mut states = bases;
        cipher::<SEAL, ROUNDS>(key, &mut states, 0, pads);
        partial_last_round::<SEAL, ROUNDS>(key, &mut states, &mut heads, pads);
        for lane in 0..LANES {
            waiting[lane][1] = _mm512_xor_si512(states[lane], earlier[lane]);
        }
    }
    while register < registers {
        let schedule = schedule.reload();
        let left = registers - register;
        let mut states = [_mm512_setzero_si512(); STRIDE];
        for (at, state) in states.iter_mut().enumerate() {
            let (lane, register) = (at % LANES, register + at / LANES);
            let from = COUNTERS_BEFORE + 2 + LANES * register - pads[lane];
            *state = _mm512_xor_si512(bases[lane], counters(from));
        }
        let mut stride = Stride::<SEAL, ROUNDS, EIGHTS, STRIDE>::new(schedule, states);
        if register > 0 {
            let at = INTERLEAVED_MAX - 2 - left;
            let [wa, wb, wc, wd] = waiting;
            sums[0] = rounds_and_products!(stride, STRIDE, schedule, 0, sums[0], wa, at);
            sums[1] = rounds_and_products!(stride, STRIDE, schedule, 1, sums[1], wb, at);
            sums[2] = rounds_and_products!(stride, STRIDE, schedule, 2, sums[2], wc, at);
            sums[3] = rounds_and_products!(stride, STRIDE, schedule, 3, sums[3], wd, at);
        } else {
            for part in 0..STRIDE / 2 {
                stride.part(schedule, part);
            }
        }
        let last_key = schedule.key(ROUNDS);
        let [a, b, c, d, next @ ..] = stride.states();
        let mut states = [a, b, c, d];
        if register > 0 {
            let at = register - 1;
            let bytes = [&mut whole_a[at], &mut whole_b[at], &mut whole_c[at], &mut whole_d[at]];
            for (state, bytes) in states.iter_mut().zip(bytes) {
                last_round::<SEAL>(state, last_key, bytes);
            }
        } else {
            partial_last_round::<SEAL, ROUNDS>(key, &mut states, &mut heads, pads);
            for (state, before) in states.iter_mut().zip(earlier) {
                *state = _mm512_xor_si512(*state, before);
            }
        }
        for lane in 0..LANES {
            waiting[lane] = [states[lane], next[lane]];
        }
        if left > 2 {
            let bytes = [
                &mut whole_a[register],
                &mut whole_b[register],
                &mut whole_c[register],
                &mut whole_d[register],
            ];
            for (waiting, bytes) in waiting.iter_mut().zip(bytes) {
                last_round::<SEAL>(&mut waiting[1], last_key, bytes);
            }
        } else {
            let mut states = next;
            partial_last_round::<SEAL, ROUNDS>(key, &mut states, &mut tails, [0; LANES]);
            for (waiting, state) in waiting.iter_mut().zip(states) {
                waiting[1] = state;
            }
        }
        register += 2;
    }
    for lane in 0..LANES {
        sums[lane] = sums[lane].add_pair(schedule.powers, waiting[lane], INTERLEAVED_MAX - 2);
    }
    sum_messages(&sums)
}

/// All rounds but the last for a register. `SEAL` makes it a function of its callers' own, which
/// the compiler inlines.
#[inline]
pub(super) fn cipher<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    register: usize,
    pads: [usize; LANES],
) {
    for (state, pad) in states.iter_mut().zip(pads) {
        let from = COUNTERS_BEFORE + 2 + LANES * register - pad;
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
/// belongs into the hash, as it is sent.
#[inline]
pub(super) fn partial_last_round<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    parts: &mut [&mut [u8]; LANES],
    pads: [usize; LANES],
) {
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    // All loads are before all stores: what is around a short part belongs to its neighbour, whose
    // load would wait for the store.
    let mut inputs = [(last_key, 0); LANES];
    for lane in 0..LANES {
        inputs[lane] = load_some(parts[lane], pads[lane]);
    }
    for (lane, (input, mask)) in inputs.into_iter().enumerate() {
        let input = ordered(input);
        let output = _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
        store_some(parts[lane], pads[lane], output);
        states[lane] = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
    }
}

/// The data for the first register, which begins with `pad` blocks that are not there, the data for
/// so many whole ones, and what is left for the last.
#[inline]
pub(super) fn parts(data: &mut [u8], pad: usize, whole: usize) -> (&mut [u8], &mut [[u8; 64]], &mut [u8]) {
    let (head, rest) = data.split_at_mut((64 - BLOCK * pad).min(data.len()));
    let (middle, tail) = rest.split_at_mut((64 * whole).min(rest.len()));
    let (middle, _) = middle.as_chunks_mut();
    (head, &mut middle[..whole], tail)
}

}
