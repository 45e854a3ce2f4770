//! Header masks.

use super::register::*;
use super::{Gcm512, LANES, TOGETHER};
use crate::chacha;
use crate::packet::{HeaderForm, HeaderKey, MaskKey, Room, SAMPLE_BYTES};
use crate::portable::Library;
use core::arch::x86_64::*;
use core::{ptr, slice};

features! {

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
        let same = samples[at..].iter().take(TOGETHER);
        let same = same.take_while(|(other, _)| ptr::eq(*other, samples[at].0)).count();
        let groups = samples[at..].as_chunks_mut().0;
        if same == TOGETHER
            && let Some(groups) = groups.first_chunk_mut::<{ TOGETHER / LANES }>()
        {
            masks_of(key, groups);
            at += TOGETHER;
        } else if same >= LANES
            && let Some(groups) = groups.first_chunk_mut::<1>()
        {
            masks_of(key, groups);
            at += LANES;
        } else {
            let (_, sample) = &mut samples[at];
            let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
            let [first, middle @ .., last] = keys else { return };
            let mut state = _mm_xor_si128(load_block(sample), load_block(first));
            for key in middle {
                state = _mm_aesenc_si128(state, load_block(key));
            }
            *sample = number(_mm_aesenclast_si128(state, load_block(last))).to_le_bytes();
            at += 1;
        }
    }
    if chacha {
        chacha::masks(room, samples);
    }
}

/// Masks under one key, four to a register.
#[inline]
pub(super) fn masks_of<const G: usize>(
    key: &MaskKey,
    groups: &mut [[(&HeaderKey, [u8; SAMPLE_BYTES]); LANES]; G],
) {
    let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
    let [first, middle @ .., last] = keys else { return };
    let mut states = [_mm512_setzero_si512(); G];
    for (state, [(_, a), (_, b), (_, c), (_, d)]) in states.iter_mut().zip(&*groups) {
        let blocks = join([load_block(a), load_block(b), load_block(c), load_block(d)]);
        *state = _mm512_xor_si512(blocks, broadcast(first));
    }
    for key in middle {
        let round_key = broadcast(key);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
    for (state, group) in states.iter().zip(groups) {
        let masks = split(_mm512_aesenclast_epi128(*state, broadcast(last)));
        for ((_, sample), mask) in group.iter_mut().zip(masks) {
            *sample = number(mask).to_le_bytes();
        }
    }
}

}
