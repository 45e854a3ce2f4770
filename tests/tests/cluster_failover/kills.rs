//! The writer is killed again and again.

use crate::load::under_load;
use crate::site::{Site, until};
use keyway_tests::{etcd, nightly};
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_secs(6);

#[test]
fn a_writer_that_is_killed_is_followed_by_another_and_nothing_is_lost() {
    if !etcd::available() {
        return;
    }
    let kills = if nightly() { 100 } else { 5 };
    let mut site = Site::new(3, 3, 0);
    let (mut gaps, done) = under_load(&mut site, |site, load| {
        let mut gaps = Vec::new();
        for _ in 0..kills {
            let writer = site.writer();
            let killed = Instant::now();
            site.kill(writer);
            let answered = until("changes go on", || load.acknowledged_after(killed));
            gaps.push(answered - killed);
            eprintln!("{}: {:?}", gaps.len(), answered - killed);
            site.places[writer].start(&[]);
            // It has caught up: it may be the next one.
            let begun = Instant::now();
            until("changes by way of the one that is back", || load.acknowledged_after(begun));
        }
        gaps
    });
    gaps.sort();
    let (median, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    eprintln!("{kills} kills: changes go on after {median:?} (median), {longest:?} (longest)");
    // A busy machine may be slower in a short run.
    assert!(!nightly() || longest <= 3 * LEASE, "{gaps:?}");
    done.check(&site.end());
}
