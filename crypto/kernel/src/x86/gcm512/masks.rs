//! Header masks.

use super::chacha::{CHACHAS, chacha_keys, chacha_masks};
use super::headers::{self, each_bytes, last_of_number, mask_first, numbered};
use super::lot::here;
use super::register::*;
use super::{BLOCK, Gcm512, LANES, TOGETHER, rounds};
use crate::aes::Rounds;
use crate::chacha;
use crate::packet::{
    self, HeaderForm, HeaderKey, Mask, MaskKey, NUMBER_END, PHASE, Protect, Room, SAMPLE_BYTES,
    Unprotect,
};
use crate::portable::Library;
use core::arch::x86_64::*;
use core::{ptr, slice};

features! {

/// The key, if it is for this room.
#[inline]
pub(super) fn aes(key: &HeaderKey) -> Option<&MaskKey> {
    match &key.0 {
        HeaderForm::Aes(key) => Some(key),
        _ => None,
    }
}

/// Blocks under one key.
#[inline]
pub(super) fn encrypt<const G: usize>(key: &MaskKey, mut states: [__m512i; G]) -> [__m512i; G] {
    let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
    let [first, middle @ .., last] = keys else { return states };
    for state in &mut states {
        *state = _mm512_xor_si512(*state, broadcast(first));
    }
    for key in middle {
        let round_key = broadcast(key);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
    for state in &mut states {
        *state = _mm512_aesenclast_epi128(*state, broadcast(last));
    }
    states
}

/// A mask, which a number waits for: by way of no memory.
#[inline]
pub(super) fn mask_of_one(key: &MaskKey, sample: __m128i) -> Mask {
    Mask(_mm_cvtsi128_si64(encrypt_one(key, sample)) as u64)
}

#[inline]
fn encrypt_one(key: &MaskKey, sample: __m128i) -> __m128i {
    match key.aes.rounds {
        Rounds::Ten => encrypt_one_of::<10>(key, sample),
        Rounds::Fourteen => encrypt_one_of::<14>(key, sample),
    }
}

#[inline]
fn encrypt_one_of<const ROUNDS: usize>(key: &MaskKey, sample: __m128i) -> __m128i {
    let keys = &key.aes.round_keys;
    let mut state = _mm_xor_si128(sample, load_block(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = _mm_aesenc_si128(state, load_block(key));
    }
    _mm_aesenclast_si128(state, load_block(&keys[ROUNDS]))
}

/// Masks the headers of those packets that were not sealed in this room.
#[inline(never)]
pub(super) fn mask_others(room: Gcm512, packets: &mut [Protect<'_>]) {
    let others = |packet: &Protect<'_>| rounds(packet).is_none();
    let (groups, rest) = packets.as_chunks_mut::<CHACHAS>();
    for group in groups {
        match chacha_keys(|at| group[at].header_key) {
            Some(keys) if group.iter().all(|packet| packet.header_bytes <= BLOCK) => {
                mask_group(group.as_chunks_mut().0, |states| chacha_masks(room, keys, states));
            }
            _ => packet::mask(room, group, others),
        }
    }
    packet::mask(room, rest, others);
}

/// Masks headers of at most a block, whose numbers are written.
#[inline]
fn mask_group(
    packets: &mut [[Protect<'_>; LANES]],
    masks: impl Fn([__m512i; TOGETHER]) -> [__m512i; TOGETHER],
) {
    let none = [_mm512_setzero_si512(); TOGETHER];
    let (mut headers, mut mask_orders) = (none, none);
    for (at, packets) in packets.iter_mut().enumerate().take(TOGETHER) {
        let none = [_mm_setzero_si128(); LANES];
        let (mut starts, mut sizes, mut numbers) = (none, none, none);
        for (lane, packet) in packets.iter().enumerate() {
            starts[lane] = load_masked(&packet.packet[..packet.header_bytes]);
            sizes[lane] = _mm_set1_epi8(packet.header_bytes as i8);
            numbers[lane] = _mm_cvtsi64_si128(packet.number as i64);
        }
        (headers[at], mask_orders[at]) = numbered(join(starts), join(sizes), join(numbers));
    }
    headers::finish_group(packets, &headers, &mask_orders, masks);
}

/// Takes the masks off the headers of packets, four at a time where neighbours have the same key.
pub(super) fn unmask(room: Gcm512, packets: &mut [Unprotect<'_>]) {
    if let [packet] = packets
        && let Some(key) = aes(packet.header_key)
    {
        unmask_one(key, packet);
    } else {
        unmask_several(room, packets);
    }
}

#[inline]
fn unmask_one(key: &MaskKey, packet: &mut Unprotect<'_>) {
    let sample = load_block(packet.sample().unwrap_or(&[0; BLOCK]));
    packet.unmask(mask_of_one(key, sample));
}

#[inline(never)]
fn unmask_several(room: Gcm512, packets: &mut [Unprotect<'_>]) {
    let mut at = 0;
    while let [first, ..] = &packets[at..] {
        let Some(key) = aes(first.header_key) else {
            let others = packets[at..].iter().take_while(|other| aes(other.header_key).is_none());
            let others = others.count();
            unmask_others(room, &mut packets[at..][..others]);
            at += others;
            continue;
        };
        let same = |other: &Unprotect<'_>| ptr::eq(other.header_key, first.header_key);
        let same = packets[at..].iter().position(|other| !same(other));
        let same = same.unwrap_or(packets.len() - at);
        let (groups, _) = packets[at..][..same].as_chunks_mut::<LANES>();
        at += match groups {
            [] => {
                unmask_one(key, &mut packets[at]);
                1
            }
            [_] => {
                unmask_group::<1>(groups, |states| encrypt(key, states));
                LANES
            }
            _ => {
                for groups in groups.chunks_mut(TOGETHER) {
                    unmask_group::<TOGETHER>(groups, |states| encrypt(key, states));
                }
                LANES * groups.len()
            }
        };
    }
}

/// Takes off masks that are not of AES.
fn unmask_others(room: Gcm512, packets: &mut [Unprotect<'_>]) {
    let (groups, rest) = packets.as_chunks_mut::<CHACHAS>();
    for group in groups {
        match chacha_keys(|at| group[at].header_key) {
            Some(keys) => {
                unmask_group(group.as_chunks_mut().0, |states| chacha_masks(room, keys, states));
            }
            None => packet::unmask(room, group),
        }
    }
    packet::unmask(room, rest);
}

/// Takes the masks off the headers of up to `G` times four packets. If numbers are within their first
/// blocks, these are loaded once, and stored once.
fn unmask_group<const G: usize>(
    packets: &mut [[Unprotect<'_>; LANES]],
    masks: impl Fn([__m512i; G]) -> [__m512i; G],
) {
    let none = [_mm512_setzero_si512(); G];
    let (mut states, mut starts, mut expected) = (none, none, none);
    for (at, group) in packets.iter().enumerate().take(G) {
        let none = [_mm_setzero_si128(); LANES];
        let (mut samples, mut blocks, mut expectations) = (none, none, none);
        for (lane, packet) in group.iter().enumerate() {
            let Some((sample, block)) = packet.short() else {
                return unmask_long::<G>(packets, masks);
            };
            (samples[lane], blocks[lane]) = (load_block(sample), load_block(block));
            let number = packet::expected(packet.largest);
            expectations[lane] = _mm_set_epi64x(packet.number_at as i64, number as i64);
        }
        (states[at], starts[at], expected[at]) = (join(samples), join(blocks), join(expectations));
    }
    let masks = masks(states);
    for (at, packets) in packets.iter_mut().enumerate().take(G) {
        let (headers, found) = unmasked(starts[at], masks[at], expected[at]);
        let phases = _mm512_test_epi64_mask(headers, _mm512_set1_epi64(PHASE.into()));
        let (blocks, found) = (split(headers), split(found));
        for (lane, packet) in packets.iter_mut().enumerate() {
            if let Some(start) = packet.packet.first_chunk_mut() {
                *start = bytes_of(blocks[lane]);
            }
            let number = _mm_cvtsi128_si64(found[lane]) as u64;
            let header_bytes = _mm_extract_epi64::<1>(found[lane]) as usize;
            packet.find_key(phases & (1 << (2 * lane)) != 0, number, header_bytes);
        }
    }
}

/// The same, wherever numbers are, one number after the other.
#[cold]
fn unmask_long<const G: usize>(
    packets: &mut [[Unprotect<'_>; LANES]],
    masks: impl Fn([__m512i; G]) -> [__m512i; G],
) {
    let mut states = [_mm512_setzero_si512(); G];
    for (state, packets) in states.iter_mut().zip(&*packets) {
        *state = of_lanes(packets.each_ref().map(|packet| packet.sample().unwrap_or(&[0; BLOCK])));
    }
    for (packets, masks) in packets.iter_mut().zip(masks(states)) {
        for (packet, mask) in packets.iter_mut().zip(&blocks_of(masks)) {
            packet.unmask(Mask::new(mask));
        }
    }
}

/// Four headers without their masks, then their whole numbers, each followed by its header's length.
/// `expected` has the numbers expected, each followed by the place where its header's number begins.
#[inline]
fn unmasked(starts: __m512i, masks: __m512i, expected: __m512i) -> (__m512i, __m512i) {
    let one = _mm512_set1_epi64(1);
    let headers = mask_first(starts, masks);
    let last = last_of_number(headers);
    let number_at = _mm512_shuffle_epi8(expected, _mm512_set1_epi8(8));
    let places = _mm512_sub_epi8(each_bytes(), number_at);
    let in_number = _mm512_cmple_epu8_mask(places, last);
    let order = _mm512_add_epi8(places, _mm512_set1_epi8(1));
    let number_masks = _mm512_maskz_shuffle_epi8(in_number, masks, order);
    let headers = _mm512_xor_si512(headers, number_masks);
    // RFC 9000 § A.3, as `decode` in packet/quic.rs has it.
    let there = _mm512_cmple_epu8_mask(each_bytes(), last);
    let order = _mm512_sub_epi8(_mm512_add_epi8(number_at, last), each_bytes());
    let truncated = _mm512_maskz_shuffle_epi8(there, headers, order);
    let last = _mm512_and_si512(last, _mm512_set1_epi64(3));
    let half = _mm512_sllv_epi64(_mm512_set1_epi64(0x80), _mm512_slli_epi64(last, 3));
    let window = _mm512_add_epi64(half, half);
    let lowest = _mm512_sub_epi64(_mm512_max_epu64(_mm512_add_epi64(expected, one), half), half);
    let above = _mm512_and_si512(
        _mm512_sub_epi64(truncated, lowest),
        _mm512_sub_epi64(window, one),
    );
    let numbers = _mm512_add_epi64(lowest, above);
    let too_high = _mm512_cmpge_epu64_mask(numbers, _mm512_set1_epi64(NUMBER_END as i64));
    let numbers = _mm512_mask_sub_epi64(numbers, too_high, numbers, window);
    let header_bytes = _mm512_add_epi64(_mm512_add_epi64(expected, last), one);
    (headers, here(_mm512_mask_mov_epi64(numbers, 0xaa, header_bytes)))
}

/// A mask for each sample, four at a time where neighbours have the same key.
pub(super) fn masks(room: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    if let [(key, sample)] = samples
        && let Some(key) = aes(key)
    {
        *sample = bytes_of(encrypt_one(key, load_block(sample)));
    } else {
        masks_of_several(room, samples);
    }
}

#[inline(never)]
fn masks_of_several(room: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
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
        let same = samples[at..].iter().take_while(|(other, _)| ptr::eq(*other, samples[at].0));
        let same = same.count();
        let (groups, _) = samples[at..][..same].as_chunks_mut::<LANES>();
        at += match groups {
            [] => {
                let (_, sample) = &mut samples[at];
                *sample = bytes_of(encrypt_one(key, load_block(sample)));
                1
            }
            [_] => {
                masks_of::<1>(key, groups);
                LANES
            }
            _ => {
                for groups in groups.chunks_mut(TOGETHER) {
                    masks_of::<TOGETHER>(key, groups);
                }
                LANES * groups.len()
            }
        };
    }
    if chacha {
        chacha::masks(room, samples);
    }
}

/// Masks under one key, four to a register.
#[inline]
fn masks_of<const G: usize>(
    key: &MaskKey,
    groups: &mut [[(&HeaderKey, [u8; SAMPLE_BYTES]); LANES]],
) {
    let mut states = [_mm512_setzero_si512(); G];
    for (state, [(_, a), (_, b), (_, c), (_, d)]) in states.iter_mut().zip(&*groups) {
        *state = join([load_block(a), load_block(b), load_block(c), load_block(d)]);
    }
    for (state, group) in encrypt(key, states).into_iter().zip(groups) {
        for ((_, sample), mask) in group.iter_mut().zip(blocks_of(state)) {
            *sample = mask;
        }
    }
}

}
