//! SHA-1 and SHA-256 (FIPS 180-4), a lane per message, `N` lanes.

use crate::cbc::hash::{BLOCK_BYTES, Hash, WORDS_MAX};
use std::array;

/// A word of every lane.
type Words<const N: usize> = [u32; N];

/// Takes the first `blocks` blocks of every input into the lanes' states.
pub(crate) fn compress<const N: usize>(
    hash: Hash,
    states: &mut [Words<N>; WORDS_MAX],
    inputs: &[&[u8]; N],
    blocks: usize,
) {
    match hash {
        Hash::Sha1 => sha1(states, inputs, blocks),
        Hash::Sha256 => sha256(states, inputs, blocks),
    }
}

/// § 6.1.2; the state is the first five words.
fn sha1<const N: usize>(states: &mut [Words<N>; WORDS_MAX], inputs: &[&[u8]; N], blocks: usize) {
    for block in 0..blocks {
        let mut w = [[0; N]; 80];
        message(&mut w, inputs, block);
        for t in 16..80 {
            w[t] = map([w[t - 3], w[t - 8], w[t - 14], w[t - 16]], |[a, b, c, d]| {
                (a ^ b ^ c ^ d).rotate_left(1)
            });
        }
        let [mut a, mut b, mut c, mut d, mut e, ..] = *states;
        for (t, w) in w.into_iter().enumerate() {
            let f = map([b, c, d], |[b, c, d]| match t / 20 {
                0 => (b & c) ^ (!b & d),
                2 => (b & c) ^ (b & d) ^ (c & d),
                _ => b ^ c ^ d,
            });
            let k = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6_u32][t / 20];
            let next = map([a, f, e, w], |[a, f, e, w]| sum([a.rotate_left(5), f, e, k, w]));
            (a, b, c, d, e) = (next, a, b.map(|b| b.rotate_left(30)), c, d);
        }
        for (state, word) in states.iter_mut().zip([a, b, c, d, e]) {
            *state = map([*state, word], sum);
        }
    }
}

/// § 6.2.2.
fn sha256<const N: usize>(states: &mut [Words<N>; WORDS_MAX], inputs: &[&[u8]; N], blocks: usize) {
    for block in 0..blocks {
        let mut w = [[0; N]; 64];
        message(&mut w, inputs, block);
        for t in 16..64 {
            w[t] = map([w[t - 2], w[t - 7], w[t - 15], w[t - 16]], |[a, b, c, d]| {
                let s1 = a.rotate_right(17) ^ a.rotate_right(19) ^ (a >> 10);
                let s0 = c.rotate_right(7) ^ c.rotate_right(18) ^ (c >> 3);
                sum([s1, b, s0, d])
            });
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *states;
        for (w, k) in w.into_iter().zip(SHA256_CONSTANTS) {
            let first = map([e, f, g, h, w], |[e, f, g, h, w]| {
                let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
                sum([h, s1, (e & f) ^ (!e & g), k, w])
            });
            let second = map([a, b, c], |[a, b, c]| {
                let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
                s0.wrapping_add((a & b) ^ (a & c) ^ (b & c))
            });
            (h, g, f, e) = (g, f, e, map([d, first], sum));
            (d, c, b, a) = (c, b, a, map([first, second], sum));
        }
        for (state, word) in states.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state = map([*state, word], sum);
        }
    }
}

/// The first 16 words of the message schedule.
fn message<const N: usize>(w: &mut [Words<N>], inputs: &[&[u8]; N], block: usize) {
    let start = block * BLOCK_BYTES;
    for (lane, input) in inputs.iter().enumerate() {
        let words = input[start..start + BLOCK_BYTES].as_chunks().0;
        for (w, bytes) in w.iter_mut().zip(words) {
            w[lane] = u32::from_be_bytes(*bytes);
        }
    }
}

/// A step on the words of every lane.
fn map<const N: usize, const M: usize>(
    words: [Words<N>; M],
    step: impl Fn([u32; M]) -> u32,
) -> Words<N> {
    array::from_fn(|lane| step(array::from_fn(|word| words[word][lane])))
}

fn sum<const M: usize>(words: [u32; M]) -> u32 {
    words.into_iter().fold(0, u32::wrapping_add)
}

/// FIPS 180-4 § 4.2.2.
pub(crate) const SHA256_CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
