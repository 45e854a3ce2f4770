//! GHASH: products, their sums, and what they leave modulo the polynomial.

use super::super::gcm::POLYNOMIAL;
use super::super::width::{Block, EIGHT, Width};
use core::arch::x86_64::__m128i;

/// Twice, so that either half will do.
const POLYNOMIALS: Block = (POLYNOMIAL as u128 | (POLYNOMIAL as u128) << 64).to_le_bytes();

/// Eight powers of H, and their middles: as they are in [`Powers`](crate::packet::Powers).
pub(super) type Eight<'k> = (&'k [Block; EIGHT], &'k [[u64; 2]; EIGHT / 2]);

/// Products that have yet to be reduced: Karatsuba's three.
#[derive(Clone, Copy)]
pub(super) struct Sums<W: Width> {
    pub(super) low: W::Register,
    pub(super) middle: W::Register,
    pub(super) high: W::Register,
}

impl<W: Width> Sums<W> {
    #[inline(always)]
    pub(super) fn none(width: W) -> Self {
        let zero = width.all(&[0; 16]);
        Self { low: zero, middle: zero, high: zero }
    }

    /// Adds the products of blocks with powers.
    #[inline(always)]
    pub(super) fn add(self, width: W, blocks: W::Register, powers: W::Register) -> Self {
        let middle = width.xor(powers, width.swap(powers));
        self.add_one::<0x00>(width, blocks, powers, middle)
    }

    #[inline(always)]
    fn add_one<const MIDDLE: i32>(
        self,
        width: W,
        blocks: W::Register,
        powers: W::Register,
        middles: W::Register,
    ) -> Self {
        let halves = width.xor(blocks, width.swap(blocks));
        Self {
            low: width.xor(self.low, width.multiply::<0x00>(blocks, powers)),
            middle: width.xor(self.middle, width.multiply::<MIDDLE>(halves, middles)),
            high: width.xor(self.high, width.multiply::<0x11>(blocks, powers)),
        }
    }

    /// Adds a register of an eight, as it is sent.
    #[inline(always)]
    pub(super) fn add_register(
        self,
        width: W,
        (powers, middles): Eight<'_>,
        at: usize,
        blocks: W::Register,
    ) -> Self {
        let blocks = width.reverse(blocks);
        let power = width.powers(powers, at);
        if at < W::REGISTERS / 2 {
            self.add_one::<0x00>(width, blocks, power, width.middles(middles, at))
        } else {
            let middles = width.middles(middles, at - W::REGISTERS / 2);
            self.add_one::<0x10>(width, blocks, power, middles)
        }
    }

    /// The sum of all products modulo the polynomial (dot of RFC 8452 § 3).
    #[inline(always)]
    pub(super) fn reduce(self, width: W) -> __m128i {
        let narrow = width.narrow();
        let (low, middle, high) =
            (width.sum(self.low), width.sum(self.middle), width.sum(self.high));
        let polynomial = narrow.load(&POLYNOMIALS);
        let middle = narrow.xor(middle, narrow.xor(low, high));
        let folded = narrow.multiply::<0x00>(low, polynomial);
        let middle = narrow.xor(narrow.xor(middle, narrow.swap(low)), folded);
        let folded = narrow.multiply::<0x00>(middle, polynomial);
        narrow.xor(narrow.xor(high, narrow.swap(middle)), folded)
    }
}

/// Adds a register of an eight, and the one that comes half of the eight later, as they are sent. `$next` is what
/// the processor is to do between one step and the next. A macro, since closures are not inlined with their
/// callers' features.
macro_rules! add_pair {
    ($width:ident, $sums:expr, $eight:expr, $at:expr, $pair:expr, $next:ident) => {{
        let (sums, (powers, middles), [a, b]) = ($sums, $eight, $pair);
        let a = $width.here($width.reverse(a));
        $next!();
        let b = $width.here($width.reverse(b));
        $next!();
        let low = $width.here($width.low_halves(a, b));
        $next!();
        let power_a = $width.powers(powers, $at);
        let low_a = $width.here($width.multiply::<0x00>(low, power_a));
        $next!();
        let high = $width.here($width.high_halves(a, b));
        $next!();
        let power_b = $width.powers(powers, $at + W::REGISTERS / 2);
        let low_b = $width.here($width.multiply::<0x01>(low, power_b));
        $next!();
        let middle = $width.here($width.xor(low, high));
        $next!();
        let high_a = $width.here($width.multiply::<0x10>(high, power_a));
        $next!();
        let low = $width.here($width.xor(sums.low, low_a));
        $next!();
        let high_b = $width.here($width.multiply::<0x11>(high, power_b));
        $next!();
        let low = $width.here($width.xor(low, low_b));
        $next!();
        let middles = $width.middles(middles, $at);
        let middle_a = $width.here($width.multiply::<0x00>(middle, middles));
        $next!();
        let high = $width.here($width.xor(sums.high, high_a));
        $next!();
        let middle_b = $width.here($width.multiply::<0x11>(middle, middles));
        $next!();
        let high = $width.here($width.xor(high, high_b));
        $next!();
        let middle = $width.here($width.xor(sums.middle, middle_a));
        $next!();
        let middle = $width.here($width.xor(middle, middle_b));
        Sums { low, middle, high }
    }};
}

pub(super) use add_pair;
