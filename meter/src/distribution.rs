//! The contents of a histogram, and the arithmetic on it.

use crate::buckets::{GREATEST, LEAST_COMPLEMENT, SUM, bucket, greatest_of, least_of};
use crate::layout::EXTREMES_WORDS;
use crate::limits::HISTOGRAM_BUCKETS;
use std::fmt::Write;

/// The values of a histogram up to one moment, or between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum; wraps at 2^64.
    pub sum: u64,
    /// The least of them; 0 if there are none.
    pub min: u64,
    /// The greatest of them; 0 if there are none.
    pub max: u64,
    /// HISTOGRAM_BUCKETS, or none if there are no values.
    buckets: Vec<u64>,
}

impl Distribution {
    /// Reads a histogram out of its words, in which nothing is believed.
    pub(crate) fn read(word: impl Fn(usize) -> u64) -> Distribution {
        // First the buckets: what is seen counted is in the other words by then.
        let buckets = (0..HISTOGRAM_BUCKETS).map(|bucket| word(EXTREMES_WORDS + bucket)).collect();
        Distribution::of(buckets, word(SUM), !word(LEAST_COMPLEMENT), word(GREATEST))
    }

    fn of(buckets: Vec<u64>, sum: u64, min: u64, max: u64) -> Distribution {
        let count = buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(*bucket));
        let (sum, min, max) = if count == 0 { (0, 0, 0) } else { (sum, min.min(max), max) };
        Distribution { count, sum, min, max, buckets }
    }

    /// Their mean; 0 if there are none. Values that were recorded during the look may be in the sum
    /// and not in the count; it is between `min` and `max` in any case.
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => (self.sum as f64 / count as f64).clamp(self.min as f64, self.max as f64),
        }
    }

    /// A value that `p` percent of them do not exceed: at most an eighth above the least such, and
    /// between `min` and `max`. 0 if there are none.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = (p / 100.0 * self.count as f64).ceil() as u64;
        let rank = rank.min(self.count).max(1);
        let mut below: u64 = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below = below.saturating_add(*count);
            if below >= rank {
                return greatest_of(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many of them do not exceed `value`; of those that share its bucket, and so differ from it by an
    /// eighth at most, all.
    pub fn at_most(&self, value: u64) -> u64 {
        self.buckets.iter().take(bucket(value) + 1).fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The values since an earlier look at the same histogram. Its `min` and `max` are those of the
    /// buckets, so known to an eighth, unless they are new ones.
    ///
    /// Where one of them counted less than before, it is another histogram (its process was started
    /// again), and all is new.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        if self.buckets.iter().zip(&earlier.buckets).any(|(now, before)| now < before)
            || (self.buckets.is_empty() && !earlier.buckets.is_empty())
        {
            return self.clone();
        }
        let before = earlier.buckets.iter().copied().chain(std::iter::repeat(0));
        let pairs = self.buckets.iter().zip(before);
        let buckets: Vec<_> = pairs.map(|(now, before)| now - before).collect();
        let lowest = buckets.iter().position(|count| *count > 0).map_or(0, least_of);
        let highest = buckets.iter().rposition(|count| *count > 0).map_or(0, greatest_of);
        let new_min = earlier.count == 0 || self.min < earlier.min;
        let new_max = earlier.count == 0 || self.max > earlier.max;
        let min = if new_min { self.min } else { lowest.clamp(self.min, self.max) };
        let max = if new_max { self.max } else { highest.clamp(self.min, self.max) };
        Distribution::of(buckets, self.sum.wrapping_sub(earlier.sum), min, max)
    }

    /// These values and those together.
    #[must_use]
    pub fn and(&self, others: &Distribution) -> Distribution {
        match (self.count, others.count) {
            (_, 0) => return self.clone(),
            (0, _) => return others.clone(),
            _ => {}
        }
        let pairs = self.buckets.iter().zip(&others.buckets);
        let buckets = pairs.map(|(one, other)| one.saturating_add(*other)).collect();
        let (min, max) = (self.min.min(others.min), self.max.max(others.max));
        Distribution::of(buckets, self.sum.wrapping_add(others.sum), min, max)
    }

    /// All of it as text, of which [`Distribution::from_text`] makes the same:
    /// `sum=S min=M max=M BUCKET:COUNT BUCKET:COUNT ...`.
    pub fn to_text(&self) -> String {
        let mut text = format!("sum={} min={} max={}", self.sum, self.min, self.max);
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        for (bucket, count) in filled {
            // Writing to a String cannot fail.
            let _ = write!(text, " {bucket}:{count}");
        }
        text
    }

    /// Reads that text; `None` if it is none. No input makes it panic.
    pub fn from_text(text: &str) -> Option<Distribution> {
        let mut words = text.split(' ');
        let mut named = |name: &str| {
            let value = words.next()?.strip_prefix(name)?.strip_prefix('=')?;
            value.parse::<u64>().ok()
        };
        let (sum, min, max) = (named("sum")?, named("min")?, named("max")?);
        let mut buckets = vec![0_u64; HISTOGRAM_BUCKETS];
        for word in words {
            let (bucket, count) = word.split_once(':')?;
            *buckets.get_mut(bucket.parse::<usize>().ok()?)? = count.parse().ok()?;
        }
        Some(Distribution::of(buckets, sum, min, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Distribution {
        let mut buckets = vec![0; HISTOGRAM_BUCKETS];
        values.iter().for_each(|value| buckets[bucket(*value)] += 1);
        let (min, max) = (values.iter().min(), values.iter().max());
        let sum = values.iter().sum();
        Distribution::of(buckets, sum, *min.unwrap_or(&0), *max.unwrap_or(&0))
    }

    #[test]
    fn together_they_are_all_values() {
        let (one, other) = (of(&[1, 5, 90]), of(&[0, 7_000_000_000]));
        assert_eq!(one.and(&other), of(&[0, 1, 5, 90, 7_000_000_000]));
        assert_eq!(one.and(&Distribution::default()), one);
        assert_eq!(Distribution::default().and(&one), one);
        assert_eq!(Distribution::default().percentile(50.0), 0);
    }

    #[test]
    fn text_and_back() {
        for values in [&[][..], &[0], &[3, 3, 1 << 50, 77], &[u64::MAX / 4]] {
            let values = of(values);
            assert_eq!(Distribution::from_text(&values.to_text()), Some(values));
        }
        let bad =
            ["", "sum=1", "sum=1 min=0 max=1 9999:1", "sum=1 min=0 max=1 1:", "sum=-1 min=0 max=0"];
        assert!(bad.into_iter().all(|text| Distribution::from_text(text).is_none()));
    }

    #[test]
    fn a_histogram_that_counts_less_was_begun_again() {
        let (before, now) = (of(&[5, 5, 5, 900]), of(&[5, 70]));
        assert_eq!(now.since(&before), now);
        let more = of(&[5, 5, 5, 900, 70]).since(&before);
        assert_eq!((more.count, more.sum), (1, 70));
        assert_eq!(now.since(&Distribution::default()), now);
        assert_eq!(Distribution::default().since(&now), Distribution::default());
    }
}
