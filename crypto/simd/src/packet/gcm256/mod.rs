//! AES-GCM and header masks in registers of one or two blocks, message by message: the processor
//! takes up the next while it waits for the end of one. The unsafe part is to call code that needs
//! features, from a caller that has seen that they are there.

mod gcm;
pub(crate) mod hash;
mod masks;
mod message;
mod partial;
pub(crate) mod stride;
pub(crate) mod width;

use super::aead::{Open, Seal};
use super::backend::{Backend, mask};
use super::chacha;
#[cfg(target_arch = "x86_64")]
use super::detected::Avx2;
use super::detected::{Vector, Width128};
use super::gcm::{GcmKey, POWERS, Powers};
use super::key::{AeadForm, AeadKey, HeaderForm, HeaderKey};
use super::library::Library;
use super::mask_key::MaskKey;
use super::message::{Message, Parts};
use super::quic::{Mask, Protect, ShortHeader, Unprotect};
use super::sizes::SAMPLE_BYTES;
use crate::aes::Rounds;
use crate::cache::fetch;
use masks::PACKETS;
use message::Context;
use partial::across;
use std::{ptr, slice};
use stride::Strides;
use width::{STRIDE, Width};

/// Messages as long as this that have neighbours under their key, in bytes, are worth more powers
/// of H than lie beside it.
const NEIGHBOUR_BYTES: usize = 16 * POWERS;
/// So are lone messages as long as this, in bytes.
const LONE_BYTES: usize = 4096;
/// So few samples go one after the other.
const FEW: usize = 4;

/// A width that has functions for messages of every kind.
trait Messages: Strides {
    /// See [`message::long`].
    fn long<const ROUNDS: usize, const SEAL: bool, const EIGHTS: usize>(
        self,
        key: &GcmKey,
        powers: &Powers<EIGHTS>,
        context: Context,
        data: &mut [u8],
    ) -> Vector;
    /// See [`message::short`].
    fn short<const ROUNDS: usize, const SEAL: bool>(
        self,
        key: &GcmKey,
        context: Context,
        data: &mut [u8],
    ) -> Vector;
    /// See [`chacha::masks`].
    fn chachas(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]);
}

/// Their masks.
type Masks = [[u8; SAMPLE_BYTES]; PACKETS];

/// A backend, its features on in everything that is inlined into these functions.
macro_rules! backend {
    ($width:ty, $features:literal, $abi:tt, [$($blocks:literal)*]) => {
        impl Messages for $width {
            #[inline(always)]
            fn long<const ROUNDS: usize, const SEAL: bool, const EIGHTS: usize>(
                self,
                key: &GcmKey,
                powers: &Powers<EIGHTS>,
                Context { nonce, aad, aad_bytes }: Context,
                data: &mut [u8],
            ) -> Vector {
                // So that blocks are handed over in registers: in memory they would be waited for.
                #[allow(improper_ctypes_definitions)]
                #[inline(never)]
                #[target_feature(enable = $features)]
                extern $abi fn run<
                    const ROUNDS: usize,
                    const SEAL: bool,
                    const EIGHTS: usize,
                >(
                    width: $width,
                    key: &GcmKey,
                    powers: &Powers<EIGHTS>,
                    nonce: Vector,
                    aad: Vector,
                    aad_bytes: usize,
                    data: &mut [u8],
                ) -> Vector {
                    let context = Context { nonce, aad, aad_bytes };
                    message::long::<_, ROUNDS, SEAL, _>(width, key, powers, context, data)
                }
                // SAFETY: `detect` has seen the features.
                unsafe {
                    run::<ROUNDS, SEAL, EIGHTS>(self, key, powers, nonce, aad, aad_bytes, data)
                }
            }

            #[inline(always)]
            fn short<const ROUNDS: usize, const SEAL: bool>(
                self,
                key: &GcmKey,
                Context { nonce, aad, aad_bytes }: Context,
                data: &mut [u8],
            ) -> Vector {
                // The same.
                #[allow(improper_ctypes_definitions)]
                #[inline(never)]
                #[target_feature(enable = $features)]
                extern $abi fn run<
                    const ROUNDS: usize,
                    const SEAL: bool,
                    const BLOCKS: usize,
                >(
                    width: $width,
                    key: &GcmKey,
                    nonce: Vector,
                    aad: Vector,
                    aad_bytes: usize,
                    data: &mut [u8],
                ) -> Vector {
                    let context = Context { nonce, aad, aad_bytes };
                    message::short::<_, ROUNDS, SEAL, BLOCKS>(width, key, context, data)
                }
                #[allow(improper_ctypes_definitions)]
                type Short =
                    unsafe extern $abi fn($width, &GcmKey, Vector, Vector, usize, &mut [u8]) -> Vector;
                let of_blocks = const { &[$(run::<ROUNDS, SEAL, $blocks> as Short),*] };
                // `div_ceil` takes five instructions instead of two.
                let blocks = (data.len() + 15) >> 4;
                // SAFETY: `detect` has seen the features.
                unsafe { of_blocks[blocks](self, key, nonce, aad, aad_bytes, data) }
            }

            #[inline(always)]
            fn chachas(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                // Apart, so that a sample of AES does not wait for what ChaCha20 needs.
                #[inline(never)]
                #[target_feature(enable = $features)]
                fn run(width: $width, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                    chacha::masks(width, samples);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, samples) }
            }
        }

        impl Backend for $width {
            fn seal(self, messages: &mut [Seal<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, messages: &mut [Seal<'_>]) {
                    all::<_, _, true>(width, messages);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, messages) }
            }

            fn open(self, messages: &mut [Open<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, messages: &mut [Open<'_>]) {
                    all::<_, _, false>(width, messages);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, messages) }
            }

            fn protect(self, packets: &mut [Protect<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, packets: &mut [Protect<'_>]) {
                    protect(width, packets);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, packets) }
            }

            fn unprotect(self, packets: &mut [Unprotect<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, packets: &mut [Unprotect<'_>]) {
                    unprotect(width, packets);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, packets) }
            }

            fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                    masks(width, samples);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, samples) }
            }
        }
    };
}

#[cfg(target_arch = "aarch64")]
backend!(Width128, "aes", "C", [0 1 2 3 4 5 6 7 8]);
#[cfg(target_arch = "x86_64")]
backend!(Width128, "avx,aes,pclmulqdq,ssse3,sse4.1", "sysv64", [0 1 2 3 4 5 6 7 8]);
#[cfg(target_arch = "x86_64")]
backend!(
    Avx2,
    "avx2,vaes,vpclmulqdq,aes,pclmulqdq",
    "sysv64",
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]
);

/// Seals or opens one message after the other.
#[inline(always)]
fn all<'k, W: Messages, M: Message<'k>, const SEAL: bool>(width: W, messages: &mut [M]) {
    let mut again = false;
    let mut rest = messages;
    while let [message, next @ ..] = rest {
        if let [next, ..] = next {
            again = follows(message.key(), next.key(), None);
        }
        one::<_, _, SEAL>(width, message, None, again);
        rest = next;
    }
}

/// Whether the next message has the same key. If not, it is brought into the cache meanwhile.
#[inline(always)]
fn follows(key: &AeadKey, next: &AeadKey, header_key: Option<&HeaderKey>) -> bool {
    let again = ptr::eq(key, next);
    if !again {
        fetch(next);
        if let Some(header_key) = header_key {
            fetch(header_key);
        }
    }
    again
}

/// Seals or opens a message. Its additional data is in `header` if that is at most a block. Whether
/// a neighbour has the key as well is `again`.
#[inline(always)]
fn one<'k, W: Messages, M: Message<'k>, const SEAL: bool>(
    width: W,
    message: &mut M,
    header: Option<Vector>,
    again: bool,
) {
    let AeadForm::Gcm(key) = &message.key().0 else { return message.library() };
    let w128 = width.w128();
    let nonce = w128.nonce(message.iv(), message.number());
    let Parts { aad, data } = message.parts();
    let aad_bytes = aad.len();
    let aad = match header {
        Some(header) => w128.reverse(header),
        None => message::last_of_aad(w128, key, aad),
    };
    let context = Context { nonce, aad, aad_bytes };
    let tag = if data.len() <= 16 * STRIDE * W::BLOCKS {
        match key.aes.rounds {
            Rounds::Ten => width.short::<10, SEAL>(key, context, data),
            Rounds::Fourteen => width.short::<14, SEAL>(key, context, data),
        }
    } else {
        let many = data.len() >= if again { NEIGHBOUR_BYTES } else { LONE_BYTES };
        match (key.aes.rounds, many) {
            (Rounds::Ten, false) => width.long::<10, SEAL, _>(key, &key.powers, context, data),
            (Rounds::Ten, true) => width.long::<10, SEAL, _>(key, key.many(), context, data),
            (Rounds::Fourteen, false) => width.long::<14, SEAL, _>(key, &key.powers, context, data),
            (Rounds::Fourteen, true) => width.long::<14, SEAL, _>(key, key.many(), context, data),
        }
    };
    message.finish(&w128.bytes(tag));
}

/// Seals packets, and masks their headers. A header of at most a block is put together in a
/// register, and written when it is masked.
#[inline(always)]
fn protect<W: Messages + Backend>(width: W, packets: &mut [Protect<'_>]) {
    let w128 = width.w128();
    let mut headers = [[[0; SAMPLE_BYTES]; 2]; PACKETS];
    let mut again = false;
    for packets in packets.chunks_mut(PACKETS) {
        let mut rest = &mut *packets;
        for place in &mut headers {
            let [packet, next @ ..] = rest else { break };
            if let [next, ..] = next {
                again = follows(packet.key.key(), next.key.key(), Some(next.header_key));
            }
            // A call in each arm: in one for both, whether there is a header would be asked again.
            match packet.start() {
                Some((start, bytes)) => {
                    let places = w128.places(bytes);
                    let header = w128.header(w128.load(start), places, packet.number);
                    w128.store(&mut place[0], header);
                    w128.store(&mut place[1], places);
                    one::<_, _, true>(width, packet, Some(header), again);
                }
                None => {
                    packet.put_number();
                    one::<_, _, true>(width, packet, None, again);
                }
            }
            rest = next;
        }
        if let Some(key) = common_key(packets, |packet| packet.header_key) {
            let mut samples = [packets[0].sample(); PACKETS];
            for (sample, packet) in samples.iter_mut().zip(&*packets) {
                *sample = packet.sample();
            }
            let masks = masks::batched(width, &key.aes, &samples);
            for ((packet, mask), [header, places]) in packets.iter_mut().zip(&masks).zip(&headers) {
                match packet.start_mut() {
                    Some(start) => {
                        let (header, places) = (w128.load(header), w128.load(places));
                        let masked = w128.masked(header, w128.load(mask), places);
                        w128.store(start, w128.beginning(masked, places, w128.load(start)));
                    }
                    None => packet.mask_numbered(Mask::new(mask)),
                }
            }
            continue;
        }
        let (lone, mut others) = (packets.len() == 1, false);
        for packet in &mut *packets {
            if let HeaderForm::Aes(key) = &packet.header_key.0 {
                let sample = match packet.sample_in_parts().filter(|_| lone) {
                    Some((block, behind)) => across(w128, block, behind, packet.sample_at()),
                    None => w128.load(packet.sample()),
                };
                let mask = masks::single(w128, &key.aes, sample);
                packet.mask_numbered(Mask::new(&mask));
            } else {
                packet.put_number();
                others = true;
            }
        }
        if others {
            mask(width, packets, |packet| !matches!(packet.header_key.0, HeaderForm::Aes(_)));
        }
    }
}

/// Takes the masks off headers, and opens the payloads.
#[inline(always)]
fn unprotect<W: Messages>(width: W, packets: &mut [Unprotect<'_>]) {
    if let [packet] = packets
        && let HeaderForm::Aes(key) = &packet.header_key.0
    {
        let w128 = width.w128();
        let mask = masks::single(w128, &key.aes, w128.load(packet.sample_or_zeros()));
        return open(width, packet, &mask, false);
    }
    let mut again = false;
    for packets in packets.chunks_mut(PACKETS) {
        let masks = masks_of(width, packets);
        let mut rest = packets;
        for mask in &masks {
            let [packet, next @ ..] = rest else { break };
            if let [next, ..] = next {
                again = follows(packet.keys.current.key(), next.keys.current.key(), None);
            }
            open(width, packet, mask, again);
            rest = next;
        }
    }
}

/// The masks of packets that came.
#[inline(always)]
fn masks_of<W: Messages>(width: W, packets: &[Unprotect<'_>]) -> Masks {
    if let Some(key) = common_key(packets, |packet| packet.header_key) {
        let mut samples = [packets[0].sample_or_zeros(); PACKETS];
        for (sample, packet) in samples.iter_mut().zip(packets) {
            *sample = packet.sample_or_zeros();
        }
        return masks::batched(width, &key.aes, &samples);
    }
    let mut samples = [(packets[0].header_key, [0; SAMPLE_BYTES]); PACKETS];
    for (sample, packet) in samples.iter_mut().zip(packets) {
        *sample = (packet.header_key, *packet.sample_or_zeros());
    }
    masks(width, &mut samples[..packets.len()]);
    samples.map(|(_, mask)| mask)
}

/// Takes a mask off a header, and opens the payload if that is not refused. A short header is
/// unmasked in a register: in memory it would be written in parts, and its load would wait.
#[inline(always)]
fn open<W: Messages>(width: W, packet: &mut Unprotect<'_>, mask: &[u8; SAMPLE_BYTES], again: bool) {
    let w128 = width.w128();
    let Some(header) = packet.short_header(Mask::new(mask)) else {
        packet.unmask(Mask::new(mask));
        if packet.verdict.is_ok() {
            one::<_, _, false>(width, packet, None, again);
        }
        return;
    };
    let ShortHeader { start, first, phase, number, bytes } = header;
    let (start, places) = (w128.load(start), w128.places(bytes));
    let unmasked = w128.unmasked(start, w128.load(mask), first, packet.number_at);
    // Where there is space, nothing is written behind the header: what lies there is loaded next,
    // and would wait.
    if packet.number_at > 3
        && let Some(([place, ..], four)) = packet.packet[..bytes].split_last_chunk_mut()
    {
        *four = partial::four(w128, unmasked, bytes - four.len());
        *place = first;
    } else if let Some(place) = packet.packet.first_chunk_mut() {
        w128.store(place, w128.beginning(unmasked, places, start));
    }
    let header = w128.beginning(unmasked, places, w128.number(0));
    packet.find_key(phase, number, bytes);
    if packet.verdict.is_ok() {
        one::<_, _, false>(width, packet, Some(header), again);
    }
}

/// The AES key that all have, if they are worth going together.
#[inline(always)]
fn common_key<'k, T>(all: &[T], key: fn(&T) -> &'k HeaderKey) -> Option<&'k MaskKey> {
    let first = key(all.get(FEW)?);
    let HeaderForm::Aes(common) = &first.0 else { return None };
    all.iter().all(|one| ptr::eq(key(one), first)).then_some(common)
}

/// Samples of one connection together, others one after the other: the processor takes up the next
/// while it waits for a round. Those of ChaCha20 come last, so that others do not wait for what it
/// needs.
#[inline(always)]
fn masks<W: Messages>(width: W, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    for samples in samples.chunks_mut(PACKETS) {
        if let Some(key) = common_key(samples, |sample| sample.0) {
            let mut places = [&samples[0].1; PACKETS];
            for (place, (_, sample)) in places.iter_mut().zip(&*samples) {
                *place = sample;
            }
            let masks = masks::batched(width, &key.aes, &places);
            for (sample, mask) in samples.iter_mut().zip(masks) {
                sample.1 = mask;
            }
            continue;
        }
        for sample in samples {
            match &sample.0.0 {
                HeaderForm::Aes(key) => {
                    let w128 = width.w128();
                    sample.1 = masks::single(w128, &key.aes, w128.load(&sample.1));
                }
                HeaderForm::ChaCha(_) => chacha = true,
                HeaderForm::Library(_) => Library.masks(slice::from_mut(sample)),
            }
        }
    }
    if chacha {
        width.chachas(samples);
    }
}
