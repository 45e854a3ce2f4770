//! Registers of one block and of two, so that what is done with them is written once: in SSE with
//! AES-NI, and in AVX2 with VAES.
//!
//! All of it is inlined, `always`, into functions that have the features: a call in between would
//! pass registers through memory, instruction by instruction. So there are no closures here.

use super::gcm::POLYNOMIAL;
use crate::aes::Schedule;
use crate::packet::GcmKey;
use core::arch::x86_64::*;

/// A block of the cipher, or an element of GHASH's field in reversed order.
pub(super) type Block = [u8; 16];

/// That the features of a width are there: whoever has one may do all this.
pub(super) trait Width: Copy {
    /// As many blocks as `Bytes` has.
    type Register: Copy;
    /// What a register holds.
    type Bytes;
    /// Blocks of a register.
    const BLOCKS: usize;

    /// For what is done block by block.
    fn narrow(self) -> Aesni;
    /// Cuts into registers, and what is left.
    fn split(bytes: &mut [u8]) -> (&mut [Self::Bytes], &mut [u8]);
    fn load(self, bytes: &Self::Bytes) -> Self::Register;
    fn store(self, bytes: &mut Self::Bytes, value: Self::Register);
    /// A block, and zeros above it.
    fn one(self, block: &Block) -> Self::Register;
    /// The same block everywhere.
    fn all(self, block: &Block) -> Self::Register;
    /// As many blocks of GHASH's powers, from this one on.
    fn powers(self, powers: &[Block], at: usize) -> Self::Register;
    /// Block by block: 1, 2 and so on in the lowest 32 bits of each.
    fn ordinals(self) -> Self::Register;
    /// The register with this block in its highest place.
    fn with_last(self, value: Self::Register, block: &Block) -> Self::Register;
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// Sums of 32 bits each.
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The bytes of each block from the last to the first.
    fn reverse(self, value: Self::Register) -> Self::Register;
    /// The halves of each block, swapped.
    fn swap(self, value: Self::Register) -> Self::Register;
    /// A round of AES.
    fn round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// The last round of AES.
    fn last_round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// The carry-less products of the blocks' low halves.
    fn low(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The carry-less products of the blocks' high halves.
    fn high(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sum of the blocks.
    fn sum(self, value: Self::Register) -> __m128i;
    /// The sum of all products, reduced: of the low halves, the high halves, and what Karatsuba
    /// makes of both.
    #[inline(always)]
    fn reduce(self, [low, middle, high]: [Self::Register; 3]) -> Block {
        // SAFETY: every width has the feature.
        unsafe { reduce(self.sum(low), self.sum(middle), self.sum(high)) }
    }
}

/// Registers of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aesni(());

/// Registers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(Aesni);

impl Aesni {
    pub(crate) fn detect() -> Option<Self> {
        extern crate std;
        let there = std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("ssse3")
            && std::is_x86_feature_detected!("sse4.1");
        there.then_some(Self(()))
    }

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

    /// The key with these round keys, for every room.
    pub(crate) fn key(self, aes: Schedule) -> GcmKey {
        // SAFETY: `detect` has seen the features.
        unsafe { GcmKey::new(aes) }
    }
}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        extern crate std;
        let there = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("vaes")
            && std::is_x86_feature_detected!("vpclmulqdq");
        Aesni::detect().filter(|_| there).map(Self)
    }
}

/// Where the bytes of a block come from when they are reversed.
const REVERSED: Block = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

impl Width for Aesni {
    type Register = __m128i;
    type Bytes = Block;
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn narrow(self) -> Aesni {
        self
    }

    #[inline(always)]
    fn split(bytes: &mut [u8]) -> (&mut [Block], &mut [u8]) {
        bytes.as_chunks_mut()
    }

    #[inline(always)]
    fn load(self, bytes: &Block) -> __m128i {
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, bytes: &mut Block, value: __m128i) {
        // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn one(self, block: &Block) -> __m128i {
        self.load(block)
    }

    #[inline(always)]
    fn all(self, block: &Block) -> __m128i {
        self.load(block)
    }

    #[inline(always)]
    fn powers(self, powers: &[Block], at: usize) -> __m128i {
        self.load(&powers[at])
    }

    #[inline(always)]
    fn ordinals(self) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_set_epi32(0, 0, 0, 1) }
    }

    #[inline(always)]
    fn with_last(self, _: __m128i, block: &Block) -> __m128i {
        self.load(block)
    }

    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_add_epi32(a, b) }
    }

    #[inline(always)]
    fn reverse(self, value: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_shuffle_epi8(value, self.load(&REVERSED)) }
    }

    #[inline(always)]
    fn swap(self, value: __m128i) -> __m128i {
        // SAFETY: every processor of this kind has the feature.
        unsafe { _mm_shuffle_epi32(value, 0x4e) }
    }

    #[inline(always)]
    fn round(self, state: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_aesenc_si128(state, key) }
    }

    #[inline(always)]
    fn last_round(self, state: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_aesenclast_si128(state, key) }
    }

    #[inline(always)]
    fn low(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_clmulepi64_si128(a, b, 0x00) }
    }

    #[inline(always)]
    fn high(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm_clmulepi64_si128(a, b, 0x11) }
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
    fn narrow(self) -> Aesni {
        self.0
    }

    #[inline(always)]
    fn split(bytes: &mut [u8]) -> (&mut [[u8; 32]], &mut [u8]) {
        bytes.as_chunks_mut()
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> __m256i {
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; 32], value: __m256i) {
        // SAFETY: the reference is good for 32 bytes, and the instruction asks for no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn one(self, block: &Block) -> __m256i {
        let block = self.0.load(block);
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_zextsi128_si256(block) }
    }

    #[inline(always)]
    fn all(self, block: &Block) -> __m256i {
        let block = self.0.load(block);
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_broadcastsi128_si256(block) }
    }

    #[inline(always)]
    fn powers(self, powers: &[Block], at: usize) -> __m256i {
        match powers[at..].as_flattened().first_chunk() {
            Some(two) => self.load(two),
            None => self.one(&powers[at]),
        }
    }

    #[inline(always)]
    fn ordinals(self) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 1) }
    }

    #[inline(always)]
    fn with_last(self, value: __m256i, block: &Block) -> __m256i {
        let block = self.0.load(block);
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_inserti128_si256(value, block, 1) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    fn reverse(self, value: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_shuffle_epi8(value, self.all(&REVERSED)) }
    }

    #[inline(always)]
    fn swap(self, value: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_shuffle_epi32(value, 0x4e) }
    }

    #[inline(always)]
    fn round(self, state: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_aesenc_epi128(state, key) }
    }

    #[inline(always)]
    fn last_round(self, state: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_aesenclast_epi128(state, key) }
    }

    #[inline(always)]
    fn low(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_clmulepi64_epi128(a, b, 0x00) }
    }

    #[inline(always)]
    fn high(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `detect` has seen the feature.
        unsafe { _mm256_clmulepi64_epi128(a, b, 0x11) }
    }

    #[inline(always)]
    fn sum(self, value: __m256i) -> __m128i {
        // SAFETY: `detect` has seen the feature.
        unsafe { sum_of_two(value) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_two(value: __m256i) -> __m128i {
    _mm_xor_si128(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1))
}

/// dot of RFC 8452 § 3, from the three products of Karatsuba's method.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn reduce(low: __m128i, middle: __m128i, high: __m128i) -> Block {
    let middle = _mm_xor_si128(middle, _mm_xor_si128(low, high));
    let low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
    let high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
    let polynomial = _mm_set_epi64x(0, POLYNOMIAL as i64);
    let fold = |low| {
        let folded = _mm_clmulepi64_si128(low, polynomial, 0x00);
        _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), folded)
    };
    let sum = _mm_xor_si128(high, fold(fold(low)));
    let mut block = [0; 16];
    // SAFETY: the reference is good for 16 bytes, and the instruction asks for no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), sum) };
    block
}
