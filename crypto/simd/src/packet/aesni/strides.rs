//! A stride in the cipher and another in the hash, instruction by instruction. In assembler: only
//! in such an order is there a register for each value; the compiler's would move a third of them
//! to the stack and back.

use crate::packet::detected::{Aesni, Avx2};
use crate::packet::gcm256::hash::Sums;
use crate::packet::gcm256::stride::{Stride, Strides};
use crate::packet::gcm256::width::{Block, REVERSED, STRIDE, Width};
use std::arch::asm;
use std::ptr;

/// For a register of either width.
static BOTH_REVERSED: [Block; 2] = [REVERSED; 2];

// The templates. A value's register is taken for others when it is no longer wanted: that of `base`
// for cross_terms and data, that of `carry` for data.

/// The counter blocks, with the first round key.
macro_rules! start {
    ($width:literal) => {
        start!($width: 0 1 2 3 4 5 6 7)
    };
    ($width:literal: $($at:literal)*) => {
        concat!($("vpxor {s", $at, "}, {base}, [{counters} + ", $width, "*", $at, "]\n"),*)
    };
}

/// The key of a round, for each block.
macro_rules! key {
    ($load:literal, $round:literal) => {
        concat!($load, " {key}, [{keys} + 16*", $round, "]\n")
    };
}

/// A round with nothing beside it.
macro_rules! round {
    ($load:literal, $round:literal) => {
        concat!(key!($load, $round), round!(0 1 2 3 4 5 6 7))
    };
    ($($at:literal)*) => {
        concat!($("vaesenc {s", $at, "}, {s", $at, "}, {key}\n"),*)
    };
}

/// Two rounds, and between their instructions the products of registers `$a` and `$b` of the hashed
/// stride, as `Sums::add_pair` has them.
#[rustfmt::skip]
macro_rules! pair {
    (
        $width:literal, $load:literal, $one:literal, $two:literal,
        $pair:literal: $a:literal $in_a:literal, $b:literal $in_b:literal, $carry:literal
    ) => {
        concat!(
            key!($load, $one),
            "vaesenc {s0}, {s0}, {key}\n",
            "vmovdqu {low}, ", $in_a, "\n",
            "vaesenc {s1}, {s1}, {key}\n",
            "vpshufb {low}, {low}, [{reversed}]\n",
            $carry,
            "vaesenc {s2}, {s2}, {key}\n",
            "vmovdqu {high}, ", $in_b, "\n",
            "vaesenc {s3}, {s3}, {key}\n",
            "vpshufb {high}, {high}, [{reversed}]\n",
            "vaesenc {s4}, {s4}, {key}\n",
            "vpunpcklqdq {base}, {low}, {high}\n",
            "vaesenc {s5}, {s5}, {key}\n",
            "vpunpckhqdq {high}, {low}, {high}\n",
            "vaesenc {s6}, {s6}, {key}\n",
            "vpclmulqdq {low}, {base}, [{powers} + ", $width, "*", $a, "], 0x00\n",
            "vaesenc {s7}, {s7}, {key}\n",
            "vpxor {low_sum}, {low_sum}, {low}\n",
            key!($load, $two),
            "vpclmulqdq {low}, {base}, [{powers} + ", $width, "*", $b, "], 0x01\n",
            "vaesenc {s0}, {s0}, {key}\n",
            "vpxor {low_sum}, {low_sum}, {low}\n",
            "vaesenc {s1}, {s1}, {key}\n",
            "vpxor {base}, {base}, {high}\n",
            "vaesenc {s2}, {s2}, {key}\n",
            "vpclmulqdq {low}, {high}, [{powers} + ", $width, "*", $a, "], 0x10\n",
            "vaesenc {s3}, {s3}, {key}\n",
            "vpxor {high_sum}, {high_sum}, {low}\n",
            "vaesenc {s4}, {s4}, {key}\n",
            "vpclmulqdq {low}, {high}, [{powers} + ", $width, "*", $b, "], 0x11\n",
            "vaesenc {s5}, {s5}, {key}\n",
            "vpxor {high_sum}, {high_sum}, {low}\n",
            "vaesenc {s6}, {s6}, {key}\n",
            "vpclmulqdq {low}, {base}, [{cross_terms} + ", $width, "*", $pair, "], 0x00\n",
            "vpxor {cross_sum}, {cross_sum}, {low}\n",
            "vaesenc {s7}, {s7}, {key}\n",
            "vpclmulqdq {low}, {base}, [{cross_terms} + ", $width, "*", $pair, "], 0x11\n",
            "vpxor {cross_sum}, {cross_sum}, {low}\n",
        )
    };
}

/// The last round, with the data.
macro_rules! end {
    ($width:literal) => {
        concat!(
            end!($width: 0 "low", 1 "high", 2 "base", 3 "carry", 4 "low", 5 "high", 6 "base"),
            "vpxor {key}, {key}, [{data_end}]\n",
            "vaesenclast {s7}, {s7}, {key}\n",
            "vmovdqu [{data_end}], {s7}\n",
        )
    };
    ($width:literal: $($at:literal $free:literal),*) => {
        concat!($(
            "vpxor {", $free, "}, {key}, [{data} + ", $width, "*", $at, "]\n",
            "vaesenclast {s", $at, "}, {s", $at, "}, {", $free, "}\n",
            "vmovdqu [{data} + ", $width, "*", $at, "], {s", $at, "}\n",
        )*)
    };
}

/// The templates one after the other, and their operands.
macro_rules! assemble {
    ($stride:ident, $sums:ident, $type:ty, $class:ident, $($template:expr,)*) => {{
        let Stride { round_keys, base, counters, data: (data, data_end), hashed, powers, cross_terms, carry } = $stride;
        let powers = powers[..<$type>::BLOCKS].as_ptr();
        let cross_terms = cross_terms[..<$type>::BLOCKS].as_ptr();
        let counters = counters[..STRIDE * <$type>::BLOCKS].as_ptr();
        let (data, data_end) = (ptr::from_mut(data), ptr::from_mut(data_end));
        let (hashed, hashed_end) = match hashed {
            Some((hashed, end)) => (ptr::from_ref(hashed), ptr::from_ref(end)),
            None => (data.cast_const(), data_end.cast_const()),
        };
        let Sums { mut low, mut cross, mut high } = $sums;
        // SAFETY: `detect` has seen the features. All bytes read and written are behind these
        // references; all of the data is read for the hash before any of it is written.
        unsafe {
            asm!(
                $($template,)*
                keys = in(reg) round_keys,
                counters = in(reg) counters,
                powers = in(reg) powers,
                cross_terms = in(reg) cross_terms,
                reversed = in(reg) &BOTH_REVERSED,
                hashed = in(reg) hashed,
                hashed_end = in(reg) hashed_end,
                data = in(reg) data,
                data_end = in(reg) data_end,
                base = inout($class) base => _,
                carry = inout($class) carry => _,
                low_sum = inout($class) low,
                cross_sum = inout($class) cross,
                high_sum = inout($class) high,
                s0 = out($class) _,
                s1 = out($class) _,
                s2 = out($class) _,
                s3 = out($class) _,
                s4 = out($class) _,
                s5 = out($class) _,
                s6 = out($class) _,
                s7 = out($class) _,
                key = out($class) _,
                low = out($class) _,
                high = out($class) _,
                options(nostack, preserves_flags),
            );
        }
        Sums { low, cross, high }
    }};
}

/// The parts that a width has of its own: where pairs are, and which of them has the second block.
macro_rules! strides {
    (
        $type:ty, $run:ident, $features:literal, $class:ident, $width:literal, $load:literal,
        [$($p:tt)*] [$($q:tt)*] [$($r:tt)*] [$($s:tt)*]
    ) => {
        impl Strides for $type {
            #[inline(always)]
            fn stride<const ROUNDS: usize>(self, stride: Stride<'_, Self>, sums: Sums<Self>) -> Sums<Self> {
                // SAFETY: `detect` has seen the features.
                unsafe { $run::<ROUNDS>(stride, sums) }
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn $run<const ROUNDS: usize>(stride: Stride<'_, $type>, sums: Sums<$type>) -> Sums<$type> {
            if ROUNDS == 10 {
                assemble!(
                    stride, sums, $type, $class,
                    start!($width),
                    round!($load, 1),
                    pair!($width, $load, 2, 3, $($p)*),
                    pair!($width, $load, 4, 5, $($q)*),
                    pair!($width, $load, 6, 7, $($r)*),
                    pair!($width, $load, 8, 9, $($s)*),
                    key!($load, 10),
                    end!($width),
                )
            } else {
                assemble!(
                    stride, sums, $type, $class,
                    start!($width),
                    round!($load, 1),
                    round!($load, 2),
                    pair!($width, $load, 3, 4, $($p)*),
                    round!($load, 5),
                    pair!($width, $load, 6, 7, $($q)*),
                    round!($load, 8),
                    pair!($width, $load, 9, 10, $($r)*),
                    round!($load, 11),
                    pair!($width, $load, 12, 13, $($s)*),
                    key!($load, 14),
                    end!($width),
                )
            }
        }
    };
}

// In registers of two blocks, what was stored first is hashed first. In those of one the pair with
// the second block comes last: what was reduced before is then ready.
strides!(
    Aesni, stride_of_8, "avx,aes,pclmulqdq", xmm_reg, 16, "vmovdqu",
    [0: 0 "[{hashed}]", 4 "[{hashed} + 16*4]", ""]
    [2: 2 "[{hashed} + 16*2]", 6 "[{hashed} + 16*6]", ""]
    [3: 3 "[{hashed} + 16*3]", 7 "[{hashed_end}]", ""]
    [1: 1 "[{hashed} + 16]", 5 "[{hashed} + 16*5]", "vpxor {low}, {low}, {carry}\n"]
);
strides!(
    Avx2, stride_of_16, "avx2,vaes,vpclmulqdq", ymm_reg, 32, "vbroadcasti128",
    [0: 0 "[{hashed}]", 2 "[{hashed} + 32*2]", "vpxor {low}, {low}, {carry}\n"]
    [2: 4 "[{hashed} + 32*4]", 6 "[{hashed} + 32*6]", ""]
    [1: 1 "[{hashed} + 32]", 3 "[{hashed} + 32*3]", ""]
    [3: 5 "[{hashed} + 32*5]", 7 "[{hashed_end}]", ""]
);
