//! Masks for headers: samples through the cipher, as many at once as hide its latency.

use super::PACKETS;
use super::width::{Block, LOT, Narrow, Vector, Width};
use crate::aes::{Rounds, Schedule};

/// Samples through the cipher, each in its own place.
#[inline(always)]
pub(super) fn together<W: Width>(
    width: W,
    aes: &Schedule,
    samples: &[&Block; PACKETS],
) -> [Block; PACKETS] {
    match aes.rounds {
        Rounds::Ten => together_by::<W, 10>(width, aes, samples),
        Rounds::Fourteen => together_by::<W, 14>(width, aes, samples),
    }
}

#[inline(always)]
fn together_by<W: Width, const ROUNDS: usize>(
    width: W,
    aes: &Schedule,
    samples: &[&Block; PACKETS],
) -> [Block; PACKETS] {
    let (narrow, keys) = (width.narrow(), &aes.round_keys);
    let mut masks = [[0; 16]; PACKETS];
    let (places, _) = W::split(masks.as_flattened_mut());
    for (places, samples) in places.chunks_mut(LOT).zip(samples.chunks(LOT * W::BLOCKS)) {
        let key = width.all(&keys[0]);
        let mut states = [key; LOT];
        for (state, samples) in states.iter_mut().zip(samples.chunks(W::BLOCKS)) {
            if let [low, ..] = samples
                && let [.., high] = samples
            {
                *state = width.xor(key, width.join(narrow.load(low), narrow.load(high)));
            }
        }
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut states {
                *state = width.here(width.round(*state, key));
            }
        }
        let key = width.all(&keys[ROUNDS]);
        for (place, state) in places.iter_mut().zip(states) {
            width.store(place, width.last_round(state, key));
        }
    }
    masks
}

/// A sample through the cipher.
#[inline(always)]
pub(super) fn alone(narrow: Narrow, aes: &Schedule, sample: Vector) -> Block {
    match aes.rounds {
        Rounds::Ten => alone_by::<10>(narrow, aes, sample),
        Rounds::Fourteen => alone_by::<14>(narrow, aes, sample),
    }
}

#[inline(always)]
fn alone_by<const ROUNDS: usize>(narrow: Narrow, aes: &Schedule, sample: Vector) -> Block {
    let keys = &aes.round_keys;
    let mut state = narrow.xor(sample, narrow.load(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = narrow.round(state, narrow.load(key));
    }
    narrow.bytes(narrow.last_round(state, narrow.load(&keys[ROUNDS])))
}
