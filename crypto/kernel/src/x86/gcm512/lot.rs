//! Eight registers go through the cipher together, and eight others through the hash between its rounds:
//! instruction by instruction in an order that keeps all pipes busy.

use super::register::*;
use super::{LANES, LOT};
use crate::packet::{GcmKey, Powers};
use crate::x86::{load, store};
use core::arch::asm;
use core::arch::x86_64::*;

/// All round keys but the first, each in all lanes: to load them so takes none of the pipes that compute.
pub(super) struct Wide<const ROUNDS: usize>([__m512i; ROUNDS]);

impl<const ROUNDS: usize> Wide<ROUNDS> {
    features! {

    #[inline]
    pub(super) fn new(key: &GcmKey) -> Self {
        let mut keys = [_mm512_setzero_si512(); ROUNDS];
        for (wide, key) in keys.iter_mut().zip(&key.aes.round_keys[1..]) {
            *wide = broadcast(key);
        }
        Self(keys)
    }

    /// Leaves nothing of the key behind.
    #[inline]
    pub(super) fn wipe(&mut self) {
        self.0 = [_mm512_setzero_si512(); ROUNDS];
        again(self);
    }

    }
}

/// What of a key the cipher and the hash go through.
#[derive(Clone, Copy)]
pub(super) struct Schedule<'k, const ROUNDS: usize, const EIGHTS: usize> {
    pub(super) powers: &'k Powers<EIGHTS>,
    pub(super) wide: &'k Wide<ROUNDS>,
}

impl<const ROUNDS: usize, const EIGHTS: usize> Schedule<'_, ROUNDS, EIGHTS> {
    features! {

    /// The key of a round, counted from 1.
    #[inline]
    pub(super) fn key(&self, round: usize) -> __m512i {
        self.wide.0[round - 1]
    }

    /// The same, from memory: see [`again`].
    #[inline]
    pub(super) fn again(self) -> Self {
        Self { powers: again(self.powers), wide: again(self.wide) }
    }

    }
}

/// Counter blocks on their way through the cipher. `SEAL` makes these functions their callers' own, which
/// the compiler inlines.
pub(super) struct Lot<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize> {
    pub(super) states: [__m512i; LOT],
}

impl<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize> Lot<SEAL, ROUNDS, EIGHTS> {
    features! {

    /// Begins with counter blocks that the first round key is added to.
    #[inline]
    pub(super) fn new(schedule: Schedule<'_, ROUNDS, EIGHTS>, mut states: [__m512i; LOT]) -> Self {
        let round_key = schedule.key(1);
        for state in &mut states {
            round(state, round_key);
        }
        Self { states }
    }

    /// A quarter of the rounds that are left before the last.
    #[inline]
    pub(super) fn quarter(&mut self, schedule: Schedule<'_, ROUNDS, EIGHTS>, quarter: usize) {
        for at in Self::rounds(quarter, 0)..Self::rounds(quarter + 1, 0) {
            let round_key = schedule.key(at);
            for state in &mut self.states {
                round(state, round_key);
            }
        }
    }

    }

    /// Which round key a quarter's round has: the first two rounds are those before all quarters.
    pub(super) fn rounds(quarter: usize, at: usize) -> usize {
        2 + quarter * (ROUNDS - 2) / 4 + at
    }

    /// The states before the last round.
    pub(super) fn states(self) -> [__m512i; LOT] {
        self.states
    }
}

/// A quarter of a lot's rounds, and between them two registers are taken into the hash, the first so many
/// from where the powers begin. A function would not be inlined everywhere.
macro_rules! quarter_and_pair {
    ($lot:ident, $schedule:expr, $quarter:expr, $sums:expr, $pair:expr, $at:expr) => {{
        let (schedule, sums, [a, b]) = ($schedule, $sums, $pair);
        let rounds = |at| Lot::<SEAL, ROUNDS, EIGHTS>::rounds($quarter, at);
        let [s, t, u, v, w, x, y, z] = &mut $lot.states;
        let round_key = schedule.key(rounds(0));
        let (power_a, power_b, powers_middle) = pair_of_powers(schedule.powers, $at);
        round(s, round_key);
        let a = here(reverse(a));
        round(t, round_key);
        round(u, round_key);
        let b = here(reverse(b));
        round(v, round_key);
        let low = here(_mm512_unpacklo_epi64(a, b));
        round(w, round_key);
        let low_a = here(_mm512_clmulepi64_epi128(low, power_a, 0x00));
        round(x, round_key);
        let high = here(_mm512_unpackhi_epi64(a, b));
        round(y, round_key);
        let low_b = here(_mm512_clmulepi64_epi128(low, power_b, 0x01));
        round(z, round_key);
        let middle = here(_mm512_xor_si512(low, high));
        let round_key = schedule.key(rounds(1));
        round(s, round_key);
        let high_a = here(_mm512_clmulepi64_epi128(high, power_a, 0x10));
        round(t, round_key);
        let low = here(xor3(sums.low, low_a, low_b));
        round(u, round_key);
        let high_b = here(_mm512_clmulepi64_epi128(high, power_b, 0x11));
        round(v, round_key);
        round(w, round_key);
        let middle_a = here(_mm512_clmulepi64_epi128(middle, powers_middle, 0x00));
        round(x, round_key);
        let high = here(xor3(sums.high, high_a, high_b));
        round(y, round_key);
        let middle_b = here(_mm512_clmulepi64_epi128(middle, powers_middle, 0x11));
        round(z, round_key);
        let middle = here(xor3(sums.middle, middle_a, middle_b));
        for at in rounds(2)..Lot::<SEAL, ROUNDS, EIGHTS>::rounds($quarter + 1, 0) {
            let round_key = schedule.key(at);
            for state in &mut $lot.states {
                round(state, round_key);
            }
        }
        Sums { low, middle, high }
    }};
}

pub(super) use quarter_and_pair;

/// All rounds but the last of counter blocks, and all of the tag's, whose first is `base`: in step, for the
/// schedulers would fill with the rounds of one register that wait for each other. Makes the tag's key stream
/// and the last round key. A function would not be inlined everywhere.
macro_rules! in_step {
    ($key:expr, $states:expr, $base:expr) => {{
        let mut tag = _mm_xor_si128($base, _mm_set_epi32(1 << 24, 0, 0, 0));
        for at in 1..ROUNDS {
            let round_key = broadcast(&$key.aes.round_keys[at]);
            for state in &mut $states {
                round(state, round_key);
            }
            tag = _mm_aesenc_si128(tag, _mm512_castsi512_si128(round_key));
            tag = _mm512_castsi512_si128(here(_mm512_castsi128_si512(tag)));
        }
        let last_key = broadcast(&$key.aes.round_keys[ROUNDS]);
        (_mm_aesenclast_si128(tag, _mm512_castsi512_si128(last_key)), last_key)
    }};
}

pub(super) use in_step;

features! {

/// A round of the cipher, here.
#[inline]
pub(super) fn round(state: &mut __m512i, round_key: __m512i) {
    *state = here(_mm512_aesenc_epi128(*state, round_key));
}

/// The last round, and the data. Leaves what belongs into the hash, as it is sent.
#[inline]
pub(super) fn last_round<const SEAL: bool>(
    state: &mut __m512i,
    last_key: __m512i,
    bytes: &mut [u8; 64],
) {
    let input = load(bytes);
    let output = here(_mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input)));
    store(bytes, output);
    *state = if SEAL { output } else { input };
}

/// The same for a register that may be short, after so many blocks that are not there.
#[inline]
pub(super) fn short_last_round<const SEAL: bool>(
    state: &mut __m512i,
    last_key: __m512i,
    bytes: &mut [u8],
    pad: usize,
) {
    let (input, mask) = load_some(bytes, pad);
    let output = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input));
    store_some(bytes, pad, output);
    *state = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
}

/// A value that is computed after all such before it and before all such behind it: the compiler keeps
/// their order.
#[inline]
pub(super) fn here(mut value: __m512i) -> __m512i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(zmm_reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// The powers that two registers are multiplied by, and their middles: the first one's in the low halves,
/// the second one's in the high halves.
#[inline]
pub(super) fn pair_of_powers<const EIGHTS: usize>(
    powers: &Powers<EIGHTS>,
    at: usize,
) -> (__m512i, __m512i, __m512i) {
    let Powers { powers, middles } = powers;
    let [a, b] = powers.as_flattened().as_chunks::<LANES>().0[at..].first_chunk().expect("two registers");
    (load_blocks(a), load_blocks(b), load_pairs(&middles[at / 2]))
}

}
