//! ChaCha20 (RFC 8439 § 2.3) for header masks (RFC 9001 § 5.4.4): a block for each packet, each under
//! a key of its own, several at once in lanes. Only five bytes of a block are wanted.

use crate::packet::{HeaderForm, HeaderKey, SAMPLE_BYTES};
use core::array;
use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

/// A key for header masks, in words. Wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct ChaChaKey([u32; 8]);

/// "expand 32-byte k", in words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

impl ChaChaKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let words = key.as_chunks().0;
        Self(array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_le_bytes(*word))))
    }
}

/// Samples that are worked on together: a lane each of the widest registers.
const SAMPLES: usize = 16;

/// A word of each sample.
pub(crate) type Words = [u32; SAMPLES];

/// Registers of words: whoever has such a value may use them.
pub(crate) trait Lanes: Copy {
    type Register: Copy;
    /// Words of a register, of which 16 are a multiple.
    const LANES: usize;

    /// As many words as a register has, from this one on.
    fn get(self, words: &Words, at: usize) -> Self::Register;
    fn put(self, words: &mut Words, at: usize, value: Self::Register);
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// To the left, by 16, 12, 8 or 7 bits.
    fn rotate<const BITS: i32>(self, value: Self::Register) -> Self::Register;
}

/// A register for each word.
type State<L> = [<L as Lanes>::Register; 16];

/// The masks of those samples that have a key of this kind, wherever they lie, in the samples'
/// places. To be inlined where the registers may be used.
#[inline(always)]
pub(crate) fn masks<L: Lanes>(lanes: L, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let none = ChaChaKey([0; 8]);
    for samples in samples.chunks_mut(SAMPLES) {
        let (mut keys, mut blocks) = ([&none; SAMPLES], [[0; SAMPLE_BYTES]; SAMPLES]);
        let mut number = 0;
        for (key, sample) in &*samples {
            if let HeaderForm::ChaCha(key) = &key.0 {
                (keys[number], blocks[number]) = (key, *sample);
                number += 1;
            }
        }
        match number {
            0 => continue,
            // A lone block is not worth a wide register.
            1 => begin(Lone, &keys[..1], &mut blocks[..1]),
            _ => begin(lanes, &keys[..number], &mut blocks[..number]),
        }
        let mut blocks = blocks.into_iter();
        for (key, sample) in samples {
            if let HeaderForm::ChaCha(_) = &key.0
                && let Some(block) = blocks.next()
            {
                *sample = block;
            }
        }
    }
}

/// Puts the first 8 bytes of each sample's block in the sample's place; at most [`SAMPLES`].
#[inline(always)]
fn begin<L: Lanes>(lanes: L, keys: &[&ChaChaKey], samples: &mut [[u8; SAMPLE_BYTES]]) {
    let mut words = [[0; SAMPLES]; 16];
    for (words, constant) in words.iter_mut().zip(CONSTANTS) {
        *words = [constant; SAMPLES];
    }
    for (lane, (key, sample)) in keys.iter().zip(&*samples).enumerate() {
        for at in 0..8 {
            words[4 + at][lane] = key.0[at];
        }
        // Counter and nonce.
        for (at, word) in sample.as_chunks().0.iter().enumerate() {
            words[12 + at][lane] = u32::from_le_bytes(*word);
        }
    }
    for at in (0..samples.len()).step_by(L::LANES) {
        let [first, second] = block(lanes, &words, at);
        lanes.put(&mut words[0], at, first);
        lanes.put(&mut words[1], at, second);
    }
    for (lane, sample) in samples.iter_mut().enumerate() {
        for (to, words) in sample.as_chunks_mut().0.iter_mut().zip(&words).take(2) {
            *to = words[lane].to_le_bytes();
        }
    }
    words[4..].as_flattened_mut().fill(0);
    optimization_barrier(&words);
}

/// The first two words of a block in every lane.
#[inline(always)]
fn block<L: Lanes>(lanes: L, words: &[Words; 16], at: usize) -> [L::Register; 2] {
    let first = lanes.get(&words[0], at);
    let mut state: State<L> = [first; 16];
    for (state, words) in state.iter_mut().zip(words) {
        *state = lanes.get(words, at);
    }
    for _ in 0..10 {
        quarter(lanes, &mut state, [0, 4, 8, 12]);
        quarter(lanes, &mut state, [1, 5, 9, 13]);
        quarter(lanes, &mut state, [2, 6, 10, 14]);
        quarter(lanes, &mut state, [3, 7, 11, 15]);
        quarter(lanes, &mut state, [0, 5, 10, 15]);
        quarter(lanes, &mut state, [1, 6, 11, 12]);
        quarter(lanes, &mut state, [2, 7, 8, 13]);
        quarter(lanes, &mut state, [3, 4, 9, 14]);
    }
    [lanes.add(state[0], first), lanes.add(state[1], lanes.get(&words[1], at))]
}

/// A quarter round (§ 2.1).
#[inline(always)]
fn quarter<L: Lanes>(lanes: L, state: &mut State<L>, [a, b, c, d]: [usize; 4]) {
    step::<L, 16>(lanes, state, [a, b, d]);
    step::<L, 12>(lanes, state, [c, d, b]);
    step::<L, 8>(lanes, state, [a, b, d]);
    step::<L, 7>(lanes, state, [c, d, b]);
}

/// a += b; d ^= a; d <<<= BITS.
#[inline(always)]
fn step<L: Lanes, const BITS: i32>(lanes: L, state: &mut State<L>, [a, b, d]: [usize; 3]) {
    state[a] = lanes.add(state[a], state[b]);
    state[d] = lanes.rotate::<BITS>(lanes.xor(state[d], state[a]));
}

/// One lane, everywhere.
#[derive(Clone, Copy)]
pub(crate) struct Lone;

impl Lanes for Lone {
    type Register = u32;
    const LANES: usize = 1;

    #[inline(always)]
    fn get(self, words: &Words, at: usize) -> u32 {
        words[at]
    }

    #[inline(always)]
    fn put(self, words: &mut Words, at: usize, value: u32) {
        words[at] = value;
    }

    #[inline(always)]
    fn add(self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn xor(self, a: u32, b: u32) -> u32 {
        a ^ b
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, value: u32) -> u32 {
        value.rotate_left(BITS as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001 § A.5, in every lane.
    #[test]
    fn a_mask_is_that_of_the_standard() {
        let key = HeaderKey(HeaderForm::ChaCha(ChaChaKey::new(&[
            0x25, 0xa2, 0x82, 0xb9, 0xe8, 0x2f, 0x06, 0xf2, 0x1f, 0x48, 0x89, 0x17, 0xa4, 0xfc,
            0x8f, 0x1b, 0x73, 0x57, 0x36, 0x85, 0x60, 0x85, 0x97, 0xd0, 0xef, 0xcb, 0x07, 0x6b,
            0x0a, 0xb7, 0xa7, 0xa4,
        ])));
        let sample = 0x5e5c_d55c_41f6_9080_575d_7999_c25a_5bfb_u128.to_be_bytes();
        let mut samples = [(&key, sample); SAMPLES + 1];
        masks(Lone, &mut samples);
        for (_, sample) in samples {
            assert!(sample.starts_with(&[0xae, 0xfe, 0xfe, 0x7d, 0x03]));
        }
    }
}
