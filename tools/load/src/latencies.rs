//! Histograms of times, and the form in which they are handed on.

use crate::limits::LATENCY_MAX;
use hdrhistogram::Histogram;

/// Latencies in nanoseconds, three digits of each.
pub type Latencies = Histogram<u64>;

/// The shortest latency told apart from shorter ones, in nanoseconds.
const LATENCY_MIN_NS: u64 = 128;

/// An empty histogram. All have the same buckets.
pub(crate) fn latencies() -> Latencies {
    let max = LATENCY_MAX.as_nanos() as u64;
    // These bounds are right, and are the only ones there are.
    Histogram::new_with_bounds(LATENCY_MIN_NS, max, 3).unwrap_or_else(|_| unreachable!())
}

/// Adds one to the other.
pub(crate) fn add(sum: &mut Latencies, more: &Latencies) {
    // It could only fail if one were shorter than the other.
    let _ = sum.add(more);
}

/// A histogram as its buckets: a value of each, and how many it has.
pub(crate) mod buckets {
    use super::{Latencies, latencies};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Buckets = Vec<(u64, u64)>;

    fn of(times: &Latencies) -> Buckets {
        let buckets = times.iter_recorded();
        buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
    }

    /// More than any run has, and few enough to be added up.
    const COUNT_MAX: u64 = 1 << 48;

    fn filled<E: Error>(buckets: &Buckets) -> Result<Latencies, E> {
        let mut times = latencies();
        for (value, count) in buckets {
            if *count > COUNT_MAX - times.len().min(COUNT_MAX) {
                return Err(E::custom("more than any run has"));
            }
            times.saturating_record_n(*value, *count);
        }
        Ok(times)
    }

    pub(crate) fn serialize<S: Serializer>(times: &Latencies, to: S) -> Result<S::Ok, S::Error> {
        of(times).serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Latencies, D::Error> {
        filled(&Buckets::deserialize(from)?)
    }

    pub(crate) mod list {
        use super::{Buckets, Deserialize, Deserializer, Latencies, Serialize, Serializer};
        use super::{filled, of};

        pub(crate) fn serialize<S: Serializer>(
            times: &[Latencies],
            to: S,
        ) -> Result<S::Ok, S::Error> {
            times.iter().map(of).collect::<Vec<_>>().serialize(to)
        }

        pub(crate) fn deserialize<'d, D: Deserializer<'d>>(
            from: D,
        ) -> Result<Vec<Latencies>, D::Error> {
            Vec::<Buckets>::deserialize(from)?.iter().map(filled).collect()
        }
    }
}
