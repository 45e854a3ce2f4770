//! Runs that are raced begin at one moment.

use crate::stub::{FINE, Stub};
use crate::{SEARCH, scenario};
use keyway_codec::Op;
use keyway_load::{Barrier, Error, Interrupt, Outcome, RateOverride, Scenario, run_at};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const BOUND: &str =
    "threads = 1\nconnections = { count = 1, bind = { dn = \"cn=a\", password = \"b\" } }";

fn raced(url: &str, barrier: Barrier) -> Result<Outcome, Error> {
    let text = scenario(url, BOUND, "for = \"200ms\"\nrate = 1000", SEARCH);
    let scenario = Scenario::parse(&text, "test", Path::new("")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let (interrupt, rate_override) = (Interrupt::default(), RateOverride::default());
    run_at(&scenario, &provider, &interrupt, &rate_override, Some(barrier), &mut |_| ())
}

#[test]
fn the_quick_one_waits_for_the_slow_one() {
    let (is_open, was_early) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (opened, early) = (is_open.clone(), was_early.clone());
    let quick = Stub::new(move |op| {
        if matches!(op, Op::SearchRequest(_)) && !opened.load(Ordering::SeqCst) {
            early.store(true, Ordering::SeqCst);
        }
        FINE
    });
    let slow = Stub::new(|_| FINE);
    slow.state.shut();
    let mut barrier = Barrier::of(2).into_iter();
    let (one, other) = (barrier.next().unwrap(), barrier.next().unwrap());
    let (quick_url, slow_url) = (quick.url.clone(), slow.url.clone());
    let quick_run = thread::spawn(move || raced(&quick_url, one));
    let slow_run = thread::spawn(move || raced(&slow_url, other));
    // The quick one's connection is open, and the slow one has begun to open its own.
    while quick.state.requests.load(Ordering::Relaxed) == 0
        || slow.state.connections.load(Ordering::Relaxed) == 0
    {
        thread::yield_now();
    }
    is_open.store(true, Ordering::SeqCst);
    slow.state.open();
    let outcomes = [quick_run, slow_run].map(|run| run.join().unwrap().unwrap());
    assert!(!was_early.load(Ordering::SeqCst), "it has begun before the other was ready");
    assert_eq!(outcomes[0].began, outcomes[1].began, "not at one moment");
    assert!(outcomes.iter().all(|outcome| outcome.recorded.done() == 200));
}

#[test]
fn one_that_cannot_begin_keeps_no_other_waiting() {
    let stub = Stub::new(|_| FINE);
    let mut barrier = Barrier::of(3).into_iter();
    let (one, other) = (barrier.next().unwrap(), barrier.next().unwrap());
    // The third is gone before it was begun.
    drop(barrier);
    let failing = thread::spawn(move || raced("ldap://127.0.0.1:1", one));
    let outcome = raced(&stub.url, other).unwrap();
    assert_eq!(outcome.recorded.done(), 200);
    assert!(failing.join().unwrap().is_err());
}
