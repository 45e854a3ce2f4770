//! GHASH: products, their sums, and what they leave modulo the polynomial.

use super::register::*;
use super::sizes::{BLOCK, LANES};
use crate::packet::gcm::{POLYNOMIAL, Powers};
use crate::x86::ordered;
use std::arch::x86_64::*;

/// Products that have yet to be reduced: Karatsuba's three.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) low: __m512i,
    pub(super) cross: __m512i,
    pub(super) high: __m512i,
}

impl Sums {
    features! {

    /// Adds two registers of data as it is sent, the first so many from where the powers begin.
    #[inline]
    pub(super) fn add_pair<const EIGHTS: usize>(
        self,
        powers: &Powers<EIGHTS>,
        [a, b]: [__m512i; 2],
        at: usize,
    ) -> Self {
        let (power_a, power_b, powers_cross_terms) = two_powers(powers, at);
        let (a, b) = (reverse(a), reverse(b));
        let (low, high) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        let cross = _mm512_xor_si512(low, high);
        Self {
            low: xor3(
                self.low,
                _mm512_clmulepi64_epi128::<0x00>(low, power_a),
                _mm512_clmulepi64_epi128::<0x01>(low, power_b),
            ),
            cross: xor3(
                self.cross,
                _mm512_clmulepi64_epi128::<0x00>(cross, powers_cross_terms),
                _mm512_clmulepi64_epi128::<0x11>(cross, powers_cross_terms),
            ),
            high: xor3(
                self.high,
                _mm512_clmulepi64_epi128::<0x10>(high, power_a),
                _mm512_clmulepi64_epi128::<0x11>(high, power_b),
            ),
        }
    }

    /// Adds a product.
    #[inline]
    pub(super) fn add(self, blocks: __m512i, power: __m512i, cross: __m512i) -> Self {
        let halves = _mm512_xor_si512(blocks, _mm512_shuffle_epi32::<0x4e>(blocks));
        Self {
            low: _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(blocks, power)),
            cross: _mm512_xor_si512(self.cross, _mm512_clmulepi64_epi128::<0x00>(halves, cross)),
            high: _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(blocks, power)),
        }
    }

    /// Those of some lanes, two bits each.
    #[inline]
    pub(super) fn lanes(self, lanes: u8) -> Self {
        Self {
            low: _mm512_maskz_mov_epi64(lanes, self.low),
            cross: _mm512_maskz_mov_epi64(lanes, self.cross),
            high: _mm512_maskz_mov_epi64(lanes, self.high),
        }
    }

    /// The sum of both.
    #[inline]
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            low: _mm512_xor_si512(self.low, other.low),
            cross: _mm512_xor_si512(self.cross, other.cross),
            high: _mm512_xor_si512(self.high, other.high),
        }
    }

    /// Modulo the polynomial, lane by lane.
    #[inline]
    pub(super) fn reduce(self) -> __m512i {
        let Self { low, cross, high } = self;
        let polynomial = _mm512_set1_epi64(POLYNOMIAL as i64);
        let cross = xor3(cross, low, high);
        let folded = _mm512_clmulepi64_epi128::<0x00>(low, polynomial);
        let cross = xor3(cross, _mm512_shuffle_epi32::<0x4e>(low), folded);
        let folded = _mm512_clmulepi64_epi128::<0x00>(cross, polynomial);
        xor3(high, _mm512_shuffle_epi32::<0x4e>(cross), folded)
    }

    }
}

features! {

#[inline]
pub(super) fn zero() -> Sums {
    let zero = _mm512_setzero_si512();
    Sums { low: zero, cross: zero, high: zero }
}

/// A block's product with a power.
#[inline]
pub(super) fn product(block: __m128i, power: &[u8; BLOCK]) -> Sums {
    let power = _mm512_zextsi128_si512(load_block(power));
    zero().add(_mm512_zextsi128_si512(block), power, cross_term_of(power))
}

/// The tag, from the sums of a message's products in all lanes and from its key stream.
#[inline]
pub(super) fn tag_of(sums: Sums, stream: __m128i) -> __m128i {
    _mm_xor_si128(reverse_block(fold(sums.reduce())), stream)
}

/// The powers of a register and their cross_terms.
#[inline]
pub(super) fn powers<const EIGHTS: usize>(powers: &Powers<EIGHTS>, at: usize) -> (__m512i, __m512i) {
    let power = load_blocks(&powers.all().as_chunks().0[at]);
    let cross = load_pairs(&powers.cross_terms[at / 2]);
    (power, if at.is_multiple_of(2) { cross } else { _mm512_shuffle_epi32::<0x4e>(cross) })
}

/// The powers that two registers are multiplied by, and their cross terms: the first one's in the
/// low halves, the second one's in the high halves.
#[inline]
pub(super) fn two_powers<const EIGHTS: usize>(
    powers: &Powers<EIGHTS>,
    at: usize,
) -> (__m512i, __m512i, __m512i) {
    let Powers { powers, cross_terms } = powers;
    let [a, b] = powers.as_flattened().as_chunks::<LANES>().0[at..].first_chunk().expect("two registers");
    (load_blocks(a), load_blocks(b), load_pairs(&cross_terms[at / 2]))
}

/// The sums of each message, a lane each.
#[inline]
pub(super) fn sum_messages([a, b, c, d]: &[Sums; LANES]) -> Sums {
    Sums {
        low: sum_lanes([a.low, b.low, c.low, d.low]),
        cross: sum_lanes([a.cross, b.cross, c.cross, d.cross]),
        high: sum_lanes([a.high, b.high, c.high, d.high]),
    }
}

/// Sums up the lanes of each.
#[inline]
pub(super) fn sum_lanes([a, b, c, d]: [__m512i; LANES]) -> __m512i {
    let halves = |a, b| {
        _mm512_xor_si512(_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b))
    };
    let (ab, cd) = (halves(a, b), halves(c, d));
    _mm512_xor_si512(_mm512_shuffle_i32x4::<0x88>(ab, cd), _mm512_shuffle_i32x4::<0xdd>(ab, cd))
}

/// The sum of all lanes.
#[inline]
pub(super) fn fold(value: __m512i) -> __m128i {
    let halves = _mm256_xor_si256(
        _mm512_castsi512_si256(value),
        _mm512_extracti64x4_epi64::<1>(value),
    );
    _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1))
}

/// The halves of each power, xored: for Karatsuba's cross term.
#[inline]
pub(super) fn cross_term_of(power: __m512i) -> __m512i {
    _mm512_xor_si512(power, _mm512_shuffle_epi32::<0x4e>(power))
}

/// All blocks of a message so far as one, as it is sent: it belongs where the second of the next
/// blocks is.
#[inline]
pub(super) fn carry(sums: Sums) -> __m512i {
    let Sums { low, cross, high } = sums;
    let lanes = Sums { low: ordered(low), cross, high }.reduce();
    let halves = _mm512_xor_si512(lanes, _mm512_shuffle_i32x4::<0x4e>(lanes, lanes));
    let others = _mm512_shuffle_i32x4::<0xb1>(halves, halves);
    ordered(reverse(_mm512_maskz_xor_epi64(0b1100, halves, others)))
}

}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}
