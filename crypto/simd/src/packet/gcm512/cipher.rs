//! Samples through the cipher.

use super::register::*;
use crate::aes::Rounds;
use crate::packet::key::{HeaderForm, HeaderKey};
use crate::packet::mask_key::MaskKey;
use crate::packet::quic::Mask;
use std::arch::x86_64::*;

features! {

/// The key, if it is for this backend.
#[inline]
pub(super) fn aes(key: &HeaderKey) -> Option<&MaskKey> {
    match &key.0 {
        HeaderForm::Aes(key) => Some(key),
        _ => None,
    }
}

/// Blocks under one key.
#[inline]
pub(super) fn encrypt<const G: usize>(key: &MaskKey, mut states: [__m512i; G]) -> [__m512i; G] {
    let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
    let [first, middle @ .., last] = keys else { return states };
    for state in &mut states {
        *state = _mm512_xor_si512(*state, broadcast(first));
    }
    for key in middle {
        let round_key = broadcast(key);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
    for state in &mut states {
        *state = _mm512_aesenclast_epi128(*state, broadcast(last));
    }
    states
}

/// Four blocks under a key of so many rounds.
#[inline]
pub(super) fn encrypt_four<const ROUNDS: usize>(key: &MaskKey, state: __m512i) -> __m512i {
    let keys = &key.aes.round_keys;
    let mut state = _mm512_xor_si512(state, broadcast(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = _mm512_aesenc_epi128(state, broadcast(key));
    }
    _mm512_aesenclast_epi128(state, broadcast(&keys[ROUNDS]))
}

/// A mask, which a number waits for: by way of no memory.
#[inline]
pub(super) fn mask_of_one(key: &MaskKey, sample: __m128i) -> Mask {
    Mask(_mm_cvtsi128_si64(encrypt_one(key, sample)) as u64)
}

#[inline]
pub(super) fn encrypt_one(key: &MaskKey, sample: __m128i) -> __m128i {
    match key.aes.rounds {
        Rounds::Ten => encrypt_one_of::<10>(key, sample),
        Rounds::Fourteen => encrypt_one_of::<14>(key, sample),
    }
}

#[inline]
fn encrypt_one_of<const ROUNDS: usize>(key: &MaskKey, sample: __m128i) -> __m128i {
    let keys = &key.aes.round_keys;
    let mut state = _mm_xor_si128(sample, load_block(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = _mm_aesenc_si128(state, load_block(key));
    }
    _mm_aesenclast_si128(state, load_block(&keys[ROUNDS]))
}

}
