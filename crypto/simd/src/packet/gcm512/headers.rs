//! Additional authenticated data, and packets' headers: their numbers and their masks.
//!
//! A header of at most a block is put together in a register, hashed, masked there and stored once.
//! Were its number written first, the loads behind it would wait for smaller stores, and hold up
//! all others.

use super::cipher::{aes, mask_of_one};
use super::hash::zero;
use super::register::*;
use super::sizes::{BLOCK, LANES};
use crate::packet::gcm::GcmKey;
use crate::packet::message::{Message, Parts};
use std::arch::x86_64::*;

features! {

/// The last block of a message's additional data, a packet's number in it, and all before it taken
/// in.
#[inline]
pub(super) fn last<'k, M: Message<'k>>(key: &GcmKey, message: &mut M) -> __m128i {
    let Parts { aad, .. } = message.parts();
    if aad.len() > BLOCK {
        return long(key, message);
    }
    let (start, bytes) = (load_masked(aad), aad.len());
    let Some(packet) = message.header() else { return start };
    let number = _mm_cvtsi64_si128(packet.number as i64);
    // A load of bytes that were just written waits for them: this does not wait for the load.
    let in_number = ((1 << packet.number_bytes()) - 1) << (bytes - packet.number_bytes());
    let places = _mm_sub_epi8(_mm_set1_epi8(bytes as i8 - 1), each_byte());
    _mm_mask_shuffle_epi8(start, in_number, number, places)
}

/// Headers of at most a block, a lane each, with their numbers and nothing behind them, and how
/// masks' bytes are moved to these. All bytes of a lane say how long its header is. That numbers
/// are put together in registers, whatever their lengths, keeps these from showing.
#[inline]
pub(super) fn numbered(
    starts: __m512i,
    header_bytes: __m512i,
    numbers: __m512i,
) -> (__m512i, __m512i) {
    // Where a byte is from the header's end: so a number's bytes are counted, the lowest first. A
    // place whose highest bit is set is shuffled to zero: here behind the header, in the mask's
    // order before the number.
    let one = _mm512_set1_epi8(1);
    let places = _mm512_sub_epi8(header_bytes, _mm512_add_epi8(each_bytes(), one));
    let last = last_of_number(starts);
    let before_number = _mm512_cmpgt_epi8_mask(places, last);
    let numbers = _mm512_shuffle_epi8(numbers, places);
    (
        _mm512_mask_mov_epi8(numbers, before_number, starts),
        _mm512_adds_epu8(_mm512_sub_epi8(last, places), one),
    )
}

/// The place of a number's last byte in the number, in every byte: its length but for one.
#[inline]
pub(super) fn last_of_number(headers: __m512i) -> __m512i {
    let first = _mm512_shuffle_epi8(headers, _mm512_setzero_si512());
    _mm512_and_si512(first, _mm512_set1_epi8(3))
}

/// Each byte's place in a block.
#[inline]
fn each_byte() -> __m128i {
    _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
}

/// Each byte's place in its block, in every lane.
#[inline]
pub(super) fn each_bytes() -> __m512i {
    _mm512_broadcast_i32x4(each_byte())
}

/// The last block of more than one.
#[cold]
fn long<'k, M: Message<'k>>(key: &GcmKey, message: &mut M) -> __m128i {
    if let Some(packet) = message.header() {
        packet.put_number();
    }
    let Parts { aad, .. } = message.parts();
    let first = broadcast(&key.first);
    let cross = broadcast_cross_term(&key.first_cross_term);
    let mut hash = _mm_setzero_si128();
    let last = (aad.len() - 1) / BLOCK;
    for (at, block) in aad.chunks(BLOCK).enumerate() {
        hash = _mm_xor_si128(hash, reverse_block(load_masked(block)));
        if at < last {
            let sums = zero().add(_mm512_zextsi128_si512(hash), first, cross);
            hash = _mm512_castsi512_si128(sums.reduce());
        }
    }
    reverse_block(hash)
}

/// Masks the headers of packets and writes them, `G` times four at most: how they were hashed, how
/// masks are moved to their numbers, and the masks of samples.
#[inline]
pub(super) fn finish_uniform<'k, M: Message<'k>, const G: usize>(
    messages: &mut [[M; LANES]],
    headers: &[__m512i; G],
    mask_orders: &[__m512i; G],
    masks: impl Fn([__m512i; G]) -> [__m512i; G],
) {
    let mut states = [_mm512_setzero_si512(); G];
    for (quad, messages) in messages.iter_mut().enumerate().take(G) {
        let mut samples = [_mm_setzero_si128(); LANES];
        for (lane, message) in messages.iter_mut().enumerate() {
            if let Some(packet) = message.header() {
                samples[lane] = load_block(packet.sample());
            }
        }
        states[quad] = join(samples);
    }
    let masks = masks(states);
    for (quad, messages) in messages.iter_mut().enumerate().take(G) {
        let numbers = _mm512_shuffle_epi8(masks[quad], mask_orders[quad]);
        let first_masked = mask_first(headers[quad], masks[quad]);
        let blocks = split(_mm512_xor_si512(first_masked, numbers));
        for (message, block) in messages.iter_mut().zip(blocks) {
            if let Some(packet) = message.header() {
                store_masked(&mut packet.packet[..packet.header_bytes], block);
            }
        }
    }
}

/// Masks the header of one packet, if it is one, and writes it; its sample may be at hand.
#[inline]
pub(super) fn finish_one<'k, M: Message<'k>>(message: &mut M, sample: Option<__m128i>) {
    let Some(key) = message.header_key().and_then(|key| aes(key)) else { return };
    let Some(packet) = message.header() else { return };
    let sample = sample.unwrap_or(load_block(packet.sample()));
    let mask = mask_of_one(key, sample);
    let bytes = packet.number_bytes();
    let number = (packet.number as u32).swap_bytes() >> (32 - 8 * bytes) ^ mask.of_number();
    let place = &mut packet.packet[packet.header_bytes - bytes..packet.header_bytes];
    store_masked(place, _mm_cvtsi32_si128(number as i32));
    packet.mask_first(mask);
}

/// 16 bytes of what was sealed, from this place on: of the first two registers, of which the first
/// begins with so many blocks that are not there.
#[inline]
pub(super) fn sample([a, b]: [__m512i; 2], pad: usize, at: usize) -> __m128i {
    let order = _mm_add_epi8(each_byte(), _mm_set1_epi8((BLOCK * pad + at) as i8));
    _mm512_castsi512_si128(_mm512_permutex2var_epi8(a, _mm512_zextsi128_si512(order), b))
}

/// The [`sample`] of a message of one register: if it is so short that some bytes may be the tag's,
/// of that too. Whether the tag is waited for depends on the size alone: how long the number is, is
/// not to show.
#[inline]
pub(super) fn sample_of_one(data: __m512i, tag: __m128i, size: usize, at: usize) -> __m128i {
    if size >= BLOCK + 4 {
        return sample([data, data], 0, at);
    }
    let left = size.wrapping_sub(at);
    let of_data = _mm_add_epi8(each_byte(), _mm_set1_epi8(at as i8));
    let of_tag = _mm_add_epi8(each_byte(), _mm_set1_epi8(64_usize.wrapping_sub(left) as i8));
    let order = _mm_mask_mov_epi8(of_tag, _bzhi_u32(0xffff, left as u32) as u16, of_data);
    let (order, tag) = (_mm512_zextsi128_si512(order), _mm512_zextsi128_si512(tag));
    _mm512_castsi512_si128(_mm512_permutex2var_epi8(data, order, tag))
}

/// Headers, their first bytes masked: four bits if they are long and five if they are short (RFC
/// 9001 § 5.4.1).
#[inline]
pub(super) fn mask_first(headers: __m512i, masks: __m512i) -> __m512i {
    let lanes = |block| _mm512_broadcast_i32x4(block);
    let (bits, fifth) = (lanes(_mm_set_epi64x(0, 0x1f)), lanes(_mm_set_epi64x(0, 0x10)));
    // bits & !(fifth & headers >> 3)
    let bits = _mm512_ternarylogic_epi64::<0x70>(bits, fifth, _mm512_srli_epi64::<3>(headers));
    // headers ^ (masks & bits)
    _mm512_ternarylogic_epi64::<0x78>(headers, masks, bits)
}

}
