//! Random numbers that are a function of what they are for: seed, entry, line.

/// Folded multiplication, as in wyhash: every bit of the result depends on every bit of both.
#[inline]
pub(crate) fn mix(one: u64, other: u64) -> u64 {
    let product =
        u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(other ^ 0xe703_7ed1_a0b4_28db);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A stream of numbers (wyrand).
pub(crate) struct Random {
    state: u64,
}

impl Random {
    #[inline]
    pub(crate) fn new(key: u64) -> Random {
        Random { state: key }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0xa076_1d64_78bd_642f);
        mix(self.state, self.state.rotate_left(32))
    }

    /// A number below `bound`, each as likely as any other up to one part in 2^64 / `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `least` to `most`.
    #[inline]
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        match most.saturating_sub(least) {
            0 => least,
            span => least + self.below(span.saturating_add(1)),
        }
    }

    /// A normally distributed number with mean 0 and standard deviation 2^16: the sum of twelve
    /// even ones, so that it is the same on every machine. None is more than 6 standard deviations
    /// away.
    pub(crate) fn normal(&mut self) -> i64 {
        let sum: u64 = (0..6)
            .map(|_| {
                let two = self.next();
                ((two >> 16) & 0xffff) + (two >> 48)
            })
            .sum();
        sum as i64 - 6 * 65_535
    }
}

/// A permutation of the numbers below `size`: where `index` goes. `size` is at most 2^62.
pub(crate) fn permuted(index: u64, size: u64, key: u64) -> u64 {
    let bits = (64 - size.saturating_sub(1).leading_zeros()).max(2);
    let half = bits.div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut number = index;
    // A Feistel network permutes up to four times as many; a number that leaves the range goes
    // round again.
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..4 {
            let next = left ^ (mix(right.wrapping_add(round << 60), key) & mask);
            (left, right) = (right, next);
        }
        number = (left << half) | right;
        if number < size {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn digits_are_drawn_evenly() {
        let mut random = Random::new(1);
        let mut drawn = [0u32; 10];
        (0..100_000).for_each(|_| drawn[random.below(10) as usize] += 1);
        assert!(drawn.iter().all(|count| (9_500..10_500).contains(count)), "{drawn:?}");
    }

    #[test]
    fn a_permutation_hits_everything_once() {
        for size in [1, 2, 3, 10, 1_000, 1_024, 1_025] {
            let all: BTreeSet<u64> = (0..size).map(|index| permuted(index, size, 7)).collect();
            assert_eq!(all, (0..size).collect());
        }
    }

    #[test]
    fn the_normal_distribution_is_one() {
        let mut random = Random::new(3);
        let drawn: Vec<f64> = (0..50_000).map(|_| random.normal() as f64 / 65_536.0).collect();
        let mean = drawn.iter().sum::<f64>() / 50_000.0;
        let variance = drawn.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 50_000.0;
        assert!(mean.abs() < 0.02 && (0.97..1.03).contains(&variance), "{mean} {variance}");
        let near = drawn.iter().filter(|it| it.abs() < 1.0).count();
        assert!((33_000..35_500).contains(&near), "{near}");
    }
}
