//! Promotions that ask the others, and proofs that the checker notices each rule of theirs that does not hold.

use crate::simulator::{Broken, Fault, Options, run};

const SEEDS: u64 = 40;

fn options(faults: &[Fault]) -> Options {
    let faults = faults.to_vec();
    Options { members: 4, etcd: false, seconds: 60, faults, ..Options::of(0) }
}

/// Seeds of which at least one has to fail in these words when a rule does not hold, and none when it does.
fn is_noticed(broken: Broken, faults: &[Fault], words: &str) {
    let options = options(faults);
    let without = Options { broken: Some(broken), ..options.clone() };
    let mut found = Vec::new();
    for seed in 0..SEEDS {
        run(seed, &options).unwrap_or_else(|failure| panic!("{failure}"));
        found.extend(run(seed, &without).err().map(|failure| failure.what));
    }
    assert!(found.iter().any(|what| what.contains(words)), "{broken:?}: {found:?}");
}

#[test]
fn members_are_promoted_that_ask() {
    let reports = (0..SEEDS).map(|seed| run(seed, &options(&[Fault::PromoteAsked])).unwrap());
    let reigns: u64 = reports.map(|report| report.reigns).sum();
    assert!(reigns > 5 * SEEDS, "{reigns}");
}

#[test]
fn a_writer_that_takes_changes_after_its_promise_is_noticed() {
    is_noticed(Broken::Promise, &[Fault::PromoteAsked], "begins without the acknowledged write");
}

#[test]
fn members_that_let_two_begin_are_noticed() {
    is_noticed(Broken::OnePromise, &[Fault::PromoteAsked], "two members begin one epoch");
}

#[test]
fn a_promotion_that_does_not_wait_is_noticed() {
    is_noticed(Broken::CatchUp, &[Fault::PromoteAsked], "has to rejoin");
}

#[test]
fn a_writer_that_stood_still_and_does_not_ask_is_noticed() {
    is_noticed(Broken::Still, &[Fault::PromoteAsked, Fault::Pause], "after a pause");
}
