//! The dispatch of 2003: slow, but it loses nothing and keeps the order.

#[path = "../../drivers/tests/work/mod.rs"]
mod work;

use keyway_drivers::software;
use keyway_engine::{Algorithm, Engine, Error, Flow, Key, Parameters, Request, Waker};
use keyway_test_drivers::queued2003;
use proptest::prelude::*;
use std::thread;
use work::{FOREVER, acts, check, digest, drive, engine, finish, sessions, told};

const NAME: &str = "queued2003";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_task_comes_back_once_right_and_in_order(capacity in 1usize..40, acts in acts()) {
        let engine = engine(queued2003(software()).unwrap());
        let sessions = sessions(&engine, NAME, false);
        let done = drive(&mut engine.queue(capacity), &sessions, &acts);
        check(&done, |_| false);
        prop_assert!(done.iter().map(|task| task.user).eq(0..done.len() as u64));
    }
}

#[test]
fn lone_callers_are_woken() {
    let engine = engine(queued2003(software()).unwrap());
    let [session, ..] = sessions(&engine, NAME, false);
    let run = |caller: u8| {
        for number in 0..100 {
            let mut nonce = [caller; 12];
            nonce[11] = number;
            let mut data = [caller; 80];
            let (text, tag) = data.split_last_chunk_mut().unwrap();
            *tag = session.seal(&nonce, &[], text).unwrap();
            assert_eq!(session.open_in_place(&nonce, &[], &mut data), Ok(64));
            assert_eq!(data[..64], [caller; 64]);
        }
    };
    thread::scope(|scope| (0..3).for_each(|caller| drop(scope.spawn(move || run(caller)))));
}

#[test]
fn only_those_who_name_it_get_it() {
    let engine = Engine::builder().driver(queued2003(software()).unwrap()).build();
    let session = engine.session(Parameters::new(Algorithm::Sha256, Key::None));
    assert_eq!(session.err(), Some(Error::Unsupported(Algorithm::Sha256)));
}

#[test]
fn a_panic_costs_one_request() {
    let (told, ..) = told();
    let engine = engine(queued2003(told).unwrap());
    let [.., session] = sessions(&engine, NAME, false);
    let panicked = Err(Error::Driver { driver: NAME, why: "it panicked" });
    let mut queue = engine.queue(8);
    let mut tasks = vec![digest(&session, b"panic", 0), digest(&session, b"fine", 1)];
    assert_eq!(queue.submit(&mut tasks, false), 2);
    let mut done = Vec::new();
    finish(&mut queue, &mut done);
    assert_eq!([done[0].result(), done[1].result()], [panicked, Ok(32)]);
    let out = &mut [0; 32];
    assert_eq!(session.run(&mut Request::Digest { data: &[b"panic"], out }), panicked);
    assert_eq!(session.run(&mut Request::Digest { data: &[b"fine"], out }), Ok(32));
}

#[test]
fn it_may_be_dropped_with_work_in_flight() {
    let (told, gate, is_gone) = told();
    let engine = engine(queued2003(told).unwrap());
    let [.., session] = sessions(&engine, NAME, false);
    let mut queue = engine.queue(16);
    let texts = [&b"hold"[..], b"text", b"text"];
    let mut tasks: Vec<_> = texts.iter().map(|text| digest(&session, text, 0)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 3);
    gate.wait();
    drop((queue, session, engine));
    gate.wait();
    is_gone.recv_timeout(FOREVER).unwrap();
}

#[test]
fn a_dropped_driver_gives_back_what_waits_and_finishes_what_runs() {
    let (told, gate, _) = told();
    let other = engine(queued2003(told.clone()).unwrap());
    let [.., session] = sessions(&other, NAME, false);
    let driver = queued2003(told).unwrap();
    let mut queue = driver.queue(&Waker::new()).unwrap();
    // Tasks of another driver's session: they do not keep this one alive.
    assert_eq!(queue.submit(&mut vec![digest(&session, b"hold", 0)], false), Flow::Open);
    gate.wait();
    let mut tasks: Vec<_> = (1..=3).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    let dropping = thread::spawn(move || drop(driver));
    let mut done = Vec::new();
    while done.len() < 3 {
        queue.poll(&mut done);
        thread::yield_now();
    }
    assert!(done.iter().all(|task| task.result() == Err(Error::Gone)));
    gate.wait();
    dropping.join().unwrap();
    queue.poll(&mut done);
    assert_eq!((done.len(), done[3].user, done[3].result()), (4, 0, Ok(32)));
    assert_eq!(queue.submit(&mut done, false), Flow::Gone);
}
