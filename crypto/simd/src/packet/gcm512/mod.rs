//! AES-GCM and header masks with AVX-512, VAES and VPCLMULQDQ.
//!
//! Four messages go together, a *lane* of 128 bits each in what they have one block of: the tag's
//! key stream, the block of additional data, the block of lengths, the reduction. Their data goes
//! in rows of registers of four blocks, flush right: a register's place from the end says which
//! powers of H its blocks are multiplied by, whatever the length.

// Functions that take whole messages are never inlined into each other: the compiler would assign
// registers in one of them as all the others let it.

macro_rules! features {
    ($($item:item)*) => {$(
        #[target_feature(
            enable = "avx512f,avx512bw,avx512vl,avx512vbmi,vaes,vpclmulqdq,aes,pclmulqdq,ssse3,sse4.1,bmi2"
        )]
        $item
    )*};
}

mod cipher;
mod detected;
mod hash;
mod headers;
mod interleaved;
mod keys;
mod masks;
mod register;
mod sequential;
mod single;
mod sizes;
mod stride;
mod uniform;

pub(crate) use detected::Gcm512;

use super::aead::{Open, Seal};
use super::backend::{self, Backend, headers_first};
use super::key::HeaderKey;
use super::message::Message;
use super::quic::{Phases, Protect, Unprotect};
use super::sizes::SAMPLE_BYTES;
use crate::aes::Rounds;
use keys::{rounds, same, same_rounds};
use masks::{masks, unmask};
use sizes::{LANES, QUADS};
use std::ptr;
use uniform::{Scratch, uniform_batch};

impl Backend for Gcm512 {
    fn seal(self, messages: &mut [Seal<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, true>(messages) };
    }

    fn open(self, messages: &mut [Open<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(messages) };
    }

    fn protect(self, packets: &mut [Protect<'_>]) {
        // SAFETY: `detect` has seen the features.
        let all = unsafe { run::<_, true>(packets) };
        if !all {
            backend::mask(self, packets, |packet| rounds(packet).is_none());
        }
    }

    fn unmask(self, packets: &mut [Unprotect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { unmask(self, packets) }
    }

    fn unprotect(self, packets: &mut [Unprotect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { unprotect(self, packets) }
    }

    fn open_packets(self, packets: &mut [Unprotect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(packets) };
    }

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        // SAFETY: `detect` has seen the features.
        unsafe { masks(self, samples) }
    }
}

features! {

/// Seals or opens messages. Says whether all keys were for this backend: the others' headers are
/// not masked.
#[inline]
fn run<'k, M: Message<'k>, const SEAL: bool>(messages: &mut [M]) -> bool {
    if let [message] = messages
        && let Some(rounds) = rounds(message)
    {
        one::<M, SEAL>(message, rounds);
        true
    } else {
        several::<M, SEAL>(messages)
    }
}

#[inline]
fn one<'k, M: Message<'k>, const SEAL: bool>(message: &mut M, rounds: Rounds) {
    match rounds {
        Rounds::Ten => single::run::<M, SEAL, 10>(message),
        Rounds::Fourteen => single::run::<M, SEAL, 14>(message),
    }
}

/// As many messages under one key at a time as there are, or four under keys of the same length.
#[inline(never)]
fn several<'k, M: Message<'k>, const SEAL: bool>(messages: &mut [M]) -> bool {
    let (mut at, mut all) = (0, true);
    while let [first, ..] = &mut messages[at..] {
        let Some(rounds) = rounds(first) else {
            first.library();
            (at, all) = (at + 1, false);
            continue;
        };
        let (key, header_key) = (first.key(), first.header_key());
        let same_keys = |other: &M| ptr::eq(other.key(), key) && same(other.header_key(), header_key);
        let (quads, _) = messages[at..].as_chunks_mut::<LANES>();
        at += match quads.iter().take_while(|quad| quad.iter().all(same_keys)).count() {
            0 => {
                if let Some((quad, next)) = messages[at..].split_first_chunk_mut::<LANES>()
                    && quad.iter().all(|message| self::rounds(message) == Some(rounds))
                {
                    match rounds {
                        Rounds::Ten => single::four::<M, SEAL, 10>(quad, next),
                        Rounds::Fourteen => single::four::<M, SEAL, 14>(quad, next),
                    }
                    LANES
                } else {
                    one::<M, SEAL>(&mut messages[at], rounds);
                    1
                }
            }
            number => {
                uniform_batches::<M, SEAL>(rounds, &mut quads[..number], false, &|_| ());
                LANES * number
            }
        };
    }
    all
}

/// Messages under one key, four at a time and more. `otherwise` gets packets whose headers have
/// their masks on and are not as they have to be.
#[inline]
fn uniform_batches<'k, M: Message<'k>, const SEAL: bool>(
    rounds: Rounds,
    quads: &mut [[M; LANES]],
    masked: bool,
    otherwise: &impl Fn(&mut [M]),
) {
    match quads.len() {
        1 => batches_of::<M, SEAL, 1>(rounds, quads, masked, otherwise),
        _ => batches_of::<M, SEAL, QUADS>(rounds, quads, masked, otherwise),
    }
}

/// Such messages, `G` times four at a time. `otherwise` is borrowed: were it dropped here, a panic's
/// way through would make the compiler forget what must not be inlined.
#[inline]
fn batches_of<'k, M: Message<'k>, const SEAL: bool, const G: usize>(
    rounds: Rounds,
    quads: &mut [[M; LANES]],
    masked: bool,
    otherwise: &impl Fn(&mut [M]),
) {
    let mut scratch = Scratch::new(masked);
    for quads in quads.chunks_mut(G) {
        let done = match rounds {
            Rounds::Ten => uniform_batch::<M, SEAL, 10, G>(quads, &mut scratch),
            Rounds::Fourteen => uniform_batch::<M, SEAL, 14, G>(quads, &mut scratch),
        };
        if !done {
            otherwise(quads.as_flattened_mut());
        }
    }
}

/// Where neighbours have the same keys, headers and payloads go together.
#[inline]
fn unprotect(backend: Gcm512, packets: &mut [Unprotect<'_>]) {
    if packets.len() < LANES {
        headers_first(backend, packets);
    } else {
        unprotect_several(backend, packets);
    }
}

#[inline(never)]
fn unprotect_several(backend: Gcm512, packets: &mut [Unprotect<'_>]) {
    // Packets from here on have no neighbours like them.
    let (mut from, mut at) = (0, 0);
    while let [first, ..] = &packets[at..] {
        let (header_key, Phases { current, phase, .. }) = (first.header_key, first.keys);
        let Some(rounds) = same_rounds(header_key, current.key()) else {
            at += 1;
            continue;
        };
        let same_keys = |other: &Unprotect<'_>| {
            ptr::eq(other.header_key, header_key)
                && ptr::eq(other.keys.current, current)
                && other.keys.phase == phase
        };
        let (quads, _) = packets[at..].as_chunks_mut::<LANES>();
        let number = quads.iter().take_while(|quad| quad.iter().all(same_keys)).count();
        if number == 0 {
            at += 1;
            continue;
        }
        let otherwise = |packets: &mut [_]| headers_first(backend, packets);
        uniform_batches::<_, false>(rounds, &mut quads[..number], true, &otherwise);
        headers_first(backend, &mut packets[from..at]);
        at += LANES * number;
        from = at;
    }
    headers_first(backend, &mut packets[from..]);
}

}
