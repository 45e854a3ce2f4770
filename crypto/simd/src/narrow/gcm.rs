//! The making of AES-GCM keys, for every room.

use super::width::{Narrow, Vector, Width};
use crate::aes::{ROUND_KEYS_MAX, Schedule};
use crate::packet::{GcmKey, MANY, Powers};
use once_cell::race::OnceBox;
use zeroize::Zeroizing;

/// The top half of POLYVAL's polynomial, x¹²⁸ + x¹²⁷ + x¹²⁶ + x¹²¹ + 1 (RFC 8452 § 3).
pub(crate) const POLYNOMIAL: u64 = 0xc2 << 56;

impl GcmKey {
    /// The key with these round keys.
    pub(crate) fn new(narrow: Narrow, aes: Schedule) -> Self {
        #[cfg_attr(target_arch = "aarch64", target_feature(enable = "aes"))]
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,ssse3"))]
        fn run(narrow: Narrow, aes: Schedule) -> GcmKey {
            let zero = narrow.load(&[0; 16]);
            let h = Zeroizing::new(u128::from_be_bytes(narrow.bytes(encrypt(narrow, &aes, zero))));
            // Times x: what is shifted out comes back as the polynomial.
            let carry = 0_u128.wrapping_sub(*h >> 127);
            let first = narrow.number((*h << 1) ^ (carry & ((u128::from(POLYNOMIAL) << 64) | 1)));
            let mut powers = Powers::none();
            powers.fill(narrow, first);
            let (first, first_middle) = (narrow.bytes(first), [middle(narrow, first); 2]);
            GcmKey { powers, first, first_middle, aes, many: OnceBox::new() }
        }
        // SAFETY: `detect` has seen the features.
        unsafe { run(narrow, aes) }
    }

    /// The powers that are made when they are first asked for.
    #[inline]
    pub(crate) fn many(&self) -> &Powers<{ MANY / 8 }> {
        match self.many.get() {
            Some(many) => many,
            None => self.make_many(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_many(&self) -> &Powers<{ MANY / 8 }> {
        #[cfg_attr(target_arch = "aarch64", target_feature(enable = "aes"))]
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "pclmulqdq,ssse3"))]
        fn run(narrow: Narrow, many: &mut Powers<{ MANY / 8 }>, first: &[u8; 16]) {
            many.fill(narrow, narrow.load(first));
        }
        let narrow = Narrow::detect().expect("the key was made in such a room");
        let mut many = Box::new(Powers::none());
        // SAFETY: `detect` has seen the features.
        unsafe { run(narrow, &mut many, &self.first) };
        self.many.get_or_init(|| many)
    }
}

impl<const EIGHTS: usize> Powers<EIGHTS> {
    /// All of H⁽¹⁾'s that there is room for.
    #[inline(always)]
    fn fill(&mut self, narrow: Narrow, first: Vector) {
        // Four products at a time do not wait for each other: H⁽²⁾ to H⁽⁵⁾, and then each times H⁽⁴⁾.
        let mut four = [first; 4];
        let mut step = first;
        for power in &mut four {
            step = dot(narrow, step, first);
            *power = step;
        }
        let step = four[2];
        let Powers { powers, middles } = self;
        for (powers, middles) in powers.iter_mut().zip(middles).rev() {
            for (half, place) in powers.as_chunks_mut::<4>().0.iter_mut().enumerate().rev() {
                for (lane, power) in four.iter_mut().rev().enumerate() {
                    place[lane] = narrow.bytes(*power);
                    middles[lane][half] = middle(narrow, *power);
                    *power = dot(narrow, *power, step);
                }
            }
        }
    }
}

/// A block through the cipher.
#[inline(always)]
fn encrypt(narrow: Narrow, aes: &Schedule, block: Vector) -> Vector {
    let last = (aes.rounds as usize).min(ROUND_KEYS_MAX - 1);
    let mut state = narrow.xor(block, narrow.load(&aes.round_keys[0]));
    for key in &aes.round_keys[1..last] {
        state = narrow.round(state, narrow.load(key));
    }
    narrow.last_round(state, narrow.load(&aes.round_keys[last]))
}

/// dot(a, b) of RFC 8452 § 3: a · b · x⁻¹²⁸.
#[inline(always)]
fn dot(narrow: Narrow, a: Vector, b: Vector) -> Vector {
    let zero = narrow.load(&[0; 16]);
    let (low, high) = (narrow.multiply::<0x00>(a, b), narrow.multiply::<0x11>(a, b));
    let middle = narrow.xor(narrow.multiply::<0x01>(a, b), narrow.multiply::<0x10>(a, b));
    let low = narrow.xor(low, narrow.low_halves(zero, middle));
    let high = narrow.xor(high, narrow.high_halves(middle, zero));
    narrow.xor(high, fold(narrow, fold(narrow, low)))
}

/// Takes the lowest 64 bits of a product up by 64, modulo the polynomial.
#[inline(always)]
fn fold(narrow: Narrow, low: Vector) -> Vector {
    let folded = narrow.multiply::<0x00>(low, narrow.number(POLYNOMIAL.into()));
    narrow.xor(narrow.swap(low), folded)
}

/// The halves, xored.
#[inline(always)]
fn middle(narrow: Narrow, power: Vector) -> u64 {
    u128::from_le_bytes(narrow.bytes(narrow.xor(power, narrow.swap(power)))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8452 appendix A.
    #[test]
    fn products_are_those_of_polyval() {
        let Some(narrow) = Narrow::detect() else { return };
        let element = |bytes: u128| narrow.number(bytes.swap_bytes());
        let a = element(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        let b = element(0xff00_0000_0000_0000_0000_0000_0000_0000);
        let dot = u128::from_be_bytes(narrow.bytes(dot(narrow, a, b)));
        assert_eq!(dot, 0xebe5_6340_1e7e_91ea_3ad6_426b_8140_c394);
    }
}
