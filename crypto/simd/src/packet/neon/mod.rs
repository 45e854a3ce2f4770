//! The backend of 64-bit ARM with the crypto extensions: registers of one block. All that is unsafe
//! here is calling code that needs features, which only those can do who have seen that they are
//! there, and loads and stores, which take references.

mod chacha;

use super::detected::{Neon, Vector};
use super::gcm256::hash::Sums;
use super::gcm256::stride::{self, Stride, Strides};
use super::gcm256::width::{Block, EIGHT, REVERSED, Width, instructions};
use std::arch::aarch64::*;

impl Neon {
    /// The cipher's S-box on a word's bytes.
    pub(crate) fn substitute(self, word: [u8; 4]) -> [u8; 4] {
        #[target_feature(enable = "aes")]
        fn run(word: [u8; 4]) -> [u8; 4] {
            // All columns are the same, so that rows may be shifted.
            let words = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(word)));
            let words = vaeseq_u8(words, vdupq_n_u8(0));
            vgetq_lane_u32::<0>(vreinterpretq_u32_u8(words)).to_le_bytes()
        }
        // SAFETY: `detect` has seen the feature.
        unsafe { run(word) }
    }

    instructions! {
        /// A block without memory in between.
        pub(crate) fn number(value: u128) -> Vector = pair(value as u64, (value >> 64) as u64);
    }

    /// A nonce and four zeros: an IV, its last eight bytes xored with a number, the lowest last.
    #[inline(always)]
    pub(crate) fn nonce(self, iv: u128, number: u64) -> Vector {
        self.number(iv ^ u128::from(number.swap_bytes()) << 32)
    }

    /// Each byte from where the order says, zero where that is behind the block.
    #[inline(always)]
    pub(crate) fn shuffle(self, value: Vector, order: &Block) -> Vector {
        let order = self.load(order);
        // SAFETY: every processor of this kind has the feature.
        unsafe { vqtbl1q_u8(value, order) }
    }

    #[inline(always)]
    pub(crate) fn and(self, value: Vector, mask: &Block) -> Vector {
        let mask = self.load(mask);
        // SAFETY: every processor of this kind has the feature.
        unsafe { vandq_u8(value, mask) }
    }

    instructions! {
        /// How many bytes of a header of so many, up to a block, come behind each place. Behind the
        /// header, it is negative.
        pub(crate) fn places(bytes: usize) -> Vector = places(bytes);
        /// The header that a block begins with, and zeros behind it. It ends with this number, in
        /// as many bytes as its first byte says: no address and no branch depends on these.
        pub(crate) fn header(start: Vector, places: Vector, number: u64) -> Vector = header(start, places, number);
        /// A header with its mask applied (RFC 9001 § 5.4.1). The bytes behind it are of no use any
        /// more.
        pub(crate) fn masked(header: Vector, mask: Vector, places: Vector) -> Vector = masked(header, mask, places);
        /// A header with its mask taken off, its first byte without it being known.
        pub(crate) fn unmasked(header: Vector, mask: Vector, first: u8, number_at: usize) -> Vector = unmasked(header, mask, first, number_at);
        /// The header that a block begins with, and what another has behind it.
        pub(crate) fn beginning(block: Vector, places: Vector, behind: Vector) -> Vector = beginning(block, places, behind);
    }
}

/// Where each byte is.
static EACH: Block = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Bits of the first byte.
static FIFTH: Block = [0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
static FIVE: Block = [0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Width for Neon {
    type Register = Vector;
    type Bytes = Block;
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn w128(self) -> Neon {
        self
    }

    #[inline(always)]
    fn split(bytes: &mut [u8]) -> (&mut [Block], &mut [u8]) {
        bytes.as_chunks_mut()
    }

    instructions! {
        fn load(bytes: &Block) -> Vector = vld1q_u8(bytes.as_ptr());
    }

    #[inline(always)]
    fn store(self, bytes: &mut Block, value: Vector) {
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn all(self, block: &Block) -> Vector {
        self.load(block)
    }

    #[inline(always)]
    fn blocks(self, blocks: &[Block]) -> Vector {
        self.load(&blocks[0])
    }

    #[inline(always)]
    fn powers(self, powers: &[Block; EIGHT], at: usize) -> Vector {
        self.load(&powers[at])
    }

    instructions! {
        fn cross_terms(cross_terms: &[[u64; 2]; EIGHT / 2], at: usize) -> Vector = vld1q_u8(cross_terms[at].as_ptr().cast());
    }

    #[inline(always)]
    fn lowest(self, block: Vector) -> Vector {
        block
    }

    #[inline(always)]
    fn join(self, _: Vector, high: Vector) -> Vector {
        high
    }

    #[inline(always)]
    fn low_block(self, value: Vector) -> Vector {
        value
    }

    #[inline(always)]
    fn high_block(self, value: Vector) -> Vector {
        value
    }

    instructions! {
        fn low_halves(a: Vector, b: Vector) -> Vector = low_halves(a, b);
        fn high_halves(a: Vector, b: Vector) -> Vector = high_halves(a, b);
    }

    #[inline(always)]
    fn multiply<const HALVES: i32>(self, a: Vector, b: Vector) -> Vector {
        // SAFETY: `detect` has seen the feature.
        unsafe { multiply::<HALVES>(a, b) }
    }

    instructions! {
        fn xor(a: Vector, b: Vector) -> Vector = veorq_u8(a, b);
    }

    #[inline(always)]
    fn reverse(self, value: Vector) -> Vector {
        self.shuffle(value, &REVERSED)
    }

    instructions! {
        fn swap(value: Vector) -> Vector = vextq_u8::<8>(value, value);
        fn round(state: Vector, key: Vector) -> Vector = round(state, key);
        fn last_round(state: Vector, key: Vector) -> Vector = last_round(state, key);
    }

    #[inline(always)]
    fn high_only(self, value: Vector) -> Vector {
        value
    }

    /// There is a register for each value, whatever the order; and where a round follows another,
    /// the compiler gives the key of the one to the instruction of the other.
    #[inline(always)]
    fn ordered(self, value: Vector) -> Vector {
        value
    }

    #[inline(always)]
    fn sum(self, value: Vector) -> Vector {
        value
    }
}

impl Strides for Neon {
    #[inline(always)]
    fn stride<const ROUNDS: usize>(self, stride: Stride<'_, Self>, sums: Sums<Self>) -> Sums<Self> {
        stride::plain::<_, ROUNDS>(self, stride, sums)
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn pair(low: u64, high: u64) -> Vector {
    vcombine_u8(vcreate_u8(low), vcreate_u8(high))
}

#[inline]
#[target_feature(enable = "neon")]
fn low_halves(a: Vector, b: Vector) -> Vector {
    vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)))
}

#[inline]
#[target_feature(enable = "neon")]
fn high_halves(a: Vector, b: Vector) -> Vector {
    vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)))
}

#[inline]
#[target_feature(enable = "aes")]
fn multiply<const HALVES: i32>(a: Vector, b: Vector) -> Vector {
    let (a, b) = (vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b));
    let a = if HALVES & 0x01 == 0 { vgetq_lane_u64::<0>(a) } else { vgetq_lane_u64::<1>(a) };
    let b = if HALVES & 0x10 == 0 { vgetq_lane_u64::<0>(b) } else { vgetq_lane_u64::<1>(b) };
    vreinterpretq_u8_p128(vmull_p64(a, b))
}

/// As the processors of the other kind do it: the key comes last.
#[inline]
#[target_feature(enable = "aes")]
fn round(state: Vector, key: Vector) -> Vector {
    veorq_u8(vaesmcq_u8(vaeseq_u8(state, vdupq_n_u8(0))), key)
}

#[inline]
#[target_feature(enable = "aes")]
fn last_round(state: Vector, key: Vector) -> Vector {
    veorq_u8(vaeseq_u8(state, vdupq_n_u8(0)), key)
}

#[inline]
#[target_feature(enable = "neon")]
fn places(bytes: usize) -> Vector {
    vsubq_u8(vdupq_n_u8((bytes as u8).wrapping_sub(1)), constant(&EACH))
}

#[inline]
#[target_feature(enable = "neon")]
fn header(start: Vector, places: Vector, number: u64) -> Vector {
    // From the header's end on, a number's bytes are counted, the lowest first; negative ones make
    // zeros.
    let number = vqtbl1q_u8(pair(number, 0), places);
    let last = vreinterpretq_s8_u8(last_of_number(start));
    vbslq_u8(vcgtq_s8(vreinterpretq_s8_u8(places), last), start, number)
}

/// How many bytes a number has, less one, in each place: the lowest bits of an unprotected header's
/// first byte.
#[inline]
#[target_feature(enable = "neon")]
fn last_of_number(header: Vector) -> Vector {
    vandq_u8(vdupq_laneq_u8::<0>(header), vdupq_n_u8(3))
}

#[inline]
#[target_feature(enable = "neon")]
fn masked(header: Vector, mask: Vector, places: Vector) -> Vector {
    // Four bits of a long header's first byte, five of a short one's.
    let long = vandq_u8(vshrq_n_u8::<3>(header), constant(&FIFTH));
    let bits = vandq_u8(mask, veorq_u8(long, constant(&FIVE)));
    let number = number_mask(mask, vsubq_u8(last_of_number(header), places));
    veorq_u8(header, veorq_u8(bits, number))
}

#[inline]
#[target_feature(enable = "neon")]
fn beginning(block: Vector, places: Vector, behind: Vector) -> Vector {
    vbslq_u8(vcltzq_s8(vreinterpretq_s8_u8(places)), behind, block)
}

#[inline]
#[target_feature(enable = "neon")]
fn constant(bytes: &'static Block) -> Vector {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn unmasked(header: Vector, mask: Vector, first: u8, number_at: usize) -> Vector {
    let order = vsubq_u8(constant(&EACH), vdupq_n_u8(number_at as u8));
    vsetq_lane_u8::<0>(first, veorq_u8(header, number_mask(mask, order)))
}

/// The mask of a number: the second byte of `mask` is for its first. The order is how many
/// bytes behind that each place is; before it they are negative, which makes zeros.
#[inline]
#[target_feature(enable = "neon")]
fn number_mask(mask: Vector, order: Vector) -> Vector {
    vqtbl1q_u8(vextq_u8::<1>(mask, vdupq_n_u8(0)), order)
}
