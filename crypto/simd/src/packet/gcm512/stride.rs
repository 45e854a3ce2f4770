//! A stride of registers goes through the cipher, and as many others through the hash between its
//! rounds: instruction by instruction in an order that keeps all pipes busy.

use super::register::*;
use crate::packet::gcm::{GcmKey, Powers};
use crate::x86::{load, ordered, store};
use std::arch::x86_64::*;

/// All round keys but the first, each in all lanes: to load them so takes none of the pipes that
/// compute.
pub(super) struct BroadcastKeys<const ROUNDS: usize>([__m512i; ROUNDS]);

impl<const ROUNDS: usize> BroadcastKeys<ROUNDS> {
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
        reload(self);
    }

    }
}

/// The parts of a key that the cipher and the hash go through.
#[derive(Clone, Copy)]
pub(super) struct Schedule<'k, const ROUNDS: usize, const EIGHTS: usize> {
    pub(super) powers: &'k Powers<EIGHTS>,
    pub(super) wide: &'k BroadcastKeys<ROUNDS>,
}

impl<const ROUNDS: usize, const EIGHTS: usize> Schedule<'_, ROUNDS, EIGHTS> {
    features! {

    /// The key of a round, counted from 1.
    #[inline]
    pub(super) fn key(&self, round: usize) -> __m512i {
        self.wide.0[round - 1]
    }

    /// This schedule, from memory: see [`reload`].
    #[inline]
    pub(super) fn reload(self) -> Self {
        Self { powers: reload(self.powers), wide: reload(self.wide) }
    }

    }
}

/// Counter blocks on their way through the cipher, `N` registers. `SEAL` makes these functions
/// their callers' own, which the compiler inlines.
pub(super) struct Stride<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>
{
    pub(super) states: [__m512i; N],
}

impl<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>
    Stride<SEAL, ROUNDS, EIGHTS, N>
{
    features! {

    /// Begins with counter blocks that the first round key is added to.
    #[inline]
    pub(super) fn new(schedule: Schedule<'_, ROUNDS, EIGHTS>, mut states: [__m512i; N]) -> Self {
        let round_key = schedule.key(1);
        for state in &mut states {
            round(state, round_key);
        }
        Self { states }
    }

    /// A part of the rounds that are left before the last: there is one for each pair of registers.
    #[inline]
    pub(super) fn part(&mut self, schedule: Schedule<'_, ROUNDS, EIGHTS>, part: usize) {
        for at in Self::rounds(part, 0)..Self::rounds(part + 1, 0) {
            let round_key = schedule.key(at);
            for state in &mut self.states {
                round(state, round_key);
            }
        }
    }

    }

    /// Which round key a part's round has: the first two rounds are those before all parts.
    pub(super) fn rounds(part: usize, at: usize) -> usize {
        2 + part * (ROUNDS - 2) / (N / 2) + at
    }

    /// The states before the last round.
    pub(super) fn states(self) -> [__m512i; N] {
        self.states
    }
}

/// A part of the rounds of a stride of so many registers, and between them two others are taken
/// into the hash, the first so many from where the powers begin. A function would not be inlined
/// everywhere.
macro_rules! rounds_and_products {
    ($stride:ident, $registers:ident, $schedule:expr, $part:expr, $sums:expr, $pair:expr, $at:expr) => {{
        let (schedule, sums, [a, b]) = ($schedule, $sums, $pair);
        let rounds = |at| Stride::<SEAL, ROUNDS, EIGHTS, $registers>::rounds($part, at);
        let mut done = 0;
        macro_rules! next {
            () => {
                round(
                    &mut $stride.states[done % $registers],
                    schedule.key(rounds(done / $registers)),
                );
                done += 1;
            };
        }
        let (power_a, power_b, powers_cross_terms) = two_powers(schedule.powers, $at);
        next!();
        let a = ordered(reverse(a));
        next!();
        next!();
        let b = ordered(reverse(b));
        next!();
        let low = ordered(_mm512_unpacklo_epi64(a, b));
        next!();
        let low_a = ordered(_mm512_clmulepi64_epi128::<0x00>(low, power_a));
        next!();
        let high = ordered(_mm512_unpackhi_epi64(a, b));
        next!();
        let low_b = ordered(_mm512_clmulepi64_epi128::<0x01>(low, power_b));
        next!();
        let cross = ordered(_mm512_xor_si512(low, high));
        next!();
        let high_a = ordered(_mm512_clmulepi64_epi128::<0x10>(high, power_a));
        next!();
        let low = ordered(xor3(sums.low, low_a, low_b));
        next!();
        let high_b = ordered(_mm512_clmulepi64_epi128::<0x11>(high, power_b));
        next!();
        next!();
        let cross_a = ordered(_mm512_clmulepi64_epi128::<0x00>(cross, powers_cross_terms));
        next!();
        let high = ordered(xor3(sums.high, high_a, high_b));
        next!();
        let cross_b = ordered(_mm512_clmulepi64_epi128::<0x11>(cross, powers_cross_terms));
        next!();
        let cross = ordered(xor3(sums.cross, cross_a, cross_b));
        for at in rounds(done / $registers)..rounds(0) + (ROUNDS - 2) / ($registers / 2) {
            for state in &mut $stride.states {
                round(state, schedule.key(at));
            }
        }
        Sums { low, cross, high }
    }};
}

pub(super) use rounds_and_products;

/// All rounds but the last of counter blocks, and all of the tag's, whose first is `base`: in step,
/// for the schedulers would fill with the rounds of one register that wait for each other. Makes
/// the tag's key stream and the last round key. A function would not be inlined everywhere.
macro_rules! rounds_in_step {
    ($key:expr, $states:expr, $base:expr) => {{
        let mut tag = _mm_xor_si128($base, _mm_set_epi32(1 << 24, 0, 0, 0));
        for at in 1..ROUNDS {
            let round_key = broadcast(&$key.aes.round_keys[at]);
            for state in &mut $states {
                round(state, round_key);
            }
            tag = _mm_aesenc_si128(tag, _mm512_castsi512_si128(round_key));
            tag = _mm512_castsi512_si128(ordered(_mm512_castsi128_si512(tag)));
        }
        let last_key = broadcast(&$key.aes.round_keys[ROUNDS]);
        (_mm_aesenclast_si128(tag, _mm512_castsi512_si128(last_key)), last_key)
    }};
}

pub(super) use rounds_in_step;

features! {

/// A round of the cipher, here.
#[inline]
pub(super) fn round(state: &mut __m512i, round_key: __m512i) {
    *state = ordered(_mm512_aesenc_epi128(*state, round_key));
}

/// The last round, and the data. Leaves what belongs into the hash, as it is sent.
#[inline]
pub(super) fn last_round<const SEAL: bool>(
    state: &mut __m512i,
    last_key: __m512i,
    bytes: &mut [u8; 64],
) {
    let input = load(bytes);
    let output = ordered(_mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input)));
    store(bytes, output);
    *state = if SEAL { output } else { input };
}

/// The [`last_round`] of a register that may be short, after so many blocks that are not there.
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

}
