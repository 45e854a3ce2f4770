//! Header masks.

use super::cipher::{aes, encrypt_four, encrypt_one, mask_of_one};
use super::detected::Gcm512;
use super::headers::{each_bytes, last_of_number, mask_first};
use super::register::*;
use super::sizes::LANES;
use crate::packet::backend::{self, Backend};
use crate::packet::chacha;
use crate::packet::key::{HeaderForm, HeaderKey};
use crate::packet::library::Library;
use crate::packet::message::Message;
use crate::packet::quic::{NUMBER_END, Opened, PHASE, Unprotect, Used};
use crate::packet::sizes::{SAMPLE_BYTES, TAG_BYTES};
use crate::x86::ordered;
use std::arch::x86_64::*;
use std::slice;

features! {

/// Takes the masks off the headers of packets.
#[inline]
pub(super) fn unmask(backend: Gcm512, packets: &mut [Unprotect<'_>]) {
    if let [packet] = packets
        && let Some(key) = aes(packet.header_key)
    {
        let sample = load_block(packet.sample_or_zeros());
        packet.unmask(mask_of_one(key, sample));
    } else {
        backend::unmask(backend, packets);
    }
}

}

/// The state of up to `G` times four messages or packets, a lane each.
pub(super) struct BatchState<const G: usize> {
    /// Their nonces; of packets with their masks on, the largest numbers so far, each followed by
    /// the place where its header's number begins, and then the numbers found, each followed by its
    /// header's length.
    pub(super) nonces: [Words; G],
    /// Their lengths in bits, of data and of what is authenticated beside it; of packets with their
    /// masks on, all bytes.
    pub(super) lengths: [Words; G],
    /// Their last blocks of what is authenticated beside the data; of packets with their masks on,
    /// their first blocks.
    pub(super) headers: [__m512i; G],
    /// How masks are moved to numbers; of packets with their masks on, what the masks are computed
    /// from, and then the masks.
    pub(super) masks: [__m512i; G],
}

impl<const G: usize> BatchState<G> {
    features! {

    #[inline]
    pub(super) fn nothing() -> Self {
        let none = [_mm512_setzero_si512(); G];
        Self { nonces: [Words::NONE; G], lengths: [Words::NONE; G], headers: none, masks: none }
    }

    /// Packets with their masks on, and what is to be done with what these are computed from. Says
    /// whether all numbers are within their first blocks.
    #[inline]
    fn masked<'k, M: Message<'k>>(
        &mut self,
        packets: &mut [[M; LANES]],
        mask: impl Fn(__m512i) -> __m512i,
    ) -> bool {
        for (at, packets) in packets.iter_mut().enumerate().take(G) {
            let none = [_mm_setzero_si128(); LANES];
            let (mut samples, mut starts) = (none, none);
            for (lane, packet) in packets.iter_mut().enumerate() {
                let Some(packet) = packet.opened() else { return false };
                let Some((sample, start)) = packet.short() else { return false };
                (samples[lane], starts[lane]) = (load_block(sample), load_block(start));
                self.nonces[at].0[lane] = [packet.largest(), packet.number_at as u64];
                self.lengths[at].0[lane][0] = packet.packet.len() as u64;
            }
            (self.masks[at], self.headers[at]) = (mask(join(samples)), join(starts));
        }
        true
    }

    /// Takes the masks off headers, and says of which packets, two bits each, the phase is not this
    /// one.
    #[inline]
    fn unmasked(&mut self, at: usize, phase: __m512i) -> u8 {
        let (headers, found) = unmasked(self.headers[at], self.masks[at], self.nonces[at].load());
        self.headers[at] = headers;
        self.nonces[at].store(found);
        let other = _mm512_xor_si512(headers, phase);
        _mm512_test_epi64_mask(other, _mm512_set1_epi64(PHASE.into())) & 0x55
    }

    /// Takes the masks off the headers of packets under one key, and gives these the verdict that
    /// they have if the rest is authentic. Says whether it did: no packet is touched if one is not
    /// of the phase that is expected, or its number not within its first block.
    #[inline]
    pub(super) fn unmask<'k, M: Message<'k>, const ROUNDS: usize>(
        &mut self,
        packets: &mut [[M; LANES]],
    ) -> bool {
        let Some([first, ..]) = packets.first_mut() else { return false };
        let Some(first) = first.opened() else { return false };
        let (key, phase) = (first.header_key, first.keys.phase);
        let Some(key) = aes(key) else { return false };
        // Each four go into the cipher as soon as they are there: beside it the next are loaded.
        if !self.masked(packets, |samples| encrypt_four::<ROUNDS>(key, samples)) {
            return false;
        }
        let phase = _mm512_set1_epi64(if phase { PHASE.into() } else { 0 });
        let mut others = 0;
        for at in 0..packets.len().min(G) {
            others |= self.unmasked(at, phase);
        }
        if others != 0 {
            return false;
        }
        for (at, packets) in packets.iter_mut().enumerate().take(G) {
            let (headers, found) = (self.headers[at], self.nonces[at].load());
            let blocks = split(headers);
            for (lane, packet) in packets.iter_mut().enumerate() {
                let Some(packet) = packet.opened() else { return false };
                if let Some(start) = packet.packet.first_chunk_mut() {
                    *start = bytes_of(blocks[lane]);
                }
                let [number, header_bytes] = self.nonces[at].0[lane];
                let header_bytes = header_bytes as usize;
                packet.verdict = Ok(Opened { number, header_bytes, used: Used::Current });
            }
            let header_bytes = _mm512_shuffle_epi8(found, _mm512_set1_epi8(8));
            let in_header = _mm512_cmplt_epu8_mask(each_bytes(), header_bytes);
            self.headers[at] = _mm512_maskz_mov_epi8(in_header, headers);
            let header_bytes = _mm512_shuffle_epi32::<0x4e>(found);
            let tag_bytes = _mm512_set1_epi64(TAG_BYTES as i64);
            let bytes = _mm512_sub_epi64(self.lengths[at].load(), tag_bytes);
            let sizes = _mm512_mask_sub_epi64(found, 0x55, bytes, header_bytes);
            self.lengths[at].store(_mm512_slli_epi64::<3>(sizes));
        }
        true
    }

    }
}

features! {

/// Four headers without their masks, then their whole numbers, each followed by its header's
/// length. `largest` has the largest numbers so far, each followed by the place where its header's
/// number begins.
#[inline]
fn unmasked(starts: __m512i, masks: __m512i, largest: __m512i) -> (__m512i, __m512i) {
    let headers = mask_first(starts, masks);
    let last = last_of_number(headers);
    let number_at = _mm512_shuffle_epi8(largest, _mm512_set1_epi8(8));
    let places = _mm512_sub_epi8(each_bytes(), number_at);
    let in_number = _mm512_cmple_epu8_mask(places, last);
    let order = _mm512_add_epi8(places, _mm512_set1_epi8(1));
    let number_masks = _mm512_maskz_shuffle_epi8(in_number, masks, order);
    let headers = _mm512_xor_si512(headers, number_masks);
    // The number's lowest byte comes first. Bytes behind its highest fall away below.
    let order = _mm512_sub_epi8(_mm512_add_epi8(number_at, last), each_bytes());
    let truncated = _mm512_shuffle_epi8(headers, order);
    // RFC 9000 § A.3, as `decode` in packet/quic.rs has it: the only number of a window that ends
    // so. The window does not go below the first number there is, nor beyond the last.
    let ends = _mm512_set_epi64(0, 0, 0, 0, 0xffff_ffff, 0x00ff_ffff, 0xffff, 0xff);
    let ends = _mm512_permutexvar_epi64(last, ends);
    let half = _mm512_srli_epi64::<1>(ends);
    let last_lowest = _mm512_xor_si512(_mm512_set1_epi64(NUMBER_END as i64 - 1), ends);
    let expected = _mm512_add_epi64(largest, _mm512_set1_epi64(1));
    let lowest = _mm512_sub_epi64(_mm512_max_epu64(expected, half), half);
    let lowest = _mm512_min_epu64(lowest, last_lowest);
    let above = _mm512_and_si512(_mm512_sub_epi64(truncated, lowest), ends);
    let numbers = _mm512_add_epi64(lowest, above);
    // One more than the number's place stands beside the number that is expected.
    let last = _mm512_and_si512(last, _mm512_set1_epi64(3));
    (headers, ordered(_mm512_mask_add_epi64(numbers, 0xaa, expected, last)))
}

/// A mask for each sample of packets that do not go together.
pub(super) fn masks(backend: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    if let [(key, sample)] = samples
        && let Some(key) = aes(key)
    {
        *sample = bytes_of(encrypt_one(key, load_block(sample)));
    } else {
        masks_of_several(backend, samples);
    }
}

#[inline(never)]
fn masks_of_several(backend: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    for sample in &mut *samples {
        match &sample.0.0 {
            HeaderForm::Aes(key) => sample.1 = bytes_of(encrypt_one(key, load_block(&sample.1))),
            HeaderForm::ChaCha(_) => chacha = true,
            HeaderForm::Library(_) => Library.masks(slice::from_mut(sample)),
        }
    }
    if chacha {
        chacha::masks(backend, samples);
    }
}

}
