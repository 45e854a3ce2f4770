//! Drivers looked at from outside, without the program.

use keyway_conformance::Plan;
use keyway_cryptotest::{
    Bench, Entry, Error, Event, Interrupt, LeftOut, Spec, Subject, Trial, WRONG, Work, conformance,
    drivers, engine, known,
};
use keyway_engine::{Algorithm, Demand};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

fn trial<'a>(engine: &'a keyway_engine::Engine, interrupt: &'a Interrupt) -> Trial<'a> {
    let count = Some(500);
    let (threads, seconds) = (2, 1.0);
    let entry = Entry::Queue(4);
    Trial { engine, entry, threads, seconds, count, verify: true, profile: true, interrupt }
}

#[test]
fn a_trial_counts_operations_and_what_is_wrong() {
    let drivers = drivers(&[]).unwrap();
    let engine = engine(&drivers, false).unwrap();
    let interrupt = Interrupt::default();
    let work: Work = "aes-128-gcm".parse().unwrap();
    let run = |driver| {
        let subject = Subject::open(&engine, &work, Demand::Named(driver), None).unwrap();
        trial(&engine, &interrupt).measure(&Arc::new(subject), 64)
    };
    let right = run("software");
    assert_eq!((right.operations, right.bytes_in_all()), (500, 32_000));
    assert_eq!(right.errors_in_all(), 0);
    assert!(
        right.drivers.iter().any(|(name, operations)| name == "software" && *operations >= 500)
    );
    assert!(!right.profile.unwrap().stages.is_empty());
    let wrong = run("null");
    assert!(wrong.errors[WRONG] >= 500, "{:?}", wrong.errors);
}

#[test]
fn a_bench_has_a_cell_for_each_driver_and_says_what_it_leaves_out() {
    let drivers = drivers(&[]).unwrap();
    let engine = engine(&drivers, false).unwrap();
    let named = ["software".to_owned()];
    let interrupt = Interrupt::default();
    let bench =
        Bench { engine: &engine, drivers: drivers.to_vec(), named: &named, rsa: None, interrupt };
    let works = ["aes-128-gcm", "3des-cbc", "rsa-pss-sha-256"].map(|name| name.parse().unwrap());
    let (mut cells, mut tables) = (0, 0);
    let outcome =
        bench.run(&works, &[Entry::Direct], &[16, 64], Duration::from_millis(5), |event| {
            match event {
                Event::Cell { .. } => cells += 1,
                Event::Table(table) => tables += table.sizes.len(),
            }
            Ok::<_, Infallible>(())
        });
    let Ok(outcome) = outcome;
    assert_eq!((cells, tables), (2, 2));
    let why: Vec<_> = outcome.left_out.iter().map(|(.., why)| why.clone()).collect();
    assert_eq!(why, [LeftOut::Legacy(Algorithm::TripleDesCbc), LeftOut::NeedsRsaKey]);
}

#[test]
fn the_suite_can_be_interrupted() {
    let drivers = drivers(&[]).unwrap();
    let software = drivers.iter().find(|driver| driver.name() == "software").unwrap();
    let interrupt = Interrupt::default();
    let plan = Plan { only: Some(vec![Algorithm::Sha256]), ..Plan::default() };
    let ended = conformance(software, &plan, &interrupt, |_| interrupt.end());
    assert!(matches!(ended, Err(Error::Interrupted { .. })));
}

#[test]
fn a_name_of_no_driver_is_refused() {
    let drivers = drivers(&[Spec::Fault { seed: 1 }]).unwrap();
    assert!(known(&["fault".to_owned()], &drivers).is_ok());
    let why = known(&["absent".to_owned()], &drivers).unwrap_err();
    assert!(why.to_string().contains("there is no driver absent; there are "), "{why}");
}
