//! AES keys: the key schedule of FIPS 197 § 5.2, computed without tables.

use crate::portable::substitute;
use core::fmt;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

/// Most round keys a key has: 14 rounds and one before them.
pub(crate) const ROUND_KEYS_MAX: usize = 15;

/// An expanded AES key for CBC encryption. Wiped when it is dropped.
#[derive(Clone)]
pub struct CbcKey(Schedule);

impl CbcKey {
    /// An AES-128 key.
    pub fn aes128(key: &[u8; 16]) -> Self {
        Self(Schedule::aes128(key, &substitute))
    }

    /// An AES-256 key.
    pub fn aes256(key: &[u8; 32]) -> Self {
        Self(Schedule::aes256(key, &substitute))
    }

    /// 10 or 14.
    pub(crate) fn rounds(&self) -> usize {
        self.0.rounds as usize
    }

    /// One more than there are rounds, the rest is zero.
    pub(crate) fn round_keys(&self) -> &[[u8; 16]; ROUND_KEYS_MAX] {
        &self.0.round_keys
    }
}

/// How often a block goes through the cipher's round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rounds {
    /// AES-128.
    Ten = 10,
    /// AES-256.
    Fourteen = 14,
}

/// The round keys of an AES key. Wiped when they are dropped.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Schedule {
    /// One more than there are rounds, the rest is zero.
    pub(crate) round_keys: [[u8; 16]; ROUND_KEYS_MAX],
    pub(crate) rounds: Rounds,
}

impl Drop for Schedule {
    // Byte by byte, as `zeroize` does it, takes longer than to make the key.
    fn drop(&mut self) {
        self.round_keys = [[0; 16]; ROUND_KEYS_MAX];
        optimization_barrier(self);
    }
}

impl ZeroizeOnDrop for Schedule {}

/// The S-box on a word's bytes: with what the processor has, or plainly.
type Substitute<'a> = &'a dyn Fn([u8; 4]) -> [u8; 4];

impl Schedule {
    /// Of an AES-128 key.
    pub(crate) fn aes128(key: &[u8; 16], substitute: Substitute<'_>) -> Self {
        Self::expand::<4>(key, Rounds::Ten, substitute)
    }

    /// Of an AES-256 key.
    pub(crate) fn aes256(key: &[u8; 32], substitute: Substitute<'_>) -> Self {
        Self::expand::<8>(key, Rounds::Fourteen, substitute)
    }

    /// `WORDS` is the key's length in words of four bytes.
    fn expand<const WORDS: usize>(key: &[u8], rounds: Rounds, substitute: Substitute<'_>) -> Self {
        let mut round_keys = [[0; 16]; ROUND_KEYS_MAX];
        let words = round_keys.as_flattened_mut().as_chunks_mut::<4>().0;
        for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
            *word = *bytes;
        }
        let mut constant = 1_u8;
        for at in WORDS..4 * (rounds as usize + 1) {
            let mut word = words[at - 1];
            if at % WORDS == 0 {
                word = substitute(u32::from_le_bytes(word).rotate_right(8).to_le_bytes());
                word[0] ^= constant;
                constant = if constant == 0x80 { 0x1b } else { constant << 1 };
            } else if WORDS > 6 && at % WORDS == 4 {
                word = substitute(word);
            }
            let before = u32::from_ne_bytes(words[at - WORDS]);
            words[at] = (u32::from_ne_bytes(word) ^ before).to_ne_bytes();
        }
        Self { round_keys, rounds }
    }
}

impl fmt::Debug for CbcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CbcKey").field("rounds", &self.0.rounds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(key: &CbcKey) -> [u8; 16] {
        key.round_keys()[key.rounds()]
    }

    /// FIPS 197 appendix A.1 and A.3: the last four words.
    #[test]
    fn schedules_are_those_of_the_standard() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let end = 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes();
        assert_eq!(last(&CbcKey::aes128(&key)), end);
        let mut key = [0; 32];
        key[..16].copy_from_slice(&0x603d_eb10_15ca_71be_2b73_aef0_857d_7781_u128.to_be_bytes());
        key[16..].copy_from_slice(&0x1f35_2c07_3b61_08d7_2d98_10a3_0914_dff4_u128.to_be_bytes());
        let end = 0xfe48_90d1_e618_8d0b_046d_f344_706c_631e_u128.to_be_bytes();
        assert_eq!(last(&CbcKey::aes256(&key)), end);
    }
}
