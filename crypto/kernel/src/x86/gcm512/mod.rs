//! AES-GCM and header masks with AVX-512, VAES and VPCLMULQDQ.
//!
//! Four messages go together, a *lane* of 128 bits each in what they have one block of: the tag's key
//! stream, the block of additional data, the block of lengths, the reduction. Their data goes in *rows* of
//! registers of four blocks, flush right: a register's place from the end says which powers of H its
//! blocks are multiplied by, whatever the length.

macro_rules! features {
    ($($item:item)*) => {$(
        #[target_feature(
            enable = "avx512f,avx512bw,avx512vl,vaes,vpclmulqdq,aes,pclmulqdq,ssse3,sse4.1,bmi2"
        )]
        $item
    )*};
}

mod columns;
mod group;
mod hash;
mod lot;
mod masks;
mod register;
mod row;
mod single;

use crate::aes::Rounds;
use crate::packet::{
    AeadForm, GcmKey, HeaderKey, Message, Open, POWERS, Protect, Room, SAMPLE_BYTES, Seal,
    Unprotect,
};
use core::ptr;
use group::group_of;
use masks::masks;
use single::{short, together};

/// Bytes of a block.
const BLOCK: usize = 16;
/// Messages that go together, and blocks of a register.
const LANES: usize = 4;
/// Messages under one key that go together: so many that the latency of the cipher and of the hash's end
/// does not show.
const TOGETHER: usize = 16;
/// Registers that go through the cipher together: so many that its latency does not show.
const LOT: usize = 4;
/// Most registers whose counters have one byte.
const COLUMNS_MAX: usize = 63;
/// Registers between one reduction and the next.
const CHUNK: usize = POWERS / LANES;

/// That the features are there: whoever has one may call what needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gcm512(());

impl Gcm512 {
    pub(crate) fn detect() -> Option<Self> {
        extern crate std;
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("vaes")
            && std::is_x86_feature_detected!("vpclmulqdq")
            && std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("bmi2");
        there.then_some(Self(()))
    }
}

impl Room for Gcm512 {
    fn seal(self, messages: &mut [Seal<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, true>(messages) }
    }

    fn open(self, messages: &mut [Open<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(messages) }
    }

    fn seal_packets(self, packets: &mut [Protect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, true>(packets) }
    }

    fn open_packets(self, packets: &mut [Unprotect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(packets) }
    }

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        // SAFETY: `detect` has seen the features.
        unsafe { masks(self, samples) }
    }
}

features! {

/// Four messages at a time, as long as their keys have the same length.
fn run<'k, M: Message<'k>, const SEAL: bool>(messages: &mut [M]) {
    let mut at = 0;
    while let [first, ..] = &mut messages[at..] {
        let key = first.key();
        let Some(rounds) = rounds(first) else {
            first.library();
            at += 1;
            continue;
        };
        let alike = messages[at..].iter().take(TOGETHER);
        let alike = alike.take_while(|message| ptr::eq(message.key(), key)).count();
        if alike == TOGETHER
            && let Some(group) = messages[at..].as_chunks_mut().0.first_chunk_mut()
        {
            match rounds {
                Rounds::Ten => group_of::<M, SEAL, 10, { TOGETHER / LANES }>(group),
                Rounds::Fourteen => group_of::<M, SEAL, 14, { TOGETHER / LANES }>(group),
            }
            at += TOGETHER;
        } else if alike >= LANES
            && let Some(group) = messages[at..].as_chunks_mut().0.first_chunk_mut()
        {
            match rounds {
                Rounds::Ten => group_of::<M, SEAL, 10, 1>(group),
                Rounds::Fourteen => group_of::<M, SEAL, 14, 1>(group),
            }
            at += LANES;
        } else if let Some((group, next)) = messages[at..].split_first_chunk_mut::<LANES>()
            && group.iter().all(|message| self::rounds(message) == Some(rounds))
        {
            match rounds {
                Rounds::Ten => together::<M, SEAL, 10, LANES>(group, next),
                Rounds::Fourteen => together::<M, SEAL, 14, LANES>(group, next),
            }
            at += LANES;
        } else {
            let (alone, next) = messages[at..].split_at_mut(1);
            let Some(alone) = alone.first_chunk_mut() else { return };
            match (rounds, alone) {
                (Rounds::Ten, [short]) if (1..=64).contains(&short.size()) => {
                    self::short::<M, SEAL, 10>(short)
                }
                (Rounds::Fourteen, [short]) if (1..=64).contains(&short.size()) => {
                    self::short::<M, SEAL, 14>(short)
                }
                (Rounds::Ten, alone) => together::<M, SEAL, 10, 1>(alone, next),
                (Rounds::Fourteen, alone) => together::<M, SEAL, 14, 1>(alone, next),
            }
            at += 1;
        }
    }
}

/// The length of the key, if it is for this room.
#[inline]
fn rounds<'k, M: Message<'k>>(message: &M) -> Option<Rounds> {
    gcm(message).map(|key| key.aes.rounds)
}

/// The key, if it is for this room.
#[inline]
fn gcm<'k, M: Message<'k>>(message: &M) -> Option<&'k GcmKey> {
    match &message.key().0 {
        AeadForm::Gcm(key) => Some(key),
        AeadForm::Library(_) => None,
    }
}

}
