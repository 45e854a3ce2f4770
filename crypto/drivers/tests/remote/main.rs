//! A daemon as a driver: everything through the ring, and a daemon that dies in every state.

mod peer;

use keyway_conformance::{Outcome, Plan, run};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_drivers::software;
use keyway_engine::*;
use peer::{At, Behaviour, COUNTED, NAMED, Peer, SECRET};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{process, thread};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
const GCM: &[Algorithm] = &[Algorithm::Aes128Gcm];

fn path(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("keyway-{}-{test}", process::id()))
}

fn options(test: &str) -> RemoteOptions {
    RemoteOptions::new(path(test), "test")
}

/// An engine that has software, and a daemon that it prefers for AES-GCM.
fn engine() -> Engine {
    Engine::builder().driver(software()).build()
}

fn prefer_remote(engine: &Engine) {
    for (driver, fixed) in [("remote", 1.0), ("software", 1e6)] {
        let cost = Linear { fixed, per_byte: 0.0 };
        let _ = engine.set_cost(driver, GCM, cost, cost);
    }
}

fn gcm(engine: &Engine) -> Session {
    engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&SECRET))).unwrap()
}

fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn seals(session: &Session, count: u64, bytes: usize) -> Vec<Box<Task>> {
    let seal = |number| {
        let data = vec![number as u8; bytes];
        Task::tagged(session, Operation::seal(nonce(number), b"header", data), number)
    };
    (0..count).map(seal).collect()
}

/// Each of them came back once, and right.
fn are_sealed(done: &[Box<Task>], count: u64, bytes: usize) {
    let reference = gcm(&engine());
    let numbers: HashSet<_> = done.iter().map(|task| task.user).collect();
    assert_eq!((done.len() as u64, numbers.len() as u64), (count, count));
    for task in done {
        assert_eq!(task.result(), Ok(bytes), "{}", task.user);
        let mut data = vec![task.user as u8; bytes];
        let tag = reference.seal(&nonce(task.user), b"header", &mut data).unwrap();
        let Operation::Seal { data: made, tag: made_tag, .. } = &task.operation else { panic!() };
        assert!(made[..] == data[..] && *made_tag == tag, "{}", task.user);
    }
}

fn collect(queue: &mut Queue) -> Vec<Box<Task>> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        assert!(queue.wait(&mut done, LONG) > 0);
    }
    done
}

fn conforms(test: &str, behaviour: Behaviour, plan: &Plan) {
    let _peer = Peer::start(&path(test), behaviour);
    let engine = Engine::builder().build();
    let remote = Remote::connect(&engine, options(test)).unwrap();
    let report = run(remote.driver().unwrap(), software(), plan, &mut |_| {});
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert!(report.passed(), "{}\n{}", failures.len(), failures.join("\n"));
    let made = |outcome: &Outcome| matches!(outcome, Outcome::Passed { .. });
    assert!(report.checks.iter().any(|check| made(&check.outcome)));
    if std::env::var_os("CONFORMANCE_SHOW").is_some() {
        for check in &report.checks {
            println!("{:9.3} ms {check}", check.nanoseconds as f64 / 1e6);
        }
    }
}

#[test]
fn every_algorithm_conforms() {
    conforms("all", Behaviour::default(), &Plan { rounds: 1, ..Plan::default() });
}

#[test]
fn a_daemon_that_is_busy_at_first_loses_nothing() {
    use Algorithm::*;
    let only = Some(vec![Aes128Gcm, Sha256, Ed25519, Zstd]);
    let behaviour = Behaviour { busy: 2, ..Behaviour::default() };
    conforms("busy", behaviour, &Plan { rounds: 1, only, ..Plan::default() });
}

#[test]
fn what_a_killed_daemon_has_not_answered_comes_back_through_another_driver_once() {
    for answered in [0, 1, 10] {
        let name = format!("killed-{answered}");
        let peer = Peer::start(&path(&name), Behaviour::default());
        let engine = engine();
        let _remote = Remote::connect(&engine, options(&name)).unwrap();
        prefer_remote(&engine);
        let session = gcm(&engine);
        let mut queue = engine.queue(100);
        peer.answer(answered);
        let mut tasks = seals(&session, 100, 1_000);
        assert_eq!(queue.submit(&mut tasks, false), 100);
        peer.wait_taken(answered + 1);
        drop(peer);
        are_sealed(&collect(&mut queue), 100, 1_000);
    }
}

#[test]
fn a_single_request_of_a_killed_daemon_is_done_elsewhere() {
    let peer = Peer::start(&path("single"), Behaviour::default());
    let engine = engine();
    let _remote = Remote::connect(&engine, options("single")).unwrap();
    prefer_remote(&engine);
    let session = gcm(&engine);
    session.seal(&nonce(1), b"", &mut [0; 10]).unwrap();
    assert!(peer.shared().taken.load(Ordering::Relaxed) > 0);
    peer.answer(0);
    let before = peer.shared().taken.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let sealing: Vec<_> = (0..4)
            .map(|number| {
                let session = &session;
                scope.spawn(move || {
                    let mut data = vec![number; 100_000];
                    session.seal(&nonce(number.into()), b"", &mut data).map(|tag| (tag, data))
                })
            })
            .collect();
        peer.wait_taken(before + 4);
        drop(peer);
        let reference = gcm(&self::engine());
        for (number, sealing) in (0..).zip(sealing) {
            let (tag, data) = sealing.join().unwrap().unwrap();
            let mut expected = vec![number; 100_000];
            let right = reference.seal(&nonce(number.into()), b"", &mut expected).unwrap();
            assert!(tag == right && data == expected);
        }
    });
}

#[test]
fn a_held_key_is_gone_with_the_daemon_and_back_with_it() {
    let name = "held";
    let peer = Peer::start(&path(name), Behaviour::default());
    let engine = engine();
    let remote = Remote::connect(&engine, options(name)).unwrap();
    let open = |key| engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Named(key)));
    assert!(matches!(open("no.such.key"), Err(Error::InvalidKey(_))));
    let session = open(NAMED).unwrap();
    let seal = || {
        let mut data = [7; 33];
        session.seal(&nonce(9), b"aad", &mut data).map(|tag| (tag, data))
    };
    let sealed = seal().unwrap();
    let mut data = [7; 33];
    let tag = gcm(&engine).seal(&nonce(9), b"aad", &mut data).unwrap();
    assert_eq!(sealed, (tag, data));
    let mut queue = engine.queue(8);
    peer.answer(0);
    queue.submit(&mut seals(&session, 5, 10), false);
    peer.wait_taken(2);
    drop(peer);
    let done = collect(&mut queue);
    assert!(done.len() == 5 && done.iter().all(|task| task.result() == Err(Error::Gone)));
    assert_eq!(seal(), Err(Error::Gone));
    for _ in 0..3 {
        let _peer = Peer::start(&path(name), Behaviour::default());
        assert!(remote.wait(LONG));
        assert_eq!(seal(), Ok(sealed));
        queue.submit(&mut seals(&session, 5, 10), false);
        are_sealed(&collect(&mut queue), 5, 10);
    }
}

#[test]
fn a_daemon_that_hangs_up_instead_of_answering_costs_nothing_but_itself() {
    for at in [At::Hello, At::Open, At::Queue, At::Region] {
        let name = format!("hangs-up-{at:?}");
        let behaviour = Behaviour { hangs_up: Some(at), ..Behaviour::default() };
        let _peer = Peer::start(&path(&name), behaviour);
        let engine = engine();
        let remote = Remote::connect(&engine, options(&name));
        assert_eq!(remote.is_err(), at == At::Hello, "{at:?}");
        prefer_remote(&engine);
        let session = gcm(&engine);
        session.seal(&nonce(1), b"", &mut [0; 10]).unwrap();
        let mut queue = engine.queue(10);
        queue.submit(&mut seals(&session, 10, 100), false);
        are_sealed(&collect(&mut queue), 10, 100);
    }
}

#[test]
fn a_daemon_is_waited_for_if_that_was_wanted() {
    let name = "late";
    let engine = engine();
    let absent = Remote::connect(&engine, options(name)).map(drop).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    let remote =
        Remote::connect(&engine, RemoteOptions { at_once: false, ..options(name) }).unwrap();
    assert!(!remote.wait(Duration::ZERO) && remote.driver().is_none());
    let _peer = Peer::start(&path(name), Behaviour::default());
    assert!(remote.wait(LONG));
    let names = || engine.drivers().into_iter().map(|driver| driver.name).collect::<Vec<_>>();
    assert_eq!(names(), ["software", "remote"]);
    let twice = Remote::connect(&engine, options(name)).map(drop).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);
    assert_eq!(names(), ["software", "remote"]);
    drop(remote);
    assert_eq!(names(), ["software"]);
}

#[test]
fn a_daemon_that_may_be_chosen_is_measured() {
    let _peer = Peer::start(&path("measured"), Behaviour::default());
    let engine = engine();
    let _remote = Remote::connect(&engine, options("measured")).unwrap();
    let session = gcm(&engine);
    let mut queue = engine.queue(64);
    for _ in 0..10 {
        session.seal(&nonce(1), b"", &mut [0; 64]).unwrap();
        queue.submit(&mut seals(&session, 64, 64), false);
        are_sealed(&collect(&mut queue), 64, 64);
    }
    let costs = engine.costs(false);
    let of = |driver| costs.iter().find(|cost| cost.driver == driver && cost.work == "aes-128-gcm");
    assert!(of("remote").unwrap().single.fixed > of("software").unwrap().single.fixed);
}

#[test]
fn what_does_not_fit_a_slot_goes_through_regions_of_its_own() {
    let peer = Peer::start(&path("large"), Behaviour::default());
    let engine = engine();
    let _remote = Remote::connect(&engine, options("large")).unwrap();
    prefer_remote(&engine);
    let session = gcm(&engine);
    let mut queue = engine.queue(12);
    for bytes in [32 << 10, (32 << 10) - 100, 300_000, 5 << 20, 40_000] {
        queue.submit(&mut seals(&session, 12, bytes), false);
        are_sealed(&collect(&mut queue), 12, bytes);
    }
    let named = Demand::Named("remote");
    let sha = Parameters::new(Algorithm::Sha256, Key::None).on(named);
    let parts = vec![vec![3; 70_000]; 5];
    let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    let (mut made, mut expected) = ([0; 32], [0; 32]);
    let session = engine.session(sha).unwrap();
    session.run(&mut Request::Digest { data: &parts, out: &mut made }).unwrap();
    software_digest(&parts, &mut expected);
    assert_eq!(made, expected);
    assert!(peer.shared().regions.lock().unwrap().iter().any(|bytes| *bytes > 5 << 20));
}

fn software_digest(parts: &[&[u8]], out: &mut [u8]) {
    engine().digest(Algorithm::Sha256, parts, out).unwrap();
}

#[test]
fn a_daemon_without_room_for_a_large_request_says_so_and_small_ones_go_on() {
    let behaviour = Behaviour { region_bytes_max: 2 << 20, ..Behaviour::default() };
    let _peer = Peer::start(&path("no-room"), behaviour);
    let engine = engine();
    let _remote = Remote::connect(&engine, options("no-room")).unwrap();
    let named = Demand::Named("remote");
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&SECRET)).on(named);
    let session = engine.session(parameters).unwrap();
    let mut queue = engine.queue(12);
    let mut tasks = seals(&session, 1, 4 << 20);
    tasks.extend(seals(&session, 12, 100).drain(1..));
    queue.submit(&mut tasks, false);
    let done = collect(&mut queue);
    for task in &done {
        assert_eq!(task.result(), if task.user == 0 { Err(Error::Busy) } else { Ok(100) });
    }
    assert_eq!(session.seal(&nonce(1), b"", &mut vec![0; 4 << 20]), Err(Error::Busy));
}

#[test]
fn many_threads_use_one_session() {
    let _peer = Peer::start(&path("threads"), Behaviour::default());
    let engine = engine();
    let _remote = Remote::connect(&engine, options("threads")).unwrap();
    prefer_remote(&engine);
    let session = gcm(&engine);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, session) = (&engine, &session);
            scope.spawn(move || {
                let mut queue = engine.queue(80);
                for bytes in [0, 64, 1_500, 20_000] {
                    queue.submit(&mut seals(session, 80, bytes + thread), false);
                    let mut data = vec![thread as u8; bytes];
                    let tag = session.seal(&nonce(5), b"", &mut data).unwrap();
                    data.extend(tag);
                    assert_eq!(session.open_in_place(&nonce(5), b"", &mut data), Ok(bytes));
                    are_sealed(&collect(&mut queue), 80, bytes + thread);
                }
            });
        }
    });
}

#[test]
fn nonces_that_the_daemon_makes_come_back_with_a_task() {
    let _peer = Peer::start(&path("nonces"), Behaviour::default());
    let engine = engine();
    let _remote = Remote::connect(&engine, options("nonces")).unwrap();
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Named(COUNTED));
    let session = engine.session(parameters).unwrap();
    let mut queue = engine.queue(10);
    queue.submit(&mut seals(&session, 10, 50), false);
    let mut seen = HashSet::new();
    for task in collect(&mut queue) {
        let Operation::Seal { nonce, data, tag, .. } = &task.operation else { panic!() };
        assert!(seen.insert(*nonce));
        let mut sealed = [&data[..], tag].concat();
        let opened = gcm(&engine).open_in_place(nonce, b"header", &mut sealed);
        assert_eq!(opened, Ok(50));
        assert!(sealed[..50].iter().all(|byte| *byte == task.user as u8));
    }
    let refused = session.seal(&nonce(1), b"", &mut [0; 10]);
    assert!(matches!(refused, Err(Error::InvalidRequest(_))), "{refused:?}");
}

#[test]
fn a_lent_buffer_is_worked_on_where_it_lies() {
    let peer = Peer::start(&path("lent"), Behaviour::default());
    let engine = engine();
    let remote = Remote::connect(&engine, options("lent")).unwrap();
    prefer_remote(&engine);
    let session = gcm(&engine);
    let lent = |count: u64, bytes: usize| -> Vec<_> {
        let mut tasks = seals(&session, count, bytes);
        for task in &mut tasks {
            let Operation::Seal { data, .. } = &mut task.operation else { panic!() };
            let mut buffer = remote.buffer(bytes).unwrap();
            buffer.copy_from_slice(data);
            *data = buffer;
        }
        tasks
    };
    let mut queue = engine.queue(100);
    for bytes in [0, 64, 4_096, 16 << 10, 3 << 20] {
        queue.submit(&mut lent(10, bytes), false);
        are_sealed(&collect(&mut queue), 10, bytes);
    }
    // Three regions of MiB at most: no slot and no large region was used for the last ones.
    let used = |bytes| peer.shared().regions.lock().unwrap().iter().any(|it| *it == bytes);
    assert!(!used(4 << 20) && !used(8 << 20));
    // More beside the data than there is room for: it is copied.
    let mut data = remote.buffer(100).unwrap();
    data.fill(1);
    let aad = vec![5; 2_000];
    queue.submit(&mut vec![Task::new(&session, Operation::seal(nonce(1), &aad[..], data))], false);
    let mut expected = vec![1; 100];
    let tag = gcm(&self::engine()).seal(&nonce(1), &aad, &mut expected).unwrap();
    let done = collect(&mut queue);
    assert_eq!((done[0].output(), done[0].operation.tag()), (Ok(&expected[..]), Some(&tag)));
    // What the daemon had not finished is half done.
    peer.answer(0);
    let before = peer.shared().taken.load(Ordering::Relaxed);
    let mut tasks = lent(1, 100);
    tasks.extend(seals(&session, 5, 100).drain(1..));
    queue.submit(&mut tasks, false);
    peer.wait_taken(before + 1);
    drop(peer);
    for task in collect(&mut queue) {
        match task.user {
            0 => assert!(matches!(task.result(), Err(Error::Driver { .. }))),
            _ => assert_eq!(task.result(), Ok(100)),
        }
    }
    // The next daemon gets to know the regions too.
    let _peer = Peer::start(&path("lent"), Behaviour::default());
    assert!(remote.wait(LONG));
    prefer_remote(&engine);
    queue.submit(&mut lent(10, 4_096), false);
    are_sealed(&collect(&mut queue), 10, 4_096);
}
