//! CBC and SHA-1 at the same time: beside every round of the hash stand some of the cipher, which
//! use other parts of the processor and would else wait for each other.
//!
//! A step of 16 lanes is some 840 operations on whole registers for the hash and 180 for the
//! cipher. A processor that does two a cycle (Zen 4) needs at least 510 cycles; it was seen to take
//! 660. The difference is lost in its units: rotations and the cipher's rounds, 380 together, have
//! two of the four, and additions are given to all four without regard to that.

use super::cbc;
use super::sha::{self, CHOOSE, MAJORITY, XOR3, add, sha1_block, xor3};
use crate::cbc::hash::BLOCK_BYTES;
use crate::cbc::lanes::{BLOCK_BYTES as TEXT_BYTES, Chains, LANES, Lane, States};
use crate::x86::{ordered, store};
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::ptr;
use zeroize::optimization_barrier;

/// See [`Backend::stitch`](crate::cbc::backend::Backend::stitch).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn run<const ROUNDS: usize>(
    chains: &mut Chains,
    states: &mut States,
    lanes: &mut [Lane<'_>; LANES],
    steps: usize,
) {
    let Chains { round_keys, last } = chains;
    let mut chain = cbc::get(last);
    let mut state = sha::get::<5>(states);
    let mut idle = [[0; BLOCK_BYTES]; LANES];
    let mut cursors = Cursors::new(lanes, &mut idle, steps);
    // The blocks to encrypt next and those encrypted last, lanes side by side: bringing blocks there
    // and back one by one is no work for the units that compute. There are two of each, lest a wide
    // load has to wait for what was just stored in pieces.
    let (mut texts, mut results) = ([[[0; TEXT_BYTES]; LANES]; 2], [[[0; TEXT_BYTES]; LANES]; 2]);
    for (lane, text) in texts[0].iter_mut().enumerate() {
        *text = cursors.text(lane, 0);
    }
    for _ in 0..steps {
        let mut hashed = [&[0; BLOCK_BYTES]; LANES];
        for (hashed, place) in hashed.iter_mut().zip(cursors.hash) {
            // SAFETY: see `Cursors`; no code writes there while this reference is used.
            *hashed = unsafe { &*place };
        }
        let mut w = sha::message::<1>(hashed);
        // Twenty rounds of the hash for each block of the cipher, ten for each half of the lanes.
        // In sixteen of them a lane's next block is fetched, and its last one taken away.
        macro_rules! cipher {
            ($t:expr) => {
                let (block, lane, slot, half) = ($t / 20, $t % 20, $t % 20 / 2, $t % 2);
                if lane < LANES {
                    texts[(block + 1) % 2][lane] = cursors.text(lane, block + 1);
                    if block > 0 {
                        cursors.put(lane, block - 1, results[(block - 1) % 2][lane]);
                    }
                }
                for at in 2 * half..2 * half + 2 {
                    if slot == 0 {
                        let first = cbc::get(&round_keys[0])[at];
                        chain[at] = xor3(chain[at], cbc::get(&texts[block % 2])[at], first);
                    }
                    for round in slot * ROUNDS / 10 + 1..=(slot + 1) * ROUNDS / 10 {
                        let key = cbc::get(&round_keys[round])[at];
                        chain[at] = ordered(if round < ROUNDS {
                            _mm512_aesenc_epi128(chain[at], key)
                        } else {
                            _mm512_aesenclast_epi128(chain[at], key)
                        });
                    }
                    if slot == 9 {
                        let bytes = results[block % 2].as_flattened_mut().as_chunks_mut().0;
                        store(&mut bytes[at], chain[at]);
                    }
                }
            };
        }
        sha1_block!(state, w, cipher);
        for (lane, text) in results[1].into_iter().enumerate() {
            cursors.put(lane, 3, text);
        }
        cursors.advance();
    }
    texts = [[[0; TEXT_BYTES]; LANES]; 2];
    optimization_barrier(&texts);
    cbc::put(last, chain);
    sha::put(states, state);
}

/// Where the lanes are in their messages: always at 64 bytes of a message, or of the place for idle
/// lanes, that are borrowed for as long as this lives. Pointers, since what is hashed and what is
/// encrypted are parts of one message, and checking every step would cost as much as the cipher.
struct Cursors<'a> {
    hash: [*const [u8; BLOCK_BYTES]; LANES],
    encrypt: [*mut [u8; BLOCK_BYTES]; LANES],
    /// The bytes that a step adds to both: 0 for an idle lane.
    stride: [usize; LANES],
    /// Steps from the first to the last, less those that were made.
    ahead: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> Cursors<'a> {
    /// For so many steps; a lane that has less is idle, and reads and writes its place in `idle`.
    fn new(
        lanes: &'a mut [Lane<'_>; LANES],
        idle: &'a mut [[u8; BLOCK_BYTES]; LANES],
        steps: usize,
    ) -> Self {
        let steps = steps.max(1);
        let mut cursors = Self {
            hash: [ptr::null(); LANES],
            encrypt: [ptr::null_mut(); LANES],
            stride: [0; LANES],
            ahead: steps - 1,
            borrowed: PhantomData,
        };
        for (at, (lane, idle)) in lanes.iter_mut().zip(idle).enumerate() {
            if let Some((message, hash, encrypt)) = lane.places(steps) {
                let base = message.as_mut_ptr();
                cursors.hash[at] = base.wrapping_add(hash).cast();
                cursors.encrypt[at] = base.wrapping_add(encrypt).cast();
                cursors.stride[at] = BLOCK_BYTES;
            } else {
                cursors.encrypt[at] = idle;
                cursors.hash[at] = cursors.encrypt[at];
            }
        }
        cursors
    }

    /// A block of what a lane encrypts in this step, or of the next step's the first. After the
    /// last step that is any.
    #[inline]
    fn text(&self, lane: usize, block: usize) -> [u8; TEXT_BYTES] {
        let next = if block == 4 && self.ahead > 0 { self.stride[lane] } else { 0 };
        let place = self.encrypt[lane].wrapping_byte_add(next);
        // SAFETY: see `Cursors`; there is a step ahead, and no code writes there while this is read.
        let bytes = unsafe { &*place };
        bytes.as_chunks().0[block % 4]
    }

    /// A block that a lane encrypted in this step, back to its place.
    #[inline]
    fn put(&mut self, lane: usize, block: usize, text: [u8; TEXT_BYTES]) {
        // SAFETY: see `Cursors`; while this reference is used there is no other.
        let bytes = unsafe { &mut *self.encrypt[lane] };
        bytes.as_chunks_mut().0[block] = text;
    }

    /// To the next step, if it is not the last.
    #[inline]
    fn advance(&mut self) {
        let Some(ahead) = self.ahead.checked_sub(1) else { return };
        self.ahead = ahead;
        for at in 0..LANES {
            self.hash[at] = self.hash[at].wrapping_byte_add(self.stride[at]);
            self.encrypt[at] = self.encrypt[at].wrapping_byte_add(self.stride[at]);
        }
    }
}
