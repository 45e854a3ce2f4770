//! Histograms: how a value is distributed, known to an eighth.

use crate::EVENTS;
use crate::counter::page;
use crate::layout::{Cells, EXTREMES_WORDS};
use crate::limits::{HISTOGRAM_BUCKETS, HISTOGRAMS_MAX};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A named distribution of values. Cheap to copy; every method may be called by any thread.
///
/// All threads write to the same words: it is for what is sampled, not for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    index: usize,
}

/// The histogram of that name: the one there is, or a new one that is empty.
///
/// Takes a lock and may allocate: call it once and keep the handle. Beyond [`HISTOGRAMS_MAX`], and
/// where a name is not fit for a page (see [`counter`](crate::counter)), the histogram is one named
/// `overflow`.
///
/// # Panics
/// In debug builds, if the name is not covered by a histogram in [`EVENTS`].
pub fn histogram(name: &str) -> Histogram {
    debug_assert!(
        EVENTS.iter().filter(|event| event.is_histogram()).any(|event| event.covers(name)),
        "histogram {name} is not in keyway_meter::EVENTS: add it there"
    );
    Histogram { index: page().histogram_names.index(name) }
}

/// The words before the buckets. The least value is stored as its complement, so that a page of
/// zeros says that there is none yet.
const SUM: usize = 0;
const LEAST_COMPLEMENT: usize = 1;
const GREATEST: usize = 2;

impl Histogram {
    /// Takes one value in. Never allocates nor waits.
    #[inline]
    pub fn record(self, value: u64) {
        let cells = self.cells();
        cells[SUM].fetch_add(value, Relaxed);
        raise(&cells[LEAST_COMPLEMENT], !value);
        raise(&cells[GREATEST], value);
        // Release: whoever sees this value counted sees it in the words above too.
        cells[EXTREMES_WORDS + bucket(value)].fetch_add(1, Release);
    }

    /// What was recorded so far. Values recorded meanwhile may be in it.
    pub fn read(self) -> Distribution {
        let cells = self.cells();
        Distribution::read(|index| cells.get(index).map_or(0, |cell| cell.load(Acquire)))
    }

    #[inline]
    fn cells(self) -> &'static Cells {
        // An index is always below HISTOGRAMS_MAX; the mask only shows it to the compiler.
        &page().histograms[self.index & (HISTOGRAMS_MAX - 1)]
    }
}

/// Raises a word to a value; mostly it is there already, and a load is cheap.
#[inline]
fn raise(word: &AtomicU64, value: u64) {
    if word.load(Relaxed) < value {
        word.fetch_max(value, Relaxed);
    }
}

/// Buckets to an octave.
const PER_OCTAVE: u64 = 8;

/// The bucket of a value: its highest bit and the three below.
#[inline]
fn bucket(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    let octave = u64::from(value.ilog2()) - 2;
    let part = (value >> (octave - 1)) % PER_OCTAVE;
    ((octave * PER_OCTAVE + part) as usize).min(HISTOGRAM_BUCKETS - 1)
}

/// The least value of a bucket.
fn least_of(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u64 / PER_OCTAVE, bucket as u64 % PER_OCTAVE);
    match octave {
        0 => part,
        _ => (PER_OCTAVE + part) << (octave - 1),
    }
}

/// The greatest value of a bucket.
fn greatest_of(bucket: usize) -> u64 {
    if bucket + 1 < HISTOGRAM_BUCKETS { least_of(bucket + 1) - 1 } else { u64::MAX }
}

/// The values of a histogram up to one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum; wraps at 2^64.
    pub sum: u64,
    /// The least of them; 0 if there are none.
    pub min: u64,
    /// The greatest of them; 0 if there are none.
    pub max: u64,
    /// Always HISTOGRAM_BUCKETS.
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

    /// What came in since an earlier look at the same histogram. Its `min` and `max` are those of
    /// the buckets, so known to an eighth, unless they are new ones.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let buckets: Vec<_> = pairs.map(|(now, before)| now.saturating_sub(*before)).collect();
        let lowest = buckets.iter().position(|count| *count > 0).map_or(0, least_of);
        let highest = buckets.iter().rposition(|count| *count > 0).map_or(0, greatest_of);
        let new_min = earlier.count == 0 || self.min < earlier.min;
        let new_max = earlier.count == 0 || self.max > earlier.max;
        let min = if new_min { self.min } else { lowest.clamp(self.min, self.max) };
        let max = if new_max { self.max } else { highest.clamp(self.min, self.max) };
        Distribution::of(buckets, self.sum.wrapping_sub(earlier.sum), min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_an_eighth_wide() {
        for index in 0..HISTOGRAM_BUCKETS {
            assert_eq!((bucket(least_of(index)), bucket(greatest_of(index))), (index, index));
            if index + 1 < HISTOGRAM_BUCKETS {
                assert_eq!(least_of(index + 1), greatest_of(index) + 1);
                assert!((greatest_of(index) - least_of(index)) * PER_OCTAVE <= least_of(index));
            }
        }
        assert_eq!((least_of(0), greatest_of(HISTOGRAM_BUCKETS - 1)), (0, u64::MAX));
        // What the limit's documentation says.
        assert_eq!(least_of(HISTOGRAM_BUCKETS - 1), (1 << 41) - (1 << 37));
    }
}
