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
/// H sum up to, and the tag's key stream, which goes through the cipher beside the first of them. `before`
/// is added to the first block.
pub(super) fn row<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonce: __m128i,
    data: &mut [u8],
    before: __m128i,
) -> (Sums, __m128i) {
    let registers = registers(data.len());
    let mut cursor = Cursor::new(data);
    let before = reverse(at_block(cursor.pad, before));
    let mut stream = Stream::new(key, nonce, cursor.pad);
    let start = registers.saturating_sub(1) % CHUNK + registers.min(1);
    let left = (registers - start) / CHUNK;
    // The last registers are yet to be taken into the hash: that is done between the rounds of the
    // next.
    let (first, tag) = stream.start::<SEAL, ROUNDS>(key, &mut cursor, start, before);
    let [_, _, _, _, half @ ..] = first;
    if left == 0 {
        return match start {
            0 => (zero(), tag),
            1..=LOT => (hash::<0, _>(key, zero(), half), tag),
            _ => (hash::<0, _>(key, zero(), first), tag),
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
    (hash::<0, _>(key, zero(), waiting), tag)
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
    /// that it is eight registers, and the tag's key stream; `carry` is added to the first.
    #[inline]
    fn start<const SEAL: bool, const ROUNDS: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        registers: usize,
        carry: __m512i,
    ) -> ([__m512i; CHUNK], __m128i) {
        match registers {
            0 => self.start_of::<SEAL, ROUNDS, 0>(key, cursor, carry),
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
    ) -> ([__m512i; CHUNK], __m128i) {
        let base = _mm512_castsi512_si128(self.base);
        let mut tag = _mm_xor_si128(base, _mm_set_epi32(1 << 24, 0, 0, 0));
        let mut states = self.next::<N>();
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
            tag = _mm_aesenc_si128(tag, _mm512_castsi512_si128(round_key));
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        let tag = _mm_aesenclast_si128(tag, _mm512_castsi512_si128(last_key));
        let mut done = [_mm512_setzero_si512(); CHUNK];
        for (at, state) in states.into_iter().enumerate() {
            let (bytes, pad) = cursor.register();
            let (input, mask) = load_some(bytes, pad);
            let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
            store_some(bytes, pad, output);
            let sent = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
            done[CHUNK - N + at] = if at == 0 { _mm512_xor_si512(sent, carry) } else { sent };
        }
        (done, tag)
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
    /// What is left of it.
    data: &'m mut [u8],
    /// Blocks that are not there in the next register.
    pad: usize,
}

impl<'m> Cursor<'m> {
    fn new(data: &'m mut [u8]) -> Self {
        Self { pad: pad(data.len()), data }
    }

    /// What there is of the next register, after so many blocks that are not; and goes on.
    fn register(&mut self) -> (&mut [u8], usize) {
        let pad = mem::take(&mut self.pad);
        let data = mem::take(&mut self.data);
        let (register, rest) = data.split_at_mut((64 - BLOCK * pad).min(data.len()));
        self.data = rest;
        (register, pad)
    }

    /// The next eight registers, of which only the last may be short; and goes on.
    fn lot(&mut self) -> (&mut [[u8; 64]; CHUNK - 1], &mut [u8]) {
        let data = mem::take(&mut self.data);
        let (lot, rest) = data.split_at_mut(data.len().min(64 * CHUNK));
        self.data = rest;
        let (whole, tail) = lot.split_at_mut(64 * (CHUNK - 1));
        (whole.as_chunks_mut().0.first_chunk_mut().expect("so many"), tail)
    }
}
