//! How many rows a second etcd takes from one writer, one in flight: printed, not judged.

use crate::rows::Feed;
use crate::{A, client, runtime, won};
use keyway_cluster_etcd::{Appended, Point};
use keyway_tests::{etcd, nightly};
use std::time::Instant;

#[test]
fn the_rate_of_appends_is_printed() {
    if !etcd::available() {
        return;
    }
    let rows = if nightly() { 3_000 } else { 200 };
    for members in [1, 3] {
        let (server, runtime) = (etcd::Etcd::start(members), runtime());
        let etcd = client(&server, &runtime);
        let lease = won(&etcd, A);
        let mut feed = Feed::NEW;
        etcd.begin(&lease, Point::START).unwrap();
        for bytes in [600, 60_000] {
            feed.append(&etcd, &lease, 10);
            let mut times: Vec<_> = (0..rows)
                .map(|_| {
                    let row = feed.grow(bytes);
                    let begun = Instant::now();
                    assert_eq!(etcd.append(&lease, &row).unwrap(), Appended::Done);
                    begun.elapsed()
                })
                .collect();
            times.sort();
            let all: f64 = times.iter().map(|time| time.as_secs_f64()).sum();
            let (rate, median, p99) = (rows as f64 / all, times[rows / 2], times[rows * 99 / 100]);
            eprintln!(
                "{members} members, {bytes} B: {rate:.0} rows/s, median {median:?}, p99 {p99:?}"
            );
        }
    }
}
