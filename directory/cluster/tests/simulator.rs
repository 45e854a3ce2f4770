//! Whole clusters from seeds: a hundred in every run, those that failed once, and proofs that the checker can fail.
#![cfg(feature = "simulator")]

use keyway_cluster::simulator::{Broken, Fault, Options, Report, run};

fn runs(seed: u64) -> Report {
    run(seed, &Options::of(seed)).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_hundred_seeds() {
    let mut total = Report::default();
    for seed in 0..100 {
        let report = runs(seed);
        total.acknowledged += report.acknowledged;
        total.reads += report.reads;
        total.reigns += report.reigns;
        total.in_ldif += report.in_ldif;
        total.rejoins += report.rejoins;
    }
    assert!(total.acknowledged > 10_000 && total.reads > 10_000, "{total:?}");
    assert!(total.reigns > 100 && total.rejoins > 100 && total.in_ldif > 100, "{total:?}");
}

#[test]
fn seeds_that_failed_once() {
    let seeds = include_str!("simulator.regressions");
    let seeds = seeds.lines().filter(|line| !line.starts_with('#'));
    for seed in seeds.filter_map(|line| line.split_whitespace().next()) {
        runs(seed.parse().unwrap());
    }
}

#[test]
fn a_seed_runs_alike_each_time() {
    assert_eq!(format!("{:?}", runs(3)), format!("{:?}", runs(3)));
}

#[test]
fn a_growing_cluster_keeps_up() {
    let growth = keyway_cluster::simulator::growth(4, 10_000).unwrap();
    assert!(growth.changes > 100.0 && growth.base[0].as_millis() == 240, "{growth:?}");
}

/// Seeds of which at least one has to fail when a rule does not hold, and none when it does.
fn is_noticed(broken: Broken, etcd: bool, faults: &[Fault]) {
    let faults = faults.to_vec();
    let options = Options { members: 3, etcd, seconds: 60, faults, ..Options::of(0) };
    let without = Options { broken: Some(broken), ..options.clone() };
    let mut is_noticed = false;
    for seed in 0..30 {
        run(seed, &options).unwrap_or_else(|failure| panic!("{failure}"));
        is_noticed = is_noticed || run(seed, &without).is_err();
    }
    assert!(is_noticed, "{broken:?} is not noticed");
}

#[test]
fn a_writer_that_is_not_fenced_is_noticed() {
    is_noticed(Broken::Fencing, false, &[Fault::PromoteAny, Fault::Cut]);
}

#[test]
fn a_read_of_something_older_is_noticed() {
    is_noticed(Broken::OwnWrites, false, &[Fault::SlowDisk]);
}

#[test]
fn a_copy_that_starts_without_asking_is_noticed() {
    is_noticed(Broken::StartRule, false, &[Fault::Twin]);
}

#[test]
fn a_restored_writer_that_starts_without_asking_is_noticed() {
    is_noticed(Broken::StartRule, false, &[Fault::OldCopy]);
}

#[test]
fn an_etcd_without_transactions_is_noticed() {
    is_noticed(Broken::EtcdTransaction, true, &[Fault::Cut, Fault::Pause]);
}

#[test]
fn an_etcd_that_went_back_without_being_doubted_is_noticed() {
    is_noticed(Broken::EtcdDoubt, true, &[Fault::EtcdRestored, Fault::Cut]);
}
