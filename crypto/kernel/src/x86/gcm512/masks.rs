//! Header masks.

use super::register::*;
use super::{Gcm512, LANES, TOGETHER};
use crate::chacha;
use crate::packet::{HeaderForm, HeaderKey, MaskKey, Room, SAMPLE_BYTES};
use crate::portable::Library;
use core::arch::x86_64::*;
use core::{ptr, slice};

features! {

/// The key, if it is for this room.
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

#[inline]
pub(super) fn encrypt_one(key: &MaskKey, sample: __m128i) -> __m128i {
    let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
    let [first, middle @ .., last] = keys else { return sample };
    let mut state = _mm_xor_si128(sample, load_block(first));
    for key in middle {
        state = _mm_aesenc_si128(state, load_block(key));
    }
    _mm_aesenclast_si128(state, load_block(last))
}

/// Four masks at a time where neighbours have the same key.
pub(super) fn masks(room: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    let mut at = 0;
    while let [first, ..] = &mut samples[at..] {
        let key = match &first.0.0 {
            HeaderForm::Aes(key) => key,
            other => {
                if let HeaderForm::ChaCha(_) = other {
                    chacha = true;
                } else {
                    Library.masks(slice::from_mut(first));
                }
                at += 1;
                continue;
            }
        };
        let same = samples[at..].iter().take(LANES * TOGETHER);
        let same = same.take_while(|(other, _)| ptr::eq(*other, samples[at].0)).count();
        let (groups, _) = samples[at..][..same].as_chunks_mut::<LANES>();
        at += match groups {
            [] => {
                let (_, sample) = &mut samples[at];
                *sample = bytes_of(encrypt_one(key, load_block(sample)));
                1
            }
            [_] => {
                masks_of::<1>(key, groups);
                LANES
            }
            _ => {
                masks_of::<TOGETHER>(key, groups);
                LANES * groups.len()
            }
        };
    }
    if chacha {
        chacha::masks(room, samples);
    }
}

/// Masks under one key, four to a register.
#[inline]
fn masks_of<const G: usize>(
    key: &MaskKey,
    groups: &mut [[(&HeaderKey, [u8; SAMPLE_BYTES]); LANES]],
) {
    let mut states = [_mm512_setzero_si512(); G];
    for (state, [(_, a), (_, b), (_, c), (_, d)]) in states.iter_mut().zip(&*groups) {
        *state = join([load_block(a), load_block(b), load_block(c), load_block(d)]);
    }
    for (state, group) in encrypt(key, states).into_iter().zip(groups) {
        for ((_, sample), mask) in group.iter_mut().zip(blocks_of(state)) {
            *sample = mask;
        }
    }
}

}
