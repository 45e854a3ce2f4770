//! What is authenticated beside the data, and packets' headers: their numbers and their masks.
//!
//! A header of at most a block is put together in a register, hashed, masked there and stored once. Were
//! its number written first, the loads behind it would wait for smaller stores, and hold up all others.

use super::hash::{xor3, zero};
use super::masks::{aes, encrypt, encrypt_one};
use super::register::*;
use super::{BLOCK, Gcm512, LANES, TOGETHER};
use crate::packet::{self, GcmKey, Mask, MaskKey, Message, Parts, Unprotect};
use core::arch::x86_64::*;
use core::ptr;

/// The last block of a message's additional data: it is hashed, and stored if it is a packet's header.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// All but a packet's number; all blocks before it taken in.
    start: __m128i,
    /// The number, its lowest byte first, and how its bytes are moved to their place.
    number: __m128i,
    order: __m128i,
    /// How a mask's bytes are moved there.
    mask_order: __m128i,
    /// Where that is, in bytes from the packet's start.
    pub(super) at: usize,
}

impl Last {
    features! {

    /// Nothing.
    #[inline]
    pub(super) fn none() -> Self {
        let none = _mm_setzero_si128();
        Self { start: none, number: none, order: none, mask_order: none, at: 0 }
    }

    #[inline]
    pub(super) fn new<'k, M: Message<'k>>(key: &GcmKey, message: &mut M) -> Self {
        let Parts { aad, number, .. } = message.parts();
        match number {
            _ if aad.len() > BLOCK => Self { start: long(key, message), ..Self::none() },
            Some((at, number)) => Self {
                start: load_masked(&aad[..at]),
                number: _mm_cvtsi32_si128(number as i32),
                order: load_order(&FROM_END, BLOCK - aad.len()),
                mask_order: load_order(&BEHIND_FIRST, BLOCK - at),
                at,
            },
            None => Self { start: load_masked(aad), ..Self::none() },
        }
    }

    /// With its number.
    #[inline]
    pub(super) fn whole(self) -> __m128i {
        _mm_or_si128(self.start, _mm_shuffle_epi8(self.number, self.order))
    }

    }
}

features! {

/// Four of them with their numbers, and how masks' bytes are moved to these.
#[inline]
pub(super) fn whole([a, b, c, d]: &[Last; LANES]) -> (__m512i, __m512i) {
    let starts = join([a.start, b.start, c.start, d.start]);
    let numbers = join([a.number, b.number, c.number, d.number]);
    let orders = join([a.order, b.order, c.order, d.order]);
    let mask_orders = join([a.mask_order, b.mask_order, c.mask_order, d.mask_order]);
    (_mm512_or_si512(starts, _mm512_shuffle_epi8(numbers, orders)), mask_orders)
}

/// The last block of more than one.
#[cold]
fn long<'k, M: Message<'k>>(key: &GcmKey, message: &mut M) -> __m128i {
    if let Some(packet) = message.header() {
        packet.put_number();
    }
    let Parts { aad, .. } = message.parts();
    let first = broadcast(&key.first);
    let middle = broadcast_middle(&key.first_middle);
    let mut hash = _mm_setzero_si128();
    let last = (aad.len() - 1) / BLOCK;
    for (at, block) in aad.chunks(BLOCK).enumerate() {
        hash = _mm_xor_si128(hash, reverse_block(load_masked(block)));
        if at < last {
            let sums = zero().add(_mm512_zextsi128_si512(hash), first, middle);
            hash = _mm512_castsi512_si128(sums.reduce());
        }
    }
    reverse_block(hash)
}

/// Masks the headers of packets under one header key and writes them, `G` times four at most: how they
/// were hashed, how masks are moved to their numbers, where these are.
pub(super) fn finish_group<'k, M: Message<'k>, const G: usize>(
    messages: &mut [[M; LANES]],
    headers: &[__m512i; G],
    mask_orders: &[__m512i; G],
    at: &[[usize; LANES]; G],
) {
    let Some([first, ..]) = messages.first() else { return };
    let Some(key) = first.header_key().and_then(|key| aes(key)) else { return };
    let mut states = [_mm512_setzero_si512(); G];
    for (group, messages) in messages.iter_mut().enumerate().take(G) {
        let mut samples = [_mm_setzero_si128(); LANES];
        for (lane, message) in messages.iter_mut().enumerate() {
            if let Some(packet) = message.header() {
                samples[lane] = load_block(packet.sample_behind(at[group][lane]));
            }
        }
        states[group] = join(samples);
    }
    let masks = encrypt(key, states);
    for (group, messages) in messages.iter_mut().enumerate().take(G) {
        let blocks = split(masked(headers[group], masks[group], mask_orders[group]));
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
    let mask = Mask::new(&bytes_of(encrypt_one(key, sample)));
    let (at, number) = packet.place_and_number();
    let bytes = packet.header_bytes - at;
    let number = number.swap_bytes() >> (32 - 8 * bytes) ^ mask.of_number();
    store_masked(&mut packet.packet[at..][..bytes], _mm_cvtsi32_si128(number as i32));
    packet.mask_first(mask);
}

/// Takes the masks off the headers of packets, as many under one header key at a time as there are.
pub(super) fn unmask(room: Gcm512, packets: &mut [Unprotect<'_>]) {
    let mut at = 0;
    while let [first, ..] = &packets[at..] {
        let alike = match aes(first.header_key) {
            Some(key) => {
                let same = |other: &&Unprotect<'_>| ptr::eq(other.header_key, first.header_key);
                match packets[at..].iter().take(LANES * TOGETHER).take_while(same).count() {
                    1 => {
                        let packet = &mut packets[at];
                        let sample = load_block(packet.sample().unwrap_or(&[0; BLOCK]));
                        packet.unmask(Mask::new(&bytes_of(encrypt_one(key, sample))));
                        1
                    }
                    alike => {
                        unmask_group(key, &mut packets[at..][..alike]);
                        alike
                    }
                }
            }
            None => {
                let others = packets[at..].iter().take_while(|other| aes(other.header_key).is_none());
                let others = others.count();
                packet::unmask(room, &mut packets[at..][..others]);
                others
            }
        };
        at += alike;
    }
}

fn unmask_group(key: &MaskKey, packets: &mut [Unprotect<'_>]) {
    let mut states = [_mm512_setzero_si512(); TOGETHER];
    for (state, packets) in states.iter_mut().zip(packets.chunks(LANES)) {
        let mut samples = [_mm_setzero_si128(); LANES];
        for (place, packet) in samples.iter_mut().zip(packets) {
            if let Some(sample) = packet.sample() {
                *place = load_block(sample);
            }
        }
        *state = join(samples);
    }
    let mut masks = [[[0; BLOCK]; LANES]; TOGETHER];
    for (masks, state) in masks.iter_mut().zip(encrypt(key, states)) {
        *masks = blocks_of(state);
    }
    for (packet, mask) in packets.iter_mut().zip(masks.as_flattened()) {
        packet.unmask(Mask::new(mask));
    }
}

/// 16 bytes of what was sealed, from this place on: of the first two registers, or, if it is so short that
/// some may be the tag's, of the first and the tag.
#[inline]
pub(super) fn sample([a, b]: [__m512i; 2], size: usize, at: usize) -> __m128i {
    let each = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let mut order = _mm_add_epi8(each, _mm_set1_epi8((BLOCK * pad(size) + at) as i8));
    if size < BLOCK + 4 {
        let left = size.wrapping_sub(at);
        let of_tag = _mm_add_epi8(each, _mm_set1_epi8(64_usize.wrapping_sub(left) as i8));
        let of_data = _bzhi_u32(0xffff, left as u32) as u16;
        order = _mm_mask_mov_epi8(of_tag, of_data, order);
    }
    _mm512_castsi512_si128(_mm512_permutex2var_epi8(a, _mm512_zextsi128_si512(order), b))
}

/// Headers, masked: of the first byte four bits if it is long and five if it is short (RFC 9001 § 5.4.1).
#[inline]
fn masked(headers: __m512i, masks: __m512i, orders: __m512i) -> __m512i {
    let lanes = |block| _mm512_broadcast_i32x4(block);
    let long = lanes(_mm_set_epi64x(0, 0x80));
    let all = lanes(_mm_set_epi64x(0, 0x0f));
    let short = _mm512_srli_epi64(_mm512_andnot_si512(headers, long), 3);
    // (short | all) & masks
    let first = _mm512_ternarylogic_epi64(short, all, masks, 0xa8);
    xor3(headers, first, _mm512_shuffle_epi8(masks, orders))
}

}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_order(orders: &Orders, from: usize) -> __m128i {
    let order = &orders.0[from % BLOCK..][..BLOCK];
    // SAFETY: the slice has 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(order.as_ptr().cast()) }
}

/// For shuffles. In one line of the cache: where a number is, is not to show.
#[repr(align(32))]
struct Orders([u8; 2 * BLOCK]);

/// From as many bytes before its middle as a header has: moves a number's lowest bytes, the highest of
/// them first, to the header's end.
static FROM_END: Orders = {
    let mut order = [0x80; 2 * BLOCK];
    let mut at = 0;
    while at < BLOCK {
        order[at] = (BLOCK - 1 - at) as u8;
        at += 1;
    }
    Orders(order)
};

/// From as many bytes before its middle as there are before the number: moves a mask's bytes but the
/// first there and behind.
static BEHIND_FIRST: Orders = {
    let mut order = [0x80; 2 * BLOCK];
    let mut at = 0;
    while at < BLOCK {
        order[BLOCK + at] = (at + 1) as u8 & 15;
        at += 1;
    }
    Orders(order)
};
