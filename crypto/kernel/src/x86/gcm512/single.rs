//! Lone messages, and neighbours of different keys.

use super::hash::{Sums, carry, fold, middle_of, powers, sum_rows, zero};
use super::headers;
use super::register::*;
use super::row::row;
use super::{BLOCK, LANES, LOT, gcm};
use crate::packet::{GcmKey, Message, POWERS, Parts};
use core::arch::x86_64::*;

/// A message of at most so many registers goes through the cipher at once.
const SHORT: usize = 12;
/// A message of so many is worth more powers.
const BULK: usize = 64;

features! {

/// A lone message: its latency is what it takes, so whatever can goes side by side.
#[inline(never)]
pub(super) fn alone<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(message: &mut M) {
    let Some(key) = gcm(message) else { return };
    let Parts { aad, data, .. } = message.parts();
    let (aad, size) = (aad.len(), data.len());
    let blocks = size.div_ceil(BLOCK);
    let registers = blocks.div_ceil(LANES);
    if registers > 4 {
        // If the key is not at hand, its lines come at once instead of one after the other.
        fetch(&key.powers);
    }
    let header = headers::last(key, message);
    let lengths = _mm_set_epi64x(8 * aad as i64, 8 * size as i64);
    let none = _mm_setzero_si128();
    // Additional data before the data, and lengths behind it.
    let (start, power, before) = match registers {
        ..=SHORT => (reverse_block(header), &key.powers.all()[(2 * POWERS - 1 - blocks) % POWERS], none),
        _ => (none, &key.first, header),
    };
    let power = join([load_block(power), load_block(&key.first), none, none]);
    let ends = zero().add(join([start, lengths, none, none]), power, middle_of(power));
    let nonce = block(message.nonce());
    let sample_at = message.header().map_or(0, |packet| packet.sample_at());
    let data = message.parts().data;
    let (tag, sample) = match registers {
        1 => short::<SEAL, ROUNDS, 1, 1>(key, nonce, data, ends, sample_at),
        2 => short::<SEAL, ROUNDS, 2, 1>(key, nonce, data, ends, sample_at),
        3 => short::<SEAL, ROUNDS, 3, 1>(key, nonce, data, ends, sample_at),
        4 => short::<SEAL, ROUNDS, 4, 1>(key, nonce, data, ends, sample_at),
        5 => short::<SEAL, ROUNDS, 5, 1>(key, nonce, data, ends, sample_at),
        6 => short::<SEAL, ROUNDS, 6, 1>(key, nonce, data, ends, sample_at),
        7 => short::<SEAL, ROUNDS, 7, 1>(key, nonce, data, ends, sample_at),
        LOT if blocks < POWERS => {
            short::<SEAL, ROUNDS, LOT, 1>(key, nonce, data, ends, sample_at)
        }
        LOT => short::<SEAL, ROUNDS, LOT, 2>(key, nonce, data, ends, sample_at),
        9 => short::<SEAL, ROUNDS, 9, 2>(key, nonce, data, ends, sample_at),
        10 => short::<SEAL, ROUNDS, 10, 2>(key, nonce, data, ends, sample_at),
        11 => short::<SEAL, ROUNDS, 11, 2>(key, nonce, data, ends, sample_at),
        SHORT => short::<SEAL, ROUNDS, SHORT, 2>(key, nonce, data, ends, sample_at),
        _ => {
            let (sums, stream) = match registers {
                ..BULK => row::<SEAL, ROUNDS, _>(key, &key.powers, nonce, data, before),
                _ => row::<SEAL, ROUNDS, _>(key, &key.many, nonce, data, before),
            };
            message.finish(&bytes_of(tag_of(sums.and(ends), stream)));
            return headers::finish_one(message, None);
        }
    };
    message.finish(&bytes_of(tag));
    headers::finish_one(message, Some(sample));
}

#[inline]
fn tag_of(sums: Sums, stream: __m128i) -> __m128i {
    _mm_xor_si128(reverse_block(fold(sums.reduce())), stream)
}

/// The data of a message of `N` registers, all of them and the tag's key stream side by side; with two
/// chunks, what comes before the last eight is reduced. `ends` has the product of what is before the data in
/// its first lane and that of the lengths in its second. Returns the tag,
/// and 16 bytes of what was sealed from this place on, which no store was waited for.
fn short<const SEAL: bool, const ROUNDS: usize, const N: usize, const CHUNKS: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    ends: Sums,
    sample_at: usize,
) -> (__m128i, __m128i) {
    let (size, pad) = (data.len(), pad(data.len()));
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let mut states = [base; N];
    for (at, state) in states.iter_mut().enumerate() {
        *state = _mm512_xor_si512(base, counters(COUNTERS_BEFORE + 2 + LANES * at - pad));
    }
    let mut tag = _mm512_castsi512_si128(_mm512_xor_si512(base, every_lane(1 << 24)));
    for round in 1..ROUNDS {
        let round_key = broadcast(&key.aes.round_keys[round]);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
        tag = _mm_aesenc_si128(tag, _mm512_castsi512_si128(round_key));
    }
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    let tag = _mm_aesenclast_si128(tag, _mm512_castsi512_si128(last_key));
    let mut start = [_mm512_setzero_si512(); 2];
    // The lengths' product belongs to the last chunk.
    let (mut sums, lengths) = match CHUNKS {
        1 => (ends, zero()),
        _ => (ends.lanes(0b0000_0011), ends.lanes(0b0000_1100)),
    };
    let mut rest = data;
    for (at, state) in states.into_iter().enumerate() {
        let pad = if at == 0 { pad } else { 0 };
        let (bytes, behind) = rest.split_at_mut((64 - BLOCK * pad).min(rest.len()));
        rest = behind;
        let (input, mask) = load_some(bytes, pad);
        let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
        store_some(bytes, pad, output);
        let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
        if at < 2 {
            start[at] = sealed;
        }
        let mut hashed = reverse(sealed);
        if CHUNKS == 2 && at + LOT == N {
            hashed = _mm512_xor_si512(hashed, reverse(carry(sums)));
            sums = lengths;
        }
        let (power, middle) = powers(&key.powers, (CHUNKS * LOT - N + at) % LOT);
        sums = sums.add(hashed, power, middle);
    }
    let tag = tag_of(sums, tag);
    // Whether the tag is waited for depends on the size alone: how long the number is, is not to show.
    if size < BLOCK + 4 {
        start[1] = _mm512_zextsi128_si512(tag);
    }
    (tag, headers::sample(start, size, sample_at))
}

/// Messages under keys of one length, one in each lane. The keys of the next come into the cache meanwhile.
#[inline(never)]
pub(super) fn together<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(
    messages: &mut [M; LANES],
    next: &[M],
) {
    let Some(key) = gcm(&messages[0]) else { return };
    let keys = messages.each_ref().map(|message| gcm(message).unwrap_or(key));
    let [a, b, c, d] = keys;

    let mut nonces = [_mm_setzero_si128(); LANES];
    let mut headers = [_mm_setzero_si128(); LANES];
    let mut lengths = [_mm_setzero_si128(); LANES];
    for (lane, message) in messages.iter_mut().enumerate() {
        nonces[lane] = block(message.nonce());
        headers[lane] = headers::last(keys[lane], message);
        let Parts { aad, data, .. } = message.parts();
        let (aad, data) = (aad.len(), data.len());
        lengths[lane] = _mm_set_epi64x(8 * aad as i64, 8 * data as i64);
    }
    let first = of_lanes([&a.first, &b.first, &c.first, &d.first]);
    let first_middle = middle_of(first);
    let mut rows = [zero(); LANES];
    let mut streams = [_mm_setzero_si128(); LANES];
    for (lane, message) in messages.iter_mut().enumerate() {
        if let Some(next) = next.get(lane) {
            fetch(next.key());
            if let Some(key) = next.header_key() {
                fetch(key);
            }
        }
        let (key, nonce, header) = (keys[lane], nonces[lane], headers[lane]);
        let data = message.parts().data;
        (rows[lane], streams[lane]) = row::<SEAL, ROUNDS, _>(key, &key.powers, nonce, data, header);
    }
    let sums = sum_rows(&rows);
    let lengths = join(lengths);
    let hashes = sums.add(lengths, first, first_middle).reduce();
    let tags = blocks_of(_mm512_xor_si512(reverse(hashes), join(streams)));
    for (message, tag) in messages.iter_mut().zip(&tags) {
        message.finish(tag);
        headers::finish_one(message, None);
    }
}

}
