//! Masks for headers: samples through the cipher, as many at once as hide its latency.

use super::width::{Block, STRIDE, Width};
use crate::aes::{Rounds, Schedule};
use crate::packet::detected::{Vector, Width128};

/// Packets whose payloads are sealed, and then whose headers are completed: so many that no step
/// waits for what the one before it has just stored in other pieces, so few that they are still in
/// the cache.
pub(super) const PACKETS: usize = 16;

/// Samples through the cipher, each in its own place.
#[inline(always)]
pub(super) fn batched<W: Width>(
    width: W,
    aes: &Schedule,
    samples: &[&Block; PACKETS],
) -> [Block; PACKETS] {
    match aes.rounds {
        Rounds::Ten => batched_by::<W, 10>(width, aes, samples),
        Rounds::Fourteen => batched_by::<W, 14>(width, aes, samples),
    }
}

#[inline(always)]
fn batched_by<W: Width, const ROUNDS: usize>(
    width: W,
    aes: &Schedule,
    samples: &[&Block; PACKETS],
) -> [Block; PACKETS] {
    let (w128, keys) = (width.w128(), &aes.round_keys);
    let mut masks = [[0; 16]; PACKETS];
    let (places, _) = W::split(masks.as_flattened_mut());
    for (places, samples) in places.chunks_mut(STRIDE).zip(samples.chunks(STRIDE * W::BLOCKS)) {
        let key = width.all(&keys[0]);
        let mut states = [key; STRIDE];
        for (state, samples) in states.iter_mut().zip(samples.chunks(W::BLOCKS)) {
            if let [low, ..] = samples
                && let [.., high] = samples
            {
                *state = width.xor(key, width.join(w128.load(low), w128.load(high)));
            }
        }
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut states {
                *state = width.ordered(width.round(*state, key));
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
pub(super) fn single(w128: Width128, aes: &Schedule, sample: Vector) -> Block {
    match aes.rounds {
        Rounds::Ten => single_by::<10>(w128, aes, sample),
        Rounds::Fourteen => single_by::<14>(w128, aes, sample),
    }
}

#[inline(always)]
fn single_by<const ROUNDS: usize>(w128: Width128, aes: &Schedule, sample: Vector) -> Block {
    let keys = &aes.round_keys;
    let mut state = w128.xor(sample, w128.load(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = w128.round(state, w128.load(key));
    }
    w128.bytes(w128.last_round(state, w128.load(&keys[ROUNDS])))
}
