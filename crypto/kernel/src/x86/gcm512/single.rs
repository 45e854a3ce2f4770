//! Lone messages, and neighbours of different keys.

use super::hash::{Sums, fold, last_of_aad, powers, sum_rows, zero};
use super::register::*;
use super::row::row;
use super::{BLOCK, CHUNK, LANES, gcm};
use crate::packet::{Message, POWERS};
use core::arch::x86_64::*;

features! {

/// A lone message of 1 to 64 bytes: as few steps as can be, one after another.
pub(super) fn short<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(message: &mut M) {
    let Some(key) = gcm(message) else { return };
    let (blocks, pad) = (message.size().div_ceil(BLOCK), pad(message.size()));
    // Additional data before the data, lengths behind it.
    let aad = message.aad();
    let lengths = _mm_set_epi64x(8 * aad.len() as i64, 8 * message.size() as i64);
    let none = _mm_setzero_si128();
    let ends = join([last_of_aad(key, aad), lengths, none, none]);
    let before = load_block(&key.powers[POWERS - 1 - blocks]);
    let power = join([before, load_block(&key.first), none, none]);
    let middle = _mm512_xor_si512(power, _mm512_shuffle_epi32(power, 0x4e));
    let sums = zero().add(ends, power, middle);

    let nonce = block(message.nonce());
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let mut state = _mm512_xor_si512(base, counters(COUNTERS_BEFORE + 2 - pad));
    let mut tag = _mm512_xor_si512(base, every_lane(1 << 24));
    for round in 1..ROUNDS {
        let round_key = broadcast(&key.aes.round_keys[round]);
        state = _mm512_aesenc_epi128(state, round_key);
        tag = _mm512_aesenc_epi128(tag, round_key);
    }
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    let tag = _mm512_aesenclast_epi128(tag, last_key);
    let data = message.data();
    let (input, mask) = load_some(data, pad);
    let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
    store_some(data, pad, output);
    let hashed = reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input });
    let (power, middle) = powers(key, CHUNK - 1);
    let Sums { low, middle, high } = sums.add(hashed, power, middle);
    let sums = Sums { low: fold(low), middle: fold(middle), high: fold(high) };
    let [tag, ..] = split(_mm512_xor_si512(reverse(sums.reduce()), tag));
    message.finish(number(tag));
}

/// Messages side by side, one in each lane. The keys of the next come into the cache meanwhile.
pub(super) fn together<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const N: usize>(
    messages: &mut [M; N],
    next: &[M],
) {
    let Some(key) = gcm(&messages[0]) else { return };
    let mut keys = [key; LANES];
    for (key, message) in keys.iter_mut().zip(&*messages) {
        *key = gcm(message).unwrap_or(key);
    }
    let [a, b, c, d] = keys;
    let same = N == 1;

    let mut nonces = [_mm_setzero_si128(); LANES];
    let mut headers = [_mm_setzero_si128(); LANES];
    let mut lengths = [_mm_setzero_si128(); LANES];
    // Those without data, two bits each.
    let mut empty = 0;
    for (lane, message) in messages.iter_mut().enumerate() {
        nonces[lane] = block(message.nonce());
        headers[lane] = last_of_aad(keys[lane], message.aad());
        let (aad, data) = (message.aad().len(), message.size());
        lengths[lane] = _mm_set_epi64x(8 * aad as i64, 8 * data as i64);
        empty |= u8::from(data == 0) * (3 << (2 * lane));
    }
    let first = of_lanes(same, [&a.first, &b.first, &c.first, &d.first]);
    let first_middle = _mm512_xor_si512(first, _mm512_shuffle_epi32(first, 0x4e));

    let mut stream = _mm512_or_si512(join(nonces), every_lane(1 << 24));
    for round in 0..=ROUNDS {
        let [a, b, c, d] = [a, b, c, d].map(|key| &key.aes.round_keys[round]);
        let round_key = of_lanes(same, [a, b, c, d]);
        stream = match round {
            0 => _mm512_xor_si512(stream, round_key),
            round if round < ROUNDS => _mm512_aesenc_epi128(stream, round_key),
            _ => _mm512_aesenclast_epi128(stream, round_key),
        };
    }
    let before = zero().add(join(headers), first, first_middle).reduce();
    let befores = split(before);
    let mut rows = [zero(); LANES];
    for (lane, message) in messages.iter_mut().enumerate() {
        if let Some(next) = next.get(lane) {
            fetch(next.key());
            if let Some(key) = next.header_key() {
                fetch(key);
            }
        }
        let (nonce, before) = (nonces[lane], befores[lane]);
        rows[lane] = row::<SEAL, ROUNDS>(keys[lane], nonce, message.data(), before);
    }
    let sums = sum_rows(&rows);
    let lengths = join(lengths);
    let lengths = _mm512_mask_xor_epi64(lengths, empty, lengths, before);
    let hashes = sums.add(lengths, first, first_middle).reduce();
    let tags = split(_mm512_xor_si512(reverse(hashes), stream));
    for (message, tag) in messages.iter_mut().zip(tags) {
        message.finish(number(tag));
    }
}

}
