//! GHASH: products, their sums, and what they leave modulo the polynomial.

use super::gcm::POLYNOMIAL;
use super::width::{Block, EIGHT, Vector, Width};

/// Twice, so that either half will do.
const POLYNOMIALS: Block = (POLYNOMIAL as u128 | (POLYNOMIAL as u128) << 64).to_le_bytes();

/// Eight powers of H, and their middles: as they are in [`Powers`](crate::packet::Powers).
pub(crate) type Eight<'k> = (&'k [Block; EIGHT], &'k [[u64; 2]; EIGHT / 2]);

/// Products that have yet to be reduced: Karatsuba's three.
#[derive(Clone, Copy)]
pub(crate) struct Sums<W: Width> {
    pub(crate) low: W::Register,
    pub(crate) middle: W::Register,
    pub(crate) high: W::Register,
}

impl<W: Width> Sums<W> {
    #[inline(always)]
    pub(crate) fn none(width: W) -> Self {
        let zero = width.all(&[0; 16]);
        Self { low: zero, middle: zero, high: zero }
    }

    /// Adds the products of blocks with powers.
    #[inline(always)]
    pub(crate) fn add(self, width: W, blocks: W::Register, powers: W::Register) -> Self {
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
    pub(crate) fn add_register(
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

    /// Adds a register of an eight, and the one that comes half of the eight later, as they are sent: both low
    /// halves go in one register, both high halves in another.
    #[inline(always)]
    pub(crate) fn add_pair(
        self,
        width: W,
        (powers, middles): Eight<'_>,
        at: usize,
        [a, b]: [W::Register; 2],
    ) -> Self {
        let half = W::REGISTERS / 2;
        let (power_a, power_b) = (width.powers(powers, at), width.powers(powers, at + half));
        let middles = width.middles(middles, at);
        // In this order, in which few values wait in registers; the compiler's has all products side by side.
        let (a, b) = (width.here(width.reverse(a)), width.here(width.reverse(b)));
        let low = width.here(width.low_halves(a, b));
        let low_a = width.here(width.multiply::<0x00>(low, power_a));
        let high = width.here(width.high_halves(a, b));
        let low_b = width.here(width.multiply::<0x01>(low, power_b));
        let middle = width.here(width.xor(low, high));
        let high_a = width.here(width.multiply::<0x10>(high, power_a));
        let low = width.here(width.xor(self.low, low_a));
        let high_b = width.here(width.multiply::<0x11>(high, power_b));
        let low = width.here(width.xor(low, low_b));
        let middle_a = width.here(width.multiply::<0x00>(middle, middles));
        let high = width.here(width.xor(self.high, high_a));
        let middle_b = width.here(width.multiply::<0x11>(middle, middles));
        let high = width.here(width.xor(high, high_b));
        let middle = width.here(width.xor(self.middle, middle_a));
        let middle = width.here(width.xor(middle, middle_b));
        Self { low, middle, high }
    }

    /// The sum of all products modulo the polynomial (dot of RFC 8452 § 3).
    #[inline(always)]
    pub(crate) fn reduce(self, width: W) -> Vector {
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
