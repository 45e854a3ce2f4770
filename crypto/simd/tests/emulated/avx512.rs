//! The part of AVX-512 that this crate uses, in plain Rust and instructions of 128 bits: with this in the
//! place of the processor's, `cargo xtask emulate` tests the backends that need it where it is not.
//! Names and signatures are those of `core::arch`, meanings those of Intel's Software Developer's
//! Manual, volume 2. A mask's lowest bit is for the lowest element; what a mask leaves out of a
//! load or a store is not touched. Nothing here is constant-time.

pub(crate) use core::arch::x86_64::*;

/// Hides the one that the glob brings.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct __m512i([u8; 64]);

/// The bytes that a cast leaves undefined: rubbish, so that their use shows.
const UNDEFINED: [u8; 64] = [0xa5; 64];

/// These bits as another type.
#[inline(always)]
fn cast<A: Copy, B: Copy>(a: A) -> B {
    const { assert!(size_of::<A>() == size_of::<B>()) };
    // SAFETY: the sizes are the same, and all types here are bits of any value.
    unsafe { core::mem::transmute_copy(&a) }
}

/// Elements, one by one.
#[inline(always)]
fn each<T: Copy, const N: usize>(a: __m512i, b: __m512i, f: impl Fn(T, T) -> T) -> __m512i {
    let (mut a, b): ([T; N], [T; N]) = (cast(a), cast(b));
    for (a, b) in a.iter_mut().zip(b) {
        *a = f(*a, b);
    }
    cast(a)
}

/// The mask of the elements for which it is true.
#[inline(always)]
fn which<T: Copy, const N: usize>(a: __m512i, b: __m512i, f: impl Fn(T, T) -> bool) -> u64 {
    let (a, b): ([T; N], [T; N]) = (cast(a), cast(b));
    (0..N).fold(0, |mask, at| mask | u64::from(f(a[at], b[at])) << at)
}

/// The elements of the first where the mask has them, else those of the second.
#[inline(always)]
fn choose<T: Copy, const N: usize>(mask: u64, yes: __m512i, no: __m512i) -> __m512i {
    let (yes, mut no): ([T; N], [T; N]) = (cast(yes), cast(no));
    for at in (0..N).filter(|at| mask >> at & 1 == 1) {
        no[at] = yes[at];
    }
    cast(no)
}

#[inline(always)]
fn load<const N: usize>(mask: u64, from: *const i8) -> [u8; N] {
    let mut bytes = [0; N];
    for at in (0..N).filter(|at| mask >> at & 1 == 1) {
        // SAFETY: who calls has seen to the bytes that the mask has.
        bytes[at] = unsafe { from.cast::<u8>().wrapping_add(at).read_volatile() };
    }
    bytes
}

#[inline(always)]
fn store<const N: usize>(to: *mut i8, mask: u64, bytes: [u8; N]) {
    for at in (0..N).filter(|at| mask >> at & 1 == 1) {
        // SAFETY: who calls has seen to the bytes that the mask has.
        unsafe { to.cast::<u8>().wrapping_add(at).write_volatile(bytes[at]) };
    }
}

/// Which of four a shuffle takes for this place.
const fn place(order: i32, at: usize) -> usize {
    (order >> (2 * at) & 3) as usize
}

macro_rules! instructions {
    ($($item:item)*) => { $(#[inline(always)] $item)* };
}

// Constants.
instructions! {
pub(crate) fn _mm512_setzero_si512() -> __m512i { cast([0_u8; 64]) }
pub(crate) fn _mm512_set1_epi8(a: i8) -> __m512i { cast([a; 64]) }
pub(crate) fn _mm512_set1_epi32(a: i32) -> __m512i { cast([a; 16]) }
pub(crate) fn _mm512_set1_epi64(a: i64) -> __m512i { cast([a; 8]) }
pub(crate) fn _mm512_set_epi64(
    h: i64, g: i64, f: i64, e: i64, d: i64, c: i64, b: i64, a: i64,
) -> __m512i {
    cast([a, b, c, d, e, f, g, h])
}
pub(crate) fn _mm512_broadcast_i32x4(a: __m128i) -> __m512i { cast([a; 4]) }
pub(crate) fn _mm512_maskz_broadcast_i32x4(mask: u16, a: __m128i) -> __m512i {
    choose::<u32, 16>(mask.into(), cast([a; 4]), _mm512_setzero_si512())
}
}

// Memory.
instructions! {
pub(crate) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
    cast(load::<64>(u64::MAX, from.cast()))
}
pub(crate) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
    store::<64>(to.cast(), u64::MAX, cast(a));
}
pub(crate) unsafe fn _mm512_maskz_loadu_epi8(mask: u64, from: *const i8) -> __m512i {
    cast(load::<64>(mask, from))
}
pub(crate) unsafe fn _mm512_mask_storeu_epi8(to: *mut i8, mask: u64, a: __m512i) {
    store::<64>(to, mask, cast(a));
}
pub(crate) unsafe fn _mm_maskz_loadu_epi8(mask: u16, from: *const i8) -> __m128i {
    cast(load::<16>(mask.into(), from))
}
pub(crate) unsafe fn _mm_mask_storeu_epi8(to: *mut i8, mask: u16, a: __m128i) {
    store::<16>(to, mask.into(), cast(a));
}
}

// Parts of registers.
instructions! {
pub(crate) fn _mm512_castsi128_si512(a: __m128i) -> __m512i {
    let [_, b, c, d] = cast(UNDEFINED);
    cast([a, b, c, d])
}
pub(crate) fn _mm512_castsi256_si512(a: __m256i) -> __m512i { _mm512_inserti64x4::<0>(cast(UNDEFINED), a) }
pub(crate) fn _mm512_zextsi128_si512(a: __m128i) -> __m512i { _mm512_maskz_broadcast_i32x4(0xf, a) }
pub(crate) fn _mm512_castsi512_si128(a: __m512i) -> __m128i { _mm512_extracti32x4_epi32::<0>(a) }
pub(crate) fn _mm512_castsi512_si256(a: __m512i) -> __m256i { _mm512_extracti64x4_epi64::<0>(a) }
pub(crate) fn _mm512_extracti32x4_epi32<const AT: i32>(a: __m512i) -> __m128i {
    cast::<_, [__m128i; 4]>(a)[AT as usize]
}
pub(crate) fn _mm512_extracti64x4_epi64<const AT: i32>(a: __m512i) -> __m256i {
    cast::<_, [__m256i; 2]>(a)[AT as usize]
}
pub(crate) fn _mm512_inserti64x4<const AT: i32>(a: __m512i, b: __m256i) -> __m512i {
    let mut halves: [__m256i; 2] = cast(a);
    halves[AT as usize] = b;
    cast(halves)
}
}

// Arithmetic.
instructions! {
pub(crate) fn _mm512_add_epi8(a: __m512i, b: __m512i) -> __m512i { each::<u8, 64>(a, b, u8::wrapping_add) }
pub(crate) fn _mm512_add_epi32(a: __m512i, b: __m512i) -> __m512i { each::<u32, 16>(a, b, u32::wrapping_add) }
pub(crate) fn _mm512_add_epi64(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, u64::wrapping_add) }
pub(crate) fn _mm512_adds_epu8(a: __m512i, b: __m512i) -> __m512i { each::<u8, 64>(a, b, u8::saturating_add) }
pub(crate) fn _mm512_sub_epi8(a: __m512i, b: __m512i) -> __m512i { each::<u8, 64>(a, b, u8::wrapping_sub) }
pub(crate) fn _mm512_sub_epi64(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, u64::wrapping_sub) }
pub(crate) fn _mm512_mask_add_epi64(no: __m512i, mask: u8, a: __m512i, b: __m512i) -> __m512i {
    choose::<u64, 8>(mask.into(), _mm512_add_epi64(a, b), no)
}
pub(crate) fn _mm512_mask_sub_epi64(no: __m512i, mask: u8, a: __m512i, b: __m512i) -> __m512i {
    choose::<u64, 8>(mask.into(), _mm512_sub_epi64(a, b), no)
}
pub(crate) fn _mm512_min_epu64(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, u64::min) }
pub(crate) fn _mm512_max_epu64(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, u64::max) }
pub(crate) fn _mm512_and_si512(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, |a, b| a & b) }
pub(crate) fn _mm512_xor_si512(a: __m512i, b: __m512i) -> __m512i { each::<u64, 8>(a, b, |a, b| a ^ b) }
pub(crate) fn _mm512_mask_xor_epi64(no: __m512i, mask: u8, a: __m512i, b: __m512i) -> __m512i {
    choose::<u64, 8>(mask.into(), _mm512_xor_si512(a, b), no)
}
pub(crate) fn _mm512_maskz_xor_epi64(mask: u8, a: __m512i, b: __m512i) -> __m512i {
    _mm512_mask_xor_epi64(_mm512_setzero_si512(), mask, a, b)
}
/// Each bit is the table's at the number that the three bits make, the first one's the highest.
pub(crate) fn _mm512_ternarylogic_epi64<const TABLE: i32>(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    let (a, b, c): ([u64; 8], [u64; 8], [u64; 8]) = (cast(a), cast(b), cast(c));
    let mut out = [0; 8];
    for entry in (0..8).filter(|entry| TABLE >> entry & 1 == 1) {
        let is = |bit: u32, word: u64| if entry >> bit & 1 == 1 { word } else { !word };
        for at in 0..8 {
            out[at] |= is(2, a[at]) & is(1, b[at]) & is(0, c[at]);
        }
    }
    cast(out)
}
pub(crate) fn _mm512_ternarylogic_epi32<const TABLE: i32>(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<TABLE>(a, b, c)
}
}

// Shifts and rotations. A shift by as many bits as there are, or more, leaves zero.
instructions! {
pub(crate) fn _mm512_rol_epi32<const BITS: i32>(a: __m512i) -> __m512i {
    each::<u32, 16>(a, a, |a, _| a.rotate_left(BITS as u32))
}
pub(crate) fn _mm512_ror_epi32<const BITS: i32>(a: __m512i) -> __m512i {
    each::<u32, 16>(a, a, |a, _| a.rotate_right(BITS as u32))
}
pub(crate) fn _mm512_srli_epi32<const BITS: u32>(a: __m512i) -> __m512i {
    each::<u32, 16>(a, a, |a, _| a.unbounded_shr(BITS))
}
pub(crate) fn _mm512_srli_epi64<const BITS: u32>(a: __m512i) -> __m512i {
    each::<u64, 8>(a, a, |a, _| a.unbounded_shr(BITS))
}
pub(crate) fn _mm512_slli_epi64<const BITS: u32>(a: __m512i) -> __m512i {
    each::<u64, 8>(a, a, |a, _| a.unbounded_shl(BITS))
}
}

// Masks.
instructions! {
pub(crate) fn _mm512_cmpgt_epi8_mask(a: __m512i, b: __m512i) -> u64 { which::<i8, 64>(a, b, |a, b| a > b) }
pub(crate) fn _mm512_cmple_epu8_mask(a: __m512i, b: __m512i) -> u64 { which::<u8, 64>(a, b, |a, b| a <= b) }
pub(crate) fn _mm512_cmplt_epu8_mask(a: __m512i, b: __m512i) -> u64 { which::<u8, 64>(a, b, |a, b| a < b) }
pub(crate) fn _mm512_cmpgt_epu64_mask(a: __m512i, b: __m512i) -> u8 { which::<u64, 8>(a, b, |a, b| a > b) as u8 }
pub(crate) fn _mm512_cmplt_epu64_mask(a: __m512i, b: __m512i) -> u8 { which::<u64, 8>(a, b, |a, b| a < b) as u8 }
pub(crate) fn _mm512_cmpneq_epi64_mask(a: __m512i, b: __m512i) -> u8 { which::<u64, 8>(a, b, |a, b| a != b) as u8 }
pub(crate) fn _mm512_test_epi64_mask(a: __m512i, b: __m512i) -> u8 { which::<u64, 8>(a, b, |a, b| a & b != 0) as u8 }
pub(crate) fn _mm512_mask_mov_epi8(no: __m512i, mask: u64, a: __m512i) -> __m512i { choose::<u8, 64>(mask, a, no) }
pub(crate) fn _mm512_maskz_mov_epi64(mask: u8, a: __m512i) -> __m512i {
    choose::<u64, 8>(mask.into(), a, _mm512_setzero_si512())
}
pub(crate) fn _mm512_maskz_mov_epi8(mask: u64, a: __m512i) -> __m512i {
    _mm512_mask_mov_epi8(_mm512_setzero_si512(), mask, a)
}
pub(crate) fn _mm_mask_mov_epi8(no: __m128i, mask: u16, a: __m128i) -> __m128i {
    let (no, a) = (_mm512_zextsi128_si512(no), _mm512_zextsi128_si512(a));
    _mm512_castsi512_si128(_mm512_mask_mov_epi8(no, mask.into(), a))
}
}

// Orders.
instructions! {
/// In each lane of 16 bytes; zero where the order's highest bit is set.
pub(crate) fn _mm512_shuffle_epi8(a: __m512i, order: __m512i) -> __m512i {
    let (a, order): ([[u8; 16]; 4], [[u8; 16]; 4]) = (cast(a), cast(order));
    let one = |lane: usize, at: u8| if at > 127 { 0 } else { a[lane][usize::from(at) % 16] };
    cast([0, 1, 2, 3].map(|lane: usize| order[lane].map(|at| one(lane, at))))
}
pub(crate) fn _mm512_maskz_shuffle_epi8(mask: u64, a: __m512i, order: __m512i) -> __m512i {
    choose::<u8, 64>(mask, _mm512_shuffle_epi8(a, order), _mm512_setzero_si512())
}
pub(crate) fn _mm_mask_shuffle_epi8(no: __m128i, mask: u16, a: __m128i, order: __m128i) -> __m128i {
    let [no, a, order] = [no, a, order].map(_mm512_zextsi128_si512);
    _mm512_castsi512_si128(_mm512_mask_mov_epi8(no, mask.into(), _mm512_shuffle_epi8(a, order)))
}
pub(crate) fn _mm512_shuffle_epi32<const ORDER: i32>(a: __m512i) -> __m512i {
    let a: [[u32; 4]; 4] = cast(a);
    cast(a.map(|lane| [0, 1, 2, 3].map(|at| lane[place(ORDER, at)])))
}
pub(crate) fn _mm512_shuffle_i32x4<const ORDER: i32>(a: __m512i, b: __m512i) -> __m512i {
    let (a, b): ([__m128i; 4], [__m128i; 4]) = (cast(a), cast(b));
    cast([a[place(ORDER, 0)], a[place(ORDER, 1)], b[place(ORDER, 2)], b[place(ORDER, 3)]])
}
pub(crate) fn _mm512_permutexvar_epi64(order: __m512i, a: __m512i) -> __m512i {
    let a: [u64; 8] = cast(a);
    cast(cast::<_, [u64; 8]>(order).map(|at| a[at as usize % 8]))
}
pub(crate) fn _mm512_permutex2var_epi8(a: __m512i, order: __m512i, b: __m512i) -> __m512i {
    let both: [u8; 128] = cast([a, b]);
    cast(cast::<_, [u8; 64]>(order).map(|at| both[usize::from(at) % 128]))
}
pub(crate) fn _mm512_unpacklo_epi32(a: __m512i, b: __m512i) -> __m512i { unpack::<u32, 4>(a, b, 0) }
pub(crate) fn _mm512_unpackhi_epi32(a: __m512i, b: __m512i) -> __m512i { unpack::<u32, 4>(a, b, 2) }
pub(crate) fn _mm512_unpacklo_epi64(a: __m512i, b: __m512i) -> __m512i { unpack::<u64, 2>(a, b, 0) }
pub(crate) fn _mm512_unpackhi_epi64(a: __m512i, b: __m512i) -> __m512i { unpack::<u64, 2>(a, b, 1) }
/// In each lane, half of the elements of both, in turn.
fn unpack<T: Copy, const N: usize>(a: __m512i, b: __m512i, from: usize) -> __m512i {
    let (a, b): ([[T; N]; 4], [[T; N]; 4]) = (cast(a), cast(b));
    let of_both = |lane: usize, at: usize| if at.is_multiple_of(2) { a[lane] } else { b[lane] };
    let one = |lane: usize, at: usize| of_both(lane, at)[from + at / 2];
    cast([0, 1, 2, 3].map(|lane| core::array::from_fn::<T, N, _>(|at| one(lane, at))))
}
}

// Ciphers and products.
instructions! {
fn lanes(a: __m512i, b: __m512i, f: impl Fn(__m128i, __m128i) -> __m128i) -> __m512i {
    each::<__m128i, 4>(a, b, f)
}
pub(crate) fn _mm512_aesenc_epi128(a: __m512i, key: __m512i) -> __m512i {
    // SAFETY: `detect` has seen the feature.
    lanes(a, key, |a, key| unsafe { _mm_aesenc_si128(a, key) })
}
pub(crate) fn _mm512_aesenclast_epi128(a: __m512i, key: __m512i) -> __m512i {
    // SAFETY: `detect` has seen the feature.
    lanes(a, key, |a, key| unsafe { _mm_aesenclast_si128(a, key) })
}
pub(crate) fn _mm512_clmulepi64_epi128<const HALVES: i32>(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: `detect` has seen the feature.
    lanes(a, b, |a, b| unsafe { _mm_clmulepi64_si128::<HALVES>(a, b) })
}
}

#[test]
fn the_backends_that_need_it_are_there() {
    assert!(crate::CbcBackend::avx512().is_some());
    assert!(crate::packet::PacketBackend::named("avx512").is_some());
}
