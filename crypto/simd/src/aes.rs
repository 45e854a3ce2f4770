//! AES keys: the key schedule of FIPS 197 § 5.2, computed without tables.

use zeroize::{ZeroizeOnDrop, optimization_barrier};

/// Most round keys a key has: 14 rounds and one before them.
pub(crate) const ROUND_KEYS_MAX: usize = 15;

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
    /// The schedule of an AES-128 key.
    pub(crate) fn aes128(key: &[u8; 16], substitute: Substitute<'_>) -> Self {
        Self::expand::<1>(key, Rounds::Ten, substitute)
    }

    /// The schedule of an AES-256 key.
    pub(crate) fn aes256(key: &[u8; 32], substitute: Substitute<'_>) -> Self {
        Self::expand::<2>(key, Rounds::Fourteen, substitute)
    }

    /// A key of `BLOCKS` blocks. The next words are made from registers: words in memory, each made
    /// from the one before, would be waited for.
    fn expand<const BLOCKS: usize>(key: &[u8], rounds: Rounds, substitute: Substitute<'_>) -> Self {
        let substitute = |word: u32| u32::from_le_bytes(substitute(word.to_le_bytes()));
        let mut round_keys = [[0; 16]; ROUND_KEYS_MAX];
        let mut before = [0_u128; BLOCKS];
        for ((round_key, before), block) in
            round_keys.iter_mut().zip(&mut before).zip(key.as_chunks().0)
        {
            *round_key = *block;
            *before = u128::from_le_bytes(*block);
        }
        let mut constant = 1;
        for at in BLOCKS..=rounds as usize {
            let last = (before[(at - 1) % BLOCKS] >> 96) as u32;
            let word = if at % BLOCKS == 0 {
                let word = substitute(last.rotate_right(8)) ^ constant;
                constant = if constant == 0x80 { 0x1b } else { constant << 1 };
                word
            } else {
                substitute(last)
            };
            // A word is the one before it, xored with the one a key's length back: the four of a
            // block take up, one after the other, all of the block that was there.
            let block = &mut before[at % BLOCKS];
            *block ^= *block << 32;
            *block ^= *block << 64;
            *block ^= u128::from(word) * 0x1_0000_0001_0000_0001_0000_0001;
            round_keys[at] = block.to_le_bytes();
        }
        Self { round_keys, rounds }
    }
}
