//! Simulated cards: right bytes, exact acceptance, and nothing lost when one dies.

use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Demand, Direction, Driver, DriverQueue, Engine, Error, Flow, Iv, Key, Operation,
    Parameters, Part, Request, Session, Step, Task, Waker,
};
use keyway_test_drivers::{Card, Simulated, null, simulated};
use std::sync::Arc;
use std::time::Duration;

const MAC: Algorithm = Algorithm::HmacSha256;
const MAC_BYTES: usize = 32;
const KEY: [u8; 32] = [7; 32];

fn engine(cards: &[&Simulated]) -> Engine {
    let builder = Engine::builder().legacy(true).slow_pool(2, 64);
    let add = |builder: keyway_engine::Builder, card: &&Simulated| {
        builder.driver(Arc::new((*card).clone()))
    };
    cards.iter().fold(builder, add).driver(software()).build()
}

/// A session that only this card serves.
fn session(engine: &Engine, driver: &str) -> Session {
    engine.session(Parameters::new(MAC, Key::Secret(&KEY)).on(Demand::Named(driver))).unwrap()
}

fn text(number: u64, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fn mac(session: &Session, number: u64, bytes: usize) -> Box<Task> {
    let operation = Operation::mac(MAC, text(number, bytes));
    Task::tagged(session, operation, number)
}

/// The software driver's result for the same request.
fn expected(engine: &Engine, number: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; MAC_BYTES];
    let request = &mut Request::Mac { data: &[&text(number, bytes)], out: &mut out };
    session(engine, "software").run(request).unwrap();
    out
}

fn tag(task: &Task) -> &[u8] {
    match &task.operation {
        Operation::Mac { out, .. } => out,
        _ => panic!("it was a MAC"),
    }
}

/// Polls until so many have come, without spinning on a time that is known.
fn collect(queue: &mut dyn DriverQueue, count: usize) -> Vec<Box<Task>> {
    let mut done = Vec::new();
    while done.len() < count {
        queue.poll(&mut done);
        std::thread::yield_now();
    }
    done
}

#[test]
fn the_bytes_are_those_of_the_inner_driver() {
    let gcm = Algorithm::Aes256Gcm;
    let card = simulated("card", Card::broadcom_5820().also(&[gcm, MAC]), software());
    let engine = engine(&[&card]);
    let key = Key::Secret(&[3; 32]);
    let [there, here] = ["card", "software"]
        .map(|name| engine.session(Parameters::new(gcm, key).on(Demand::Named(name))).unwrap());
    let [mut a, mut b] = [b"a text to seal".to_vec(), b"a text to seal".to_vec()];
    let seal = there.seal(&[1; 12], b"aad", &mut a);
    assert_eq!((seal, &a), (here.seal(&[1; 12], b"aad", &mut b), &b));

    let there = session(&engine, "card");
    let mut queue = engine.queue(64);
    let mut tasks: Vec<_> = (0..40).map(|number| mac(&there, number, 100)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 40);
    let mut done = Vec::new();
    while done.len() < 40 {
        queue.wait(&mut done, Duration::from_secs(10));
    }
    for task in done {
        assert_eq!(task.result(), Ok(MAC_BYTES));
        assert_eq!(tag(&task), expected(&engine, task.user, 100));
    }
    let counters = card.counters();
    assert_eq!((counters.accepted, counters.bytes), (41, 14 + 40 * 100));
    assert!(counters.busy > Duration::ZERO && counters.utilisation() <= 1.0);
}

#[test]
fn it_does_what_its_card_does_and_its_inner_driver_can() {
    use Algorithm::{Aes128Cbc, Aes256Gcm, HmacSha1, HmacSha256, RsaPkcs1Sha256, TripleDesCbc};
    let plain = simulated("card", Card::hifn_7751(), null());
    for steps in [&[TripleDesCbc][..], &[HmacSha1], &[TripleDesCbc, HmacSha1]] {
        assert!(plain.supports(steps), "{steps:?}");
    }
    for steps in [&[Aes256Gcm][..], &[HmacSha1, TripleDesCbc], &[RsaPkcs1Sha256], &[]] {
        assert!(!plain.supports(steps), "{steps:?}");
    }
    assert!(simulated("card", Card::broadcom_5820(), null()).supports(&[RsaPkcs1Sha256]));
    let more = Card::hifn_7751().also(&[Aes128Cbc, HmacSha256]);
    let more = simulated("card", more, null());
    assert!(more.supports(&[Aes128Cbc, HmacSha256]));
    // No card verifies.
    let step = Step { algorithm: RsaPkcs1Sha256, key: Key::None };
    let opened = simulated("card", Card::broadcom_5820(), null()).open(&[step]);
    assert_eq!(opened.err(), Some(Error::Unsupported(RsaPkcs1Sha256)));
}

#[test]
fn a_chain_is_one_request_of_the_card() {
    let card = simulated("card", Card::broadcom_5820().also(&[MAC]), null());
    let engine = engine(&[&card]);
    let steps = [
        Step { algorithm: Algorithm::TripleDesCbc, key: Key::Secret(&[1; 24]) },
        Step { algorithm: MAC, key: Key::Secret(&KEY) },
    ];
    let session = engine.session(Parameters::chain(&steps).on(Demand::Named("card"))).unwrap();
    let parts = [
        Part::Cipher { iv: Iv::Given([0; 16]), text: 0..64 },
        Part::Mac { over: 0..64, tag: 64..76 },
    ];
    let request = &mut Request::Chain {
        direction: Direction::Protect,
        data: &mut [0; 76],
        length: 76,
        parts: &parts,
    };
    assert_eq!(session.run(request), Ok(76));
    assert_eq!((card.counters().accepted, card.counters().bytes), (1, 76));
}

#[test]
fn a_ring_takes_exactly_what_it_has_room_for() {
    let card =
        simulated("card", Card { watchdog_ns: u64::MAX, ..Card::hifn_7751().also(&[MAC]) }, null());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    let tasks = |numbers: std::ops::Range<u64>| -> Vec<_> {
        numbers.map(|number| mac(&session, number, 64)).collect()
    };
    let mut first = card.queue(&Waker::new()).unwrap();
    let mut second = card.queue(&Waker::new()).unwrap();
    let mut third = card.queue(&Waker::new()).unwrap();
    // So that nothing leaves the ring meanwhile.
    card.hang();
    assert_eq!(first.submit(&mut tasks(0..10), false), Flow::Open);
    let mut offered = tasks(10..30);
    assert_eq!(second.submit(&mut offered, false), Flow::Busy);
    assert!(offered.iter().map(|task| task.user).eq(24..30));
    let mut one = tasks(30..31);
    assert_eq!(third.submit(&mut one, false), Flow::Busy);
    assert_eq!(one.len(), 1);
    assert_eq!((card.counters().accepted, card.counters().refused), (24, 2));
    // The third has nothing there, but waits for room.
    assert!(first.due() > Some(0) && second.due() > Some(0) && third.due() > Some(0));
    card.kill();
    assert_eq!((first.due(), second.due(), third.due()), (Some(0), Some(0), Some(0)));
    let (mut back, mut none) = (collect(&mut *first, 10), Vec::new());
    back.append(&mut collect(&mut *second, 14));
    assert!(back.iter().map(|task| task.user).eq(0..24));
    third.poll(&mut none);
    assert!(none.is_empty());
    assert_eq!(third.submit(&mut one, false), Flow::Gone);
    assert_eq!((one.len(), third.due()), (1, None));
}

#[test]
fn all_that_found_the_ring_full_gets_in_later_and_in_order() {
    let card = simulated("card", Card::hifn_7751().also(&[MAC]), null());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    let mut queue = card.queue(&Waker::new()).unwrap();
    let mut offered: Vec<_> = (0..100).map(|number| mac(&session, number, 64)).collect();
    assert_eq!(queue.submit(&mut offered, false), Flow::Busy);
    assert_eq!(offered.len(), 76);
    let mut done = Vec::new();
    while done.len() < 100 {
        queue.poll(&mut done);
        queue.submit(&mut offered, false);
        std::thread::yield_now();
    }
    assert!(done.iter().map(|task| task.user).eq(0..100));
    assert!(done.iter().all(|task| task.result() == Ok(MAC_BYTES)));
    // A Hifn interrupts for each.
    assert_eq!((card.counters().accepted, card.counters().interrupts), (100, 100));
}

#[test]
fn a_batch_is_announced_by_few_interrupts_and_does_not_wait_for_ever() {
    let card = simulated("card", Card::broadcom_5820().also(&[MAC]), null());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    let mut queue = card.queue(&Waker::new()).unwrap();
    let mut tasks: Vec<_> = (0..50).map(|number| mac(&session, number, 16)).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    collect(&mut *queue, 50);
    assert_eq!(card.counters().interrupts, 10);
    // Company was announced and never came: the timer ends the waiting.
    let mut tasks: Vec<_> = (0..7).map(|number| mac(&session, number, 16)).collect();
    assert_eq!(queue.submit(&mut tasks, true), Flow::Open);
    collect(&mut *queue, 7);
    assert_eq!(card.counters().interrupts, 12);
}

#[test]
fn due_is_not_past_while_there_is_nothing_to_find() {
    let card = simulated("card", Card::broadcom_5820().also(&[MAC]), null());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    let mut queue = card.queue(&Waker::new()).unwrap();
    let mut free: Vec<_> = (0..30).map(|number| mac(&session, number, 256)).collect();
    let (mut in_flight, mut done, mut returned) = (0, Vec::new(), 0);
    while returned < 3_000 {
        let offered = free.len();
        queue.submit(&mut free, returned % 2 == 0);
        in_flight += offered - free.len();
        let due = queue.due();
        assert_eq!(due.is_some(), in_flight > 0);
        queue.poll(&mut done);
        assert!(due != Some(0) || !done.is_empty());
        in_flight -= done.len();
        returned += done.len();
        free.append(&mut done);
    }
}

#[test]
fn direct_requests_wait_for_room() {
    let slow = Card { ring: 2, operation_ns: 500_000, ..Card::hifn_7751() };
    let card = simulated("card", slow.also(&[MAC]), software());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, session) = (&engine, &session);
            scope.spawn(move || {
                for number in thread * 10..thread * 10 + 10 {
                    let mut out = [0; MAC_BYTES];
                    let request = &mut Request::Mac { data: &[&text(number, 64)], out: &mut out };
                    assert_eq!(session.run(request), Ok(MAC_BYTES));
                    assert_eq!(out.to_vec(), expected(engine, number, 64));
                }
            });
        }
    });
    let counters = card.counters();
    assert_eq!((counters.accepted, counters.interrupts), (80, 80));
    // 64 bytes at 83 Mbit/s and the fixed cost.
    assert_eq!(counters.busy, 80 * Duration::from_nanos(500_000 + 6_168));
}

#[test]
fn a_dead_card_leaves_everything_as_it_was() {
    let card = simulated("card", Card::hifn_7751().also(&[MAC]), software());
    let engine = engine(&[&card]);
    let session = session(&engine, "card");
    let mut queue = card.queue(&Waker::new()).unwrap();
    let mut tasks: Vec<_> = (0..20).map(|number| mac(&session, number, 4_096)).collect();
    card.kill_after(5);
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    let mut done = collect(&mut *queue, 20);
    assert!(done.iter().map(|task| task.user).eq(0..20));
    // It died before it could announce the fifth.
    for task in &done[..4] {
        assert_eq!(task.result(), Ok(MAC_BYTES));
        assert_eq!(tag(task), expected(&engine, task.user, 4_096));
    }
    for task in &done[4..] {
        assert_eq!((task.result(), tag(task)), (Err(Error::Gone), &[0; MAC_BYTES][..]));
    }
    assert_eq!(queue.submit(&mut done, false), Flow::Gone);
    assert_eq!((done.len(), queue.due()), (20, None));
    let mut out = [0; MAC_BYTES];
    let request = &mut Request::Mac { data: &[b"text"], out: &mut out };
    assert_eq!(session.run(request), Err(Error::Gone));
    assert_eq!(out, [0; MAC_BYTES]);
    let step = Step { algorithm: MAC, key: Key::Secret(&KEY) };
    assert_eq!(card.open(&[step]).err(), Some(Error::Gone));
}

#[test]
fn a_card_that_hangs_is_found_out_and_its_work_done_elsewhere() {
    let hanging = Card { watchdog_ns: 20_000_000, ..Card::hifn_7751().also(&[MAC]) };
    let card = simulated("card", hanging, software());
    let engine = engine(&[&card]);
    // Set by hand, so that the card is chosen.
    let cost = |fixed| keyway_engine::Linear { fixed, per_byte: 0.0 };
    engine.set_cost("card", &[MAC], cost(1.0), cost(1.0)).unwrap();
    engine.set_cost("software", &[MAC], cost(1e9), cost(1e9)).unwrap();
    let session = engine.session(Parameters::new(MAC, Key::Secret(&KEY))).unwrap();
    let mut queue = engine.queue(64);
    let mut tasks: Vec<_> = (0..40).map(|number| mac(&session, number, 4_096)).collect();
    card.hang();
    assert_eq!(queue.submit(&mut tasks, false), 40);
    assert_eq!(card.counters().accepted, 24);
    let mut done = Vec::new();
    while done.len() < 40 {
        queue.wait(&mut done, Duration::from_secs(10));
    }
    for task in done {
        assert_eq!(task.result(), Ok(MAC_BYTES));
        assert_eq!(tag(&task), expected(&engine, task.user, 4_096));
    }
    assert_eq!(queue.in_flight(), 0);
}

/// Threads on a queue each, and one with single requests; two cards that die at different times.
#[test]
fn every_request_ends_once_when_cards_die_under_load() {
    const EACH: u64 = 1_500;
    let first = simulated("first", Card::broadcom_5820().also(&[MAC]), software());
    let second = simulated("second", Card::hifn_7811().also(&[MAC]), software());
    let engine = engine(&[&first, &second]);
    let cost = |fixed| keyway_engine::Linear { fixed, per_byte: 0.0 };
    for driver in ["first", "second"] {
        engine.set_cost(driver, &[MAC], cost(10.0), cost(10.0)).unwrap();
    }
    engine.set_cost("software", &[MAC], cost(1e7), cost(1e7)).unwrap();
    let session = engine.session(Parameters::new(MAC, Key::Secret(&KEY))).unwrap();
    first.kill_after(800);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (engine, session) = (&engine, &session);
            scope.spawn(move || {
                let mut queue = engine.queue(32);
                let mut next = thread * EACH..(thread + 1) * EACH;
                let mut seen = vec![false; EACH as usize];
                let (mut offered, mut done, mut back) = (Vec::new(), Vec::new(), 0);
                while back < EACH {
                    offered.extend(next.by_ref().take(8).map(|number| mac(session, number, 200)));
                    queue.submit(&mut offered, false);
                    queue.wait(&mut done, Duration::from_secs(10));
                    for task in done.drain(..) {
                        assert_eq!(task.result(), Ok(MAC_BYTES));
                        let index = (task.user - thread * EACH) as usize;
                        assert!(!std::mem::replace(&mut seen[index], true), "it came twice");
                        assert_eq!(tag(&task), expected(engine, task.user, 200));
                        back += 1;
                    }
                }
                assert!(seen.into_iter().all(|seen| seen) && queue.in_flight() == 0);
            });
        }
        let (engine, session, second) = (&engine, &session, &second);
        scope.spawn(move || {
            for number in 0..300 {
                let mut out = [0; MAC_BYTES];
                let request = &mut Request::Mac { data: &[&text(number, 64)], out: &mut out };
                assert_eq!(session.run(request), Ok(MAC_BYTES));
                assert_eq!(out.to_vec(), expected(engine, number, 64));
                if number == 150 {
                    // It is to die with work.
                    while second.counters().accepted == 0 {
                        std::thread::yield_now();
                    }
                    second.kill();
                }
            }
        });
    });
    assert!(first.counters().accepted >= 800 && second.counters().accepted > 0);
    // Both were noticed.
    let left: Vec<_> = engine.drivers().into_iter().map(|driver| driver.name).collect();
    assert_eq!(left, ["software"]);
}

#[test]
fn signatures_are_made_beside_the_ciphers() {
    let key = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let key =
        aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&key).unwrap();
    let card = simulated("card", Card::broadcom_5820().also(&[MAC]), software());
    let engine = engine(&[&card]);
    let algorithm = Algorithm::RsaPkcs1Sha256;
    let parameters = Parameters::new(algorithm, Key::Pkcs8(key.as_ref()));
    let [there, here] = ["card", "software"]
        .map(|name| engine.session(parameters.on(Demand::Named(name))).unwrap());
    assert_eq!(there.sign(b"message"), here.sign(b"message"));
    let counters = card.counters();
    // An eighth of 800 a second, and the fixed cost.
    assert_eq!(counters.busy_public_key, Duration::from_nanos(10_002_000));
    assert_eq!(counters.busy, Duration::ZERO);
}

#[test]
fn direct_calls_that_wait_for_a_place_are_counted() {
    let card = Card { ring: 1, ..Card::hifn_7951().also(&[MAC]) };
    let card = simulated("crowded", card, software());
    let engine = engine(&[&card]);
    let busy = keyway_meter::counter("engine.crowded.hmac-sha-256.busy");
    let session = session(&engine, "crowded");
    let calls = |session: &Session| {
        for number in 0..20 {
            let mut out = [0; MAC_BYTES];
            let request = &mut Request::Mac { data: &[&text(number, 4096)], out: &mut out };
            session.run(request).unwrap();
        }
    };
    calls(&session);
    assert_eq!(busy.value(), 0);
    let before = keyway_meter::counter("engine.crowded.hmac-sha-256.operations").value();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| calls(&session));
        }
    });
    let after = keyway_meter::counter("engine.crowded.hmac-sha-256.operations").value();
    assert_eq!(after - before, 80);
    // Each counts once, however often it looks again.
    assert!((1..=80).contains(&busy.value()), "{}", busy.value());
}
