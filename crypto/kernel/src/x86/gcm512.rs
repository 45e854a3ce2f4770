//! AES-GCM and header masks with AVX-512, VAES and VPCLMULQDQ.
//!
//! Four messages go together, a *lane* of 128 bits each in what they have one block of: the tag's key
//! stream, the block of additional data, the block of lengths, the reduction. Their data goes in *rows* of
//! registers of four blocks, flush right: a register's place from the end says which powers of H its
//! blocks are multiplied by, whatever the length.

use super::gcm::POLYNOMIAL;
use super::{load, store};
use crate::aes::Rounds;
use crate::chacha;
use crate::packet::{
    AeadForm, GcmKey, HeaderForm, HeaderKey, MaskKey, Message, Open, POWERS, Protect, Room,
    SAMPLE_BYTES, Seal, Unprotect,
};
use crate::portable::Library;
use core::arch::asm;
use core::arch::x86_64::*;
use core::{mem, ptr, slice};

/// Bytes of a block.
const BLOCK: usize = 16;
/// Messages that go together, and blocks of a register.
const LANES: usize = 4;
/// Messages under one key that go together: so many that the latency of the cipher and of the hash's end
/// does not show.
const TOGETHER: usize = 16;
/// Registers that go through the cipher together: so many that its latency does not show.
const LOT: usize = 4;
/// Most registers whose counters have one byte.
const COLUMNS_MAX: usize = 63;
/// Registers between one reduction and the next.
const CHUNK: usize = POWERS / LANES;

/// That the features are there: whoever has one may call what needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gcm512(());

impl Gcm512 {
    pub(crate) fn detect() -> Option<Self> {
        extern crate std;
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("vaes")
            && std::is_x86_feature_detected!("vpclmulqdq")
            && std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("bmi2");
        there.then_some(Self(()))
    }
}

impl Room for Gcm512 {
    fn seal(self, messages: &mut [Seal<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, true>(messages) }
    }

    fn open(self, messages: &mut [Open<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(messages) }
    }

    fn seal_packets(self, packets: &mut [Protect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, true>(packets) }
    }

    fn open_packets(self, packets: &mut [Unprotect<'_>]) {
        // SAFETY: `detect` has seen the features.
        unsafe { run::<_, false>(packets) }
    }

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        // SAFETY: `detect` has seen the features.
        unsafe { masks(self, samples) }
    }
}

macro_rules! features {
    ($($item:item)*) => {$(
        #[target_feature(
            enable = "avx512f,avx512bw,avx512vl,vaes,vpclmulqdq,aes,pclmulqdq,ssse3,sse4.1,bmi2"
        )]
        $item
    )*};
}

/// Products that have yet to be reduced: Karatsuba's three.
#[derive(Clone, Copy)]
struct Sums {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

features! {

/// Four messages at a time, as long as their keys have the same length.
fn run<'k, M: Message<'k>, const SEAL: bool>(messages: &mut [M]) {
    let mut at = 0;
    while let [first, ..] = &mut messages[at..] {
        let key = first.key();
        let Some(rounds) = rounds(first) else {
            first.library();
            at += 1;
            continue;
        };
        let alike = messages[at..].iter().take(TOGETHER);
        let alike = alike.take_while(|message| ptr::eq(message.key(), key)).count();
        if alike == TOGETHER
            && let Some(group) = messages[at..].as_chunks_mut().0.first_chunk_mut()
        {
            match rounds {
                Rounds::Ten => group_of::<M, SEAL, 10, { TOGETHER / LANES }>(group),
                Rounds::Fourteen => group_of::<M, SEAL, 14, { TOGETHER / LANES }>(group),
            }
            at += TOGETHER;
        } else if alike >= LANES
            && let Some(group) = messages[at..].as_chunks_mut().0.first_chunk_mut()
        {
            match rounds {
                Rounds::Ten => group_of::<M, SEAL, 10, 1>(group),
                Rounds::Fourteen => group_of::<M, SEAL, 14, 1>(group),
            }
            at += LANES;
        } else if let Some((group, next)) = messages[at..].split_first_chunk_mut::<LANES>()
            && group.iter().all(|message| self::rounds(message) == Some(rounds))
        {
            match rounds {
                Rounds::Ten => together::<M, SEAL, 10, LANES>(group, next),
                Rounds::Fourteen => together::<M, SEAL, 14, LANES>(group, next),
            }
            at += LANES;
        } else {
            let (alone, next) = messages[at..].split_at_mut(1);
            let Some(alone) = alone.first_chunk_mut() else { return };
            match (rounds, alone) {
                (Rounds::Ten, [short]) if (1..=64).contains(&short.size()) => {
                    self::short::<M, SEAL, 10>(short)
                }
                (Rounds::Fourteen, [short]) if (1..=64).contains(&short.size()) => {
                    self::short::<M, SEAL, 14>(short)
                }
                (Rounds::Ten, alone) => together::<M, SEAL, 10, 1>(alone, next),
                (Rounds::Fourteen, alone) => together::<M, SEAL, 14, 1>(alone, next),
            }
            at += 1;
        }
    }
}

/// The length of the key, if it is for this room.
#[inline]
fn rounds<'k, M: Message<'k>>(message: &M) -> Option<Rounds> {
    gcm(message).map(|key| key.aes.rounds)
}

/// The key, if it is for this room.
#[inline]
fn gcm<'k, M: Message<'k>>(message: &M) -> Option<&'k GcmKey> {
    match &message.key().0 {
        AeadForm::Gcm(key) => Some(key),
        AeadForm::Library(_) => None,
    }
}

/// `G` times four messages under one key, side by side, one in each lane of `G` registers.
fn group_of<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const G: usize>(
    messages: &mut [[M; LANES]; G],
) {
    let Some(key) = messages.first().and_then(|[first, ..]| gcm(first)) else { return };
    let first = broadcast(&key.first);
    let first_middle = broadcast_middle(&key.first_middle);
    let first_key = broadcast(&key.aes.round_keys[0]);
    let mut nonces = [_mm512_setzero_si512(); G];
    let mut lengths = [_mm512_setzero_si512(); G];
    // What was hashed before the data.
    let mut before = [_mm512_setzero_si512(); G];
    let mut sizes = [[0; LANES]; G];
    for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
        nonces[at] =
            join([block(a.nonce()), block(b.nonce()), block(c.nonce()), block(d.nonce())]);
        let aad = [a.aad(), b.aad(), c.aad(), d.aad()];
        sizes[at] = [a.size(), b.size(), c.size(), d.size()];
        let mut blocks = [_mm_setzero_si128(); LANES];
        let mut headers = [_mm_setzero_si128(); LANES];
        for lane in 0..LANES {
            let (aad, size) = (aad[lane], sizes[at][lane]);
            blocks[lane] = _mm_set_epi64x(8 * aad.len() as i64, 8 * size as i64);
            headers[lane] = last_of_aad(key, aad);
        }
        lengths[at] = join(blocks);
        before[at] = zero().add(join(headers), first, first_middle).reduce();
    }
    let mut tags = nonces;
    for tags in &mut tags {
        *tags = xor3(*tags, first_key, every_lane(1 << 24));
    }
    let mut sums = [zero(); G];
    if sizes.as_flattened().iter().all(|size| (1..=BLOCK).contains(size)) {
        let mut states = nonces;
        for state in &mut states {
            *state = xor3(*state, first_key, every_lane(2 << 24));
        }
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
            for tags in &mut tags {
                *tags = _mm512_aesenc_epi128(*tags, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        for tags in &mut tags {
            *tags = _mm512_aesenclast_epi128(*tags, last_key);
        }
        // The middle of the last power is the upper half of a pair.
        let power = broadcast(&key.powers[POWERS - 1]);
        let middle = broadcast_middle(&key.middles[POWERS / 2 - 1]);
        let middle = _mm512_shuffle_epi32(middle, 0xee);
        for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
            let data = [a.data(), b.data(), c.data(), d.data()];
            let hashed = blocks::<SEAL>(data, states[at], last_key);
            sums[at] = zero().add(_mm512_xor_si512(hashed, before[at]), power, middle);
        }
    } else {
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for tags in &mut tags {
                *tags = _mm512_aesenc_epi128(*tags, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        for tags in &mut tags {
            *tags = _mm512_aesenclast_epi128(*tags, last_key);
        }
        for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
            let [a, b, c, d] = [a.data(), b.data(), c.data(), d.data()];
            let [nonces, before] = [nonces[at], before[at]];
            let registers = sizes[at].map(registers);
            let alike = registers.iter().all(|other| *other == registers[0]);
            sums[at] = if alike && (1..=COLUMNS_MAX).contains(&registers[0]) {
                columns::<SEAL, ROUNDS>(key, nonces, [a, b, c, d], registers[0], before)
            } else {
                // What has no data has its lengths for a first block.
                let mut empty = 0;
                for (lane, size) in sizes[at].iter().enumerate() {
                    empty |= u8::from(*size == 0) * (3 << (2 * lane));
                }
                lengths[at] = _mm512_mask_xor_epi64(lengths[at], empty, lengths[at], before);
                let [na, nb, nc, nd] = split(nonces);
                let [ya, yb, yc, yd] = split(before);
                sum_rows(&[
                    row::<SEAL, ROUNDS>(key, na, a, ya),
                    row::<SEAL, ROUNDS>(key, nb, b, yb),
                    row::<SEAL, ROUNDS>(key, nc, c, yc),
                    row::<SEAL, ROUNDS>(key, nd, d, yd),
                ])
            };
        }
    }
    for (at, [a, b, c, d]) in messages.iter_mut().enumerate() {
        let hashes = sums[at].add(lengths[at], first, first_middle).reduce();
        let [ta, tb, tc, td] = split(_mm512_xor_si512(reverse(hashes), tags[at]));
        a.finish(number(ta));
        b.finish(number(tb));
        c.finish(number(tc));
        d.finish(number(td));
    }
}

/// The data of four messages of one block each, a lane each, whose key stream is made but for the last
/// round. Returns what belongs into the hash.
#[inline]
fn blocks<const SEAL: bool>(
    [a, b, c, d]: [&mut [u8]; LANES],
    state: __m512i,
    last_key: __m512i,
) -> __m512i {
    let masks = [mask_of(a), mask_of(b), mask_of(c), mask_of(d)];
    let input = join([load_masked(a), load_masked(b), load_masked(c), load_masked(d)]);
    let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
    let [wa, wb, wc, wd] = split(output);
    store_masked(a, wa);
    store_masked(b, wb);
    store_masked(c, wc);
    store_masked(d, wd);
    let mask = masks.iter().rev().fold(0, |all, mask| (all << BLOCK) | u64::from(*mask));
    reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input })
}

/// The sums of each row, a lane each.
#[inline]
fn sum_rows([a, b, c, d]: &[Sums; LANES]) -> Sums {
    Sums {
        low: sum_lanes([a.low, b.low, c.low, d.low]),
        middle: sum_lanes([a.middle, b.middle, c.middle, d.middle]),
        high: sum_lanes([a.high, b.high, c.high, d.high]),
    }
}

/// A lone message of 1 to 64 bytes: as few steps as can be, one after another.
fn short<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize>(message: &mut M) {
    let Some(key) = gcm(message) else { return };
    let (blocks, pad) = (message.size().div_ceil(BLOCK), pad(message.size()));
    // Additional data before the data, lengths behind it.
    let aad = message.aad();
    let lengths = _mm_set_epi64x(8 * aad.len() as i64, 8 * message.size() as i64);
    let none = _mm_setzero_si128();
    let ends = join([last_of_aad(key, aad), lengths, none, none]);
    let before = load_block(&key.powers[POWERS - 1 - blocks]);
    let power = join([before, load_block(&key.first), none, none]);
    let middle = _mm512_xor_si512(power, _mm512_shuffle_epi32(power, 0x4e));
    let sums = zero().add(ends, power, middle);

    let nonce = block(message.nonce());
    let first_key = broadcast(&key.aes.round_keys[0]);
    let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first_key);
    let mut state = _mm512_xor_si512(base, counters(COUNTERS_BEFORE + 2 - pad));
    let mut tag = _mm512_xor_si512(base, every_lane(1 << 24));
    for round in 1..ROUNDS {
        let round_key = broadcast(&key.aes.round_keys[round]);
        state = _mm512_aesenc_epi128(state, round_key);
        tag = _mm512_aesenc_epi128(tag, round_key);
    }
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    let tag = _mm512_aesenclast_epi128(tag, last_key);
    let data = message.data();
    let (input, mask) = load_some(data, pad);
    let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(last_key, input));
    store_some(data, pad, output);
    let hashed = reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input });
    let (power, middle) = powers(key, CHUNK - 1);
    let Sums { low, middle, high } = sums.add(hashed, power, middle);
    let sums = Sums { low: fold(low), middle: fold(middle), high: fold(high) };
    let [tag, ..] = split(_mm512_xor_si512(reverse(sums.reduce()), tag));
    message.finish(number(tag));
}

/// The sum of all lanes, in the first lane.
#[inline]
fn fold(value: __m512i) -> __m512i {
    let halves = _mm256_xor_si256(
        _mm512_castsi512_si256(value),
        _mm512_extracti64x4_epi64(value, 1),
    );
    let sum = _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm512_zextsi128_si512(sum)
}

/// Messages side by side, one in each lane. The keys of the next come into the cache meanwhile.
fn together<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const N: usize>(
    messages: &mut [M; N],
    next: &[M],
) {
    let Some(key) = gcm(&messages[0]) else { return };
    let mut keys = [key; LANES];
    for (key, message) in keys.iter_mut().zip(&*messages) {
        *key = gcm(message).unwrap_or(key);
    }
    let [a, b, c, d] = keys;
    let same = N == 1;

    let mut nonces = [_mm_setzero_si128(); LANES];
    let mut headers = [_mm_setzero_si128(); LANES];
    let mut lengths = [_mm_setzero_si128(); LANES];
    // Those without data, two bits each.
    let mut empty = 0;
    for (lane, message) in messages.iter_mut().enumerate() {
        nonces[lane] = block(message.nonce());
        headers[lane] = last_of_aad(keys[lane], message.aad());
        let (aad, data) = (message.aad().len(), message.size());
        lengths[lane] = _mm_set_epi64x(8 * aad as i64, 8 * data as i64);
        empty |= u8::from(data == 0) * (3 << (2 * lane));
    }
    let first = of_lanes(same, [&a.first, &b.first, &c.first, &d.first]);
    let first_middle = _mm512_xor_si512(first, _mm512_shuffle_epi32(first, 0x4e));

    let mut stream = _mm512_or_si512(join(nonces), every_lane(1 << 24));
    for round in 0..=ROUNDS {
        let [a, b, c, d] = [a, b, c, d].map(|key| &key.aes.round_keys[round]);
        let round_key = of_lanes(same, [a, b, c, d]);
        stream = match round {
            0 => _mm512_xor_si512(stream, round_key),
            round if round < ROUNDS => _mm512_aesenc_epi128(stream, round_key),
            _ => _mm512_aesenclast_epi128(stream, round_key),
        };
    }
    let before = zero().add(join(headers), first, first_middle).reduce();
    let befores = split(before);
    let mut rows = [zero(); LANES];
    for (lane, message) in messages.iter_mut().enumerate() {
        if let Some(next) = next.get(lane) {
            fetch(next.key());
            if let Some(key) = next.header_key() {
                fetch(key);
            }
        }
        let (nonce, before) = (nonces[lane], befores[lane]);
        rows[lane] = row::<SEAL, ROUNDS>(keys[lane], nonce, message.data(), before);
    }
    let sums = sum_rows(&rows);
    let lengths = join(lengths);
    let lengths = _mm512_mask_xor_epi64(lengths, empty, lengths, before);
    let hashes = sums.add(lengths, first, first_middle).reduce();
    let tags = split(_mm512_xor_si512(reverse(hashes), stream));
    for (message, tag) in messages.iter_mut().zip(tags) {
        message.finish(number(tag));
    }
}

/// The data of four messages under one key that have as many registers, [`COLUMNS_MAX`] at most: one
/// register of each at a time.
#[inline]
fn columns<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonces: __m512i,
    [a, b, c, d]: [&mut [u8]; LANES],
    registers: usize,
    before: __m512i,
) -> Sums {
    let first_key = broadcast(&key.aes.round_keys[0]);
    let bases = spread(_mm512_xor_si512(nonces, first_key));
    let pads = [pad(a.len()), pad(b.len()), pad(c.len()), pad(d.len())];
    let [pa, pb, pc, pd] = pads;
    let mut befores = spread(before);
    for (before, pad) in befores.iter_mut().zip(pads) {
        *before = _mm512_maskz_mov_epi64(3 << (2 * pad), *before);
    }
    if registers == 1 {
        let mut states = bases;
        cipher::<SEAL, ROUNDS>(key, &mut states, 0, pads);
        edge::<SEAL, ROUNDS>(key, &mut states, &mut [a, b, c, d], pads);
        let (power, middle) = powers(key, CHUNK - 1);
        let mut sums = [zero(); LANES];
        for lane in 0..LANES {
            let blocks = _mm512_xor_si512(states[lane], befores[lane]);
            sums[lane] = zero().add(blocks, power, middle);
        }
        return sum_rows(&sums);
    }
    let whole = registers - 2;
    let (head_a, whole_a, tail_a) = parts(a, pa, whole);
    let (head_b, whole_b, tail_b) = parts(b, pb, whole);
    let (head_c, whole_c, tail_c) = parts(c, pc, whole);
    let (head_d, whole_d, tail_d) = parts(d, pd, whole);
    let mut heads = [head_a, head_b, head_c, head_d];
    let mut tails = [tail_a, tail_b, tail_c, tail_d];

    let mut sums = [zero(); LANES];
    // The last columns are yet to be taken into the hash.
    let mut earlier = [_mm512_setzero_si512(); LANES];
    let mut waiting = [_mm512_setzero_si512(); LANES];
    for column in 0..registers {
        let key = again(key);
        let mut states = bases;
        cipher::<SEAL, ROUNDS>(key, &mut states, column, pads);
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        let left = registers - column;
        // They go there in pairs, counted from the end.
        let at = CHUNK - 1 - left % CHUNK;
        if left % 2 == 1 {
            earlier = waiting;
        } else if column == 1 {
            let (power, middle) = powers(key, at);
            for (sums, waiting) in sums.iter_mut().zip(waiting) {
                *sums = sums.add(waiting, power, middle);
            }
        } else if column > 1 {
            for lane in 0..LANES {
                sums[lane] = sums[lane].add_pair(key, [earlier[lane], waiting[lane]], at - 1);
            }
        }
        if column > 0 && column <= whole {
            let at = column - 1;
            let bytes = [&mut whole_a[at], &mut whole_b[at], &mut whole_c[at], &mut whole_d[at]];
            for (lane, bytes) in bytes.into_iter().enumerate() {
                let input = load(bytes);
                let output =
                    _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
                store(bytes, output);
                waiting[lane] = reverse(if SEAL { output } else { input });
            }
        } else {
            let parts = if column == 0 { &mut heads } else { &mut tails };
            for (lane, bytes) in parts.iter_mut().enumerate() {
                let pad = if column == 0 { pads[lane] } else { 0 };
                let (input, mask) = load_some(bytes, pad);
                let output =
                    _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
                store_some(bytes, pad, output);
                let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
                waiting[lane] = reverse(sealed);
            }
            if column == 0 {
                for lane in 0..LANES {
                    waiting[lane] = _mm512_xor_si512(waiting[lane], befores[lane]);
                }
            }
        }
        if left.is_multiple_of(CHUNK) && column > 0 {
            for lane in 0..LANES {
                waiting[lane] = _mm512_xor_si512(waiting[lane], carry(sums[lane]));
                sums[lane] = zero();
            }
        }
    }
    for lane in 0..LANES {
        sums[lane] = sums[lane].add_pair(key, [earlier[lane], waiting[lane]], CHUNK - 2);
    }
    sum_rows(&sums)
}

/// All rounds but the last for a column. `SEAL` makes it a function of its callers' own, which the
/// compiler inlines.
#[inline]
fn cipher<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    column: usize,
    pads: [usize; LANES],
) {
    for (state, pad) in states.iter_mut().zip(pads) {
        let from = COUNTERS_BEFORE + 2 + LANES * column - pad;
        *state = _mm512_xor_si512(*state, counters(from));
    }
    for round in 1..ROUNDS {
        let round_key = broadcast(&key.aes.round_keys[round]);
        for state in &mut *states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
}

/// The last round, where registers begin with blocks that are not there, or end early. Leaves what
/// belongs into the hash.
#[inline]
fn edge<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    states: &mut [__m512i; LANES],
    parts: &mut [&mut [u8]; LANES],
    pads: [usize; LANES],
) {
    let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
    for lane in 0..LANES {
        let (bytes, pad) = (&mut *parts[lane], pads[lane]);
        let (input, mask) = load_some(bytes, pad);
        let output = _mm512_aesenclast_epi128(states[lane], _mm512_xor_si512(last_key, input));
        store_some(bytes, pad, output);
        let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
        states[lane] = reverse(sealed);
    }
}

/// What goes into the first register, which begins with `pad` blocks that are not there, what goes into
/// so many whole ones, and what is left for the last.
#[inline]
fn parts(data: &mut [u8], pad: usize, whole: usize) -> (&mut [u8], &mut [[u8; 64]], &mut [u8]) {
    let (head, rest) = data.split_at_mut((64 - BLOCK * pad).min(data.len()));
    let (middle, tail) = rest.split_at_mut((64 * whole).min(rest.len()));
    let (middle, _) = middle.as_chunks_mut();
    (head, &mut middle[..whole], tail)
}

/// All blocks so far as one: it belongs where the second of the next blocks is.
#[inline]
fn carry(sums: Sums) -> __m512i {
    let lanes = sums.reduce();
    let halves = _mm512_xor_si512(lanes, _mm512_shuffle_i32x4(lanes, lanes, 0x4e));
    _mm512_maskz_xor_epi64(0b1100, halves, _mm512_shuffle_i32x4(halves, halves, 0xb1))
}

/// The data of a message: encrypts or decrypts it, and returns what its blocks times their powers of
/// H sum up to. `before` is added to the first block.
fn row<const SEAL: bool, const ROUNDS: usize>(
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
    let before = at_block(cursor.pad(), before);
    let mut stream = Stream::new(key, nonce, cursor.pad());
    let start = (registers - 1) % CHUNK + 1;
    let mut left = (registers - start) / CHUNK;
    let (mut sums, mut carried) = (zero(), before);
    if start > LOT {
        let first = stream.start::<SEAL, ROUNDS>(key, &mut cursor, start - LOT, before);
        sums = hash::<LOT, _>(key, sums, first);
        carried = _mm512_setzero_si512();
    }
    // The last registers are yet to be taken into the hash: that is done between the rounds of the
    // next.
    let first = stream.start::<SEAL, ROUNDS>(key, &mut cursor, start.min(LOT), carried);
    if left == 0 {
        return hash::<0, _>(key, sums, first);
    }
    let (mut sums, mut waiting) =
        stream.lot::<SEAL, ROUNDS, LOT>(key, &mut cursor, sums, first);
    loop {
        waiting[0] = _mm512_xor_si512(waiting[0], carry(sums));
        left -= 1;
        if left == 0 {
            return hash::<0, _>(key, zero(), waiting);
        }
        (sums, waiting) = stream.lot::<SEAL, ROUNDS, CHUNK>(key, &mut cursor, zero(), waiting);
    }
}

/// Takes registers into the hash, the last of them followed by `AFTER` others before the end.
#[inline]
fn hash<const AFTER: usize, const N: usize>(key: &GcmKey, mut sums: Sums, blocks: [__m512i; N]) -> Sums {
    let (pairs, _) = blocks.as_chunks::<2>();
    for (pair, blocks) in pairs.iter().enumerate() {
        sums = sums.add_pair(key, *blocks, CHUNK - AFTER - N + 2 * pair);
    }
    sums
}

/// Starts to bring a key into the cache.
#[inline]
fn fetch<T>(key: &T) {
    let lines = ptr::from_ref(key).cast::<[i8; 64]>();
    for line in 0..size_of::<T>().div_ceil(64) {
        _mm_prefetch::<_MM_HINT_T0>(lines.wrapping_add(line).cast());
    }
}

/// The same key, from memory: the compiler does not know that it is the same. It would keep all of it in
/// registers, for which there are too few.
#[inline]
fn again(key: &GcmKey) -> &GcmKey {
    let mut address: *const GcmKey = key;
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(reg) address, options(readonly, nostack, preserves_flags)) };
    // SAFETY: it is the address of the key.
    unsafe { &*address }
}

/// A block in this place of a register, zeros around it.
#[inline]
fn at_block(place: usize, block: __m128i) -> __m512i {
    _mm512_maskz_broadcast_i32x4(0x000f << (LANES * place), block)
}

/// Four counters from here on, as long as the last is at most 255.
#[inline]
fn counters(from: usize) -> __m512i {
    load_blocks(COUNTERS.0[from..].first_chunk().expect("one byte of a counter"))
}

/// The powers of a register and their middles.
#[inline]
fn powers(key: &GcmKey, at: usize) -> (__m512i, __m512i) {
    let power = load_blocks(&key.powers.as_chunks().0[at]);
    let middle = load_pairs(&key.middles.as_chunks().0[at / 2]);
    (power, if at.is_multiple_of(2) { middle } else { _mm512_shuffle_epi32(middle, 0x4e) })
}

#[inline]
fn zero() -> Sums {
    let zero = _mm512_setzero_si512();
    Sums { low: zero, middle: zero, high: zero }
}

/// The last block of additional data, all blocks before it taken in: what is yet to be multiplied.
#[inline]
fn last_of_aad(key: &GcmKey, aad: &[u8]) -> __m128i {
    if aad.len() <= BLOCK { load_part(aad) } else { long_aad(key, aad) }
}

#[cold]
fn long_aad(key: &GcmKey, aad: &[u8]) -> __m128i {
    let first = broadcast(&key.first);
    let middle = broadcast_middle(&key.first_middle);
    let mut hash = _mm_setzero_si128();
    let last = (aad.len() - 1) / BLOCK;
    for (at, block) in aad.chunks(BLOCK).enumerate() {
        hash = _mm_xor_si128(hash, load_part(block));
        if at < last {
            hash = _mm512_castsi512_si128(zero().add(_mm512_zextsi128_si512(hash), first, middle).reduce());
        }
    }
    hash
}

/// What of a register there is, after so many blocks that are not, and a mask of its bytes.
#[inline]
fn load_some(bytes: &[u8], pad: usize) -> (__m512i, u64) {
    let mask = mask(bytes, pad);
    let from = bytes.as_ptr().wrapping_sub(BLOCK * pad);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not read.
    (unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }, mask)
}

/// Replaces what of a register there is.
#[inline]
fn store_some(bytes: &mut [u8], pad: usize, value: __m512i) {
    let mask = mask(bytes, pad);
    let to = bytes.as_mut_ptr().wrapping_sub(BLOCK * pad);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not written.
    unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, value) }
}

/// A bit for each byte of a register that there is.
#[inline]
fn mask(bytes: &[u8], pad: usize) -> u64 {
    _bzhi_u64(u64::MAX, bytes.len().min(64) as u32) << (BLOCK * (pad % LANES))
}

/// Up to a block, its bytes reversed.
#[inline]
fn load_part(bytes: &[u8]) -> __m128i {
    let block = load_masked(bytes);
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(block, order)
}

/// A bit for each byte of a block that there is.
#[inline]
fn mask_of(bytes: &[u8]) -> u16 {
    _bzhi_u32(0xffff, bytes.len().min(BLOCK) as u32) as u16
}

/// Up to a block.
#[inline]
fn load_masked(bytes: &[u8]) -> __m128i {
    let mask = mask_of(bytes);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not read.
    unsafe { _mm_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

/// Replaces up to a block.
#[inline]
fn store_masked(bytes: &mut [u8], value: __m128i) {
    let mask = mask_of(bytes);
    // SAFETY: the mask has a bit for each byte there is, and what has none is not written.
    unsafe { _mm_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, value) }
}

/// A number as a register.
#[inline]
fn block(number: u128) -> __m128i {
    _mm_set_epi64x((number >> 64) as i64, number as i64)
}

/// One key's block in all lanes, or each lane's own.
#[inline]
fn of_lanes(same: bool, [a, b, c, d]: [&[u8; BLOCK]; LANES]) -> __m512i {
    if same {
        broadcast(a)
    } else {
        join([load_block(a), load_block(b), load_block(c), load_block(d)])
    }
}

#[inline]
fn broadcast(block: &[u8; BLOCK]) -> __m512i {
    _mm512_broadcast_i32x4(load_block(block))
}

#[inline]
fn broadcast_middle(pair: &[u64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(load_pair(pair))
}

#[inline]
fn load_block(block: &[u8; BLOCK]) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
fn load_pair(pair: &[u64; 2]) -> __m128i {
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128(pair.as_ptr().cast()) }
}

#[inline]
fn load_pairs(pairs: &[[u64; 2]; LANES]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) }
}

#[inline]
fn load_blocks(blocks: &[[u8; BLOCK]; LANES]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
fn join([a, b, c, d]: [__m128i; LANES]) -> __m512i {
    let ab = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    let cd = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1)
}

/// Each lane in all lanes of a register.
#[inline]
fn spread(value: __m512i) -> [__m512i; LANES] {
    [
        _mm512_shuffle_i32x4(value, value, 0x00),
        _mm512_shuffle_i32x4(value, value, 0x55),
        _mm512_shuffle_i32x4(value, value, 0xaa),
        _mm512_shuffle_i32x4(value, value, 0xff),
    ]
}

#[inline]
fn split(value: __m512i) -> [__m128i; LANES] {
    [
        _mm512_castsi512_si128(value),
        _mm512_extracti32x4_epi32(value, 1),
        _mm512_extracti32x4_epi32(value, 2),
        _mm512_extracti32x4_epi32(value, 3),
    ]
}

#[inline]
fn number(value: __m128i) -> u128 {
    let high = _mm_extract_epi64(value, 1) as u64;
    u128::from(high) << 64 | u128::from(_mm_cvtsi128_si64(value) as u64)
}

/// A number in the last word of each lane, where the counter is.
#[inline]
fn every_lane(number: i32) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi32(number, 0, 0, 0))
}

/// Sums up the lanes of each.
#[inline]
fn sum_lanes([a, b, c, d]: [__m512i; LANES]) -> __m512i {
    let halves = |a, b| {
        _mm512_xor_si512(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xee))
    };
    let (ab, cd) = (halves(a, b), halves(c, d));
    _mm512_xor_si512(_mm512_shuffle_i32x4(ab, cd, 0x88), _mm512_shuffle_i32x4(ab, cd, 0xdd))
}

/// Reverses the bytes of each lane.
#[inline]
fn reverse(value: __m512i) -> __m512i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(order))
}

/// Reverses the bytes of the counter in each lane.
#[inline]
fn big_endian(value: __m512i) -> __m512i {
    let order = _mm_set_epi8(12, 13, 14, 15, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(order))
}

/// Masks under one key, four to a register.
#[inline]
fn masks_of<const G: usize>(
    key: &MaskKey,
    groups: &mut [[(&HeaderKey, [u8; SAMPLE_BYTES]); LANES]; G],
) {
    let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
    let [first, middle @ .., last] = keys else { return };
    let mut states = [_mm512_setzero_si512(); G];
    for (state, [(_, a), (_, b), (_, c), (_, d)]) in states.iter_mut().zip(&*groups) {
        let blocks = join([load_block(a), load_block(b), load_block(c), load_block(d)]);
        *state = _mm512_xor_si512(blocks, broadcast(first));
    }
    for key in middle {
        let round_key = broadcast(key);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
    for (state, group) in states.iter().zip(groups) {
        let masks = split(_mm512_aesenclast_epi128(*state, broadcast(last)));
        for ((_, sample), mask) in group.iter_mut().zip(masks) {
            *sample = number(mask).to_le_bytes();
        }
    }
}

/// Four masks at a time where neighbours have the same key.
fn masks(room: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    let mut at = 0;
    while let [first, ..] = &mut samples[at..] {
        let key = match &first.0.0 {
            HeaderForm::Aes(key) => key,
            other => {
                if let HeaderForm::ChaCha(_) = other {
                    chacha = true;
                } else {
                    Library.masks(slice::from_mut(first));
                }
                at += 1;
                continue;
            }
        };
        let same = samples[at..].iter().take(TOGETHER);
        let same = same.take_while(|(other, _)| ptr::eq(*other, samples[at].0)).count();
        let groups = samples[at..].as_chunks_mut().0;
        if same == TOGETHER
            && let Some(groups) = groups.first_chunk_mut::<{ TOGETHER / LANES }>()
        {
            masks_of(key, groups);
            at += TOGETHER;
        } else if same >= LANES
            && let Some(groups) = groups.first_chunk_mut::<1>()
        {
            masks_of(key, groups);
            at += LANES;
        } else {
            let (_, sample) = &mut samples[at];
            let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
            let [first, middle @ .., last] = keys else { return };
            let mut state = _mm_xor_si128(load_block(sample), load_block(first));
            for key in middle {
                state = _mm_aesenc_si128(state, load_block(key));
            }
            *sample = number(_mm_aesenclast_si128(state, load_block(last))).to_le_bytes();
            at += 1;
        }
    }
    if chacha {
        chacha::masks(room, samples);
    }
}

}

/// A message's key stream.
struct Stream {
    /// The nonce and the upper bytes of the counter, after the first round key.
    base: __m512i,
    /// The next counter.
    counter: u32,
    nonce: __m128i,
}

impl Stream {
    features! {

    /// For a message whose first register begins with so many blocks that are not there.
    #[inline]
    fn new(key: &GcmKey, nonce: __m128i, pad: usize) -> Self {
        let first = broadcast(&key.aes.round_keys[0]);
        let base = _mm512_xor_si512(_mm512_broadcast_i32x4(nonce), first);
        Self { base, counter: 2_u32.wrapping_sub(pad as u32), nonce }
    }

    /// The next counter blocks, after the first round key.
    #[inline]
    fn next<const N: usize>(&mut self, key: &GcmKey) -> [__m512i; N] {
        let counter = self.counter;
        self.counter = counter.wrapping_add((LANES * N) as u32);
        let small = counter.wrapping_add(COUNTERS_BEFORE as u32);
        let mut base = self.base;
        let from = if small < 256 {
            small as usize
        } else {
            base = _mm512_xor_si512(base, every_lane((counter & !255).swap_bytes() as i32));
            COUNTERS_BEFORE + (counter & 255) as usize
        };
        match COUNTERS.0.get(from..from + LANES * N) {
            Some(blocks) => {
                let blocks = blocks.as_chunks().0;
                let mut next = [base; N];
                for (next, block) in next.iter_mut().zip(blocks) {
                    *next = _mm512_xor_si512(*next, load_blocks(block));
                }
                next
            }
            None => self.next_apart(key),
        }
    }

    /// The same where more than one byte of the counter changes.
    #[cold]
    fn next_apart<const N: usize>(&mut self, key: &GcmKey) -> [__m512i; N] {
        let first = broadcast(&key.aes.round_keys[0]);
        let from = self.counter.wrapping_sub(4 * N as u32) as i32;
        let steps = _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
        let steps = _mm512_add_epi32(steps, _mm512_broadcast_i32x4(self.nonce));
        let mut next = [first; N];
        for (at, next) in next.iter_mut().enumerate() {
            let counters = _mm512_add_epi32(steps, every_lane(from.wrapping_add(4 * at as i32)));
            *next = _mm512_xor_si512(*next, big_endian(counters));
        }
        next
    }

    /// Up to four registers, any of them short. Returns what belongs into the hash, after so many zeros
    /// that it is four registers; `carry` is added to the first.
    #[inline]
    fn start<const SEAL: bool, const ROUNDS: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        registers: usize,
        carry: __m512i,
    ) -> [__m512i; LOT] {
        let none = _mm512_setzero_si512();
        match registers {
            1 => {
                let [d] = self.start_of::<SEAL, ROUNDS, 1>(key, cursor, carry);
                [none, none, none, d]
            }
            2 => {
                let [c, d] = self.start_of::<SEAL, ROUNDS, 2>(key, cursor, carry);
                [none, none, c, d]
            }
            3 => {
                let [b, c, d] = self.start_of::<SEAL, ROUNDS, 3>(key, cursor, carry);
                [none, b, c, d]
            }
            _ => self.start_of::<SEAL, ROUNDS, LOT>(key, cursor, carry),
        }
    }

    #[inline]
    fn start_of<const SEAL: bool, const ROUNDS: usize, const N: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        carry: __m512i,
    ) -> [__m512i; N] {
        let mut states = self.next::<N>(key);
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        for (at, state) in states.iter_mut().enumerate() {
            let (input, mask) = cursor.get();
            let output = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input));
            cursor.put(output, mask);
            *state = reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input });
            if at == 0 {
                *state = _mm512_xor_si512(*state, carry);
            }
        }
        states
    }

    /// Eight registers, of which only the last may be short, while the ones before them are taken into
    /// the hash.
    #[inline]
    fn lot<const SEAL: bool, const ROUNDS: usize, const WAITING: usize>(
        &mut self,
        key: &GcmKey,
        cursor: &mut Cursor<'_>,
        mut sums: Sums,
        waiting: [__m512i; WAITING],
    ) -> (Sums, [__m512i; CHUNK]) {
        let key = again(key);
        let (whole, tail) = cursor.lot();
        let mut states = self.next::<CHUNK>(key);
        let (pairs, _) = waiting.as_chunks::<2>();
        for round in 1..ROUNDS {
            let round_key = broadcast(&key.aes.round_keys[round]);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
            // What was reduced just before is in the first pair: it comes last.
            if round % 2 == 0 && round / 2 <= pairs.len() {
                let pair = (round / 2) % pairs.len();
                sums = sums.add_pair(key, pairs[pair], CHUNK - WAITING + 2 * pair);
            }
        }
        let last_key = broadcast(&key.aes.round_keys[ROUNDS]);
        let (states_whole, [state]) = states.split_at_mut(CHUNK - 1) else { return (sums, states) };
        for (state, bytes) in states_whole.iter_mut().zip(whole) {
            let input = load(bytes);
            let output = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input));
            store(bytes, output);
            *state = reverse(if SEAL { output } else { input });
        }
        let (input, mask) = load_some(tail, 0);
        let output = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, input));
        store_some(tail, 0, output);
        *state = reverse(if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input });
        (sums, states)
    }

    }
}

impl Sums {
    features! {

    /// Adds two registers, the first so many from where the powers begin.
    #[inline]
    fn add_pair(self, key: &GcmKey, [a, b]: [__m512i; 2], at: usize) -> Self {
        let powers: &[[u8; 64]; 2] = key.powers.as_flattened().as_chunks().0[at..].first_chunk().expect("");
        let middle = load_pairs(&key.middles.as_chunks().0[at / 2]);
        let (power_a, power_b) = (load(&powers[0]), load(&powers[1]));
        let halves = |blocks| _mm512_xor_si512(blocks, _mm512_shuffle_epi32(blocks, 0x4e));
        Self {
            low: xor3(
                self.low,
                _mm512_clmulepi64_epi128(a, power_a, 0x00),
                _mm512_clmulepi64_epi128(b, power_b, 0x00),
            ),
            middle: xor3(
                self.middle,
                _mm512_clmulepi64_epi128(halves(a), middle, 0x00),
                _mm512_clmulepi64_epi128(halves(b), middle, 0x10),
            ),
            high: xor3(
                self.high,
                _mm512_clmulepi64_epi128(a, power_a, 0x11),
                _mm512_clmulepi64_epi128(b, power_b, 0x11),
            ),
        }
    }

    /// Adds a product.
    #[inline]
    fn add(self, blocks: __m512i, power: __m512i, middle: __m512i) -> Self {
        let halves = _mm512_xor_si512(blocks, _mm512_shuffle_epi32(blocks, 0x4e));
        Self {
            low: _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128(blocks, power, 0x00)),
            middle: _mm512_xor_si512(self.middle, _mm512_clmulepi64_epi128(halves, middle, 0x00)),
            high: _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128(blocks, power, 0x11)),
        }
    }

    /// Modulo the polynomial, lane by lane.
    #[inline]
    fn reduce(self) -> __m512i {
        let Self { low, middle, high } = self;
        let polynomial = _mm512_set1_epi64(POLYNOMIAL as i64);
        let middle = xor3(middle, low, high);
        let folded = _mm512_clmulepi64_epi128(low, polynomial, 0x00);
        let middle = xor3(middle, _mm512_shuffle_epi32(low, 0x4e), folded);
        let folded = _mm512_clmulepi64_epi128(middle, polynomial, 0x00);
        xor3(high, _mm512_shuffle_epi32(middle, 0x4e), folded)
    }

    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64(a, b, c, 0x96)
}

/// Counter blocks with counters of one byte, before the first of them those that wrapped around.
#[repr(align(64))]
struct Counters([[u8; BLOCK]; COUNTERS_BEFORE + 256]);

/// What a first register may begin with besides: counters that belong to no block of data.
const COUNTERS_BEFORE: usize = 2;

static COUNTERS: Counters = {
    let mut blocks = [[0; BLOCK]; COUNTERS_BEFORE + 256];
    let mut at = 0;
    while at < blocks.len() {
        blocks[at][BLOCK - 1] = (at as u8).wrapping_sub(COUNTERS_BEFORE as u8);
        at += 1;
    }
    Counters(blocks)
};

/// Blocks that are missing in the first register of so many bytes.
fn pad(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).wrapping_neg() % LANES
}

/// Registers that so many bytes take.
fn registers(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).div_ceil(LANES)
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
