//! Histograms of one process.

use keyway_meter::{Distribution, Histogram, histogram};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn test_histogram(name: &str) -> Histogram {
    histogram(&format!("engine.test.{name}.run"))
}

/// A histogram that no other case has.
fn fresh(values: &[u64]) -> Histogram {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let histogram = test_histogram(&format!("fresh-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

const PERCENTS: [f64; 8] = [0.0, 0.1, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0];

/// The properties of any distribution.
fn assert_sane(values: &Distribution) {
    assert!(values.min <= values.max);
    let mut last = values.min;
    for percentile in PERCENTS.map(|percent| values.percentile(percent)) {
        assert!(percentile >= last && percentile <= values.max, "{values:?}");
        last = percentile;
    }
    assert!(values.min as f64 <= values.mean() && values.mean() <= values.max as f64);
}

#[test]
fn a_name_means_one_histogram() {
    let first = test_histogram("same");
    first.record(3);
    assert_eq!(test_histogram("same"), first);
    assert_eq!(test_histogram("same").read(), first.read());
    assert_eq!(test_histogram("other").read().count, 0);
}

#[test]
fn one_that_is_empty_is_all_zeros() {
    let empty = test_histogram("empty").read();
    assert_eq!((empty.count, empty.sum, empty.min, empty.max), (0, 0, 0, 0));
    assert_eq!((empty.mean(), empty.percentile(50.0), empty.percentile(f64::NAN)), (0.0, 0, 0));
    assert_eq!(empty.since(&empty), empty);
}

#[test]
fn the_ends_of_what_can_be_recorded() {
    let values = fresh(&[0, u64::MAX]).read();
    assert_eq!((values.count, values.min, values.max), (2, 0, u64::MAX));
    assert_eq!((values.percentile(50.0), values.percentile(100.0)), (0, u64::MAX));
    assert_sane(&values);
    assert_eq!(fresh(&[u64::MAX]).read().min, u64::MAX);
}

#[test]
fn what_came_in_between_two_looks() {
    let histogram = fresh(&[1_000, 1_000, 50]);
    let before = histogram.read();
    [70, 900, 71].into_iter().for_each(|value| histogram.record(value));
    let between = histogram.read().since(&before);
    assert_eq!((between.count, between.sum), (3, 1_041));
    // Neither is a new extreme: they are known as their buckets are.
    assert_eq!((between.min, between.max), (64, 959));
    assert_eq!(between.percentile(50.0), 71);
    let before = histogram.read();
    [5, 7_000].into_iter().for_each(|value| histogram.record(value));
    let between = histogram.read().since(&before);
    assert_eq!((between.count, between.min, between.max), (2, 5, 7_000));
    // One that has fewer is another, of a process that was started again, and all of it is new.
    assert_eq!(before.since(&histogram.read()).count, before.count);
    assert_sane(&before.since(&fresh(&[u64::MAX, 9, 3_000_000]).read()));
}

#[test]
fn looks_while_others_record_are_sane_and_nothing_is_lost() {
    const EACH: u64 = 50_000;
    let (histogram, done) = (test_histogram("crowd"), AtomicBool::new(false));
    thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut before = histogram.read();
            while !done.load(Ordering::Relaxed) {
                let now = histogram.read();
                assert!(now.count >= before.count && now.max >= before.max);
                assert_sane(&now);
                assert_sane(&now.since(&before));
                before = now;
            }
        });
        let record = |seed: u64| move || (0..EACH).for_each(|n| histogram.record((n * seed) >> 3));
        let recorders: Vec<_> = (1..4).map(|seed| scope.spawn(record(seed))).collect();
        recorders.into_iter().for_each(|recorder| recorder.join().unwrap());
        done.store(true, Ordering::Relaxed);
        looker.join().unwrap();
    });
    let values = histogram.read();
    assert_eq!((values.count, values.min, values.max), (3 * EACH, 0, ((EACH - 1) * 3) >> 3));
}

#[test]
#[cfg(debug_assertions)]
fn a_histogram_outside_the_list_is_noticed() {
    for name in ["engine.software.sha-256.rnu", "ldap.search"] {
        assert!(std::panic::catch_unwind(|| histogram(name)).is_err(), "{name}");
    }
}

proptest! {
    // Fewer than there is room for.
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn percentiles_are_at_most_an_eighth_above_the_exact_ones(
        mut values in proptest::collection::vec(
            (0..40u32, any::<u64>()).prop_map(|(bits, noise)| noise >> (63 - bits)), 1..200),
        percent in 0.0..=100.0f64,
    ) {
        let seen = fresh(&values).read();
        values.sort_unstable();
        let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
        let (exact, found) = (values[rank - 1], seen.percentile(percent));
        prop_assert!(found >= exact && found - exact <= exact / 8, "{found} for {exact}");
        prop_assert_eq!((seen.min, seen.max), (values[0], values[values.len() - 1]));
        prop_assert_eq!(seen.sum, values.iter().sum::<u64>());
        assert_sane(&seen);
    }
}
