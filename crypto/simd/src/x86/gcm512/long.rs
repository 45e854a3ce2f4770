//! Lone messages of more registers than go through the cipher at once.

use super::hash::{Sums, carry, powers, product, tag_of, xor3, zero};
use super::lot::{
    Lot, Schedule, Wide, in_step, last_round, pair_of_powers, part_and_pair, round,
    short_last_round,
};
use super::register::*;
use super::{BLOCK, FEW, LANES, here};
use crate::packet::{GcmKey, POWERS};
use core::arch::x86_64::*;

/// Registers that there are powers for.
const SPAN: usize = POWERS / LANES;
const EIGHTS: usize = POWERS / 8;

features! {

/// A message of more registers than [`FEW`], and of so many that a multiple of that is left behind the first
/// `START`; at most [`COLUMNS_MAX`](super::COLUMNS_MAX). Returns the tag.
pub(super) fn long<const SEAL: bool, const ROUNDS: usize, const START: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    header: __m128i,
    lengths: __m128i,
) -> __m128i {
    let before = reverse(product(reverse_block(header), &key.first).reduce());
    let lengths = product(lengths, &key.first);
    let pad = pad(data.len());
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let (counters, _) = COUNTERS.0[COUNTERS_BEFORE + 2 - pad..].as_chunks::<LANES>();
    let (now, mut counters) = counters.split_first_chunk::<START>().expect("so many");
    let mut states = now.map(|counters| _mm512_xor_si512(base, load_blocks(&counters)));
    let (tag, last_key) = in_step!(key, states, _mm512_castsi512_si128(base));
    // Only the first register and the last may be short.
    let (first, rest) = data.split_at_mut(64 - BLOCK * pad);
    let (whole, mut rest) = rest.split_at_mut(64 * (START - 1));
    short_last_round::<SEAL>(&mut states[0], last_key, first, pad);
    for (state, bytes) in states[1..].iter_mut().zip(whole.as_chunks_mut().0) {
        last_round::<SEAL>(state, last_key, bytes);
    }
    states[0] = _mm512_xor_si512(states[0], at_block(pad, _mm512_castsi512_si128(before)));

    let mut wide = Wide::new(key);
    let lots = rest.len().div_ceil(64 * FEW);
    // Where the powers of the registers that wait begin.
    let mut at = if lots.is_multiple_of(2) { FEW } else { 0 };
    // What is yet to be taken into the hash: that is done between the rounds of the next.
    let mut waiting = [_mm512_setzero_si512(); FEW];
    let mut sums = zero();
    match states.as_slice() {
        &[a, b, c, d, e] => {
            let (power, middle) = powers(&key.powers, (at + SPAN - 1) % SPAN);
            sums = sums.add(reverse(a), power, middle);
            waiting = [b, c, d, e];
        }
        states => waiting[FEW - START..].copy_from_slice(states),
    }
    for _ in 0..lots {
        let schedule = Schedule { powers: &key.powers, wide: &wide }.again();
        let (lot, later) = rest.split_at_mut(rest.len().min(64 * FEW));
        let (whole, tail) = lot.split_at_mut(64 * (FEW - 1));
        let (now, next) = counters.split_first_chunk::<FEW>().expect("so many");
        (rest, counters) = (later, next);
        let states = now.map(|counters| _mm512_xor_si512(base, load_blocks(&counters)));
        let mut lot = Lot::<SEAL, ROUNDS, EIGHTS, FEW>::new(schedule, states);
        if at == 0 {
            waiting[0] = _mm512_xor_si512(waiting[0], carry(sums));
            sums = zero();
        }
        // What is being reduced belongs into the first pair: it comes last.
        let [a, b, c, d] = waiting;
        sums = part_and_pair!(lot, FEW, schedule, 0, sums, [c, d], at + 2);
        sums = part_and_pair!(lot, FEW, schedule, 1, sums, [a, b], at);
        let last_key = schedule.key(ROUNDS);
        waiting = lot.states();
        let [states @ .., last] = &mut waiting;
        for (state, bytes) in states.iter_mut().zip(whole.as_chunks_mut().0) {
            last_round::<SEAL>(state, last_key, bytes);
        }
        match <&mut [u8; 64]>::try_from(&mut *tail) {
            Ok(bytes) => last_round::<SEAL>(last, last_key, bytes),
            Err(_) => short_last_round::<SEAL>(last, last_key, tail, 0),
        }
        at = SPAN - FEW - at;
    }
    wide.wipe();
    let [a, b, c, d] = waiting;
    sums = sums.add_pair(&key.powers, [a, b], SPAN - FEW).add_pair(&key.powers, [c, d], SPAN - FEW + 2);
    tag_of(sums.and(lengths), tag)
}

}
