//! ChaCha20 (RFC 8439 § 2.3) for header masks (RFC 9001 § 5.4.4): a block for each packet, each under
//! a key of its own, several at once in lanes. Only five bytes of a block are wanted.

use crate::packet::{HeaderForm, HeaderKey, SAMPLE_BYTES};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Four words, little-endian: half a key, or counter and nonce.
pub(crate) type Block = [u8; SAMPLE_BYTES];

/// A key for header masks, in halves. Wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct ChaChaKey(pub(crate) [Block; 2]);

/// "expand 32-byte k", in words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

impl ChaChaKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let mut halves = [[0; SAMPLE_BYTES]; 2];
        halves.as_flattened_mut().copy_from_slice(key);
        Self(halves)
    }
}

/// Samples that are worked on together: a lane each of the widest registers.
pub(crate) const SAMPLES: usize = 16;

/// A word of each sample.
pub(crate) type Words = [u32; SAMPLES];

/// Registers of words: whoever has such a value may use them.
pub(crate) trait Lanes: Copy {
    type Register: Copy;
    /// Words of a register, of which 16 are a multiple.
    const LANES: usize;

    /// The same word in every lane.
    fn all(self, word: u32) -> Self::Register;
    /// A block for each lane, from this one on, word by word.
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [Self::Register; 4];
    fn put(self, words: &mut Words, at: usize, value: Self::Register);
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// To the left, by 16, 12, 8 or 7 bits.
    fn rotate<const BITS: i32>(self, value: Self::Register) -> Self::Register;
}

/// Words of a state that are worked on together, in rounds by turns (§ 2.3).
const COLUMNS: [[usize; 4]; 4] = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
const DIAGONALS: [[usize; 4]; 4] = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/// A register for each word.
type State<L> = [<L as Lanes>::Register; 16];

/// What a lane's state is made of besides the constants: both halves of its key, and its sample.
type Inputs<'a> = [[&'a Block; SAMPLES]; 3];

/// The masks of those samples that have a key of this kind, wherever they lie, in the samples'
/// places. To be inlined where the registers may be used.
#[inline(always)]
pub(crate) fn masks<L: Lanes>(lanes: L, samples: &mut [(&HeaderKey, Block)]) {
    for samples in samples.chunks_mut(SAMPLES) {
        let mut inputs: Inputs<'_> = [[&[0; SAMPLE_BYTES]; SAMPLES]; 3];
        let (mut places, mut number) = ([0; SAMPLES], 0);
        for (place, (key, sample)) in samples.iter().enumerate() {
            if let HeaderForm::ChaCha(ChaChaKey([low, high])) = &key.0 {
                let [lows, highs, samples] = &mut inputs;
                (lows[number], highs[number], samples[number]) = (low, high, sample);
                places[number] = place;
                number += 1;
            }
        }
        let mut words = [[0; SAMPLES]; 2];
        match number {
            0 => continue,
            // A lone block is not worth a wide register.
            1 => blocks(Lone, &inputs, number, &mut words),
            _ => blocks(lanes, &inputs, number, &mut words),
        }
        let [first, second] = words;
        for ((place, first), second) in places.into_iter().zip(first).zip(second).take(number) {
            samples[place].1 = mask_of(first, second);
        }
    }
}

/// The masks of the first so many samples, which have one key. To be inlined where the registers may be used.
#[inline(always)]
pub(crate) fn together<L: Lanes>(
    lanes: L,
    ChaChaKey([low, high]): &ChaChaKey,
    samples: &[&Block; SAMPLES],
    number: usize,
) -> [Block; SAMPLES] {
    let halves = [same(lanes, low), same(lanes, high)];
    let mut words = [[0; SAMPLES]; 2];
    for at in (0..number).step_by(L::LANES) {
        let [first, second] = first_words(lanes, halves, lanes.words(samples, at));
        lanes.put(&mut words[0], at, first);
        lanes.put(&mut words[1], at, second);
    }
    let mut masks = [[0; SAMPLE_BYTES]; SAMPLES];
    for ((mask, first), second) in masks.iter_mut().zip(words[0]).zip(words[1]) {
        *mask = mask_of(first, second);
    }
    masks
}

/// The four words of a block, each in every lane.
#[inline(always)]
fn same<L: Lanes>(lanes: L, block: &Block) -> [L::Register; 4] {
    let [a, b, c, d] = Lone.words(&[block; SAMPLES], 0);
    [lanes.all(a), lanes.all(b), lanes.all(c), lanes.all(d)]
}

/// A mask that begins with these words, in one piece, since it will be read so.
#[inline(always)]
fn mask_of(first: u32, second: u32) -> Block {
    (u128::from(first) | u128::from(second) << 32).to_le_bytes()
}

/// The first two words of so many samples' blocks.
#[inline(always)]
fn blocks<L: Lanes>(lanes: L, inputs: &Inputs<'_>, number: usize, words: &mut [Words; 2]) {
    for at in (0..number).step_by(L::LANES) {
        let [first, second] = block(lanes, inputs, at);
        lanes.put(&mut words[0], at, first);
        lanes.put(&mut words[1], at, second);
    }
}

/// The first two words of a block in every lane.
#[inline(always)]
fn block<L: Lanes>(lanes: L, [lows, highs, samples]: &Inputs<'_>, at: usize) -> [L::Register; 2] {
    let halves = [lanes.words(lows, at), lanes.words(highs, at)];
    first_words(lanes, halves, lanes.words(samples, at))
}

/// The first two words of a block, of both halves of its key, and of counter and nonce.
#[inline(always)]
pub(crate) fn first_words<L: Lanes>(
    lanes: L,
    [[k0, k1, k2, k3], [k4, k5, k6, k7]]: [[L::Register; 4]; 2],
    [n0, n1, n2, n3]: [L::Register; 4],
) -> [L::Register; 2] {
    let [c0, c1, c2, c3] = CONSTANTS;
    let (c0, c1, c2, c3) = (lanes.all(c0), lanes.all(c1), lanes.all(c2), lanes.all(c3));
    let mut state = [c0, c1, c2, c3, k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2, n3];
    for _ in 0..9 {
        quarters(lanes, &mut state, COLUMNS);
        quarters(lanes, &mut state, DIAGONALS);
    }
    quarters(lanes, &mut state, COLUMNS);
    // Of the last diagonals, what the first two words depend on.
    for [a, b, c, d] in [DIAGONALS[0], DIAGONALS[1]] {
        step::<L, 16>(lanes, &mut state, [a, b, d]);
        step::<L, 12>(lanes, &mut state, [c, d, b]);
        state[a] = lanes.add(state[a], state[b]);
    }
    [lanes.add(state[0], c0), lanes.add(state[1], c1)]
}

/// Four quarter rounds (§ 2.1), step by step: none of them waits for itself.
#[inline(always)]
fn quarters<L: Lanes>(lanes: L, state: &mut State<L>, quarters: [[usize; 4]; 4]) {
    for [a, b, _, d] in quarters {
        step::<L, 16>(lanes, state, [a, b, d]);
    }
    for [_, b, c, d] in quarters {
        step::<L, 12>(lanes, state, [c, d, b]);
    }
    for [a, b, _, d] in quarters {
        step::<L, 8>(lanes, state, [a, b, d]);
    }
    for [_, b, c, d] in quarters {
        step::<L, 7>(lanes, state, [c, d, b]);
    }
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
    fn all(self, word: u32) -> u32 {
        word
    }

    #[inline(always)]
    fn words(self, blocks: &[&Block; SAMPLES], at: usize) -> [u32; 4] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *blocks[at];
        [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]].map(u32::from_le_bytes)
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
