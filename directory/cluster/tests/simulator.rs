//! Whole clusters from seeds: a hundred in every run, those that failed once, and proofs that the checker can fail.
#![cfg(feature = "simulator")]

use keyway_cluster::simulator::{Broken, Fault, Options, run};

#[test]
fn a_hundred_seeds() {
    let mut total = [0; 3];
    for seed in 0..100 {
        let report = run(seed, &Options::of(seed)).unwrap_or_else(|failure| panic!("{failure}"));
        total[0] += report.acknowledged;
        total[1] += report.reads;
        total[2] += report.reigns;
    }
    assert!(total.iter().all(|count| *count > 100), "{total:?}");
}
