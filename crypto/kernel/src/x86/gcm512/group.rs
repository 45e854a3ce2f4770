//! Messages under one key.

use super::columns::columns;
use super::hash::{last_of_aad, sum_rows, xor3, zero};
use super::register::*;
use super::row::row;
use super::{BLOCK, COLUMNS_MAX, LANES, gcm};
use crate::packet::{Message, POWERS};
use core::arch::x86_64::*;

features! {

/// `G` times four messages under one key, side by side, one in each lane of `G` registers.
pub(super) fn group_of<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const G: usize>(
    messages: &mut [[M; LANES]; G],
) {
    let Some(key) = messages.first().and_then(|[first, ..]| gcm(first)) else { return };
    let first = broadcast(&key.first);
    let first_middle = broadcast_middle(&key.first_middle);
    let first_key = broadcast(&key.aes.round_keys[0]);
    let mut nonces = [_mm512_setzero_si512(); G];
    let mut lengths = [_mm512_setzero_si512(); G];
    // What was hashed before the data.
    let mut before = [_mm512_setzero_si512(); G];
    let mut sizes = [[0; LANES]; G];
    for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
        nonces[at] =
            join([block(a.nonce()), block(b.nonce()), block(c.nonce()), block(d.nonce())]);
        let aad = [a.aad(), b.aad(), c.aad(), d.aad()];
        sizes[at] = [a.size(), b.size(), c.size(), d.size()];
        let mut blocks = [_mm_setzero_si128(); LANES];
        let mut headers = [_mm_setzero_si128(); LANES];
        for lane in 0..LANES {
            let (aad, size) = (aad[lane], sizes[at][lane]);
            blocks[lane] = _mm_set_epi64x(8 * aad.len() as i64, 8 * size as i64);
            headers[lane] = last_of_aad(key, aad);
        }
        lengths[at] = join(blocks);
        before[at] = zero().add(join(headers), first, first_middle).reduce();
    }
    let mut tags = nonces;
    for tags in &mut tags {
        *tags = xor3(*tags, first_key, every_lane(1 << 24));
    }
    let mut sums = [zero(); G];
    if sizes.as_flattened().iter().all(|size| (1..=BLOCK).contains(size)) {
        let mut states = nonces;
        for state in &mut states {
            *state = xor3(*state, first_key, every_lane(2 << 24));
        }
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
            for tags in &mut tags {
                *tags = _mm512_aesenc_epi128(*tags, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        for tags in &mut tags {
            *tags = _mm512_aesenclast_epi128(*tags, last_key);
        }
        // The middle of the last power is the upper half of a pair.
        let power = broadcast(&key.powers[POWERS - 1]);
        let middle = broadcast_middle(&key.middles[POWERS / 2 - 1]);
        let middle = _mm512_shuffle_epi32(middle, 0xee);
        for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
            let data = [a.data(), b.data(), c.data(), d.data()];
            let hashed = blocks::<SEAL>(data, states[at], last_key);
            sums[at] = zero().add(_mm512_xor_si512(hashed, before[at]), power, middle);
        }
    } else {
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for tags in &mut tags {
                *tags = _mm512_aesenc_epi128(*tags, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        for tags in &mut tags {
            *tags = _mm512_aesenclast_epi128(*tags, last_key);
        }
        for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
            let [a, b, c, d] = [a.data(), b.data(), c.data(), d.data()];
            let [nonces, before] = [nonces[at], before[at]];
            let registers = sizes[at].map(registers);
            let alike = registers.iter().all(|other| *other == registers[0]);
            sums[at] = if alike && (1..=COLUMNS_MAX).contains(&registers[0]) {
                columns::<SEAL, ROUNDS>(key, nonces, [a, b, c, d], registers[0], before)
            } else {
                // What has no data has its lengths for a first block.
                let mut empty = 0;
                for (lane, size) in sizes[at].iter().enumerate() {
                    empty |= u8::from(*size == 0) * (3 << (2 * lane));
                }
                lengths[at] = _mm512_mask_xor_epi64(lengths[at], empty, lengths[at], before);
                let [na, nb, nc, nd] = split(nonces);
                let [ya, yb, yc, yd] = split(before);
                sum_rows(&[
                    row::<SEAL, ROUNDS>(key, na, a, ya),
                    row::<SEAL, ROUNDS>(key, nb, b, yb),
                    row::<SEAL, ROUNDS>(key, nc, c, yc),
                    row::<SEAL, ROUNDS>(key, nd, d, yd),
                ])
            };
        }
    }
    for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
        let hashes = sums[at].add(lengths[at], first, first_middle).reduce();
        let [ta, tb, tc, td] = split(_mm512_xor_si512(reverse(hashes), tags[at]));
        a.finish(number(ta));
        b.finish(number(tb));
        c.finish(number(tc));
        d.finish(number(td));
    }
}

/// The data of four messages of one block each, a lane each, whose key stream is made but for the last
/// round. Returns what belongs into the hash.
#[inline]
pub(super) fn blocks<const SEAL: bool>(
    [a, b, c, d]: [&mut [u8]; LANES],
    state: __m512i,
    last_key: __m512i,
) -> __m512i {
    let masks = [mask_of(a), mask_of(b), mask_of(c), mask_of(d)];
    let input = join([load_masked(a), load_masked(b), load_masked(c), load_masked(d)]);
    let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
    let [wa, wb, wc, wd] = split(output);
    store_masked(a, wa);
    store_masked(b, wb);
    store_masked(c, wc);
    store_masked(d, wd);
    let mask = masks.iter().rev().fold(0, |all, mask| (all << BLOCK) | u64::from(*mask));
    reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input })
}

}
