//! Pauses between attempts: longer each time up to a limit, and of different lengths at different members.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);

/// A sequence of pauses.
#[derive(Clone, Debug)]
pub struct Backoff {
    state: u64,
}

impl Backoff {
    /// `seed` makes the lengths; members have different ones so that they do not all come at once.
    pub fn new(seed: u64) -> Backoff {
        Backoff { state: seed }
    }

    /// The pause after so many rounds without success: between half of `FIRST × 2^rounds` and all of it.
    pub fn pause(&mut self, rounds: u32) -> Duration {
        let whole = FIRST.saturating_mul(1 << rounds.min(16)).min(LONGEST);
        let half = whole / 2;
        // SplitMix64: a pause needs no better randomness.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_micros(mixed % span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_limit() {
        let mut backoff = Backoff::new(7);
        for rounds in 0..200 {
            let pause = backoff.pause(rounds);
            let whole = FIRST.saturating_mul(1 << rounds.min(16)).min(LONGEST);
            assert!(pause >= whole / 2 && pause <= whole, "{rounds}: {pause:?}");
        }
    }
}
