//! Messages under one key.

use super::cipher::{aes, encrypt};
use super::hash::{Sums, cross_term_of, sum_messages, xor3, zero};
use super::headers;
use super::interleaved::{INTERLEAVED_MAX, interleaved, interleaved_one};
use super::masks::BatchState;
use super::register::*;
use super::sequential::sequential;
use super::sizes::{BLOCK, LANES, STRIDE};
use super::stride::{BroadcastKeys, Schedule};
use crate::packet::gcm::POWERS;
use crate::packet::key::AeadForm;
use crate::packet::message::{Message, Parts};
use crate::packet::quic::Unprotect;
use crate::packet::sizes::TAG_BYTES;
use std::arch::x86_64::*;

/// Where what is known of messages lies, and the sums of their products: made once for many, since
/// it takes time to clear it.
pub(super) struct Scratch<const G: usize> {
    state: BatchState<G>,
    sums: [Sums; G],
    /// Whether headers have their masks on.
    masked: bool,
}

impl<const G: usize> Scratch<G> {
    features! {

    #[inline]
    pub(super) fn new(masked: bool) -> Self {
        Self { state: BatchState::nothing(), sums: [zero(); G], masked }
    }

    }
}

features! {

/// Up to `G` times four messages under one key, side by side, one in each lane of as many
/// registers.
///
/// Says whether it did: packets whose headers have their masks on may not be as they have to be.
/// Then none is touched.
///
/// Loops over messages go to the slice's end, which the compiler does not know, so that it does not
/// unroll them: all of it has to stay in the cache of decoded instructions.
#[inline(never)]
pub(super) fn uniform_batch<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const G: usize>(
    messages: &mut [[M; LANES]],
    scratch: &mut Scratch<G>,
) -> bool {
    let Some([first, ..]) = messages.first_mut() else { return false };
    let Scratch { state, sums, masked } = scratch;
    let (key, iv) = match first.opened() {
        Some(packet) if *masked => (packet.keys.current.key(), packet.keys.current.iv_number()),
        _ => (first.key(), first.iv()),
    };
    let AeadForm::Gcm(key) = &key.0 else { return false };
    let first = broadcast(&key.first);
    let first_cross_term = broadcast_cross_term(&key.first_cross_term);
    let first_key = broadcast(&key.aes.round_keys[0]);
    // Whether all have one block of data, and one of additional data at most.
    let (mut one_block, mut short_headers) = (true, true);
    let iv = _mm512_broadcast_i32x4(block(iv));
    let number_order = _mm512_broadcast_i32x4(_mm_set_epi8(
        -1, -1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1,
    ));
    if M::OPENED && *masked {
        if !state.unmask::<M, ROUNDS>(messages) {
            return false;
        }
        for at in 0..messages.len().min(G) {
            let numbers = _mm512_shuffle_epi8(state.nonces[at].load(), number_order);
            state.nonces[at].store(_mm512_xor_si512(iv, numbers));
            one_block &= are_one_block(state.lengths[at].load());
        }
    } else {
        for (at, messages) in messages.iter_mut().enumerate().take(G) {
            let none = [_mm_setzero_si128(); LANES];
            let (mut numbers, mut sizes, mut starts) = (none, none, none);
            for (lane, message) in messages.iter_mut().enumerate() {
                if let Some(packet) = message.header()
                    && let Some(start) = packet.packet.first_chunk()
                {
                    numbers[lane] = _mm_cvtsi64_si128(packet.number as i64);
                    let bytes = packet.packet.len() - packet.header_bytes - TAG_BYTES;
                    sizes[lane] = _mm_set_epi64x(packet.header_bytes as i64, bytes as i64);
                    starts[lane] = load_block(start);
                    continue;
                }
                numbers[lane] = match M::NUMBERED {
                    true => _mm_cvtsi64_si128(message.number() as i64),
                    false => block(message.nonce()),
                };
                let Parts { aad, data } = message.parts();
                sizes[lane] = _mm_set_epi64x(aad.len() as i64, data.len() as i64);
                starts[lane] = load_masked(aad);
            }
            let (numbers, sizes) = (join(numbers), join(sizes));
            state.nonces[at].store(match M::NUMBERED {
                true => _mm512_xor_si512(iv, _mm512_shuffle_epi8(numbers, number_order)),
                false => numbers,
            });
            let lengths = _mm512_slli_epi64::<3>(sizes);
            state.lengths[at].store(lengths);
            one_block &= are_one_block(lengths);
            let long = _mm512_cmpgt_epu64_mask(sizes, _mm512_set1_epi64(BLOCK as i64)) & 0xaa != 0;
            short_headers &= !long;
            if long {
                for (start, message) in starts.iter_mut().zip(messages) {
                    *start = headers::last(key, message);
                }
            }
            state.headers[at] = join(starts);
            if M::PACKETS && !long {
                let header_bytes = _mm512_shuffle_epi8(sizes, _mm512_set1_epi8(8));
                (state.headers[at], state.masks[at]) =
                    headers::numbered(state.headers[at], header_bytes, numbers);
            }
        }
    }
    let mut tags = [_mm512_setzero_si512(); G];
    for (tags, nonces) in tags.iter_mut().zip(&state.nonces) {
        *tags = xor3(nonces.load(), first_key, every_lane(1 << 24));
    }
    if one_block {
        let mut states = tags;
        for (state, nonces) in states.iter_mut().zip(&state.nonces) {
            *state = xor3(nonces.load(), first_key, every_lane(2 << 24));
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
        let [before_cross_term, power_cross_term] = [cross_term_of(before), cross_term_of(power)];
        for (at, messages) in messages.iter_mut().enumerate().take(G) {
            let hashed = blocks::<M, SEAL, ROUNDS, G>(messages, states[at], last_key);
            let header = zero().add(reverse(state.headers[at]), before, before_cross_term);
            sums[at] = header.add(hashed, power, power_cross_term);
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
            let before = zero().add(reverse(state.headers[at]), first, first_cross_term).reduce();
            let [a, b, c, d] = messages;
            let [a, b, c, d] = [a.parts(), b.parts(), c.parts(), d.parts()];
            let [a, b, c, d] = [a.data, b.data, c.data, d.data];
            let sizes = [a.len(), b.len(), c.len(), d.len()];
            let registers = sizes.map(registers);
            let same_registers = registers.iter().all(|other| *other == registers[0]);
            let nonces = state.nonces[at].load();
            sums[at] = if same_registers && registers[0] == 1 {
                interleaved_one::<SEAL, ROUNDS>(key, nonces, [a, b, c, d], before)
            } else if same_registers && (2..=INTERLEAVED_MAX).contains(&registers[0]) {
                let wide = &*wide.get_or_insert_with(|| BroadcastKeys::new(key));
                let schedule = Schedule { powers: key.many(), wide };
                interleaved::<SEAL, ROUNDS>(key, schedule, nonces, [a, b, c, d], registers[0], before)
            } else {
                let [na, nb, nc, nd] = split(nonces);
                let [ha, hb, hc, hd] = split(state.headers[at]);
                sum_messages(&[
                    sequential::<SEAL, ROUNDS, _, STRIDE>(key, &key.powers, na, a, ha).0,
                    sequential::<SEAL, ROUNDS, _, STRIDE>(key, &key.powers, nb, b, hb).0,
                    sequential::<SEAL, ROUNDS, _, STRIDE>(key, &key.powers, nc, c, hc).0,
                    sequential::<SEAL, ROUNDS, _, STRIDE>(key, &key.powers, nd, d, hd).0,
                ])
            };
        }
        if let Some(wide) = &mut wide {
            wide.wipe();
        }
    }
    for (at, messages) in messages.iter_mut().enumerate().take(G) {
        let hashes = sums[at].add(state.lengths[at].load(), first, first_cross_term).reduce();
        let tags = _mm512_xor_si512(reverse(hashes), tags[at]);
        if let [Some(a), Some(b), Some(c), Some(d)] = opened(messages) {
            let sent = of_lanes([a.sent(), b.sent(), c.sent(), d.sent()]);
            if _mm512_cmpneq_epi64_mask(tags, sent) == 0 {
                continue;
            }
        }
        for (message, tag) in messages.iter_mut().zip(&blocks_of(tags)) {
            message.finish(tag);
        }
    }
    if !M::PACKETS {
        return true;
    }
    let header_key = messages.first().and_then(|[first, ..]| first.header_key());
    if short_headers && let Some(key) = header_key.and_then(|key| aes(key)) {
        headers::finish_uniform(messages, &state.headers, &state.masks, |states| encrypt(key, states));
    } else {
        for message in messages.as_flattened_mut() {
            headers::finish_one(message, None);
        }
    }
    true
}

/// Packets to open, if these are such.
#[inline]
fn opened<'m, 'k, M: Message<'k>>(
    [a, b, c, d]: &'m mut [M; LANES],
) -> [Option<&'m mut Unprotect<'k>>; LANES] {
    [a.opened(), b.opened(), c.opened(), d.opened()]
}

/// Whether messages of these lengths in bits have one block of data each.
#[inline]
fn are_one_block(lengths: __m512i) -> bool {
    let more_than = _mm512_sub_epi64(lengths, _mm512_set1_epi64(1));
    let within = _mm512_cmplt_epu64_mask(more_than, _mm512_set1_epi64(8 * BLOCK as i64));
    within & 0x55 == 0x55
}

/// The data of four messages of one block each, a lane each, whose key stream is made but for the
/// last round. Returns what belongs into the hash. Its parameters make it its caller's own, which
/// the compiler inlines.
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
