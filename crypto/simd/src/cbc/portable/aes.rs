//! AES (FIPS 197) by its definition: the S-box is computed in GF(2⁸) for all bytes at once, so that
//! no memory access depends on a secret.

use std::array;

/// Encrypts a block; one more key than there are rounds.
pub(crate) fn encrypt(keys: &[[u8; 16]], block: [u8; 16]) -> [u8; 16] {
    let Some(([first, middle @ ..], last)) = keys.split_last().map(|(last, rest)| (rest, last))
    else {
        return block;
    };
    let state = middle.iter().fold(xor(block, *first), |state, key| {
        xor(mix_columns(shift_rows(substitute(state))), *key)
    });
    xor(shift_rows(substitute(state)), *last)
}

pub(crate) fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    array::from_fn(|at| a[at] ^ b[at])
}

/// SubBytes (§ 5.1.1): the inverse in the field, then the affine transformation.
pub(crate) fn substitute<const N: usize>(x: [u8; N]) -> [u8; N] {
    let square = |x| multiply(x, x);
    // The inverse is x²⁵⁴, and of 0 it is 0: 254 = 240 + 12 + 2.
    let x2 = square(x);
    let x3 = multiply(x2, x);
    let x12 = square(square(x3));
    let x15 = multiply(x12, x3);
    let x240 = square(square(square(square(x15))));
    let inverse = multiply(multiply(x240, x12), x2);
    inverse.map(|b| {
        let turned = b.rotate_left(1) ^ b.rotate_left(2) ^ b.rotate_left(3) ^ b.rotate_left(4);
        b ^ turned ^ 0x63
    })
}

/// The product in GF(2⁸) modulo x⁸ + x⁴ + x³ + x + 1, byte by byte.
fn multiply<const N: usize>(mut a: [u8; N], mut b: [u8; N]) -> [u8; N] {
    let mut product = [0; N];
    for _ in 0..8 {
        product = array::from_fn(|at| product[at] ^ (a[at] & 0_u8.wrapping_sub(b[at] & 1)));
        a = double(a);
        b = b.map(|b| b >> 1);
    }
    product
}

fn double<const N: usize>(a: [u8; N]) -> [u8; N] {
    a.map(|a| (a << 1) ^ (0x1b & 0_u8.wrapping_sub(a >> 7)))
}

/// § 5.1.2; the state lies column by column.
fn shift_rows(state: [u8; 16]) -> [u8; 16] {
    array::from_fn(|at| state[(at + 4 * (at % 4)) % 16])
}

/// § 5.1.3.
fn mix_columns(state: [u8; 16]) -> [u8; 16] {
    let doubled = double(state);
    let beside = |at: usize, by: usize| at / 4 * 4 + (at + by) % 4;
    array::from_fn(|at| {
        let next = beside(at, 1);
        doubled[at] ^ doubled[next] ^ state[next] ^ state[beside(at, 2)] ^ state[beside(at, 3)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197 figure 7: some of the S-box, and that it is a permutation.
    #[test]
    fn the_s_box_is_that_of_the_standard() {
        assert_eq!(substitute([0x00, 0x01, 0x53, 0xff]), [0x63, 0x7c, 0xed, 0x16]);
        let mut seen = [false; 256];
        for byte in 0..=255 {
            let [image] = substitute([byte]);
            seen[usize::from(image)] = true;
        }
        assert_eq!(seen, [true; 256]);
    }

    /// FIPS 197 appendix B.
    #[test]
    fn a_block_is_that_of_the_standard() {
        let key =
            crate::CbcKey::aes128(&0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes());
        let block = 0x3243_f6a8_885a_308d_3131_98a2_e037_0734_u128.to_be_bytes();
        let sealed = 0x3925_841d_02dc_09fb_dc11_8597_196a_0b32_u128.to_be_bytes();
        assert_eq!(encrypt(&key.round_keys()[..=key.rounds()], block), sealed);
    }
}
