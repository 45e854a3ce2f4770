//! GHASH: products, their sums, and what they leave modulo the polynomial.

use super::width::{Block, EIGHT, Width};
use crate::packet::detected::Vector;
use crate::packet::gcm::POLYNOMIAL;

/// Twice, so that either half will do.
const POLYNOMIALS: Block = (POLYNOMIAL as u128 | (POLYNOMIAL as u128) << 64).to_le_bytes();

/// Eight powers of H, and their cross_terms: as they are in [`Powers`](crate::packet::gcm::Powers).
pub(crate) type Eight<'k> = (&'k [Block; EIGHT], &'k [[u64; 2]; EIGHT / 2]);

/// Products that have yet to be reduced: Karatsuba's three.
#[derive(Clone, Copy)]
pub(crate) struct Sums<W: Width> {
    pub(crate) low: W::Register,
    pub(crate) cross: W::Register,
    pub(crate) high: W::Register,
}

impl<W: Width> Sums<W> {
    #[inline(always)]
    pub(crate) fn none(width: W) -> Self {
        let zero = width.all(&[0; 16]);
        Self { low: zero, cross: zero, high: zero }
    }

    /// Adds the products of blocks with powers.
    #[inline(always)]
    pub(crate) fn add(self, width: W, blocks: W::Register, powers: W::Register) -> Self {
        let cross = width.xor(powers, width.swap(powers));
        self.add_one::<0x00>(width, blocks, powers, cross)
    }

    #[inline(always)]
    fn add_one<const CROSS: i32>(
        self,
        width: W,
        blocks: W::Register,
        powers: W::Register,
        cross_terms: W::Register,
    ) -> Self {
        let halves = width.xor(blocks, width.swap(blocks));
        Self {
            low: width.xor(self.low, width.multiply::<0x00>(blocks, powers)),
            cross: width.xor(self.cross, width.multiply::<CROSS>(halves, cross_terms)),
            high: width.xor(self.high, width.multiply::<0x11>(blocks, powers)),
        }
    }

    /// Adds a register of an eight, as it is sent.
    #[inline(always)]
    pub(crate) fn add_register(
        self,
        width: W,
        (powers, cross_terms): Eight<'_>,
        at: usize,
        blocks: W::Register,
    ) -> Self {
        let blocks = width.reverse(blocks);
        let power = width.powers(powers, at);
        if at < W::REGISTERS / 2 {
            self.add_one::<0x00>(width, blocks, power, width.cross_terms(cross_terms, at))
        } else {
            let cross_terms = width.cross_terms(cross_terms, at - W::REGISTERS / 2);
            self.add_one::<0x10>(width, blocks, power, cross_terms)
        }
    }

    /// Adds a register of an eight, and the one that comes half of the eight later, as they are
    /// sent: both low halves go in one register, both high halves in another.
    #[inline(always)]
    pub(crate) fn add_pair(
        self,
        width: W,
        (powers, cross_terms): Eight<'_>,
        at: usize,
        [a, b]: [W::Register; 2],
    ) -> Self {
        let half = W::REGISTERS / 2;
        let (power_a, power_b) = (width.powers(powers, at), width.powers(powers, at + half));
        let cross_terms = width.cross_terms(cross_terms, at);
        // In this order, in which few values wait in registers; the compiler's has all products
        // side by side.
        let (a, b) = (width.ordered(width.reverse(a)), width.ordered(width.reverse(b)));
        let low = width.ordered(width.low_halves(a, b));
        let low_a = width.ordered(width.multiply::<0x00>(low, power_a));
        let high = width.ordered(width.high_halves(a, b));
        let low_b = width.ordered(width.multiply::<0x01>(low, power_b));
        let cross = width.ordered(width.xor(low, high));
        let high_a = width.ordered(width.multiply::<0x10>(high, power_a));
        let low = width.ordered(width.xor(self.low, low_a));
        let high_b = width.ordered(width.multiply::<0x11>(high, power_b));
        let low = width.ordered(width.xor(low, low_b));
        let cross_a = width.ordered(width.multiply::<0x00>(cross, cross_terms));
        let high = width.ordered(width.xor(self.high, high_a));
        let cross_b = width.ordered(width.multiply::<0x11>(cross, cross_terms));
        let high = width.ordered(width.xor(high, high_b));
        let cross = width.ordered(width.xor(self.cross, cross_a));
        let cross = width.ordered(width.xor(cross, cross_b));
        Self { low, cross, high }
    }

    /// The sum of all products modulo the polynomial (dot of RFC 8452 § 3).
    #[inline(always)]
    pub(crate) fn reduce(self, width: W) -> Vector {
        let w128 = width.w128();
        let (low, cross, high) = (width.sum(self.low), width.sum(self.cross), width.sum(self.high));
        let polynomial = w128.load(&POLYNOMIALS);
        let cross = w128.xor(cross, w128.xor(low, high));
        let folded = w128.multiply::<0x00>(low, polynomial);
        let cross = w128.xor(w128.xor(cross, w128.swap(low)), folded);
        let folded = w128.multiply::<0x00>(cross, polynomial);
        w128.xor(w128.xor(high, w128.swap(cross)), folded)
    }
}
