//! The data of one message, a stride of registers after the other.

use super::hash::{Sums, carry, product, two_powers, xor3, zero};
use super::register::*;
use super::sizes::{BLOCK, LANES, STRIDE};
use super::stride::{
    BroadcastKeys, Schedule, Stride, last_round, round, rounds_and_products, rounds_in_step,
    short_last_round,
};
use crate::packet::gcm::{GcmKey, Powers};
use crate::x86::ordered;
use std::arch::x86_64::*;
use std::mem;

features! {

/// The data of a message: encrypts or decrypts it, and returns what its blocks and the one before
/// them times their powers of H sum up to, and the tag's key stream, which goes through the cipher
/// beside the first of them. `N` registers go through the cipher at a time: [`STRIDE`] or
/// [`SHORT_STRIDE`](super::sizes::SHORT_STRIDE).
#[inline(never)]
pub(super) fn sequential<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>(
    key: &GcmKey,
    powers: &Powers<EIGHTS>,
    nonce: __m128i,
    data: &mut [u8],
    before: __m128i,
) -> (Sums, __m128i) {
    let registers = registers(data.len());
    let mut cursor = Cursor::new(data);
    let (pad, none) = (cursor.pad, _mm512_setzero_si512());
    let mut stream = Stream::new(key, nonce, pad);
    let start = registers.saturating_sub(1) % N + registers.min(1);
    let left = (registers - start) / N;
    let span = 2 * EIGHTS;
    let mut sums = zero();
    // The block before the data is in the same register, or in the one before. If these are full,
    // its product is added; if all powers are taken, it is hashed first.
    let behind = start + N * left % span;
    let (register_before, first_register) = match (pad, start) {
        (0, all) if all == N && behind < span => {
            sums = product(reverse_block(before), &powers.all()[8 * EIGHTS - 1 - LANES * behind]);
            (none, none)
        }
        (0, all) if all == N => (none, reverse(product(reverse_block(before), &key.first).reduce())),
        (0, _) => (at_block(LANES - 1, before), none),
        _ => (none, at_block(pad - 1, before)),
    };
    // The last registers are yet to be taken into the hash: that is done between the rounds of the
    // next.
    let before = [register_before, first_register];
    let (mut waiting, tag) = stream.start::<SEAL, ROUNDS, EIGHTS, N>(key, &mut cursor, start, before);
    if left > 0 {
        let mut wide = BroadcastKeys::new(key);
        let schedule = Schedule { powers, wide: &wide };
        // Where the powers of the registers that wait begin.
        let mut at = (2 * span - N - N * left % span) % span;
        for _ in 0..left {
            let before = (sums, waiting);
            (sums, waiting) =
                stream.stride::<SEAL, ROUNDS, EIGHTS, N>(schedule, &mut cursor, before, at);
            at = if at + N == span { 0 } else { at + N };
        }
        wide.wipe();
        if span == N {
            waiting[0] = _mm512_xor_si512(waiting[0], carry(sums));
            sums = zero();
        }
    }
    (hash::<SEAL, ROUNDS, EIGHTS, N>(powers, sums, waiting), tag)
}

/// Takes a message's last registers into the hash. `SEAL` and `ROUNDS` make it a function of its
/// callers' own, which the compiler inlines.
#[inline]
fn hash<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>(
    powers: &Powers<EIGHTS>,
    mut sums: Sums,
    blocks: [__m512i; N],
) -> Sums {
    for (pair, blocks) in blocks.as_chunks::<2>().0.iter().enumerate() {
        sums = sums.add_pair(powers, *blocks, 2 * EIGHTS - N + 2 * pair);
    }
    sums
}

}

/// A message's key stream.
struct Stream {
    /// The nonce and the upper bytes of the counter, after the first round key.
    base: __m512i,
    /// The upper bytes of the counter.
    upper: u32,
    /// Where the next counter's last byte is in the table.
    from: usize,
}

impl Stream {
    features! {

    /// For a message whose first register begins with so many blocks that are not there.
    #[inline]
    fn new(key: &GcmKey, nonce: __m128i, pad: usize) -> Self {
        let first = broadcast(&key.aes.round_keys[0]);
        let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first);
        Self { base, upper: 0, from: COUNTERS_BEFORE + 2 - pad }
    }

    /// The next counter blocks, after the first round key.
    #[inline]
    fn next<const N: usize>(&mut self) -> [__m512i; N] {
        let (counters, _) = COUNTERS.0[self.from..].as_chunks::<LANES>();
        let counters = counters.first_chunk::<N>().expect("at most a stride behind 255");
        let mut next = [self.base; N];
        for (next, counters) in next.iter_mut().zip(counters) {
            *next = _mm512_xor_si512(*next, load_blocks(counters));
        }
        let blocks = COUNTERS_BEFORE + 256 - self.from;
        self.from += LANES * N;
        if blocks < LANES * N {
            // Behind so many blocks the upper bytes are others.
            let upper = self.upper.wrapping_add(256);
            let change = every_lane((self.upper ^ upper).swap_bytes() as i32);
            let changed = u64::MAX << (2 * blocks);
            for (at, next) in next.iter_mut().enumerate() {
                *next = _mm512_mask_xor_epi64(*next, (changed >> (8 * at)) as u8, *next, change);
            }
            self.base = _mm512_xor_si512(self.base, change);
            self.upper = upper;
            self.from -= 256;
        }
        next
    }

    /// Up to a stride of registers, any of them short. Returns what belongs into the hash, after so
    /// many zeros that it is a stride, and the tag's key stream. Blocks before the data are in a
    /// register before them and are added to the first. All parameters make it its caller's own,
    /// which the compiler inlines.
    #[inline]
    fn start<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        registers: usize,
        before: [__m512i; 2],
    ) -> ([__m512i; N], __m128i) {
        match registers {
            0 => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 0>(key, cursor, before),
            1 => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 1>(key, cursor, before),
            2 => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 2>(key, cursor, before),
            3 => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 3>(key, cursor, before),
            4 if N == STRIDE => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 4>(key, cursor, before),
            5 if N == STRIDE => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 5>(key, cursor, before),
            6 if N == STRIDE => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 6>(key, cursor, before),
            7 if N == STRIDE => self.start_of::<SEAL, ROUNDS, EIGHTS, N, 7>(key, cursor, before),
            _ => self.start_of::<SEAL, ROUNDS, EIGHTS, N, N>(key, cursor, before),
        }
    }

    #[inline]
    fn start_of<
        const SEAL: bool,
        const ROUNDS: usize,
        const EIGHTS: usize,
        const N: usize,
        const K: usize,
    >(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        before: [__m512i; 2],
    ) -> ([__m512i; N], __m128i) {
        let base = _mm512_castsi512_si128(self.base);
        let mut states = self.next::<K>();
        let (tag, last_key) = rounds_in_step!(key, states, base);
        let mut done = [_mm512_setzero_si512(); N];
        for (at, mut state) in states.into_iter().enumerate() {
            let (bytes, pad) = cursor.register();
            short_last_round::<SEAL>(&mut state, last_key, bytes, pad);
            done[N.saturating_sub(K) + at] = state;
        }
        let [register_before, first] = before;
        let (zeros, data) = done.split_at_mut(N.saturating_sub(K));
        if let Some(place) = zeros.last_mut() {
            *place = register_before;
        }
        if let Some(place) = data.first_mut() {
            *place = _mm512_xor_si512(*place, first);
        }
        (done, tag)
    }

    /// A stride, of which only the last may be short, while the ones before them are taken into the
    /// hash, the first so many from where the powers begin. If all powers begin with these,
    /// `before` is reduced, else they are added to it.
    #[inline]
    fn stride<const SEAL: bool, const ROUNDS: usize, const EIGHTS: usize, const N: usize>(
        &mut self,
        schedule: Schedule<'_, ROUNDS, EIGHTS>,
        cursor: &mut Cursor<'_>,
        (mut sums, mut waiting): (Sums, [__m512i; N]),
        at: usize,
    ) -> (Sums, [__m512i; N]) {
        let schedule = schedule.reload();
        let (whole, tail) = cursor.stride::<N>();
        let mut stride = Stride::<SEAL, ROUNDS, EIGHTS, N>::new(schedule, self.next());
        if at == 0 {
            waiting[0] = _mm512_xor_si512(waiting[0], carry(sums));
            sums = zero();
        }
        // The sum that is being reduced belongs into the first pair: it comes last.
        let (pairs, _) = waiting.as_chunks::<2>();
        sums = rounds_and_products!(stride, N, schedule, 0, sums, pairs[1], at + 2);
        if N == STRIDE {
            sums = rounds_and_products!(stride, N, schedule, 1, sums, pairs[2], at + 4);
            sums = rounds_and_products!(stride, N, schedule, 2, sums, pairs[3], at + 6);
        }
        sums = rounds_and_products!(stride, N, schedule, N / 2 - 1, sums, pairs[0], at);
        let last_key = schedule.key(ROUNDS);
        let mut states = stride.states();
        for at in 0..N - 1 {
            last_round::<SEAL>(&mut states[at], last_key, &mut whole[at]);
        }
        match <&mut [u8; 64]>::try_from(&mut *tail) {
            Ok(bytes) => last_round::<SEAL>(&mut states[N - 1], last_key, bytes),
            Err(_) => short_last_round::<SEAL>(&mut states[N - 1], last_key, tail, 0),
        }
        (sums, states)
    }

    }
}

/// A message's data in registers, flush right: the first register begins with `pad` blocks that are
/// not there.
struct Cursor<'m> {
    /// The rest of it.
    data: &'m mut [u8],
    /// Blocks that are not there in the next register.
    pad: usize,
}

impl<'m> Cursor<'m> {
    fn new(data: &'m mut [u8]) -> Self {
        Self { pad: pad(data.len()), data }
    }

    /// The bytes of the next register that are there, after so many blocks that are not; and goes on.
    fn register(&mut self) -> (&mut [u8], usize) {
        let pad = mem::take(&mut self.pad);
        let data = mem::take(&mut self.data);
        let (register, rest) = data.split_at_mut((64 - BLOCK * pad).min(data.len()));
        self.data = rest;
        (register, pad)
    }

    /// The next stride, of which only the last may be short; and goes on.
    fn stride<const N: usize>(&mut self) -> (&mut [[u8; 64]], &mut [u8]) {
        let data = mem::take(&mut self.data);
        let (stride, rest) = data.split_at_mut(data.len().min(64 * N));
        self.data = rest;
        let (whole, tail) = stride.split_at_mut(64 * (N - 1));
        (&mut whole.as_chunks_mut().0[..N - 1], tail)
    }
}
