//! A driver that fails as planned: what it breaks, and that nothing is lost.

#[path = "../../drivers/tests/work/mod.rs"]
mod work;

use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Demand, Driver, Engine, Error, Flow, Key, Linear, Operation, Parameters, Place,
    Request, Selection, Step, Task, Waker,
};
use keyway_meter::counter;
use keyway_test_drivers::{FaultHandle, Plan, fault};
use proptest::prelude::*;
use std::sync::Arc;
use work::{acts, check, digest, drive, engine, finish, in_order, sessions, sessions_on};

fn is_planned(error: Error) -> bool {
    matches!(error, Error::Driver { driver: "fault", .. })
}

fn plans() -> impl Strategy<Value = Plan> {
    (any::<u64>(), 0.0..0.5, 0.0..1.0, 0u32..6, any::<bool>()).prop_map(
        |(seed, errors, busy, delay, shuffle)| Plan {
            seed,
            errors,
            busy,
            delay,
            shuffle,
            ..Plan::default()
        },
    )
}

/// An engine that prefers the faulty driver to software as long as it lives.
fn preferring(driver: Arc<dyn Driver>) -> Engine {
    let engine = Engine::builder().driver(driver).driver(software()).build();
    let flat = |fixed| Linear { fixed, per_byte: 0.0 };
    for algorithm in [Algorithm::Aes128Gcm, Algorithm::HmacSha256, Algorithm::Sha256] {
        engine.set_cost("fault", &[algorithm], flat(1.0), flat(1.0)).unwrap();
        engine.set_cost("software", &[algorithm], flat(1e9), flat(1e9)).unwrap();
    }
    engine
}

proptest! {
    #[test]
    fn every_task_comes_back_once_and_right_or_failed_as_planned(
        plan in plans(),
        capacity in 1usize..40,
        ordered: bool,
        acts in acts(),
    ) {
        let (driver, handle) = fault("fault", software(), plan);
        let engine = engine(driver);
        let sessions = sessions(&engine, "fault", ordered);
        let done = drive(&mut engine.queue(capacity), &sessions, &acts);
        check(&done, |error| plan.errors > 0.0 && is_planned(error));
        prop_assert!(!ordered || in_order(&done));
        prop_assert_eq!((handle.accepted(), handle.returned()), (done.len() as u64, done.len() as u64));
    }

    #[test]
    fn what_a_dying_driver_has_not_begun_another_does(
        plan in plans(),
        dies_after in 1u64..120,
        capacity in 1usize..40,
        ordered: bool,
        acts in acts(),
    ) {
        let plan = Plan { dies_after: Some(dies_after), errors: 0.0, ..plan };
        let (driver, handle) = fault("fault", software(), plan);
        let engine = preferring(driver);
        let sessions = sessions_on(&engine, Demand::Any, ordered);
        let done = drive(&mut engine.queue(capacity), &sessions, &acts);
        check(&done, |error| is_planned(error) && handle.is_dead());
        prop_assert!(!ordered || in_order(&done));
        prop_assert_eq!(handle.accepted(), dies_after.min(done.len() as u64));
        prop_assert_eq!(handle.returned(), handle.accepted());
        prop_assert_eq!(handle.is_dead(), done.len() as u64 >= dies_after);
    }
}

/// The answers of a bare queue to a fixed sequence of calls.
fn transcript(seed: u64) -> (Vec<String>, FaultHandle) {
    let plan = Plan {
        seed,
        errors: 0.2,
        busy: 0.3,
        delay: 3,
        shuffle: true,
        dies_after: Some(150),
        ..Plan::default()
    };
    let (driver, handle) = fault("fault", software(), plan);
    let engine = engine(driver.clone());
    let [.., session] = sessions(&engine, "fault", false);
    let mut queue = driver.queue(&Waker::new()).unwrap();
    let (mut tasks, mut lines) = (Vec::new(), Vec::new());
    for number in 0..200 {
        tasks.push(digest(&session, b"text", number));
        if number % 5 == 4 {
            lines.push(format!("{:?} {}", queue.submit(&mut tasks, false), tasks.len()));
        }
        if number % 7 == 6 {
            let mut done = Vec::new();
            queue.poll(&mut done);
            lines.extend(done.iter().map(|task| format!("{} {:?}", task.user, task.result())));
        }
    }
    (lines, handle)
}

#[test]
fn the_same_seed_fails_in_the_same_way() {
    let (once, handle) = transcript(42);
    assert_eq!(once, transcript(42).0);
    assert_ne!(once, transcript(43).0);
    assert!(handle.is_dead());
    assert_eq!((handle.accepted(), handle.returned()), (150, 150));
    let has = |what: &str| once.iter().any(|line| line.contains(what));
    assert!(has("Open") && has("Busy") && has("Gone") && has("Ok(32)") && has("planned"));
    assert!(has("Err(Gone)") && has("in the middle"), "some given back, some broken: {once:?}");
}

#[test]
fn a_busy_queue_takes_a_part_and_is_free_after_a_poll() {
    let plan = Plan { busy: 1.0, delay: 9, ..Plan::default() };
    let (driver, _) = fault("fault", software(), plan);
    let engine = engine(driver.clone());
    let [.., session] = sessions(&engine, "fault", false);
    let mut queue = driver.queue(&Waker::new()).unwrap();
    let mut tasks: Vec<_> = (0..100).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Busy);
    let left = tasks.len();
    assert!((1..100).contains(&left), "a part: {left}");
    assert_eq!(queue.submit(&mut tasks, false), Flow::Busy);
    assert_eq!(tasks.len(), left, "nothing before a poll");
    assert_eq!(queue.due(), Some(0));
    let mut done = Vec::new();
    for _ in 0..1000 {
        queue.poll(&mut done);
        queue.submit(&mut tasks, false);
    }
    assert_eq!((done.len(), tasks.len(), queue.due()), (100, 0, None));
}

#[test]
fn the_engine_counts_how_often_it_was_busy() {
    let plan = Plan { busy: 1.0, ..Plan::default() };
    let (driver, handle) = fault("test-busy", software(), plan);
    let engine = engine(driver);
    let [.., session] = sessions(&engine, "test-busy", false);
    let mut queue = engine.queue(64);
    let mut tasks: Vec<_> = (0..64).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 64);
    let left = 64 - handle.accepted();
    assert!(left > 0);
    let mut done = Vec::new();
    finish(&mut queue, &mut done);
    assert_eq!(done.len(), 64);
    assert_eq!(counter("engine.test-busy.sha-256.busy").value(), left, "each task once");
}

#[test]
fn a_delayed_task_takes_some_polls() {
    let plan = Plan { delay: 20, ..Plan::default() };
    let (driver, _) = fault("fault", software(), plan);
    let engine = engine(driver.clone());
    let [.., session] = sessions(&engine, "fault", false);
    let mut queue = driver.queue(&Waker::new()).unwrap();
    let mut tasks: Vec<_> = (0..100).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    let (mut done, mut found) = (Vec::new(), Vec::new());
    for _ in 0..=20 {
        queue.poll(&mut done);
        found.push(done.len());
    }
    assert_eq!(done.len(), 100);
    assert!(found[0] < 50 && found[10] < 100, "{found:?}");
    assert!(!done.iter().map(|task| task.user).is_sorted());
}

#[test]
fn a_killed_driver_finishes_gives_back_and_breaks() {
    let (driver, handle) = fault("fault", software(), Plan::default());
    let engine = engine(driver.clone());
    let [aead, ..] = sessions(&engine, "fault", false);
    let mut queue = driver.queue(&Waker::new()).unwrap();
    let seal = |number| Task::tagged(&aead, Operation::seal([0; 12], [], [0x55; 40]), number);
    let mut tasks: Vec<_> = (0..60).map(seal).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    handle.kill();
    tasks.push(seal(60));
    assert_eq!(queue.submit(&mut tasks, false), Flow::Gone);
    assert_eq!(tasks.len(), 1, "it takes nothing any more");
    let mut done = Vec::new();
    queue.poll(&mut done);
    assert_eq!((done.len(), handle.accepted(), handle.returned()), (60, 60, 60));
    let mut counts = [0; 3];
    for task in &done {
        let Operation::Seal { data, .. } = &task.operation else { panic!("it was a seal") };
        let untouched = data[..] == [0x55; 40];
        match task.result() {
            Ok(40) => counts[0] += usize::from(!untouched),
            Err(Error::Gone) => counts[1] += usize::from(untouched),
            Err(error) if is_planned(error) => counts[2] += usize::from(!untouched),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counts.iter().sum::<usize>(), 60);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_dead_driver_answers_gone_and_touches_nothing() {
    let (driver, handle) = fault("fault", software(), Plan::default());
    let steps = [Step { algorithm: Algorithm::Aes128Gcm, key: Key::Secret(&[7; 16]) }];
    let session = driver.open(&steps).unwrap();
    handle.kill();
    let (mut data, mut tag) = (*b"untouched", [3; 16]);
    let request = &mut Request::Seal { nonce: &[0; 12], aad: b"", data: &mut data, tag: &mut tag };
    assert_eq!(session.run(request), Err(Error::Gone));
    assert_eq!((&data, tag), (b"untouched", [3; 16]));
    assert_eq!(driver.open(&steps).err(), Some(Error::Gone));
    assert_eq!(driver.stream(Algorithm::Sha256).err(), Some(Error::Gone));
    assert_eq!(handle.accepted(), 0);
}

#[test]
fn lone_requests_fail_and_die_as_planned_and_go_elsewhere() {
    let plan = Plan { errors: 0.5, dies_after: Some(100), ..Plan::default() };
    let (driver, handle) = fault("fault", software(), plan);
    let engine = preferring(driver);
    let session = engine.session(Parameters::new(Algorithm::Sha256, Key::None)).unwrap();
    let run = |_| session.run(&mut Request::Digest { data: &[b"text"], out: &mut [0; 32] });
    let results: Vec<_> = (0..200).map(run).collect();
    let failed = results.iter().filter(|result| result.is_err_and(is_planned)).count();
    assert!((20..80).contains(&failed), "about half of the first hundred: {failed}");
    assert!(results[100..].iter().all(|result| *result == Ok(32)), "software did the rest");
    assert_eq!((handle.accepted(), handle.returned()), (100, 100));
    assert_eq!(session.driver(), "software");
}

#[test]
fn it_is_chosen_as_planned() {
    let plan = Plan { selection: Selection::Named, place: Place::Host, ..Plan::default() };
    let (shy, _) = fault("shy", software(), plan);
    let (device, _) = fault("device", software(), Plan::default());
    let engine = Engine::builder().driver(shy).driver(device).build();
    let open = |demand| {
        let parameters = Parameters::new(Algorithm::Sha256, Key::None).on(demand);
        engine.session(parameters).map(|session| session.driver().to_owned())
    };
    assert_eq!(open(Demand::Any).as_deref(), Ok("device"));
    assert_eq!(open(Demand::Hardware).as_deref(), Ok("device"));
    assert_eq!(open(Demand::Software), Err(Error::Unsupported(Algorithm::Sha256)));
    assert_eq!(open(Demand::Named("shy")).as_deref(), Ok("shy"));
}
