//! AES-GCM and header masks in registers of one or two blocks, message by message: the processor takes up the next
//! while it waits for the end of one.

mod ends;
mod hash;
mod masks;
mod message;

use super::fetch;
use super::width::{Aesni, Avx2, Width};
use crate::aes::Rounds;
use crate::chacha::{self, Lanes};
use crate::packet::{
    AeadForm, HeaderForm, HeaderKey, Mask, MaskKey, Message, Open, POWERS, Parts, Protect, Room,
    SAMPLE_BYTES, Seal, Unprotect, mask,
};
use crate::portable::Library;
use core::{ptr, slice};

/// Packets whose payloads are sealed, and then whose headers are completed: so many that no step waits for what
/// the one before it has just stored in other pieces, so few that they are still in the cache.
const PACKETS: usize = 16;
/// Messages as long as this that have neighbours under their key, in bytes, are worth more powers of H than lie
/// beside it.
const NEIGHBOUR_BYTES: usize = 16 * POWERS;
/// So are lone messages as long as this, in bytes.
const LONE_BYTES: usize = 4096;
/// So few samples go one after the other.
const FEW: usize = 4;

/// A room, its features on in everything that is inlined into these functions.
macro_rules! room {
    ($width:ty, $features:literal) => {
        impl Room for $width {
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
                fn run(width: $width, packets: &mut [Protect<'_>]) -> bool {
                    protect(width, packets)
                }
                // SAFETY: `detect` has seen the features.
                if !unsafe { run(self, packets) } {
                    mask(self, packets, |packet| {
                        !matches!(packet.header_key.0, HeaderForm::Aes(_))
                    });
                }
            }

            fn open_packets(self, packets: &mut [Unprotect<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, packets: &mut [Unprotect<'_>]) {
                    all::<_, _, false>(width, packets);
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

room!(Aesni, "aes,pclmulqdq,ssse3,sse4.1");
room!(Avx2, "avx2,vaes,vpclmulqdq,aes,pclmulqdq");

/// Seals or opens one message after the other. The next key comes into the cache meanwhile.
#[inline(always)]
fn all<'k, W: Width, M: Message<'k>, const SEAL: bool>(width: W, messages: &mut [M]) {
    // Whether a neighbour has the key.
    let mut again = false;
    for at in 0..messages.len() {
        let [message, next @ ..] = &mut messages[at..] else { return };
        if let [next, ..] = next {
            again = ptr::eq(next.key(), message.key());
            if !again {
                fetch(next.key());
                if let Some(key) = next.header_key() {
                    fetch(key);
                }
            }
        }
        let AeadForm::Gcm(key) = &message.key().0 else {
            message.library();
            continue;
        };
        let nonce = message.nonce();
        let mut header = None;
        if let Some(packet) = message.header() {
            match packet.start() {
                Some((start, bytes)) => {
                    header = Some(width.narrow().header(start, bytes, Some(packet.number)));
                }
                None => packet.put_number(),
            }
        } else if let Some(packet) = message.opened()
            && let Some((start, bytes)) = packet.start()
        {
            header = Some(width.narrow().header(start, bytes, None));
        }
        let Parts { aad, data, .. } = message.parts();
        let many = data.len() >= if again { NEIGHBOUR_BYTES } else { LONE_BYTES };
        macro_rules! run {
            ($rounds:literal, $powers:expr) => {
                message::run::<W, $rounds, SEAL, _>(width, key, $powers, nonce, header, aad, data)
            };
        }
        let tag = match (key.aes.rounds, many) {
            (Rounds::Ten, false) => run!(10, &key.powers),
            (Rounds::Ten, true) => run!(10, width.narrow().many(key)),
            (Rounds::Fourteen, false) => run!(14, &key.powers),
            (Rounds::Fourteen, true) => run!(14, width.narrow().many(key)),
        };
        message.finish(&tag);
    }
}

/// Seals packets, and masks those headers whose keys are for this room. Says whether all are.
#[inline(always)]
fn protect<W: Width>(width: W, packets: &mut [Protect<'_>]) -> bool {
    let mut all_masked = true;
    for packets in packets.chunks_mut(PACKETS) {
        all::<_, _, true>(width, packets);
        if let Some(key) = common_key(packets, |packet| packet.header_key) {
            let mut samples = [packets[0].sample(); PACKETS];
            for (sample, packet) in samples.iter_mut().zip(&*packets) {
                *sample = packet.sample();
            }
            let masks = masks::together(width, &key.aes, &samples);
            for (packet, mask) in packets.iter_mut().zip(&masks) {
                packet.mask_numbered(Mask::new(mask));
            }
            continue;
        }
        for packet in packets {
            if let HeaderForm::Aes(key) = &packet.header_key.0 {
                let mask = masks::alone(width.narrow(), &key.aes, packet.sample());
                packet.mask_numbered(Mask::new(&mask));
            } else {
                packet.put_number();
                all_masked = false;
            }
        }
    }
    all_masked
}

/// The key that all have, if it is for this room and they are worth going together.
#[inline(always)]
fn common_key<'k, T>(all: &[T], key: fn(&T) -> &'k HeaderKey) -> Option<&'k MaskKey> {
    let first = key(all.get(FEW)?);
    match &first.0 {
        HeaderForm::Aes(mask) if all.iter().all(|one| ptr::eq(key(one), first)) => Some(mask),
        _ => None,
    }
}

/// Samples of one connection together, others one after the other: the processor takes up the next while it
/// waits for a round.
#[inline(always)]
fn masks<W: Width + Lanes>(width: W, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    for samples in samples.chunks_mut(PACKETS) {
        if let Some(key) = common_key(samples, |sample| sample.0) {
            let mut places = [&samples[0].1; PACKETS];
            for (place, (_, sample)) in places.iter_mut().zip(&*samples) {
                *place = sample;
            }
            let masks = masks::together(width, &key.aes, &places);
            for (sample, mask) in samples.iter_mut().zip(masks) {
                sample.1 = mask;
            }
            continue;
        }
        for sample in samples {
            match &sample.0.0 {
                HeaderForm::Aes(key) => {
                    sample.1 = masks::alone(width.narrow(), &key.aes, &sample.1);
                }
                HeaderForm::ChaCha(_) => chacha = true,
                HeaderForm::Library(_) => Library.masks(slice::from_mut(sample)),
            }
        }
    }
    if chacha {
        chacha::masks(width, samples);
    }
}
