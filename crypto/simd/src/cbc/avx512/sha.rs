//! SHA-1 and SHA-256 in lanes: a register holds one word of each of the 16 lanes. The rounds are
//! written out, so that every word of state and schedule stays in a register.

use super::registers::{load_words, store_words, transpose_quarters};
use crate::cbc::hash::BLOCK_BYTES;
use crate::cbc::lanes::{LANES, States};
use crate::cbc::portable::SHA256_CONSTANTS;
use crate::x86::{load, ordered};
use std::arch::x86_64::*;

/// Truth tables of three operands, for `vpternlogd`.
pub(super) const CHOOSE: i32 = 0xca;
pub(super) const MAJORITY: i32 = 0xe8;
pub(super) const XOR3: i32 = 0x96;

/// One block of SHA-1 in every lane: the state, the 16 words of the block, and a macro that does
/// something else beside round `t`.
macro_rules! sha1_block {
    ($state:ident, $w:ident, $beside:ident) => {
        let [mut a, mut b, mut c, mut d, mut e] = $state;
        macro_rules! round {
            ($a:ident $b:ident $c:ident $d:ident $e:ident, $f:ident, $k:literal, $t:expr) => {
                if $t >= 16 {
                    let mixed = xor3($w[($t + 13) % 16], $w[($t + 8) % 16], $w[($t + 2) % 16]);
                    let mixed = _mm512_xor_si512(mixed, $w[$t % 16]);
                    $w[$t % 16] = _mm512_rol_epi32::<1>(mixed);
                }
                let known = add($w[$t % 16], _mm512_set1_epi32(u32::cast_signed($k)));
                let known = add(known, $e);
                let known = add(known, _mm512_ternarylogic_epi32::<$f>($b, $c, $d));
                $e = add(known, _mm512_rol_epi32::<5>($a));
                $b = _mm512_rol_epi32::<30>($b);
                $beside!($t);
            };
        }
        macro_rules! five {
                                                            ($f:ident, $k:literal, $t:expr) => {
                                                                round!(a b c d e, $f, $k, $t);
                                                                round!(e a b c d, $f, $k, $t + 1);
                                                                round!(d e a b c, $f, $k, $t + 2);
                                                                round!(c d e a b, $f, $k, $t + 3);
                                                                round!(b c d e a, $f, $k, $t + 4);
                                                            };
                                                        }
        macro_rules! twenty {
            ($f:ident, $k:literal, $t:literal) => {
                five!($f, $k, $t);
                five!($f, $k, $t + 5);
                five!($f, $k, $t + 10);
                five!($f, $k, $t + 15);
            };
        }
        twenty!(CHOOSE, 0x5a82_7999, 0);
        twenty!(XOR3, 0x6ed9_eba1, 20);
        twenty!(MAJORITY, 0x8f1b_bcdc, 40);
        twenty!(XOR3, 0xca62_c1d6, 60);
        for (state, word) in $state.iter_mut().zip([a, b, c, d, e]) {
            *state = add(*state, word);
        }
    };
}
pub(super) use sha1_block;

/// See [`Backend::compress`](crate::cbc::backend::Backend::compress).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn sha1(states: &mut States, inputs: &[&[u8]; LANES], blocks: usize) {
    macro_rules! nothing {
        ($t:expr) => {};
    }
    let mut state = get::<5>(states);
    for block in 0..blocks {
        let mut w = message::<5>(blocks_at(inputs, block));
        sha1_block!(state, w, nothing);
    }
    put(states, state);
}

/// See [`Backend::compress`](crate::cbc::backend::Backend::compress).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn sha256(states: &mut States, inputs: &[&[u8]; LANES], blocks: usize) {
    let mut state = get::<8>(states);
    for block in 0..blocks {
        let w = message::<8>(blocks_at(inputs, block));
        sha256_block(&mut state, w);
    }
    put(states, state);
}

/// One block of SHA-256 in every lane: the 16 words of the block into the state.
#[inline]
#[target_feature(enable = "avx512f")]
fn sha256_block(state: &mut [__m512i; 8], mut w: [__m512i; 16]) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    macro_rules! round {
        ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $t:expr) => {
            if $t >= 16 {
                let (near, far) = (w[($t + 1) % 16], w[($t + 14) % 16]);
                let near = sigma::<7, 18, 3>(near);
                let far = sigma::<17, 19, 10>(far);
                w[$t % 16] = add(add(w[$t % 16], w[($t + 9) % 16]), add(near, far));
            }
            let k = _mm512_set1_epi32(SHA256_CONSTANTS[$t].cast_signed());
            let known = add(add(w[$t % 16], k), $h);
            let known = add(known, _mm512_ternarylogic_epi32::<CHOOSE>($e, $f, $g));
            let first = add(known, turn::<6, 11, 25>($e));
            let majority = _mm512_ternarylogic_epi32::<MAJORITY>($a, $b, $c);
            let second = add(majority, turn::<2, 13, 22>($a));
            $d = add($d, first);
            $h = add(first, second);
        };
    }
    macro_rules! eight {
        ($t:expr) => {
            round!(a b c d e f g h, $t);
            round!(h a b c d e f g, $t + 1);
            round!(g h a b c d e f, $t + 2);
            round!(f g h a b c d e, $t + 3);
            round!(e f g h a b c d, $t + 4);
            round!(d e f g h a b c, $t + 5);
            round!(c d e f g h a b, $t + 6);
            round!(b c d e f g h a, $t + 7);
        };
    }
    eight!(0);
    eight!(8);
    eight!(16);
    eight!(24);
    eight!(32);
    eight!(40);
    eight!(48);
    eight!(56);
    for (state, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *state = add(*state, word);
    }
}

/// See [`Backend::finish`](crate::cbc::backend::Backend::finish).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn finish_sha1(digests: &States, outer: &mut States) {
    macro_rules! nothing {
        ($t:expr) => {};
    }
    let mut state = get::<5>(outer);
    let mut w = padded(get::<5>(digests));
    sha1_block!(state, w, nothing);
    put(outer, state);
}

/// See [`Backend::finish`](crate::cbc::backend::Backend::finish).
#[target_feature(enable = "avx512f,avx512bw,vaes")]
pub(super) fn finish_sha256(digests: &States, outer: &mut States) {
    let mut state = get::<8>(outer);
    sha256_block(&mut state, padded(get::<8>(digests)));
    put(outer, state);
}

/// The block that a digest and its padding make, behind a block of key.
#[inline]
#[target_feature(enable = "avx512f")]
fn padded<const WORDS: usize>(digest: [__m512i; WORDS]) -> [__m512i; 16] {
    let mut w = [_mm512_setzero_si512(); 16];
    w[..WORDS].copy_from_slice(&digest);
    w[WORDS] = _mm512_set1_epi32(i32::MIN);
    w[15] = _mm512_set1_epi32(8 * (BLOCK_BYTES + 4 * WORDS) as i32);
    w
}

/// The words of a state.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn get<const WORDS: usize>(states: &States) -> [__m512i; WORDS] {
    let mut state = [_mm512_setzero_si512(); WORDS];
    for (state, words) in state.iter_mut().zip(&states.0) {
        *state = load_words(words);
    }
    state
}

/// The words of a state, back where they were.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn put<const WORDS: usize>(states: &mut States, state: [__m512i; WORDS]) {
    for (words, state) in states.0.iter_mut().zip(state) {
        store_words(words, state);
    }
}

/// A block of every lane.
#[inline]
fn blocks_at<'a>(inputs: &[&'a [u8]; LANES], block: usize) -> [&'a [u8; BLOCK_BYTES]; LANES] {
    let mut blocks = [&[0; BLOCK_BYTES]; LANES];
    for (blocks, input) in blocks.iter_mut().zip(inputs) {
        if let Some(bytes) = input.as_chunks().0.get(block) {
            *blocks = bytes;
        }
    }
    blocks
}

/// The first 16 words of the message schedule: a block of every lane, turned from lane by lane to
/// word by word, and from big-endian. Every caller asks for a copy of its own, which then is part
/// of it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn message<const COPY: usize>(blocks: [&[u8; BLOCK_BYTES]; LANES]) -> [__m512i; 16] {
    // Register i of quarter q is lane q + 4i, and after transposing words 4i to 4i + 3 of lanes q,
    // q + 4, q + 8 and q + 12, so that what remains is to transpose words within the quarters.
    let mut quarters = [[_mm512_setzero_si512(); 4]; 4];
    for q in 0..4 {
        for i in 0..4 {
            quarters[q][i] = load(blocks[q + 4 * i]);
        }
        quarters[q] = transpose_quarters(quarters[q]);
    }
    let mut w = [_mm512_setzero_si512(); 16];
    for r in 0..4 {
        let words =
            transpose_words([quarters[0][r], quarters[1][r], quarters[2][r], quarters[3][r]]);
        for (word, value) in words.into_iter().enumerate() {
            w[4 * r + word] = big_endian(value);
        }
    }
    w
}

/// Transposes four by four words within every quarter. Quarter i of the result then holds lanes
/// 4i to 4i + 3.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_words([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab_low, cd_low),
        _mm512_unpackhi_epi64(ab_low, cd_low),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn big_endian(words: __m512i) -> __m512i {
    let order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    // Here, lest the compiler makes this and the transposition before it one longer thing.
    _mm512_shuffle_epi8(ordered(words), _mm512_broadcast_i32x4(order))
}

/// The sum, in the order that is written: the compiler would gather the terms of a round so that
/// all wait for the one that is known last, a fifth slower.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add(a: __m512i, b: __m512i) -> __m512i {
    ordered(_mm512_add_epi32(a, b))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR3>(a, b, c)
}

/// Σ of FIPS 180-4 § 4.1.2.
#[inline]
#[target_feature(enable = "avx512f")]
fn turn<const A: i32, const B: i32, const C: i32>(x: __m512i) -> __m512i {
    xor3(_mm512_ror_epi32::<A>(x), _mm512_ror_epi32::<B>(x), _mm512_ror_epi32::<C>(x))
}

/// σ of FIPS 180-4 § 4.1.2.
#[inline]
#[target_feature(enable = "avx512f")]
fn sigma<const A: i32, const B: i32, const SHIFT: u32>(x: __m512i) -> __m512i {
    xor3(_mm512_ror_epi32::<A>(x), _mm512_ror_epi32::<B>(x), _mm512_srli_epi32::<SHIFT>(x))
}
