//! ChaCha20 (RFC 8439 § 2.3) for header masks (RFC 9001 § 5.4.4): a block for each packet, each
//! under a key of its own, several at once in SIMD lanes. Only five bytes of a block are wanted.

use super::key::{HeaderForm, HeaderKey};
use super::sizes::SAMPLE_BYTES;
use zeroize::optimization_barrier;

/// "expand 32-byte k", in words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Samples that are worked on together: a lane each of the widest registers.
pub(crate) const SAMPLES: usize = 16;

/// A word of each sample's block.
pub(crate) type Words = [u32; SAMPLES];

/// Registers of 32-bit words: code that has such a value may use them.
pub(crate) trait Lanes: Copy {
    type Register: Copy;
    /// Words of a register, of which [`SAMPLES`] is a multiple.
    const LANES: usize;

    /// The words from `at` on.
    fn load(self, words: &Words, at: usize) -> Self::Register;
    /// Writes the words from `at` on.
    fn store(self, words: &mut Words, at: usize, value: Self::Register);
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// To the left.
    fn rotate<const LEFT: i32, const RIGHT: i32>(self, value: Self::Register) -> Self::Register;
}

/// Words of a state that are worked on together, in rounds by turns (§ 2.3).
const COLUMNS: [[usize; 4]; 4] = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
const DIAGONALS: [[usize; 4]; 4] = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/// Replaces each sample that has a ChaCha20 key by its mask. To be inlined where the registers may
/// be used.
#[inline(always)]
pub(crate) fn masks<L: Lanes>(lanes: L, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut state = [[0; SAMPLES]; 16];
    for (words, constant) in state.iter_mut().zip(CONSTANTS) {
        *words = [constant; SAMPLES];
    }
    for samples in samples.chunks_mut(SAMPLES) {
        let (mut places, mut number) = ([0; SAMPLES], 0);
        for (place, (key, sample)) in samples.iter().enumerate() {
            if let HeaderForm::ChaCha(key) = &key.0 {
                let words = key.0.as_chunks().0.iter().chain(sample.as_chunks().0);
                for (lanes, word) in state[CONSTANTS.len()..].iter_mut().zip(words) {
                    lanes[number] = u32::from_le_bytes(*word);
                }
                places[number] = place;
                number += 1;
            }
        }
        let [first, second] = match number {
            0 => continue,
            // A single block is not worth a wide register.
            1 => blocks(Scalar, &state, number),
            _ => blocks(lanes, &state, number),
        };
        for ((place, first), second) in places.into_iter().zip(first).zip(second).take(number) {
            // In one piece, since it is read in one.
            samples[place].1 = (u128::from(first) | u128::from(second) << 32).to_le_bytes();
        }
    }
    state = [[0; SAMPLES]; 16];
    optimization_barrier(&state);
}

/// The first two words of the first so many blocks.
#[inline(always)]
fn blocks<L: Lanes>(lanes: L, input: &[Words; 16], number: usize) -> [Words; 2] {
    let mut output = [[0; SAMPLES]; 2];
    for at in (0..number).step_by(L::LANES) {
        let [c0, c1] = [lanes.load(&input[0], at), lanes.load(&input[1], at)];
        let mut state = [c0; 16];
        for (register, words) in state.iter_mut().zip(input) {
            *register = lanes.load(words, at);
        }
        for _ in 0..9 {
            quarter_rounds(lanes, &mut state, COLUMNS);
            quarter_rounds(lanes, &mut state, DIAGONALS);
        }
        quarter_rounds(lanes, &mut state, COLUMNS);
        // The part of the last diagonals that the first two words depend on.
        for [a, b, c, d] in [DIAGONALS[0], DIAGONALS[1]] {
            step::<L, 16, 16>(lanes, &mut state, [a, b, d]);
            step::<L, 12, 20>(lanes, &mut state, [c, d, b]);
            state[a] = lanes.add(state[a], state[b]);
        }
        lanes.store(&mut output[0], at, lanes.add(state[0], c0));
        lanes.store(&mut output[1], at, lanes.add(state[1], c1));
    }
    output
}

/// Four quarter rounds (§ 2.1), step by step: none of them waits for itself.
#[inline(always)]
fn quarter_rounds<L: Lanes>(lanes: L, state: &mut [L::Register; 16], quarters: [[usize; 4]; 4]) {
    for [a, b, _, d] in quarters {
        step::<L, 16, 16>(lanes, state, [a, b, d]);
    }
    for [_, b, c, d] in quarters {
        step::<L, 12, 20>(lanes, state, [c, d, b]);
    }
    for [a, b, _, d] in quarters {
        step::<L, 8, 24>(lanes, state, [a, b, d]);
    }
    for [_, b, c, d] in quarters {
        step::<L, 7, 25>(lanes, state, [c, d, b]);
    }
}

/// a += b; d ^= a; d <<<= LEFT.
#[inline(always)]
fn step<L: Lanes, const LEFT: i32, const RIGHT: i32>(
    lanes: L,
    state: &mut [L::Register; 16],
    [a, b, d]: [usize; 3],
) {
    state[a] = lanes.add(state[a], state[b]);
    state[d] = lanes.rotate::<LEFT, RIGHT>(lanes.xor(state[d], state[a]));
}

/// One lane, on every processor.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Lanes for Scalar {
    type Register = u32;
    const LANES: usize = 1;

    #[inline(always)]
    fn load(self, words: &Words, at: usize) -> u32 {
        words[at]
    }

    #[inline(always)]
    fn store(self, words: &mut Words, at: usize, value: u32) {
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
    fn rotate<const LEFT: i32, const RIGHT: i32>(self, value: u32) -> u32 {
        value.rotate_left(LEFT as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::mask_key::ChaChaKey;

    /// RFC 9001 § A.5, in every lane.
    #[test]
    fn a_mask_is_that_of_the_standard() {
        let key = HeaderKey(HeaderForm::ChaCha(ChaChaKey([
            0x25, 0xa2, 0x82, 0xb9, 0xe8, 0x2f, 0x06, 0xf2, 0x1f, 0x48, 0x89, 0x17, 0xa4, 0xfc,
            0x8f, 0x1b, 0x73, 0x57, 0x36, 0x85, 0x60, 0x85, 0x97, 0xd0, 0xef, 0xcb, 0x07, 0x6b,
            0x0a, 0xb7, 0xa7, 0xa4,
        ])));
        let sample = 0x5e5c_d55c_41f6_9080_575d_7999_c25a_5bfb_u128.to_be_bytes();
        let mut samples = [(&key, sample); SAMPLES + 1];
        masks(Scalar, &mut samples);
        for (_, sample) in samples {
            assert!(sample.starts_with(&[0xae, 0xfe, 0xfe, 0x7d, 0x03]));
        }
    }
}
