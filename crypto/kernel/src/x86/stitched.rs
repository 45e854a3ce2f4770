//! CBC and SHA-1 at the same time: beside every round of the hash stand some of the cipher, which
//! use other parts of the processor and would else wait for each other.
//!
//! A step of 16 lanes is some 840 operations on whole registers for the hash and 240 for the cipher. A
//! processor that does two a cycle (Zen 4) needs at least 540 cycles; it was seen to take 700, and
//! 870 for one after the other. What is lost is lost where rotations and additions want the same unit.

use super::cbc::{self, WIDTH};
use super::sha::{self, CHOOSE, MAJORITY, XOR3, add, opaque, sha1_block, xor3};
use crate::cbc::Chains;
use crate::hmac::BLOCK_BYTES;
use crate::kernel::{LANES, States};
use crate::stitch::Lane;
use core::arch::x86_64::*;
use core::marker::PhantomData;
use core::ptr;

/// See [`Room::stitch`](crate::kernel::Room::stitch).
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
    for _ in 0..steps {
        let mut hashed = [&[0; BLOCK_BYTES]; LANES];
        for (hashed, place) in hashed.iter_mut().zip(cursors.hash) {
            // SAFETY: see `Cursors`; nobody writes while this reference is used.
            *hashed = unsafe { &*place };
        }
        let mut w = sha::message::<1>(hashed);
        // Twenty rounds of the hash for each block of the cipher, ten for each half of the lanes.
        macro_rules! cipher {
            ($t:expr) => {
                let (block, slot, half) = ($t / 20, $t % 20 / 2, $t % 2);
                for at in 2 * half..2 * half + 2 {
                    if slot == 0 {
                        let first = cbc::get(&round_keys[0])[at];
                        chain[at] = xor3(chain[at], cursors.row(at, block), first);
                    }
                    for round in slot * ROUNDS / 10 + 1..=(slot + 1) * ROUNDS / 10 {
                        let key = cbc::get(&round_keys[round])[at];
                        chain[at] = opaque(if round < ROUNDS {
                            _mm512_aesenc_epi128(chain[at], key)
                        } else {
                            _mm512_aesenclast_epi128(chain[at], key)
                        });
                    }
                    if slot == 9 {
                        cursors.put(at, block, chain[at]);
                    }
                }
            };
        }
        sha1_block!(state, w, cipher);
        cursors.advance();
    }
    cbc::put(last, chain);
    sha::put(states, state);
}

/// Where the lanes are in their messages: always at 64 bytes of a message, or of the place for idle
/// lanes, that are borrowed for as long as this lives. Pointers, since what is hashed and what is
/// encrypted are parts of one message, and checking every step would cost as much as the cipher.
struct Cursors<'a> {
    hash: [*const [u8; BLOCK_BYTES]; LANES],
    encrypt: [*mut [u8; BLOCK_BYTES]; LANES],
    /// What a step adds to both, in bytes: 0 for an idle lane.
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

    /// What a lane encrypts in this step.
    #[inline]
    fn block(&mut self, lane: usize) -> &mut [u8; BLOCK_BYTES] {
        // SAFETY: see `Cursors`; while this reference is used there is no other.
        unsafe { &mut *self.encrypt[lane] }
    }

    /// One block of the four lanes of a register.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn row(&mut self, register: usize, block: usize) -> __m512i {
        let mut row = _mm512_castsi128_si512(self.text(WIDTH * register, block));
        row = _mm512_mask_broadcast_i32x4(row, 0x00f0, self.text(WIDTH * register + 1, block));
        row = _mm512_mask_broadcast_i32x4(row, 0x0f00, self.text(WIDTH * register + 2, block));
        _mm512_mask_broadcast_i32x4(row, 0xf000, self.text(WIDTH * register + 3, block))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn text(&mut self, lane: usize, block: usize) -> __m128i {
        let text = &self.block(lane).as_chunks::<16>().0[block];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_loadu_si128(text.as_ptr().cast()) }
    }

    /// The same, back to memory.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn put(&mut self, register: usize, block: usize, row: __m512i) {
        self.put_text(WIDTH * register, block, _mm512_castsi512_si128(row));
        self.put_text(WIDTH * register + 1, block, _mm512_extracti32x4_epi32::<1>(row));
        self.put_text(WIDTH * register + 2, block, _mm512_extracti32x4_epi32::<2>(row));
        self.put_text(WIDTH * register + 3, block, _mm512_extracti32x4_epi32::<3>(row));
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn put_text(&mut self, lane: usize, block: usize, value: __m128i) {
        let text = &mut self.block(lane).as_chunks_mut::<16>().0[block];
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_storeu_si128(text.as_mut_ptr().cast(), value) }
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
