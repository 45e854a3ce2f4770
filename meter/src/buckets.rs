//! The words of a histogram: its extremes, and its buckets, which are an eighth wide.

use crate::limits::HISTOGRAM_BUCKETS;

/// The words before the buckets. The least value is stored as its complement, so that a page of
/// zeros says that there is none yet.
pub(crate) const SUM: usize = 0;
pub(crate) const LEAST_COMPLEMENT: usize = 1;
pub(crate) const GREATEST: usize = 2;

/// Buckets to an octave.
const PER_OCTAVE: u64 = 8;

/// The bucket of a value: its highest bit and the three below.
#[inline]
pub(crate) fn bucket(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    let octave = u64::from(value.ilog2()) - 2;
    let part = (value >> (octave - 1)) % PER_OCTAVE;
    ((octave * PER_OCTAVE + part) as usize).min(HISTOGRAM_BUCKETS - 1)
}

/// The least value of a bucket.
pub(crate) fn least_of(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u64 / PER_OCTAVE, bucket as u64 % PER_OCTAVE);
    match octave {
        0 => part,
        _ => (PER_OCTAVE + part) << (octave - 1),
    }
}

/// The greatest value of a bucket.
pub(crate) fn greatest_of(bucket: usize) -> u64 {
    if bucket + 1 < HISTOGRAM_BUCKETS { least_of(bucket + 1) - 1 } else { u64::MAX }
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
        // The limit's documentation says this.
        assert_eq!(least_of(HISTOGRAM_BUCKETS - 1), (1 << 41) - (1 << 37));
    }
}
