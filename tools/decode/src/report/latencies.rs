//! A histogram whose buckets are a sixteenth of a power of two wide: seven percent at most.

/// Buckets of a power of two.
const PARTS: u64 = 16;
const PART_BITS: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct Latencies {
    buckets: Vec<u32>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

fn bucket(ns: u64) -> usize {
    if ns < PARTS {
        return usize::try_from(ns).unwrap_or_default();
    }
    let shift = ns.ilog2() - PART_BITS;
    let part = (ns >> shift) - PARTS;
    usize::try_from(u64::from(shift + 1) * PARTS + part).unwrap_or_default()
}

/// The greatest value of a bucket.
fn greatest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let (shift, part) = (bucket / PARTS - 1, bucket % PARTS);
    ((PARTS + part + 1) << shift) - 1
}

impl Latencies {
    pub(crate) fn add(&mut self, ns: u64) {
        // More than a day is no latency.
        let ns = ns.min(1 << 47);
        let bucket = bucket(ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns
    }

    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// So many percent were not longer; 0 without any.
    pub(crate) fn percentile_ns(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return greatest(bucket).min(self.max_ns);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for ns in (0..100_000).chain((1..46).map(|bit| (1 << bit) + 12)) {
            let (bucket, greatest) = (bucket(ns), greatest(bucket(ns)));
            assert!(
                ns <= greatest && greatest <= ns + ns / 15,
                "{ns} in {bucket} up to {greatest}"
            );
        }
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile_ns(99), 0);
        (1..=100).for_each(|ms| latencies.add(ms * 1_000_000));
        let p50 = latencies.percentile_ns(50) as f64 / 1e6;
        assert!((50.0..54.0).contains(&p50), "{p50}");
        assert_eq!(latencies.percentile_ns(100), 100_000_000);
    }
}
