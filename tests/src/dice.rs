//! Numbers that only look random: a seed gives the same ones again.

use std::time::{SystemTime, UNIX_EPOCH};

/// Names the seed of a run, to have it again.
const SEED: &str = "KEYWAY_TEST_SEED";

/// SplitMix64.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Those of a seed.
    pub const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Up to `below`, which is not among them.
    ///
    /// # Panics
    /// If that is 0.
    pub fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((number ^ number >> 31) % below as u64) as usize
    }

    /// One of them.
    ///
    /// # Panics
    /// If there is none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A new seed, or the one that `KEYWAY_TEST_SEED` names; printed.
///
/// # Panics
/// If that is no number.
pub fn seed(test: &str) -> u64 {
    let named = std::env::var(SEED).ok().map(|seed| seed.parse().expect("a number"));
    let seed = named.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
        now.as_micros() as u64
    });
    eprintln!("{test}: {SEED}={seed}");
    seed
}
