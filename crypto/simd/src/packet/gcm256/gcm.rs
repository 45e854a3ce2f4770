//! The making of AES-GCM keys, for every backend.

use super::width::Width;
use crate::aes::{ROUND_KEYS_MAX, Schedule};
use crate::packet::detected::{Vector, Width128};
use crate::packet::gcm::{GcmKey, MANY, POLYNOMIAL, Powers};
use once_cell::race::OnceBox;
use zeroize::Zeroizing;

impl GcmKey {
    /// The key with these round keys.
    pub(crate) fn new(w128: Width128, aes: Schedule) -> Self {
        #[cfg_attr(target_arch = "aarch64", target_feature(enable = "aes"))]
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,ssse3"))]
        fn run(w128: Width128, aes: Schedule) -> GcmKey {
            let zero = w128.load(&[0; 16]);
            let h = Zeroizing::new(u128::from_be_bytes(w128.bytes(encrypt(w128, &aes, zero))));
            // Times x: what is shifted out comes back as the polynomial.
            let carry = 0_u128.wrapping_sub(*h >> 127);
            let first = w128.number((*h << 1) ^ (carry & ((u128::from(POLYNOMIAL) << 64) | 1)));
            let mut powers = Powers::none();
            powers.fill(w128, first);
            let (first, first_cross_term) = (w128.bytes(first), [cross(w128, first); 2]);
            GcmKey { powers, first, first_cross_term, aes, many: OnceBox::new() }
        }
        // SAFETY: `detect` has seen the features.
        unsafe { run(w128, aes) }
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
        fn run(w128: Width128, many: &mut Powers<{ MANY / 8 }>, first: &[u8; 16]) {
            many.fill(w128, w128.load(first));
        }
        let w128 = Width128::detect().expect("the key was made in such a backend");
        let mut many = Box::new(Powers::none());
        // SAFETY: `detect` has seen the features.
        unsafe { run(w128, &mut many, &self.first) };
        self.many.get_or_init(|| many)
    }
}

impl<const EIGHTS: usize> Powers<EIGHTS> {
    /// All of H⁽¹⁾'s that there is space for.
    #[inline(always)]
    fn fill(&mut self, w128: Width128, first: Vector) {
        // Four products at a time do not wait for each other: H⁽²⁾ to H⁽⁵⁾, and then each times
        // H⁽⁴⁾.
        let mut four = [first; 4];
        let mut step = first;
        for power in &mut four {
            step = dot(w128, step, first);
            *power = step;
        }
        let step = four[2];
        let Powers { powers, cross_terms } = self;
        for (powers, cross_terms) in powers.iter_mut().zip(cross_terms).rev() {
            for (half, place) in powers.as_chunks_mut::<4>().0.iter_mut().enumerate().rev() {
                for (lane, power) in four.iter_mut().rev().enumerate() {
                    place[lane] = w128.bytes(*power);
                    cross_terms[lane][half] = cross(w128, *power);
                    *power = dot(w128, *power, step);
                }
            }
        }
    }
}

/// A block through the cipher.
#[inline(always)]
fn encrypt(w128: Width128, aes: &Schedule, block: Vector) -> Vector {
    let last = (aes.rounds as usize).min(ROUND_KEYS_MAX - 1);
    let mut state = w128.xor(block, w128.load(&aes.round_keys[0]));
    for key in &aes.round_keys[1..last] {
        state = w128.round(state, w128.load(key));
    }
    w128.last_round(state, w128.load(&aes.round_keys[last]))
}

/// dot(a, b) of RFC 8452 § 3: a · b · x⁻¹²⁸.
#[inline(always)]
fn dot(w128: Width128, a: Vector, b: Vector) -> Vector {
    let zero = w128.load(&[0; 16]);
    let (low, high) = (w128.multiply::<0x00>(a, b), w128.multiply::<0x11>(a, b));
    let cross = w128.xor(w128.multiply::<0x01>(a, b), w128.multiply::<0x10>(a, b));
    let low = w128.xor(low, w128.low_halves(zero, cross));
    let high = w128.xor(high, w128.high_halves(cross, zero));
    w128.xor(high, fold(w128, fold(w128, low)))
}

/// Takes the lowest 64 bits of a product up by 64, modulo the polynomial.
#[inline(always)]
fn fold(w128: Width128, low: Vector) -> Vector {
    let folded = w128.multiply::<0x00>(low, w128.number(POLYNOMIAL.into()));
    w128.xor(w128.swap(low), folded)
}

/// The halves, xored.
#[inline(always)]
fn cross(w128: Width128, power: Vector) -> u64 {
    u128::from_le_bytes(w128.bytes(w128.xor(power, w128.swap(power)))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8452 appendix A.
    #[test]
    fn products_are_those_of_polyval() {
        let Some(w128) = Width128::detect() else { return };
        let element = |bytes: u128| w128.number(bytes.swap_bytes());
        let a = element(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        let b = element(0xff00_0000_0000_0000_0000_0000_0000_0000);
        let dot = u128::from_be_bytes(w128.bytes(dot(w128, a, b)));
        assert_eq!(dot, 0xebe5_6340_1e7e_91ea_3ad6_426b_8140_c394);
    }
}
