//! A stride in the cipher and another in the hash.

use super::hash::Sums;
use super::width::{Block, EIGHT, STRIDE, Width};
use crate::aes::ROUND_KEYS_MAX;
use std::arch::asm;
use std::mem::MaybeUninit;

/// A stride's registers but for the last, which may be elsewhere.
pub(crate) type Most<W> = [<W as Width>::Bytes; STRIDE - 1];

/// The values that a stride is worked on with.
pub(crate) struct Stride<'l, W: Width> {
    pub(crate) round_keys: &'l [Block; ROUND_KEYS_MAX],
    /// The counter blocks and the first round key, xored: what they have in common, and what each
    /// has.
    pub(crate) base: W::Register,
    pub(crate) counters: &'l [Block],
    /// The data that is encrypted or decrypted in place.
    pub(crate) data: (&'l mut Most<W>, &'l mut W::Bytes),
    /// The text that is hashed, as it is sent: if nothing else, then the data as they are before.
    pub(crate) hashed: Option<(&'l Most<W>, &'l W::Bytes)>,
    /// The powers that the hashed blocks meet.
    pub(crate) powers: &'l [[Block; EIGHT]],
    pub(crate) cross_terms: &'l [[[u64; 2]; EIGHT / 2]],
    /// To be added to the second of them, reversed.
    pub(crate) carry: W::Register,
}

/// A width with an order of instructions for a stride.
pub(crate) trait Strides: Width {
    /// Encrypts or decrypts a stride, and adds the products of the hashed one to the sums.
    fn stride<const ROUNDS: usize>(self, stride: Stride<'_, Self>, sums: Sums<Self>) -> Sums<Self>;
}

/// A register in memory, whose address is given away. A function that has one keeps its stack aligned
/// for all it moves there: else each call of two has them across two lines of the cache.
#[inline(always)]
pub(crate) fn align_stack() {
    #[repr(align(32))]
    struct Register([MaybeUninit<u8>; 32]);
    let register = Register([MaybeUninit::uninit(); 32]);
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", in(reg) &raw const register.0, options(nostack, preserves_flags)) };
}

/// A stride in the compiler's order: for processors that have a register for each value.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn plain<W: Width, const ROUNDS: usize>(
    width: W,
    stride: Stride<'_, W>,
    mut sums: Sums<W>,
) -> Sums<W> {
    let Stride { round_keys, base, counters, data: (data, data_end), hashed, .. } = stride;
    let (most, last) = hashed.unwrap_or((data, data_end));
    let mut hashed = [width.load(last); STRIDE];
    for (register, bytes) in hashed.iter_mut().zip(most) {
        *register = width.load(bytes);
    }
    let second = &mut hashed[1 / W::BLOCKS];
    *second = width.xor(*second, width.reverse(stride.carry));
    let mut states = [base; STRIDE];
    for (state, counters) in states.iter_mut().zip(counters.chunks_exact(W::BLOCKS)) {
        *state = width.xor(base, width.blocks(counters));
    }
    let half = W::REGISTERS / 2;
    for (round, key) in round_keys[1..ROUNDS].iter().enumerate() {
        let key = width.all(key);
        for state in &mut states {
            *state = width.round(*state, key);
        }
        // A pair beside every second round.
        let pair = round / 2;
        if round % 2 == 0 && pair < STRIDE / 2 {
            let (eight, at) = (pair / half, pair % half);
            let first = eight * W::REGISTERS + at;
            let eight = (&stride.powers[eight], &stride.cross_terms[eight]);
            sums = sums.add_pair(width, eight, at, [hashed[first], hashed[first + half]]);
        }
    }
    let key = width.all(&round_keys[ROUNDS]);
    for (state, bytes) in states.into_iter().zip(data.iter_mut().chain([data_end])) {
        let output = width.last_round(state, width.xor(key, width.load(bytes)));
        width.store(bytes, output);
    }
    sums
}
