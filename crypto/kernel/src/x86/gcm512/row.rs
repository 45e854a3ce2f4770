//! The data of one message, register by register.

use super::hash::{Sums, carry, hash, zero};
use super::lot::{Lot, Schedule, Wide, last_round};
use super::register::*;
use super::{BLOCK, CHUNK, LANES, LOT};
use crate::packet::GcmKey;
use core::arch::x86_64::*;
use core::mem;

features! {

/// The data of a message: encrypts or decrypts it, and returns what its blocks times their powers of
/// H sum up to. `before` is added to the first block.
pub(super) fn row<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    before: __m128i,
) -> Sums {
    let registers = registers(data.len());
    if registers == 0 {
        return zero();
    }
    let mut cursor = Cursor::new(data);
    let before = reverse(at_block(cursor.pad(), before));
    let mut stream = Stream::new(key, nonce, cursor.pad());
    let start = (registers - 1) % CHUNK + 1;
    let left = (registers - start) / CHUNK;
    // The last registers are yet to be taken into the hash: that is done between the rounds of the
    // next.
    let first = stream.start::<SEAL, ROUNDS>(key, &mut cursor, start, before);
    let [_, _, _, _, half @ ..] = first;
    if left == 0 {
        return match start {
            ..=LOT => hash::<0, _>(key, zero(), half),
            _ => hash::<0, _>(key, zero(), first),
        };
    }
    let mut wide = Wide::new(key);
    let schedule = Schedule { key, wide: &wide };
    let (mut sums, mut waiting, mut left) = (zero(), first, left);
    if start <= LOT {
        (sums, waiting) = stream.lot::<SEAL, ROUNDS, LOT>(schedule, &mut cursor, sums, half);
        left -= 1;
    }
    for _ in 0..left {
        (sums, waiting) = stream.lot::<SEAL, ROUNDS, CHUNK>(schedule, &mut cursor, sums, waiting);
    }
    wide.wipe();
    waiting[0] = _mm512_xor_si512(waiting[0], carry(sums));
    hash::<0, _>(key, zero(), waiting)
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
        let mut next = [self.base; N];
        for (at, next) in next.iter_mut().enumerate() {
            *next = _mm512_xor_si512(*next, counters(self.from + LANES * at));
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

    /// Up to eight registers, any of them short. Returns what belongs into the hash, after so many zeros
    /// that it is eight registers; `carry` is added to the first.
    #[inline]
    fn start<const SEAL: bool, const ROUNDS: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        registers: usize,
        carry: __m512i,
    ) -> [__m512i; CHUNK] {
        match registers {
            1 => self.start_of::<SEAL, ROUNDS, 1>(key, cursor, carry),
            2 => self.start_of::<SEAL, ROUNDS, 2>(key, cursor, carry),
            3 => self.start_of::<SEAL, ROUNDS, 3>(key, cursor, carry),
            4 => self.start_of::<SEAL, ROUNDS, 4>(key, cursor, carry),
            5 => self.start_of::<SEAL, ROUNDS, 5>(key, cursor, carry),
            6 => self.start_of::<SEAL, ROUNDS, 6>(key, cursor, carry),
            7 => self.start_of::<SEAL, ROUNDS, 7>(key, cursor, carry),
            _ => self.start_of::<SEAL, ROUNDS, CHUNK>(key, cursor, carry),
        }
    }

    #[inline]
    fn start_of<const SEAL: bool, const ROUNDS: usize, const N: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        carry: __m512i,
    ) -> [__m512i; CHUNK] {
        let mut states = self.next::<N>();
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        let mut done = [_mm512_setzero_si512(); CHUNK];
        for (at, state) in states.into_iter().enumerate() {
            let (input, mask) = cursor.get();
            let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
            cursor.put(output, mask);
            let sent = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
            done[CHUNK - N + at] = if at == 0 { _mm512_xor_si512(sent, carry) } else { sent };
        }
        done
    }

    /// Eight registers, of which only the last may be short, while the ones before them are taken into
    /// the hash. If these were eight as well, `before` is reduced, else they are added to it.
    #[inline]
    fn lot<const SEAL: bool, const ROUNDS: usize, const WAITING: usize>(
        &mut self,
        schedule: Schedule<'_, ROUNDS>,
        cursor: &mut Cursor<'_>,
        before: Sums,
        waiting: [__m512i; WAITING],
    ) -> (Sums, [__m512i; CHUNK]) {
        let schedule = schedule.again();
        let (whole, tail) = cursor.lot();
        let mut lot = Lot::<SEAL, ROUNDS>::new(schedule, self.next());
        let mut sums;
        match *waiting.as_chunks().0 {
            // What is being reduced belongs into the first pair: it comes last.
            [[a, b], c, d, e] => {
                sums = lot.quarter_and_pair(schedule, 0, zero(), c, 2);
                let a = _mm512_xor_si512(a, carry(before));
                sums = lot.quarter_and_pair(schedule, 1, sums, d, 4);
                sums = lot.quarter_and_pair(schedule, 2, sums, e, 6);
                sums = lot.quarter_and_pair(schedule, 3, sums, [a, b], 0);
            }
            [d, e] => {
                sums = lot.quarter_and_pair(schedule, 0, before, d, 4);
                lot.quarter(schedule, 1);
                lot.quarter(schedule, 2);
                sums = lot.quarter_and_pair(schedule, 3, sums, e, 6);
            }
            _ => unreachable!("lots of four or eight"),
        }
        let last_key = schedule.key(ROUNDS);
        let mut states = lot.states();
        let (states_whole, [state]) = states.split_at_mut(CHUNK - 1) else { return (sums, states) };
        for (state, bytes) in states_whole.iter_mut().zip(whole) {
            last_round::<SEAL>(state, last_key, bytes);
        }
        let (input, mask) = load_some(tail, 0);
        let output = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input));
        store_some(tail, 0, output);
        *state = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
        (sums, states)
    }

    }
}

/// A message's data in registers, flush right: the first register begins with `pad` blocks that are not
/// there.
struct Cursor<'m> {
    data: &'m mut [u8],
    /// Where the next register begins, from the start of the data.
    next: isize,
}

impl<'m> Cursor<'m> {
    fn new(data: &'m mut [u8]) -> Self {
        Self { next: -((BLOCK * pad(data.len())) as isize), data }
    }

    fn pad(&self) -> usize {
        self.next.unsigned_abs() / BLOCK
    }

    features! {

    /// The next eight registers, of which only the last may be short; and goes on.
    #[inline]
    fn lot(&mut self) -> (&mut [[u8; 64]; CHUNK - 1], &mut [u8]) {
        let (_, lot) = mem::take(&mut self.data).split_at_mut(self.next as usize);
        let (lot, rest) = lot.split_at_mut(lot.len().min(64 * CHUNK));
        (self.data, self.next) = (rest, 0);
        let (whole, tail) = lot.split_at_mut(64 * (CHUNK - 1));
        (whole.as_chunks_mut().0.first_chunk_mut().expect("so many"), tail)
    }

    /// Which bytes of the next register are there.
    #[inline]
    fn mask(&self) -> u64 {
        let end = (self.data.len() as isize - self.next).clamp(0, 64);
        let before = self.next.min(0).unsigned_abs();
        _bzhi_u64(u64::MAX, end as u32) & u64::MAX.checked_shl(before as u32).unwrap_or(0)
    }

    /// The next register, and which bytes of it are there.
    #[inline]
    fn get(&self) -> (__m512i, u64) {
        let mask = self.mask();
        let from = self.data.as_ptr().wrapping_offset(self.next);
        // SAFETY: the mask stands for bytes of the data, and what is not in it is not read.
        (unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }, mask)
    }

    /// Replaces the next register, of which these bytes are there, and goes on.
    #[inline]
    fn put(&mut self, value: __m512i, mask: u64) {
        let to = self.data.as_mut_ptr().wrapping_offset(self.next);
        let mask = mask & self.mask();
        // SAFETY: the mask stands for bytes of the data, and what is not in it is not written.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, value) }
        self.next += 64;
    }

    }
}
