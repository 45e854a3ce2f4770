//! ChaCha20's header masks (RFC 9001 § 5.4.4), a lane of 32 bits each.

use super::register::*;
use super::{Gcm512, LANES, TOGETHER};
use crate::chacha::first_words;
use crate::packet::{HeaderForm, HeaderKey};
use crate::x86::chacha::transposed;
use core::arch::x86_64::*;
use core::ptr;

/// So many go together.
pub(super) const CHACHAS: usize = LANES * TOGETHER;

features! {

/// The keys of four registers of samples, word by word, if all are of ChaCha20.
#[inline]
pub(super) fn chacha_keys<'k>(keys: impl Fn(usize) -> &'k HeaderKey) -> Option<[[__m512i; 4]; 2]> {
    let HeaderForm::ChaCha(first) = &keys(0).0 else { return None };
    let mut words = [[_mm512_setzero_si512(); 4]; 2];
    if (1..CHACHAS).all(|at| ptr::eq(keys(at), keys(0))) {
        for (words, half) in words.iter_mut().zip(&first.0) {
            for (word, bytes) in words.iter_mut().zip(half.as_chunks().0) {
                *word = _mm512_set1_epi32(i32::from_le_bytes(*bytes));
            }
        }
        return Some(words);
    }
    let mut found = [first; CHACHAS];
    for (at, found) in found.iter_mut().enumerate() {
        match &keys(at).0 {
            HeaderForm::ChaCha(key) => *found = key,
            _ => return None,
        }
    }
    for (half, words) in words.iter_mut().enumerate() {
        for (register, [a, b, c, d]) in words.iter_mut().zip(found.as_chunks().0) {
            *register = of_lanes([&a.0[half], &b.0[half], &c.0[half], &d.0[half]]);
        }
        *words = transposed(*words);
    }
    Some(words)
}

/// Masks of ChaCha20 for four samples in each register.
#[inline]
pub(super) fn chacha_masks(
    room: Gcm512,
    key: [[__m512i; 4]; 2],
    samples: [__m512i; TOGETHER],
) -> [__m512i; TOGETHER] {
    let [first, second] = first_words(room, key, transposed(samples));
    let (low, high) = (_mm512_unpacklo_epi32(first, second), _mm512_unpackhi_epi32(first, second));
    [low, _mm512_unpackhi_epi64(low, low), high, _mm512_unpackhi_epi64(high, high)]
}

}
