//! Registers of one block, in SSE with AES-NI, and of two, in AVX2 with VAES.

use crate::packet::detected::{Aesni, Avx2};
use crate::packet::gcm256::width::{Block, EIGHT, REVERSED, Width, instructions};
use std::arch::asm;
use std::arch::x86_64::*;

impl Aesni {
    /// The cipher's S-box on a word's bytes.
    pub(crate) fn substitute(self, word: [u8; 4]) -> [u8; 4] {
        #[target_feature(enable = "aes")]
        fn run(word: [u8; 4]) -> [u8; 4] {
            let words = _mm_set1_epi32(i32::from_le_bytes(word));
            _mm_cvtsi128_si32(_mm_aeskeygenassist_si128(words, 0)).to_le_bytes()
        }
        // SAFETY: `detect` has seen the feature.
        unsafe { run(word) }
    }

    instructions! {
        /// A block without memory in between.
        pub(crate) fn number(value: u128) -> __m128i = _mm_set_epi64x((value >> 64) as i64, value as i64);
    }

    /// A nonce and four zeros: an IV, its last eight bytes xored with a number, the lowest last.
    #[inline(always)]
    pub(crate) fn nonce(self, iv: u128, number: u64) -> __m128i {
        const PLACES: Block = [128, 128, 128, 128, 7, 6, 5, 4, 3, 2, 1, 0, 128, 128, 128, 128];
        self.xor(self.number(iv), self.shuffle(self.number(number.into()), &PLACES))
    }

    /// Each byte from where the order says, zero where that has its highest bit set.
    #[inline(always)]
    pub(crate) fn shuffle(self, value: __m128i, order: &Block) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_shuffle_epi8(value, self.load(order)) }
    }

    #[inline(always)]
    pub(crate) fn and(self, value: __m128i, mask: &Block) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_and_si128(value, self.load(mask)) }
    }

    instructions! {
        /// How many bytes of a header of so many, up to a block, come behind each place. Behind the
        /// header, it is negative.
        pub(crate) fn places(bytes: usize) -> __m128i = places(bytes);
        /// The header that a block begins with, and zeros behind it. It ends with this number, in
        /// as many bytes as its first byte says: no address and no branch depends on these.
        pub(crate) fn header(start: __m128i, places: __m128i, number: u64) -> __m128i = header(start, places, number);
        /// A header with its mask applied (RFC 9001 § 5.4.1). The bytes behind it are of no use any
        /// more.
        pub(crate) fn masked(header: __m128i, mask: __m128i, places: __m128i) -> __m128i = masked(header, mask, places);
        /// A header with its mask taken off, its first byte without it being known.
        pub(crate) fn unmasked(header: __m128i, mask: __m128i, first: u8, number_at: usize) -> __m128i = unmasked(header, mask, first, number_at);
        /// The header that a block begins with, and what another has behind it.
        pub(crate) fn beginning(block: __m128i, places: __m128i, behind: __m128i) -> __m128i = beginning(block, places, behind);
    }
}

impl Width for Aesni {
    type Register = __m128i;
    type Bytes = Block;
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn w128(self) -> Aesni {
        self
    }

    #[inline(always)]
    fn split(bytes: &mut [u8]) -> (&mut [Block], &mut [u8]) {
        bytes.as_chunks_mut()
    }

    instructions! {
        fn load(bytes: &Block) -> __m128i = _mm_loadu_si128(bytes.as_ptr().cast());
    }

    #[inline(always)]
    fn store(self, bytes: &mut Block, value: __m128i) {
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn all(self, block: &Block) -> __m128i {
        self.load(block)
    }

    #[inline(always)]
    fn blocks(self, blocks: &[Block]) -> __m128i {
        self.load(&blocks[0])
    }

    #[inline(always)]
    fn powers(self, powers: &[Block; EIGHT], at: usize) -> __m128i {
        self.load(&powers[at])
    }

    instructions! {
        fn cross_terms(cross_terms: &[[u64; 2]; EIGHT / 2], at: usize) -> __m128i = _mm_loadu_si128(cross_terms[at].as_ptr().cast());
    }

    #[inline(always)]
    fn lowest(self, block: __m128i) -> __m128i {
        block
    }

    #[inline(always)]
    fn join(self, _: __m128i, high: __m128i) -> __m128i {
        high
    }

    #[inline(always)]
    fn low_block(self, value: __m128i) -> __m128i {
        value
    }

    #[inline(always)]
    fn high_block(self, value: __m128i) -> __m128i {
        value
    }

    instructions! {
        fn low_halves(a: __m128i, b: __m128i) -> __m128i = _mm_unpacklo_epi64(a, b);
        fn high_halves(a: __m128i, b: __m128i) -> __m128i = _mm_unpackhi_epi64(a, b);
    }

    #[inline(always)]
    fn multiply<const HALVES: i32>(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_clmulepi64_si128(a, b, HALVES) }
    }

    instructions! {
        fn xor(a: __m128i, b: __m128i) -> __m128i = _mm_xor_si128(a, b);
    }

    #[inline(always)]
    fn reverse(self, value: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_shuffle_epi8(value, self.load(&REVERSED)) }
    }

    instructions! {
        fn swap(value: __m128i) -> __m128i = _mm_shuffle_epi32(value, 0x4e);
        fn round(state: __m128i, key: __m128i) -> __m128i = _mm_aesenc_si128(state, key);
        fn last_round(state: __m128i, key: __m128i) -> __m128i = _mm_aesenclast_si128(state, key);
    }

    #[inline(always)]
    fn high_only(self, value: __m128i) -> __m128i {
        value
    }

    #[inline(always)]
    fn ordered(self, mut value: __m128i) -> __m128i {
        // SAFETY: no instruction at all.
        unsafe { asm!("/* {} */", inout(xmm_reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    #[inline(always)]
    fn sum(self, value: __m128i) -> __m128i {
        value
    }
}

impl Width for Avx2 {
    type Register = __m256i;
    type Bytes = [u8; 32];
    const BLOCKS: usize = 2;

    #[inline(always)]
    fn w128(self) -> Aesni {
        self.aesni()
    }

    #[inline(always)]
    fn split(bytes: &mut [u8]) -> (&mut [[u8; 32]], &mut [u8]) {
        bytes.as_chunks_mut()
    }

    instructions! {
        fn load(bytes: &[u8; 32]) -> __m256i = _mm256_loadu_si256(bytes.as_ptr().cast());
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; 32], value: __m256i) {
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn all(self, block: &Block) -> __m256i {
        let block = self.aesni().load(block);
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_broadcastsi128_si256(block) }
    }

    #[inline(always)]
    fn blocks(self, blocks: &[Block]) -> __m256i {
        self.load(&blocks.as_flattened().as_chunks().0[0])
    }

    #[inline(always)]
    fn powers(self, powers: &[Block; EIGHT], at: usize) -> __m256i {
        self.load(&powers.as_flattened().as_chunks().0[at])
    }

    #[inline(always)]
    fn cross_terms(self, cross_terms: &[[u64; 2]; EIGHT / 2], at: usize) -> __m256i {
        let pairs: &[[[u64; 2]; 2]] = cross_terms.as_chunks().0;
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_loadu_si256(pairs[at].as_ptr().cast()) }
    }

    instructions! {
        fn lowest(block: __m128i) -> __m256i = _mm256_zextsi128_si256(block);
        fn join(low: __m128i, high: __m128i) -> __m256i = two(low, high);
        fn low_block(value: __m256i) -> __m128i = _mm256_castsi256_si128(value);
        fn high_block(value: __m256i) -> __m128i = _mm256_extracti128_si256(value, 1);
        fn low_halves(a: __m256i, b: __m256i) -> __m256i = _mm256_unpacklo_epi64(a, b);
        fn high_halves(a: __m256i, b: __m256i) -> __m256i = _mm256_unpackhi_epi64(a, b);
    }

    #[inline(always)]
    fn multiply<const HALVES: i32>(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_clmulepi64_epi128(a, b, HALVES) }
    }

    instructions! {
        fn xor(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
    }

    #[inline(always)]
    fn reverse(self, value: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_shuffle_epi8(value, self.all(&REVERSED)) }
    }

    instructions! {
        fn swap(value: __m256i) -> __m256i = _mm256_shuffle_epi32(value, 0x4e);
        fn round(state: __m256i, key: __m256i) -> __m256i = _mm256_aesenc_epi128(state, key);
        fn last_round(state: __m256i, key: __m256i) -> __m256i = _mm256_aesenclast_epi128(state, key);
        fn high_only(value: __m256i) -> __m256i = high_of_two(value);
        fn ordered(value: __m256i) -> __m256i = two_ordered(value);
        fn sum(value: __m256i) -> __m128i = sum_of_two(value);
    }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn places(bytes: usize) -> __m128i {
    _mm_sub_epi8(_mm_set1_epi8(bytes as i8 - 1), each_byte())
}

#[inline]
#[target_feature(enable = "ssse3")]
fn header(start: __m128i, places: __m128i, number: u64) -> __m128i {
    // From the header's end on, a number's bytes are counted, the lowest first; negative ones make
    // zeros.
    let number = _mm_shuffle_epi8(_mm_cvtsi64_si128(number as i64), places);
    let before = _mm_cmpgt_epi8(places, last_of_number(start));
    _mm_or_si128(_mm_and_si128(before, start), _mm_andnot_si128(before, number))
}

/// How many bytes a number has, less one, in each place: the lowest bits of an unprotected header's
/// first byte.
#[inline]
#[target_feature(enable = "ssse3")]
fn last_of_number(header: __m128i) -> __m128i {
    _mm_and_si128(_mm_shuffle_epi8(header, _mm_setzero_si128()), _mm_set1_epi8(3))
}

#[inline]
#[target_feature(enable = "ssse3")]
fn masked(header: __m128i, mask: __m128i, places: __m128i) -> __m128i {
    // Four bits of a long header's first byte, five of a short one's.
    let long = _mm_and_si128(_mm_srli_epi16::<3>(header), _mm_cvtsi32_si128(0x10));
    let first = _mm_and_si128(mask, _mm_xor_si128(long, _mm_cvtsi32_si128(0x1f)));
    let number = number_mask(mask, _mm_sub_epi8(last_of_number(header), places));
    _mm_xor_si128(header, _mm_xor_si128(first, number))
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn unmasked(header: __m128i, mask: __m128i, first: u8, number_at: usize) -> __m128i {
    let order = _mm_sub_epi8(each_byte(), _mm_set1_epi8(number_at as i8));
    let header = _mm_xor_si128(header, number_mask(mask, order));
    _mm_insert_epi8::<0>(header, first.into())
}

/// The mask of a number: the second byte of `mask` is for its first. The order is how many
/// bytes behind that each place is; before it they are negative, which makes zeros.
#[inline]
#[target_feature(enable = "ssse3")]
fn number_mask(mask: __m128i, order: __m128i) -> __m128i {
    _mm_shuffle_epi8(_mm_srli_si128::<1>(mask), order)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn beginning(block: __m128i, places: __m128i, behind: __m128i) -> __m128i {
    _mm_blendv_epi8(block, behind, places)
}

/// Where each byte is.
#[inline]
#[target_feature(enable = "sse2")]
fn each_byte() -> __m128i {
    _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
}

#[inline]
#[target_feature(enable = "avx2")]
fn two(low: __m128i, high: __m128i) -> __m256i {
    _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn high_of_two(value: __m256i) -> __m256i {
    _mm256_blend_epi32(value, _mm256_setzero_si256(), 0x0f)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_two(value: __m256i) -> __m128i {
    _mm_xor_si128(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn two_ordered(mut value: __m256i) -> __m256i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(ymm_reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
