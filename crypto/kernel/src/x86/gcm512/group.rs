//! Messages under one key.

use super::columns::{column, columns};
use super::hash::{middle_of, sum_rows, xor3, zero};
use super::headers;
use super::lot::{Schedule, Wide};
use super::masks::{aes, encrypt};
use super::register::*;
use super::row::row;
use super::{BLOCK, COLUMNS_MAX, FEW, LANES, gcm};
use crate::packet::{Message, POWERS, Parts};
use core::arch::x86_64::*;

features! {

/// Up to `G` times four messages under one key, side by side, one in each lane of as many registers.
///
/// Loops over messages go to the slice's end, which the compiler does not know, so that it does not
/// unroll them: all of it has to stay in the cache of decoded instructions.
#[inline(never)]
pub(super) fn group_of<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const G: usize>(
    messages: &mut [[M; LANES]],
) {
    let Some(key) = messages.first().and_then(|[first, ..]| gcm(first)) else { return };
    let first = broadcast(&key.first);
    let first_middle = broadcast_middle(&key.first_middle);
    let first_key = broadcast(&key.aes.round_keys[0]);
    let none = [_mm512_setzero_si512(); G];
    let (mut nonces, mut lengths, mut headers, mut mask_orders) = (none, none, none, none);
    // Whether all have one block of data, and one of additional data at most.
    let (mut one_block, mut short_headers) = (true, true);
    let iv = _mm512_broadcast_i32x4(block(messages.first().map_or(0, |[first, ..]| first.iv())));
    let number_order = _mm512_broadcast_i32x4(_mm_set_epi8(
        -1, -1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1,
    ));
    for (at, messages) in messages.iter_mut().enumerate().take(G) {
        let none = [_mm_setzero_si128(); LANES];
        let (mut numbers, mut sizes, mut starts) = (none, none, none);
        for (lane, message) in messages.iter_mut().enumerate() {
            numbers[lane] = match M::NUMBERED {
                true => _mm_cvtsi64_si128(message.number() as i64),
                false => block(message.nonce()),
            };
            let Parts { aad, data } = message.parts();
            sizes[lane] = _mm_set_epi64x(aad.len() as i64, data.len() as i64);
            starts[lane] = load_masked(aad);
        }
        let (numbers, sizes) = (join(numbers), join(sizes));
        nonces[at] = match M::NUMBERED {
            true => _mm512_xor_si512(iv, _mm512_shuffle_epi8(numbers, number_order)),
            false => numbers,
        };
        lengths[at] = _mm512_slli_epi64(sizes, 3);
        let more_than = _mm512_sub_epi64(sizes, _mm512_set1_epi64(1));
        let within = _mm512_cmplt_epu64_mask(more_than, _mm512_set1_epi64(BLOCK as i64));
        one_block &= within & 0x55 == 0x55;
        let long = _mm512_cmpgt_epu64_mask(sizes, _mm512_set1_epi64(BLOCK as i64)) & 0xaa != 0;
        short_headers &= !long;
        if long {
            for (start, message) in starts.iter_mut().zip(messages) {
                *start = headers::last(key, message);
            }
        }
        headers[at] = join(starts);
        if M::PACKETS && !long {
            let header_bytes = _mm512_shuffle_epi8(sizes, _mm512_set1_epi8(8));
            (headers[at], mask_orders[at]) = headers::numbered(headers[at], header_bytes, numbers);
        }
    }
    let mut tags = nonces;
    for tags in &mut tags {
        *tags = xor3(*tags, first_key, every_lane(1 << 24));
    }
    let mut sums = [zero(); G];
    if one_block {
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
        // Additional data is two blocks before the lengths, data one.
        let [before, power] =
            [2, 1].map(|before_last| broadcast(&key.powers.all()[POWERS - before_last]));
        let [before_middle, power_middle] = [middle_of(before), middle_of(power)];
        for (at, messages) in messages.iter_mut().enumerate().take(G) {
            let hashed = blocks::<M, SEAL, ROUNDS, G>(messages, states[at], last_key);
            let header = zero().add(reverse(headers[at]), before, before_middle);
            sums[at] = header.add(hashed, power, power_middle);
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
        let mut wide = None;
        for (at, messages) in messages.iter_mut().enumerate().take(G) {
            let before = zero().add(reverse(headers[at]), first, first_middle).reduce();
            let [a, b, c, d] = messages;
            let [a, b, c, d] = [a.parts(), b.parts(), c.parts(), d.parts()];
            let [a, b, c, d] = [a.data, b.data, c.data, d.data];
            let sizes = [a.len(), b.len(), c.len(), d.len()];
            let registers = sizes.map(registers);
            let alike = registers.iter().all(|other| *other == registers[0]);
            sums[at] = if alike && registers[0] == 1 {
                column::<SEAL, ROUNDS>(key, nonces[at], [a, b, c, d], before)
            } else if alike && (2..=COLUMNS_MAX).contains(&registers[0]) {
                let wide = &*wide.get_or_insert_with(|| Wide::new(key));
                let schedule = Schedule { powers: key.many(), wide };
                columns::<SEAL, ROUNDS>(key, schedule, nonces[at], [a, b, c, d], registers[0], before)
            } else {
                let [na, nb, nc, nd] = split(nonces[at]);
                let [ha, hb, hc, hd] = split(headers[at]);
                sum_rows(&[
                    row::<SEAL, ROUNDS, _, FEW>(key, &key.powers, na, a, ha).0,
                    row::<SEAL, ROUNDS, _, FEW>(key, &key.powers, nb, b, hb).0,
                    row::<SEAL, ROUNDS, _, FEW>(key, &key.powers, nc, c, hc).0,
                    row::<SEAL, ROUNDS, _, FEW>(key, &key.powers, nd, d, hd).0,
                ])
            };
        }
        if let Some(wide) = &mut wide {
            wide.wipe();
        }
    }
    for (at, messages) in messages.iter_mut().enumerate().take(G) {
        let hashes = sums[at].add(lengths[at], first, first_middle).reduce();
        let tags = blocks_of(_mm512_xor_si512(reverse(hashes), tags[at]));
        for (message, tag) in messages.iter_mut().zip(&tags) {
            message.finish(tag);
        }
    }
    if !M::PACKETS {
        return;
    }
    let header_key = messages.first().and_then(|[first, ..]| first.header_key());
    if short_headers && let Some(key) = header_key.and_then(|key| aes(key)) {
        headers::finish_group(messages, &headers, &mask_orders, |states| encrypt(key, states));
    } else {
        for message in messages.as_flattened_mut() {
            headers::finish_one(message, None);
        }
    }
}

/// The data of four messages of one block each, a lane each, whose key stream is made but for the last
/// round. Returns what belongs into the hash. Its parameters make it its caller's own, which the compiler
/// inlines.
#[inline]
fn blocks<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const G: usize>(
    [a, b, c, d]: &mut [M; LANES],
    state: __m512i,
    last_key: __m512i,
) -> __m512i {
    let [a, b, c, d] = [a.parts(), b.parts(), c.parts(), d.parts()];
    let [a, b, c, d] = [a.data, b.data, c.data, d.data];
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
