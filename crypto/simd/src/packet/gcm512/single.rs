//! A message by itself, and neighbours of different keys.

use super::hash::{Sums, carry, cross_term_of, powers, product, sum_messages, tag_of, zero};
use super::headers;
use super::keys::gcm;
use super::register::*;
use super::sequential::sequential;
use super::sizes::{BLOCK, LANES, SHORT_STRIDE, STRIDE};
use super::stride::{last_round, round, rounds_in_step, short_last_round};
use crate::cache::fetch;
use crate::packet::gcm::{GcmKey, POWERS};
use crate::packet::message::{Message, Parts};
use crate::x86::ordered;
use std::arch::x86_64::*;

/// A message of so many registers is worth the powers that do not lie beside the key.
const REGISTERS_OF_MANY_POWERS: usize = 64;

features! {

/// A lone message: its latency is what it takes, so whatever can goes side by side.
#[inline(never)]
pub(super) fn run<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(message: &mut M) {
    let Some(key) = gcm(message) else { return };
    let header = headers::last(key, message);
    let nonce = block(message.nonce());
    let sample_at = message.header().map_or(0, |packet| packet.sample_at());
    let Parts { aad, data } = message.parts();
    let blocks = data.len().div_ceil(BLOCK);
    let registers = blocks.div_ceil(LANES);
    if registers > 4 {
        // If the key is not at hand, its lines come at once instead of one after the other.
        fetch(&key.powers);
    }
    let lengths = _mm_set_epi64x(8 * aad.len() as i64, 8 * data.len() as i64);
    // The power for the blocks before the data, if these go at once.
    let power = &key.powers.all()[POWERS - 1 - blocks % POWERS];
    macro_rules! short {
        ($registers:expr) => {
            short::<SEAL, ROUNDS, $registers>(key, nonce, data, header, lengths, power, sample_at)
        };
    }
    let (tag, sample) = match registers {
        0 | 1 => shortest::<SEAL, ROUNDS>(key, nonce, data, header, lengths, power, sample_at),
        2 => short!(2),
        3 => short!(3),
        4 => short!(4),
        5 => short!(5),
        6 => short!(6),
        7 => short!(7),
        STRIDE if blocks < POWERS => short!(STRIDE),
        9 => short!(9),
        10 => short!(10),
        ..REGISTERS_OF_MANY_POWERS => {
            let (sums, stream) =
                sequential::<SEAL, ROUNDS, _, SHORT_STRIDE>(key, &key.powers, nonce, data, header);
            (tag_of(sums.and(product(lengths, &key.first)), stream), None)
        }
        // So much is worth more powers.
        _ => {
            let (sums, stream) =
                sequential::<SEAL, ROUNDS, _, STRIDE>(key, key.many(), nonce, data, header);
            (tag_of(sums.and(product(lengths, &key.first)), stream), None)
        }
    };
    message.finish(&bytes_of(tag));
    headers::finish_one(message, sample);
}

/// The product of what is before the data, in the first lane, and that of the lengths, in the
/// second.
#[inline]
fn products(key: &GcmKey, header: __m128i, lengths: __m128i, power: &[u8; BLOCK]) -> Sums {
    let none = _mm_setzero_si128();
    let power = join([load_block(power), load_block(&key.first), none, none]);
    zero().add(join([reverse_block(header), lengths, none, none]), power, cross_term_of(power))
}

/// A message of one register or none, the tag's key stream beside it. Its data is at the register's
/// start: it would wait for what was just written before it, were it loaded with that. The blocks
/// before the data are multiplied by `power`. Returns the tag, and 16 bytes of what was sealed from
/// this place on, which no store was waited for.
fn shortest<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    header: __m128i,
    lengths: __m128i,
    power: &[u8; BLOCK],
    sample_at: usize,
) -> (__m128i, Option<__m128i>) {
    let before_and_lengths = products(key, header, lengths, power);
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let mut states = [_mm512_xor_si512(base, counters(COUNTERS_BEFORE + 2))];
    let (tag, last_key) = rounds_in_step!(key, states, _mm512_castsi512_si128(base));
    let [mut state] = states;
    short_last_round::<SEAL>(&mut state, last_key, data, 0);
    let (power, _) = powers(&key.powers, STRIDE - 1);
    let power = rotate(power, pad(data.len()));
    let tag = tag_of(before_and_lengths.add(reverse(state), power, cross_term_of(power)), tag);
    (tag, Some(headers::sample_of_one(state, tag, data.len(), sample_at)))
}

/// A message of `N` registers, all of them and the tag's key stream side by side; what comes before
/// the last eight is reduced. The rest is as for the shortest.
fn short<const SEAL: bool, const ROUNDS: usize, const N: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    header: __m128i,
    lengths: __m128i,
    power: &[u8; BLOCK],
    sample_at: usize,
) -> (__m128i, Option<__m128i>) {
    let before_and_lengths = products(key, header, lengths, power);
    let pad = pad(data.len());
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let (counters, _) = COUNTERS.0[COUNTERS_BEFORE + 2 - pad..].as_chunks::<LANES>();
    let counters = counters.first_chunk::<N>().expect("so many");
    let mut states = [base; N];
    for (state, counters) in states.iter_mut().zip(counters) {
        *state = _mm512_xor_si512(base, load_blocks(counters));
    }
    let (tag, last_key) = rounds_in_step!(key, states, _mm512_castsi512_si128(base));
    // The lengths' product belongs to the last eight.
    let (mut sums, lengths) = match N > STRIDE {
        true => (before_and_lengths.lanes(0b0000_0011), before_and_lengths.lanes(0b0000_1100)),
        false => (before_and_lengths, zero()),
    };
    // Only the first register and the last may be short.
    let (first, rest) = data.split_at_mut(64 - BLOCK * pad);
    let (whole, last) = rest.split_at_mut(64 * (N - 2));
    let (whole, _) = whole.as_chunks_mut::<64>();
    short_last_round::<SEAL>(&mut states[0], last_key, first, pad);
    for (state, bytes) in states[1..].iter_mut().zip(whole) {
        last_round::<SEAL>(state, last_key, bytes);
    }
    short_last_round::<SEAL>(&mut states[N - 1], last_key, last, 0);
    let sample = headers::sample([states[0], states[1]], pad, sample_at);
    if N > STRIDE {
        sums = last_registers::<SEAL, ROUNDS, N>(key, sums, &states[..N - STRIDE]);
        states[N - STRIDE] = _mm512_xor_si512(states[N - STRIDE], carry(sums));
        sums = lengths;
    }
    sums = last_registers::<SEAL, ROUNDS, N>(key, sums, &states[N.saturating_sub(STRIDE)..]);
    (tag_of(sums, tag), Some(sample))
}

/// Takes registers into the hash, of which the last belongs to the lowest powers: first that one,
/// since what is being reduced belongs into the first. Its parameters make it its caller's own,
/// which the compiler inlines.
#[inline]
fn last_registers<const SEAL: bool, const ROUNDS: usize, const N: usize>(
    key: &GcmKey,
    mut sums: Sums,
    registers: &[__m512i],
) -> Sums {
    let (first, pairs) = registers.split_at(registers.len() % 2);
    let start = STRIDE - pairs.len();
    for (at, pair) in pairs.as_chunks::<2>().0.iter().enumerate().rev() {
        sums = sums.add_pair(&key.powers, *pair, start + 2 * at);
    }
    for register in first {
        let (power, cross) = powers(&key.powers, start - 1);
        sums = sums.add(reverse(*register), power, cross);
    }
    sums
}

/// Messages under keys of one length, one in each lane. The keys of the next come into the cache
/// meanwhile.
#[inline(never)]
pub(super) fn four<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(
    messages: &mut [M; LANES],
    next: &[M],
) {
    let Some(key) = gcm(&messages[0]) else { return };
    let keys = messages.each_ref().map(|message| gcm(message).unwrap_or(key));
    let none = [_mm_setzero_si128(); LANES];
    let (mut nonces, mut headers, mut lengths, mut streams) = (none, none, none, none);
    for (lane, message) in messages.iter_mut().enumerate() {
        nonces[lane] = block(message.nonce());
        headers[lane] = headers::last(keys[lane], message);
        let Parts { aad, data } = message.parts();
        lengths[lane] = _mm_set_epi64x(8 * aad.len() as i64, 8 * data.len() as i64);
    }
    let first = of_lanes(keys.map(|key| &key.first));
    let cross = cross_term_of(first);
    let mut sums = [zero(); LANES];
    for (lane, message) in messages.iter_mut().enumerate() {
        if let Some(next) = next.get(lane) {
            fetch(next.key());
            if let Some(key) = next.header_key() {
                fetch(key);
            }
        }
        let (key, nonce, header) = (keys[lane], nonces[lane], headers[lane]);
        let data = message.parts().data;
        (sums[lane], streams[lane]) =
            sequential::<SEAL, ROUNDS, _, STRIDE>(key, &key.powers, nonce, data, header);
    }
    let sums = sum_messages(&sums).add(join(lengths), first, cross);
    let tags = blocks_of(_mm512_xor_si512(reverse(sums.reduce()), join(streams)));
    for (message, tag) in messages.iter_mut().zip(&tags) {
        message.finish(tag);
        headers::finish_one(message, None);
    }
}

}
