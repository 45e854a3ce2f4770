//! A pool of threads: what it takes comes back once and right, whatever happens meanwhile.

mod work;

use keyway_drivers::{Pool, pool, software};
use keyway_engine::{
    Algorithm, Cost, Demand, Driver, DriverSession, Engine, Error, Flow, Key, Operation,
    Parameters, Place, Request, Session, Step, Task, Waker,
};
use keyway_meter::counter;
use keyway_test_drivers::{Plan, fault};
use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use work::{FOREVER, acts, check, digest, drive, engine, finish, in_order, sessions, told};

fn made(name: &str, inner: Arc<dyn Driver>, threads: usize, depth: usize) -> Arc<dyn Driver> {
    pool(name, inner, Pool { threads, cores: None, depth }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_task_comes_back_once_and_right(
        threads in 1usize..=4,
        depth in 1usize..12,
        capacity in 1usize..40,
        ordered: bool,
        acts in acts(),
    ) {
        let engine = engine(made("pool", software(), threads, depth));
        let sessions = sessions(&engine, "pool", ordered);
        let done = drive(&mut engine.queue(capacity), &sessions, &acts);
        check(&done, |_| false);
        prop_assert!(!ordered || in_order(&done));
    }
}

#[test]
fn two_queues_share_it() {
    let engine = engine(made("pool", software(), 2, 3));
    let run = || {
        let sessions = sessions(&engine, "pool", false);
        let act = work::Act::Submit { count: 8, more: false };
        let acts: Vec<_> = (0..100).flat_map(|_| [act, work::Act::Wait]).collect();
        check(&drive(&mut engine.queue(16), &sessions, &acts), |_| false);
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(run))));
}

#[test]
fn it_says_what_it_is() {
    let pool = made("others", software(), 3, 8);
    assert_eq!((pool.name(), pool.place(), pool.parallel()), ("others", Place::Host, 3));
    let engine = engine(pool);
    let [report] = &engine.drivers()[..] else { panic!("one driver") };
    assert!(report.queued && report.algorithms.contains(&Algorithm::Sha256));
    let mut stream = engine.stream(Algorithm::Sha256).unwrap();
    let (mut pieces, mut whole) = ([0; 32], [1; 32]);
    stream.update(b"in ").unwrap();
    stream.update(b"pieces").unwrap();
    stream.finish(&mut pieces).unwrap();
    engine.digest(Algorithm::Sha256, &[b"in pie", b"", b"ces"], &mut whole).unwrap();
    assert_eq!(pieces, whole);
}

#[test]
fn it_takes_exactly_what_there_is_room_for() {
    let (told, gate, _) = told();
    let pool = made("pool", told, 1, 3);
    let engine = engine(pool.clone());
    let [.., session] = sessions(&engine, "pool", false);
    let mut queue = pool.queue(&Waker::new()).unwrap();
    let mut tasks = vec![digest(&session, b"hold", 0)];
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    gate.wait();
    tasks.extend((1..=10).map(|number| digest(&session, b"text", number)));
    assert_eq!(queue.submit(&mut tasks, false), Flow::Busy);
    assert!(tasks.iter().map(|task| task.user).eq(4..=10), "the first three were taken");
    assert_eq!(queue.submit(&mut tasks, false), Flow::Busy);
    assert_eq!(tasks.len(), 7);
    let mut done = Vec::new();
    queue.poll(&mut done);
    assert!(done.is_empty());
    gate.wait();
    while done.len() < 11 {
        queue.submit(&mut tasks, false);
        queue.poll(&mut done);
        thread::yield_now();
    }
    let mut numbers: Vec<_> = done.iter().map(|task| task.user).collect();
    numbers.sort();
    assert!(numbers.into_iter().eq(0..=10));
    assert!(done.iter().all(|task| task.result() == Ok(32)));
}

#[test]
fn those_who_found_it_full_are_counted_and_woken() {
    let (told, gate, _) = told();
    let engine = engine(made("test-full", told, 1, 2));
    let [.., session] = sessions(&engine, "test-full", false);
    let mut queue = engine.queue(16);
    assert!(queue.submit_one(digest(&session, b"hold", 0), false).is_ok());
    gate.wait();
    let mut tasks: Vec<_> = (1..=5).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 5, "what the driver leaves, the engine keeps");
    assert_eq!(counter("engine.test-full.sha-256.busy").value(), 3);
    // Another consumer, of whose tasks the driver has none.
    let (ready, is_ready) = mpsc::channel();
    let (one, session) = (engine.clone(), session.clone());
    let other = thread::spawn(move || {
        let (mut queue, mut done) = (one.queue(1), Vec::new());
        assert!(queue.submit_one(digest(&session, b"text", 6), false).is_ok());
        ready.send(()).unwrap();
        queue.wait(&mut done, FOREVER)
    });
    is_ready.recv().unwrap();
    assert_eq!(counter("engine.test-full.sha-256.busy").value(), 4);
    gate.wait();
    assert_eq!(other.join().unwrap(), 1);
    let mut done = Vec::new();
    finish(&mut queue, &mut done);
    assert_eq!(done.len(), 6);
    assert_eq!(counter("engine.test-full.sha-256.busy").value(), 4, "each is counted once");
    assert_eq!(counter("engine.test-full.sha-256.operations").value(), 7);
}

#[test]
fn a_panic_costs_one_request() {
    let (told, ..) = told();
    let engine = engine(made("pool", told, 1, 8));
    let [aead, _, hash] = sessions(&engine, "pool", false);
    let mut text = *b"secret..and a tag of 16 bytes...";
    let (message, tag) = text.split_last_chunk_mut().unwrap();
    *tag = aead.seal(&[1; 12], b"panic", message).unwrap();
    let sealed = text;

    let mut queue = engine.queue(8);
    let open = Operation::open([1; 12], b"panic", sealed);
    let mut tasks =
        vec![digest(&hash, b"panic", 0), Task::tagged(&aead, open, 1), digest(&hash, b"fine", 2)];
    assert_eq!(queue.submit(&mut tasks, false), 3);
    let mut done = Vec::new();
    finish(&mut queue, &mut done);
    done.sort_by_key(|task| task.user);
    let panicked = Err(Error::Driver { driver: "pool", why: "it panicked" });
    let results: Vec<_> = done.iter().map(|task| task.result()).collect();
    assert_eq!(results, [panicked, panicked, Ok(32)]);
    let Operation::Open { data, .. } = &done[1].operation else { panic!("it was an open") };
    assert_eq!(data[..], [0; 32], "nothing of the plaintext is left");

    assert_eq!(aead.open_in_place(&[1; 12], b"panic", &mut text), panicked);
    assert_eq!(text, sealed, "a lone request stays as it was");
    let mut out = [0; 32];
    assert_eq!(hash.run(&mut Request::Digest { data: &[b"panic"], out: &mut out }), panicked);
    assert_eq!(hash.run(&mut Request::Digest { data: &[b"fine"], out: &mut out }), Ok(32));
}

#[test]
fn a_dropped_queue_takes_its_tasks_along() {
    let (told, gate, is_gone) = told();
    let engine = engine(made("pool", told, 2, 8));
    let [.., session] = sessions(&engine, "pool", false);
    let mut queue = engine.queue(16);
    let texts = [&b"hold"[..], b"text", b"text", b"text", b"text"];
    let mut tasks: Vec<_> = texts.iter().map(|text| digest(&session, text, 0)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 5);
    gate.wait();
    drop((queue, session, engine));
    // The last that knows the driver is a task that one of its own threads drops.
    gate.wait();
    is_gone.recv_timeout(FOREVER).unwrap();
}

#[test]
fn a_dropped_queue_with_a_callback_hands_everything_over() {
    let (told, gate, is_gone) = told();
    let engine = engine(made("pool", told, 1, 2));
    let [.., session] = sessions(&engine, "pool", false);
    let results = Arc::new(Mutex::new(Vec::new()));
    let mut queue = engine.queue(16);
    let kept = results.clone();
    let mut gate_of_callback = Some(gate.clone());
    queue.on_completion(move |task| {
        if let Some(gate) = gate_of_callback.take() {
            gate.wait(); // the queue is being dropped: now let the running one finish
        }
        kept.lock().unwrap().push((task.user, task.result()));
    });
    assert!(queue.submit_one(digest(&session, b"hold", 0), false).is_ok());
    gate.wait();
    let mut tasks: Vec<_> = (1..=4).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 4);
    drop(queue);
    let mut results = results.lock().unwrap().clone();
    results.sort_by_key(|(number, _)| *number);
    let closed = Err(Error::Closed);
    assert_eq!(results, [(0, Ok(32)), (1, Ok(32)), (2, Ok(32)), (3, closed), (4, closed)]);
    drop((session, engine));
    is_gone.recv_timeout(FOREVER).unwrap();
}

#[test]
fn a_dropped_driver_gives_back_what_waits_and_finishes_what_runs() {
    let (told, gate, _) = told();
    let other = engine(made("other", told.clone(), 1, 1));
    let [.., session] = sessions(&other, "other", false);
    let pool = made("pool", told, 1, 8);
    let alone = pool.open(&[Step { algorithm: Algorithm::Sha256, key: Key::None }]).unwrap();
    let mut queue = pool.queue(&Waker::new()).unwrap();
    // Tasks of another pool's session: they do not keep this one alive.
    assert_eq!(queue.submit(&mut vec![digest(&session, b"hold", 0)], false), Flow::Open);
    gate.wait();
    let mut tasks: Vec<_> = (1..=3).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), Flow::Open);
    let dropping = thread::spawn(move || drop(pool));
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
    assert_eq!(done.len(), 4);
    let mut out = [5; 32];
    let request = &mut Request::Digest { data: &[b"text"], out: &mut out };
    assert_eq!(alone.run(request), Err(Error::Gone));
    assert_eq!(out, [5; 32]);
}

#[test]
fn when_the_driver_within_dies_another_does_the_work() {
    let (dying, handle) = fault("dying", software(), Plan::default());
    let engine = Engine::builder().driver(made("pool", dying, 2, 4)).driver(software()).build();
    let session = engine.session(Parameters::new(Algorithm::Sha256, Key::None)).unwrap();
    let mut queue = engine.queue(32);
    handle.kill();
    let mut tasks: Vec<_> = (0..32).map(|number| digest(&session, b"text", number)).collect();
    assert_eq!(queue.submit(&mut tasks, false), 32);
    let mut done = Vec::new();
    finish(&mut queue, &mut done);
    assert_eq!(done.len(), 32);
    assert!(done.iter().all(|task| task.result() == Ok(32)));
    engine.digest(Algorithm::Sha256, &[b"text"], &mut [0; 32]).unwrap();
}

#[test]
fn lone_requests_come_back_as_from_software() {
    let engines = [engine(made("pool", software(), 2, 8)), engine(software())];
    let open = |which: usize, algorithm, key| {
        engines[which].session(Parameters::new(algorithm, key)).unwrap()
    };
    let both = |algorithm, key, run: &dyn Fn(&Session) -> Vec<u8>| {
        let [pool, software] = [0, 1].map(|which| run(&open(which, algorithm, key)));
        assert_eq!(pool, software, "{algorithm}");
    };
    both(Algorithm::Aes256Gcm, Key::Secret(&[3; 32]), &|session| {
        let mut data = *b"some text and a place for the tag";
        let (text, tag) = data.split_last_chunk_mut().unwrap();
        *tag = session.seal(&[9; 12], b"aad", text).unwrap();
        let sealed = data;
        assert_eq!(
            session.open_in_place(&[9; 12], b"other", &mut data),
            Err(Error::Authentication)
        );
        let refused = data;
        data = sealed;
        assert_eq!(session.open_in_place(&[9; 12], b"aad", &mut data), Ok(17));
        assert_eq!(data[..17], *b"some text and a p");
        [sealed, refused, data].concat()
    });
    both(Algorithm::HmacSha256, Key::Secret(&[3; 32]), &|session| {
        let mut out = vec![0; 32];
        session.run(&mut Request::Mac { data: &[b"two", b"parts"], out: &mut out }).unwrap();
        out
    });
    both(Algorithm::HkdfSha256, Key::Extract { salt: b"salt", secret: b"secret" }, &|session| {
        let mut out = vec![0; 42];
        session.run(&mut Request::Expand { info: &[b"in", b"fo"], out: &mut out }).unwrap();
        out
    });
    both(Algorithm::Pbkdf2Sha256, Key::None, &|session| {
        let mut out = vec![0; 20];
        let (cost, password) = (Cost::Pbkdf2 { iterations: 2 }, b"password");
        let request = &mut Request::Derive { cost, password, salt: b"salt", out: &mut out };
        session.run(request).unwrap();
        out
    });
    // Values that are made anew each time must fit together across the two.
    for (ours, theirs) in [(0, 1), (1, 0)] {
        let a = open(ours, Algorithm::X25519, Key::Generate);
        let b = open(theirs, Algorithm::X25519, Key::Generate);
        let agree = |one: &Session, other: &Session| {
            let mut out = [0; 32];
            let peer = &other.public_key().unwrap();
            one.run(&mut Request::Agree { peer, out: &mut out }).unwrap();
            out
        };
        assert_eq!(agree(&a, &b), agree(&b, &a));

        let key = open(ours, Algorithm::MlKem768, Key::Generate);
        let peer = &key.public_key().unwrap();
        let (mut ciphertext, mut sent, mut got) = ([0; 1088], [0; 32], [1; 32]);
        let (sender, out) = (open(theirs, Algorithm::MlKem768, Key::None), &mut ciphertext);
        sender.run(&mut Request::Encapsulate { peer, ciphertext: out, secret: &mut sent }).unwrap();
        key.run(&mut Request::Decapsulate { ciphertext: &ciphertext, secret: &mut got }).unwrap();
        assert_eq!(sent, got);

        let key = open(ours, Algorithm::EcdsaP256Sha256, Key::Generate);
        let (public_key, message) = (&key.public_key().unwrap(), b"message");
        let signature = &key.sign(message).unwrap();
        let check = open(theirs, Algorithm::EcdsaP256Sha256, Key::None);
        assert_eq!(
            check.run(&mut Request::Verify {
                parameters: Default::default(),
                public_key,
                message,
                signature
            }),
            Ok(0)
        );
        let forged = &mut Request::Verify {
            parameters: Default::default(),
            public_key,
            message: b"massage",
            signature,
        };
        assert_eq!(check.run(forged), Err(Error::Authentication));
    }
    let mut random = [0; 64];
    engines[0].random(&mut random).unwrap();
    assert_ne!(random, [0; 64]);
}

#[test]
fn many_callers_wait_for_lone_requests_at_once() {
    let engine = engine(made("pool", software(), 2, 1));
    let [session, ..] = sessions(&engine, "pool", false);
    let run = |caller: u8| {
        for number in 0..200 {
            let mut nonce = [caller; 12];
            nonce[11] = number;
            let mut data = [caller; 80];
            let (text, tag) = data.split_last_chunk_mut().unwrap();
            *tag = session.seal(&nonce, &[], text).unwrap();
            assert_eq!(session.open_in_place(&nonce, &[], &mut data), Ok(64));
            assert_eq!(data[..64], [caller; 64]);
        }
    };
    thread::scope(|scope| (0..4).for_each(|caller| drop(scope.spawn(move || run(caller)))));
}

#[test]
fn its_threads_run_where_they_were_put() {
    /// Puts out the processors that the thread may run on, one a byte.
    struct Where;
    impl Driver for Where {
        fn name(&self) -> &str {
            "where"
        }
        fn supports(&self, _: &[Algorithm]) -> bool {
            true
        }
        fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
            Ok(Box::new(Where))
        }
    }
    impl DriverSession for Where {
        fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
            let Request::Random { out } = request else { panic!("ask for random bytes") };
            let set = sched_getaffinity(None).unwrap();
            for (core, byte) in out.iter_mut().enumerate() {
                *byte = set.is_set(core).into();
            }
            Ok(out.len())
        }
    }
    let allowed = sched_getaffinity(None).unwrap();
    let is_allowed = |core: &usize| allowed.is_set(*core);
    let core = (0..CpuSet::MAX_CPU).rfind(is_allowed).unwrap();
    let pinned = Pool { threads: 2, cores: Some(vec![core]), depth: 4 };
    let engine = engine(pool("pool", Arc::new(Where), pinned).unwrap());
    let session = engine
        .session(Parameters::new(Algorithm::Random, Key::None).on(Demand::Named("pool")))
        .unwrap();
    for _ in 0..8 {
        let mut set = [0; CpuSet::MAX_CPU];
        session.run(&mut Request::Random { out: &mut set }).unwrap();
        assert!((0..CpuSet::MAX_CPU).all(|other| (set[other] == 1) == (other == core)));
    }
}

#[test]
fn a_pool_that_cannot_be_is_refused() {
    let missing =
        (0..CpuSet::MAX_CPU).rfind(|core| !sched_getaffinity(None).unwrap().is_set(*core));
    let refused = |threads, cores, depth| {
        let error = pool("pool", software(), Pool { threads, cores, depth }).err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        error.to_string()
    };
    for core in [missing.unwrap_or(CpuSet::MAX_CPU), CpuSet::MAX_CPU, usize::MAX] {
        let why = refused(2, Some(vec![core]), 8);
        assert!(why.contains(&format!("processor {core} ")), "{why}");
    }
    for (threads, cores, depth) in [(0, None, 8), (1025, None, 8), (1, None, 0)] {
        refused(threads, cores, depth);
    }
    refused(1, Some(vec![]), 8);
}
