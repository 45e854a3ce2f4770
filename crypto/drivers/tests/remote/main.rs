//! A daemon as a driver: everything through the ring, and daemons that die in every state.

mod daemons;

use daemons::{At, HELD, Habit, Place};
use keyway_conformance::{Outcome, Plan, run};
use keyway_daemon::limits::ClientLimits;
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_drivers::software;
use keyway_engine::*;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
const GCM: &[Algorithm] = &[Algorithm::Aes128Gcm];
const SECRET: [u8; 16] = [42; 16];

fn options(place: &Place) -> RemoteOptions {
    RemoteOptions::new(place.socket(), "test")
}

/// An engine that has software only, until a daemon is there.
fn engine() -> Engine {
    Engine::builder().driver(software()).build()
}

/// Waits for the daemon, and has the engine prefer it for AES-GCM.
fn connect(engine: &Engine, place: &Place) -> Remote {
    let remote = Remote::connect(engine, RemoteOptions { at_once: false, ..options(place) });
    let remote = remote.unwrap();
    assert!(remote.wait(LONG));
    prefer_remote(engine);
    remote
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

/// Copies of the tasks, in memory that the daemon reaches.
fn lent(remote: &Remote, mut tasks: Vec<Box<Task>>) -> Vec<Box<Task>> {
    for task in &mut tasks {
        let Operation::Seal { data, .. } = &mut task.operation else { panic!() };
        let mut buffer = remote.buffer(data.len()).unwrap();
        buffer.copy_from_slice(data);
        *data = buffer;
    }
    tasks
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

/// How many AES-GCM requests the driver has done, for all engines.
fn done_by(driver: &str) -> u64 {
    keyway_meter::counter(&format!("engine.{driver}.aes-128-gcm.operations")).value()
}

/// One algorithm of each kind, unless all night is there.
fn plan() -> Plan {
    use Algorithm::*;
    let some = vec![
        Aes128Gcm,
        QuicAes128Gcm,
        QuicMaskChaCha20,
        Aes256Ctr,
        Zstd,
        Sha256,
        Aes128Cmac,
        HkdfSha256,
        X25519,
        MlKem768,
        Ed25519,
        RsaOaepSha256,
        Random,
        Pbkdf2Sha256,
        Scrypt,
    ];
    let only = std::env::var_os("KEYWAY_NIGHTLY").is_none().then_some(some);
    Plan { rounds: 1, only, ..Plan::default() }
}

fn conforms(place: &Place, plan: &Plan) {
    let engine = Engine::builder().build();
    let remote = Remote::connect(&engine, options(place)).unwrap();
    let report = run(remote.driver().unwrap(), software(), plan, &mut |_| {});
    if std::env::var_os("CONFORMANCE_SHOW").is_some() {
        for check in &report.checks {
            println!("{:9.3} ms {check}", check.nanoseconds as f64 / 1e6);
        }
    }
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert!(report.passed(), "{}\n{}", failures.len(), failures.join("\n"));
    let made = |outcome: &Outcome| matches!(outcome, Outcome::Passed { .. });
    assert!(report.checks.iter().any(|check| made(&check.outcome)));
}

#[test]
fn a_daemon_conforms() {
    let place = Place::new();
    let _daemon = place.daemon();
    conforms(&place, &plan());
}

/// It has room for the bytes of a few requests only, and says so to the others.
#[test]
fn a_daemon_that_is_busy_loses_nothing() {
    use Algorithm::*;
    let place = Place::new();
    let limits = ClientLimits { bytes_in_flight: 10_000, ..ClientLimits::default() };
    let _daemon = place.daemon_with(limits);
    let engine = engine();
    let _remote = connect(&engine, &place);
    let session = gcm(&engine);
    let mut queue = engine.queue(200);
    for bytes in [3_000, 9_000] {
        queue.submit(&mut seals(&session, 200, bytes), false);
        session.seal(&nonce(0), b"", &mut [0; 5_000]).unwrap();
        are_sealed(&collect(&mut queue), 200, bytes);
    }
    assert!(keyway_meter::counter("cryptod.busy").value() > 0);
    let only = Some(vec![Aes128Gcm, Ed25519]);
    let place = Place::new();
    let limits = ClientLimits { bytes_in_flight: 300_000, slow_in_flight: 1, ..limits };
    let _daemon = place.daemon_with(limits);
    conforms(&place, &Plan { rounds: 1, only, ..Plan::default() });
}

/// Requests that lie in its rings when it is killed, in a queue and of callers that wait.
#[test]
fn what_a_killed_daemon_has_not_answered_is_done_elsewhere_once() {
    let place = Place::new();
    let process = place.process();
    let engine = engine();
    let _remote = connect(&engine, &place);
    let session = gcm(&engine);
    session.seal(&nonce(1), b"", &mut [0; 10]).unwrap();
    process.stop();
    let mut queue = engine.queue(100);
    assert_eq!(queue.submit(&mut seals(&session, 100, 1_000), false), 100);
    let before = done_by("software");
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..4_u8 {
            let session = &session;
            threads.push(scope.spawn(move || {
                let mut data = vec![number; 100_000];
                session.seal(&nonce(number.into()), b"", &mut data).map(|tag| (tag, data))
            }));
        }
        drop(process);
        let reference = gcm(&self::engine());
        for (number, sealing) in (0..).zip(threads) {
            let (tag, data) = sealing.join().unwrap().unwrap();
            let mut expected = vec![number; 100_000];
            let right = reference.seal(&nonce(number.into()), b"", &mut expected).unwrap();
            assert!(tag == right && data == expected);
        }
    });
    are_sealed(&collect(&mut queue), 100, 1_000);
    assert!(done_by("software") >= before + 100);
}

/// And it comes back, again and again.
#[test]
fn a_daemon_that_is_killed_at_work_loses_nothing() {
    let place = Place::new();
    let engine = engine();
    let mut process = place.process();
    let remote = connect(&engine, &place);
    let session = gcm(&engine);
    let mut queue = engine.queue(300);
    for round in 0..5 {
        assert!(remote.wait(LONG));
        prefer_remote(&engine);
        let before = done_by("remote");
        queue.submit(&mut seals(&session, 100, 2_000), false);
        are_sealed(&collect(&mut queue), 100, 2_000);
        assert!(done_by("remote") >= before + 100, "round {round}");
        queue.submit(&mut seals(&session, 300, 20_000), false);
        // As far as it comes.
        let mut done = Vec::new();
        queue.wait(&mut done, LONG);
        drop(process);
        done.extend(collect(&mut queue));
        are_sealed(&done, 300, 20_000);
        process = place.process();
    }
}

/// It is there, and does nothing for so long that it counts as gone. When it goes on, what was done
/// elsewhere meanwhile does not come a second time.
#[test]
fn a_daemon_that_hangs_is_left_and_comes_back() {
    let place = Place::new();
    let process = place.process();
    let engine = engine();
    let remote = connect(&engine, &place);
    let session = gcm(&engine);
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&SECRET));
    let only_there = engine.session(parameters.on(Demand::Named("remote"))).unwrap();
    only_there.seal(&nonce(1), b"", &mut [0; 10]).unwrap();
    process.stop();
    let mut queue = engine.queue(100);
    assert_eq!(queue.submit(&mut seals(&session, 100, 1_000), false), 100);
    thread::scope(|scope| {
        let elsewhere = scope.spawn(|| session.seal(&nonce(1), b"", &mut [0; 10]));
        let nowhere = scope.spawn(|| only_there.seal(&nonce(1), b"", &mut [0; 10]));
        are_sealed(&collect(&mut queue), 100, 1_000);
        assert!(elsewhere.join().unwrap().is_ok());
        assert_eq!(nowhere.join().unwrap(), Err(Error::Gone));
    });
    process.go_on();
    assert!(remote.wait(LONG));
    prefer_remote(&engine);
    let before = done_by("remote");
    queue.submit(&mut seals(&session, 100, 1_000), false);
    are_sealed(&collect(&mut queue), 100, 1_000);
    assert!(done_by("remote") >= before + 100);
    assert!(only_there.seal(&nonce(1), b"", &mut [0; 10]).is_ok());
    // No process waits for one that hangs when its client ends.
    process.stop();
    drop(remote);
}

/// Slow requests, or a machine that does much else: it says that it is alive, and is waited for.
#[test]
fn a_daemon_that_takes_its_time_is_waited_for() {
    let place = Place::new();
    let stub = place.stub(Habit::Slow);
    let engine = engine();
    let _remote = connect(&engine, &place);
    let held = Parameters::new(Algorithm::Aes128Gcm, Key::Named(HELD));
    let session = engine.session(held).unwrap();
    let mut queue = engine.queue(10);
    queue.submit(&mut seals(&session, 10, 50), false);
    assert!(collect(&mut queue).iter().all(|task| task.result() == Ok(50)));
    stub.end();
    let stub = place.stub(Habit::Slow);
    let engine = self::engine();
    let _remote = connect(&engine, &place);
    let session = engine.session(held).unwrap();
    assert_eq!(session.open_in_place(&[0; 12], b"", &mut [0; 20]), Ok(20));
    stub.end();
}

#[test]
fn a_daemon_that_shuts_down_loses_nothing() {
    let place = Place::new();
    let engine = engine();
    let mut daemon = place.daemon();
    let remote = connect(&engine, &place);
    let session = gcm(&engine);
    let mut queue = engine.queue(300);
    for _ in 0..5 {
        assert!(remote.wait(LONG));
        prefer_remote(&engine);
        queue.submit(&mut seals(&session, 300, 20_000), false);
        drop(daemon);
        session.seal(&nonce(1), b"", &mut [0; 100]).unwrap();
        are_sealed(&collect(&mut queue), 300, 20_000);
        daemon = place.daemon();
    }
}

/// A key that was made there.
#[test]
fn a_made_key_is_gone_with_its_daemon() {
    let place = Place::new();
    let daemon = place.daemon();
    let engine = engine();
    let remote = connect(&engine, &place);
    let parameters = Parameters::new(Algorithm::X25519, Key::Generate);
    let session = engine.session(parameters.on(Demand::Named("remote"))).unwrap();
    assert_eq!(session.public_key().unwrap().len(), 32);
    drop(daemon);
    assert_eq!(session.public_key(), Err(Error::Gone));
    let _daemon = place.daemon();
    assert!(remote.wait(LONG));
    assert_eq!(session.public_key(), Err(Error::Gone));
}

/// A key that is held there, and nonces that are made there.
#[test]
fn a_held_key_is_gone_with_its_daemon_and_back_with_it() {
    let place = Place::new();
    let mut stub = place.stub(Habit::Good);
    let engine = engine();
    let remote = connect(&engine, &place);
    let open = |key| engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Named(key)));
    assert!(matches!(open("no.such.key"), Err(Error::InvalidKey(_))));
    let session = open(HELD).unwrap();
    let mut queue = engine.queue(10);
    for _ in 0..3 {
        queue.submit(&mut seals(&session, 10, 50), false);
        let done = collect(&mut queue);
        let nonces = done.iter().filter_map(|task| task.operation.nonce());
        let made: HashSet<_> = nonces.map(|nonce| nonce[0]).collect();
        assert!(made.len() == 10 && done.iter().all(|task| task.result() == Ok(50)));
        let open = session.open_in_place(&[0; 12], b"", &mut [0; 20]);
        assert_eq!(open, Ok(20));
        let (one, _) = session.seal_next(b"", &mut [0; 10]).unwrap();
        let (other, _) = session.seal_next(b"", &mut [0; 10]).unwrap();
        assert!(one != other && one != [0; 12]);
        let refused = session.seal(&nonce(1), b"", &mut [0; 10]);
        assert!(matches!(refused, Err(Error::InvalidRequest(_))), "{refused:?}");
        stub.end();
        queue.submit(&mut seals(&session, 5, 10), false);
        let done = collect(&mut queue);
        assert!(done.len() == 5 && done.iter().all(|task| task.result() == Err(Error::Gone)));
        assert_eq!(session.open_in_place(&[0; 12], b"", &mut [0; 20]), Err(Error::Gone));
        assert_eq!(session.seal_next(b"", &mut [0; 10]), Err(Error::Gone));
        stub = place.stub(Habit::Good);
        assert!(remote.wait(LONG));
    }
    stub.end();
}

#[test]
fn a_daemon_that_hangs_up_instead_of_answering_costs_nothing_but_itself() {
    for at in [At::Hello, At::Open, At::Queue, At::Region] {
        let place = Place::new();
        let stub = place.stub(Habit::HangsUp(at));
        let engine = engine();
        let remote = Remote::connect(&engine, options(&place));
        assert_eq!(remote.is_err(), at == At::Hello, "{at:?}");
        prefer_remote(&engine);
        let session = gcm(&engine);
        session.seal(&nonce(1), b"", &mut [0; 10]).unwrap();
        let mut queue = engine.queue(10);
        queue.submit(&mut seals(&session, 10, 100), false);
        are_sealed(&collect(&mut queue), 10, 100);
        drop(remote);
        stub.end();
    }
}

#[test]
fn a_daemon_is_waited_for_if_that_was_wanted() {
    let place = Place::new();
    let engine = engine();
    let absent = Remote::connect(&engine, options(&place)).map(drop).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    let late = RemoteOptions { at_once: false, ..options(&place) };
    let remote = Remote::connect(&engine, late).unwrap();
    assert!(!remote.wait(Duration::ZERO) && remote.driver().is_none());
    let _daemon = place.daemon();
    assert!(remote.wait(LONG));
    let names = || engine.drivers().into_iter().map(|driver| driver.name).collect::<Vec<_>>();
    assert_eq!(names(), ["software", "remote"]);
    let twice = Remote::connect(&engine, options(&place)).map(drop).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);
    assert_eq!(names(), ["software", "remote"]);
    drop(remote);
    assert_eq!(names(), ["software"]);
}

#[test]
fn a_daemon_that_may_be_chosen_is_measured() {
    let place = Place::new();
    let _daemon = place.daemon();
    let engine = engine();
    let _remote = Remote::connect(&engine, options(&place)).unwrap();
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
    let place = Place::new();
    let _daemon = place.daemon();
    let engine = engine();
    let _remote = connect(&engine, &place);
    let session = gcm(&engine);
    let mut queue = engine.queue(12);
    for bytes in [32 << 10, (32 << 10) - 100, 300_000, 5 << 20, 40_000] {
        queue.submit(&mut seals(&session, 12, bytes), false);
        are_sealed(&collect(&mut queue), 12, bytes);
    }
    let sha = Parameters::new(Algorithm::Sha256, Key::None).on(Demand::Named("remote"));
    let parts = vec![vec![3; 70_000]; 5];
    let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    let (mut made, mut expected) = ([0; 32], [0; 32]);
    let session = engine.session(sha).unwrap();
    session.run(&mut Request::Digest { data: &parts, out: &mut made }).unwrap();
    self::engine().digest(Algorithm::Sha256, &parts, &mut expected).unwrap();
    assert_eq!(made, expected);
}

#[test]
fn a_daemon_without_room_for_a_large_request_says_so_and_small_ones_go_on() {
    let place = Place::new();
    let limits = ClientLimits { region_bytes: 7 << 20, ..ClientLimits::default() };
    let _daemon = place.daemon_with(limits);
    let engine = engine();
    let _remote = connect(&engine, &place);
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&SECRET));
    let session = engine.session(parameters.on(Demand::Named("remote"))).unwrap();
    let mut queue = engine.queue(12);
    let mut tasks = seals(&session, 1, 4 << 20);
    tasks.extend(seals(&session, 12, 100).drain(1..));
    queue.submit(&mut tasks, false);
    for task in collect(&mut queue) {
        assert_eq!(task.result(), if task.user == 0 { Err(Error::Busy) } else { Ok(100) });
    }
    assert_eq!(session.seal(&nonce(1), b"", &mut vec![0; 4 << 20]), Err(Error::Busy));
    session.seal(&nonce(1), b"", &mut [0; 100]).unwrap();
}

#[test]
fn many_threads_use_one_session() {
    let place = Place::new();
    let _daemon = place.daemon();
    let engine = engine();
    let _remote = connect(&engine, &place);
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

/// More callers than there are queue pairs.
#[test]
fn callers_wait_for_a_queue_pair() {
    let place = Place::new();
    let _daemon = place.daemon_with(ClientLimits { queues: 2, ..ClientLimits::default() });
    let engine = engine();
    let _remote = connect(&engine, &place);
    let session = gcm(&engine);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..50 {
                    session.seal(&nonce(number), b"", &mut [0; 100]).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_lent_buffer_is_worked_on_where_it_lies() {
    let place = Place::new();
    let process = place.process();
    let engine = engine();
    let remote = connect(&engine, &place);
    let session = gcm(&engine);
    let mut queue = engine.queue(100);
    for bytes in [0, 64, 4_096, 16 << 10, 3 << 20] {
        queue.submit(&mut lent(&remote, seals(&session, 10, bytes)), false);
        are_sealed(&collect(&mut queue), 10, bytes);
    }
    // More beside the data than there is room for: it is copied.
    let aad = vec![5; 2_000];
    let mut data = remote.buffer(100).unwrap();
    data.fill(1);
    queue.submit(&mut vec![Task::new(&session, Operation::seal(nonce(1), &aad[..], data))], false);
    let mut expected = vec![1; 100];
    let tag = gcm(&self::engine()).seal(&nonce(1), &aad, &mut expected).unwrap();
    let done = collect(&mut queue);
    assert_eq!((done[0].output(), done[0].operation.tag()), (Ok(&expected[..]), Some(&tag)));
    // Work lent to a daemon that died may be half done, and is not done again.
    process.stop();
    let mut tasks = lent(&remote, seals(&session, 1, 100));
    tasks.extend(seals(&session, 5, 100).drain(1..));
    queue.submit(&mut tasks, false);
    drop(process);
    for task in collect(&mut queue) {
        match task.user {
            0 => assert!(matches!(task.result(), Err(Error::Driver { .. }))),
            _ => assert_eq!(task.result(), Ok(100)),
        }
    }
    // The next daemon gets to know the regions too.
    let _process = place.process();
    assert!(remote.wait(LONG));
    prefer_remote(&engine);
    queue.submit(&mut lent(&remote, seals(&session, 10, 4_096)), false);
    are_sealed(&collect(&mut queue), 10, 4_096);
}

/// Memory that a dropped queue had lent is not lent again while the daemon may work on it.
#[test]
fn a_queue_is_dropped_with_everything_under_way() {
    let place = Place::new();
    let process = place.process();
    let engine = engine();
    let remote = connect(&engine, &place);
    let session = gcm(&engine);
    for _ in 0..5 {
        let mut queue = engine.queue(100);
        let mut tasks = lent(&remote, seals(&session, 30, 16_000));
        tasks.extend(seals(&session, 20, 100_000));
        tasks.extend(seals(&session, 10, 1_000));
        queue.submit(&mut tasks, false);
    }
    let mut queue = engine.queue(100);
    queue.submit(&mut lent(&remote, seals(&session, 100, 16_000)), false);
    are_sealed(&collect(&mut queue), 100, 16_000);
    // And by this side, while the daemon is there.
    process.stop();
    queue.submit(&mut lent(&remote, seals(&session, 10, 16_000)), false);
    drop(remote);
    for task in collect(&mut queue) {
        assert!(matches!(task.result(), Err(Error::Driver { .. })));
        assert!(task.operation.output() == [0; 16_000]);
    }
}
