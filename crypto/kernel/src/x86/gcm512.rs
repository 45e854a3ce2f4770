//! AES-GCM and header masks with AVX-512, VAES and VPCLMULQDQ.
//!
//! Four messages go together, a *lane* of 128 bits each in what they have one block of: the tag's key
//! stream, the block of additional data, the block of lengths, the reduction. Their data goes in *rows* of
//! registers of four blocks, flush right: a register's place from the end says which powers of H its
//! blocks are multiplied by, whatever the length.

use super::gcm::POLYNOMIAL;
use crate::aes::Rounds;
use crate::chacha;
use crate::packet::{
    AeadForm, AeadKey, GcmKey, HeaderForm, HeaderKey, NONCE_BYTES, Open, POWERS, Room,
    SAMPLE_BYTES, Seal,
};
use crate::portable::Library;
use core::arch::x86_64::*;
use core::{array, ptr, slice};

/// Bytes of a block.
const BLOCK: usize = 16;
/// Messages that go together, and blocks of a register.
const LANES: usize = 4;
/// Registers that go through the cipher together: so many that its latency does not show.
const LOT: usize = 4;
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

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        // SAFETY: `detect` has seen the features.
        unsafe { masks(self, samples) }
    }
}

/// What messages to seal and messages to open have in common.
trait Message<'k> {
    fn key(&self) -> &'k AeadKey;
    fn nonce(&self) -> &[u8; NONCE_BYTES];
    fn aad(&self) -> &[u8];
    fn data(&mut self) -> &mut [u8];
    /// Writes the tag or compares it.
    fn finish(&mut self, tag: u128);
    /// For keys of another form.
    fn library(&mut self);
}

impl<'k> Message<'k> for Seal<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn nonce(&self) -> &[u8; NONCE_BYTES] {
        &self.nonce
    }

    fn aad(&self) -> &[u8] {
        self.aad
    }

    fn data(&mut self) -> &mut [u8] {
        self.data
    }

    fn finish(&mut self, tag: u128) {
        *self.tag = tag.to_le_bytes();
    }

    fn library(&mut self) {
        Library.seal(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Open<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn nonce(&self) -> &[u8; NONCE_BYTES] {
        &self.nonce
    }

    fn aad(&self) -> &[u8] {
        self.aad
    }

    fn data(&mut self) -> &mut [u8] {
        self.data
    }

    fn finish(&mut self, tag: u128) {
        // All bits at once, whichever differ.
        self.authentic = tag ^ u128::from_le_bytes(self.tag) == 0;
        if !self.authentic {
            self.data.fill(0);
        }
    }

    fn library(&mut self) {
        Library.open(slice::from_mut(self));
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
        let Some(rounds) = rounds(first) else {
            first.library();
            at += 1;
            continue;
        };
        if let Some(group) = messages[at..].first_chunk_mut::<LANES>()
            && group.iter().all(|message| self::rounds(message) == Some(rounds))
        {
            match rounds {
                Rounds::Ten => together::<M, SEAL, 10, LANES>(group),
                Rounds::Fourteen => together::<M, SEAL, 14, LANES>(group),
            }
            at += LANES;
        } else {
            let alone = array::from_mut(&mut messages[at]);
            match rounds {
                Rounds::Ten => together::<M, SEAL, 10, 1>(alone),
                Rounds::Fourteen => together::<M, SEAL, 14, 1>(alone),
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

/// Messages side by side, one in each lane.
fn together<'k, M: Message<'k>, const SEAL: bool, const ROUNDS: usize, const N: usize>(
    messages: &mut [M; N],
) {
    let keys: [_; N] = array::from_fn(|at| gcm(&messages[at]));
    let [Some(key), ..] = keys[..] else { return };
    let keys = keys.map(|other| other.unwrap_or(key));
    let same = keys.iter().all(|other| ptr::eq(*other, key));
    let key_of = |lane: usize| if lane < N { keys[lane] } else { key };

    let mut nonces = [_mm_setzero_si128(); LANES];
    let mut headers = [_mm_setzero_si128(); LANES];
    let mut lengths = [_mm_setzero_si128(); LANES];
    // Those without data, two bits each.
    let mut empty = 0;
    for (lane, message) in messages.iter_mut().enumerate() {
        nonces[lane] = load_nonce(message.nonce());
        headers[lane] = last_of_aad(keys[lane], message.aad());
        let (aad, data) = (message.aad().len(), message.data().len());
        lengths[lane] = _mm_set_epi64x(8 * aad as i64, 8 * data as i64);
        empty |= u8::from(data == 0) * (3 << (2 * lane));
    }
    let first = of_lanes(same, |lane| &key_of(lane).first);
    let first_middle = middles_of_lanes(same, |lane| &key_of(lane).first_middle);

    let mut stream = _mm512_or_si512(join(nonces), every_lane(1 << 24));
    for round in 0..=ROUNDS {
        let round_key = of_lanes(same, |lane| &key_of(lane).aes.round_keys[round]);
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
        let data = Row::new(message.data());
        rows[lane] = row::<SEAL, ROUNDS>(keys[lane], nonces[lane], data, befores[lane]);
    }
    let sums = Sums {
        low: sum_lanes(rows.each_ref().map(|row| row.low)),
        middle: sum_lanes(rows.each_ref().map(|row| row.middle)),
        high: sum_lanes(rows.each_ref().map(|row| row.high)),
    };
    let lengths = join(lengths);
    let lengths = _mm512_mask_xor_epi64(lengths, empty, lengths, before);
    let hashes = sums.add(lengths, first, first_middle).reduce();
    let tags = split(_mm512_xor_si512(reverse(hashes), stream));
    for (message, tag) in messages.iter_mut().zip(tags) {
        message.finish(number(tag));
    }
}

/// The data of a message: encrypts or decrypts it, and returns what its blocks times their powers of
/// H sum up to. `before` is added to the first block.
fn row<const SEAL: bool, const ROUNDS: usize>(
    key: &GcmKey,
    nonce: __m128i,
    mut data: Row<'_>,
    before: __m128i,
) -> Sums {
    let pad = data.pad();
    let ends = _mm512_set_epi32(5, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0);
    let ends = _mm512_sub_epi32(ends, every_lane(pad as i32));
    let mut counters = _mm512_add_epi32(ends, _mm512_broadcast_i32x4(nonce));
    let mut carry = _mm512_maskz_broadcast_i32x4(0x000f << (4 * pad), before);
    let mut sums = zero();
    let mut left = data.registers();
    while left > 0 {
        let last = left <= CHUNK;
        let mut chunk = if last { left } else { (left - 1) % CHUNK + 1 };
        left -= chunk;
        while chunk > 0 {
            let place = Place { last, distance: chunk };
            let lot = (chunk - 1) % LOT + 1;
            chunk -= lot;
            let (data, counters) = (&mut data, &mut counters);
            sums = match lot {
                1 => lot_of::<SEAL, ROUNDS, 1>(key, data, counters, carry, sums, place),
                2 => lot_of::<SEAL, ROUNDS, 2>(key, data, counters, carry, sums, place),
                3 => lot_of::<SEAL, ROUNDS, 3>(key, data, counters, carry, sums, place),
                _ => lot_of::<SEAL, ROUNDS, LOT>(key, data, counters, carry, sums, place),
            };
            carry = _mm512_setzero_si512();
        }
        if !last {
            carry = sums.reduce();
            sums = zero();
        }
    }
    sums
}

/// `N` registers of a row.
fn lot_of<const SEAL: bool, const ROUNDS: usize, const N: usize>(
    key: &GcmKey,
    data: &mut Row<'_>,
    counters: &mut __m512i,
    carry: __m512i,
    mut sums: Sums,
    place: Place,
) -> Sums {
    let round_key = |round: usize| broadcast(&key.aes.round_keys[round]);
    let mut states = [_mm512_setzero_si512(); N];
    for state in &mut states {
        *state = _mm512_xor_si512(big_endian(*counters), round_key(0));
        *counters = _mm512_add_epi32(*counters, every_lane(4));
    }
    for round in 1..ROUNDS {
        let round_key = round_key(round);
        for state in &mut states {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    }
    let round_key = round_key(ROUNDS);
    for (at, state) in states.into_iter().enumerate() {
        let (input, mask) = data.get();
        let output = _mm512_aesenclast_epi128(state, _mm512_xor_si512(round_key, input));
        data.put(output);
        let sealed = if SEAL { _mm512_maskz_mov_epi8(mask, output) } else { input };
        let hashed = reverse(sealed);
        let hashed = if at == 0 { _mm512_xor_si512(hashed, carry) } else { hashed };
        let place = Place { distance: place.distance - at, ..place };
        let (power, middle) = place.powers(key);
        sums = sums.add(hashed, power, middle);
    }
    sums
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

/// Up to a block, its bytes reversed.
#[inline]
fn load_part(bytes: &[u8]) -> __m128i {
    let mask = _bzhi_u32(0xffff, bytes.len().min(BLOCK) as u32) as u16;
    // SAFETY: the mask has a bit for each byte there is, and what has none is not read.
    let block = unsafe { _mm_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(block, order)
}

/// A nonce, and room for the counter.
#[inline]
fn load_nonce(nonce: &[u8; NONCE_BYTES]) -> __m128i {
    // SAFETY: the reference is good for three words of four bytes, which the mask stands for.
    unsafe { _mm_maskz_loadu_epi32(7, nonce.as_ptr().cast()) }
}

/// One key's block in all lanes, or each lane's own.
#[inline]
fn of_lanes<'k>(same: bool, block: impl Fn(usize) -> &'k [u8; BLOCK]) -> __m512i {
    if same { broadcast(block(0)) } else { join(array::from_fn(|lane| load_block(block(lane)))) }
}

#[inline]
fn middles_of_lanes<'k>(same: bool, pair: impl Fn(usize) -> &'k [u64; 2]) -> __m512i {
    if same { broadcast_middle(pair(0)) } else { join(array::from_fn(|lane| load_pair(pair(lane)))) }
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

/// Four masks at a time.
fn masks(room: Gcm512, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    for sample in &mut *samples {
        let key = match &sample.0.0 {
            HeaderForm::Aes(key) => key,
            HeaderForm::ChaCha(_) => {
                chacha = true;
                continue;
            }
            HeaderForm::Library(_) => {
                Library.masks(slice::from_mut(sample));
                continue;
            }
        };
        let (_, sample) = sample;
        let keys = &key.aes.round_keys[..=key.aes.rounds as usize];
        let [first, middle @ .., last] = keys else { continue };
        let mut state = _mm_xor_si128(load_block(sample), load_block(first));
        for key in middle {
            state = _mm_aesenc_si128(state, load_block(key));
        }
        *sample = number(_mm_aesenclast_si128(state, load_block(last))).to_le_bytes();
    }
    if chacha {
        chacha::masks(room, samples);
    }
}

}

impl Sums {
    features! {

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

/// Where a register is among those that are reduced together.
#[derive(Clone, Copy)]
struct Place {
    /// Whether the message ends there.
    last: bool,
    /// How many registers it is from the end, 1 for the last.
    distance: usize,
}

impl Place {
    features! {

    /// What the register is multiplied by, and the middles of it.
    #[inline]
    fn powers(self, key: &GcmKey) -> (__m512i, __m512i) {
        let (powers, middles) = (key.powers.as_chunks().0, key.middles.as_chunks::<LANES>().0);
        let from = CHUNK - self.distance;
        let (power, middle) = if self.last {
            (load_blocks(&powers[from]), load_pairs(&middles[from / 2]))
        } else {
            // Lane by lane: all go as far as the next register's same lane.
            let (powers, middles): (&[[u8; 16]; LANES], _) = (&powers[from], &middles[from / 2]);
            (broadcast(&powers[1]), broadcast_middle(&middles[1]))
        };
        let odd = from % 2 == 1;
        (power, if odd { _mm512_shuffle_epi32(middle, 0x4e) } else { middle })
    }

    }
}

/// A message's data in registers, flush right: the first register begins with `pad` blocks that are not
/// there.
struct Row<'m> {
    data: &'m mut [u8],
    /// Where the next register begins, from the start of the data.
    next: isize,
}

impl<'m> Row<'m> {
    fn new(data: &'m mut [u8]) -> Self {
        let blocks = data.len().div_ceil(BLOCK);
        let pad = blocks.next_multiple_of(LANES) - blocks;
        Self { data, next: -((BLOCK * pad) as isize) }
    }

    fn pad(&self) -> usize {
        self.next.unsigned_abs() / BLOCK
    }

    fn registers(&self) -> usize {
        self.data.len().div_ceil(BLOCK).div_ceil(LANES)
    }

    features! {

    /// Which bytes of the next register there are.
    #[inline]
    fn mask(&self) -> u64 {
        let end = self.data.len() as isize - self.next;
        let before = self.next.min(0).unsigned_abs() as u32;
        _bzhi_u64(u64::MAX, end.clamp(0, 64) as u32) & (u64::MAX).checked_shl(before).unwrap_or(0)
    }

    /// The next register, and which bytes of it are there.
    #[inline]
    fn get(&self) -> (__m512i, u64) {
        let mask = self.mask();
        let from = self.data.as_ptr().wrapping_offset(self.next);
        // SAFETY: the mask stands for bytes of the data, and what is not in it is not read.
        (unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }, mask)
    }

    /// Replaces the next register and goes on.
    #[inline]
    fn put(&mut self, value: __m512i) {
        let mask = self.mask();
        let to = self.data.as_mut_ptr().wrapping_offset(self.next);
        // SAFETY: the mask stands for bytes of the data, and what is not in it is not written.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, value) }
        self.next += 64;
    }

    }
}
