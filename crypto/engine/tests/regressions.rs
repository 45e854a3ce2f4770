//! Cases that once went wrong, and what is right: one test for each.

use keyway_engine::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

type Act = Arc<dyn Fn(&mut Request<'_>) -> Result<usize, Error> + Send + Sync>;

/// A driver of one behaviour.
struct D {
    name: &'static str,
    place: Place,
    does: fn(&[Algorithm]) -> bool,
    open: fn(&[Step<'_>]) -> Result<(), Error>,
    act: Act,
}

fn single(steps: &[Algorithm]) -> bool {
    steps.len() == 1
}

impl D {
    fn new(
        name: &'static str,
        act: impl Fn(&mut Request<'_>) -> Result<usize, Error> + Send + Sync + 'static,
    ) -> D {
        D { name, place: Place::Caller, does: single, open: |_| Ok(()), act: Arc::new(act) }
    }
}

struct S(Act);

impl DriverSession for S {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        (self.0)(request)
    }
}

impl Driver for D {
    fn name(&self) -> &str {
        self.name
    }
    fn place(&self) -> Place {
        self.place
    }
    fn supports(&self, steps: &[Algorithm]) -> bool {
        (self.does)(steps)
    }
    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        (self.open)(steps)?;
        Ok(Box::new(S(self.act.clone())))
    }
}

fn fine(request: &mut Request<'_>) -> Result<usize, Error> {
    match request {
        Request::Seal { data, .. } | Request::Encrypt { data, .. } => {
            data.iter_mut().for_each(|byte| *byte ^= 1);
            Ok(data.len())
        }
        Request::Mac { out, .. } | Request::Digest { out, .. } | Request::Random { out } => {
            out.fill(7);
            Ok(out.len())
        }
        Request::Derive { out, .. } | Request::Sign { out, .. } => Ok(out.len()),
        _ => Ok(0),
    }
}

const GCM: Parameters<'static> = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]));
const CHAIN: [Step<'static>; 2] = [
    Step { algorithm: Algorithm::Aes128Ctr, key: Key::Secret(&[1; 16]) },
    Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[2; 20]) },
];

fn parts() -> Vec<Part> {
    vec![
        Part::Cipher { iv: Iv::Given([0; 16]), text: 0..16 },
        Part::Mac { over: 0..16, tag: 16..36 },
    ]
}

fn packet() -> Operation {
    Operation::chain(Direction::Protect, [0; 36], 0, parts())
}

fn seal(bytes: &[u8]) -> Operation {
    Operation::seal([0; 12], [], bytes)
}

/// Whether it ends within five seconds.
fn ends<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(what()));
    receive.recv_timeout(Duration::from_secs(5)).expect("it hangs or has panicked")
}

fn count(name: &str) -> u64 {
    keyway_meter::counter(name).value()
}

#[test]
fn a_chain_whose_steps_have_no_driver_left_ends_with_an_error() {
    let engine =
        Engine::builder().driver(Arc::new(D::new("regression-01", fine))).sample(0).build();
    let session = engine.session(Parameters::chain(&CHAIN)).unwrap();
    engine.unregister("regression-01");
    let result = ends(move || {
        let mut operation = packet();
        operation.with(|request| session.run(request))
    });
    assert!(result.is_err());
}

#[test]
fn a_chain_that_lost_its_second_step_is_not_begun_anew_elsewhere() {
    // The cipher's driver works; the MAC's is dead when it is asked. The buffer has been encrypted
    // by then: a driver that runs the chain next would encrypt it twice.
    let cipher =
        D { does: |s| s == [Algorithm::Aes128Ctr], ..D::new("regression-02-cipher", fine) };
    let mac = D {
        does: |s| s == [Algorithm::HmacSha1],
        ..D::new("regression-02-mac", |_: &mut Request<'_>| Err(Error::Gone))
    };
    let engine = Engine::builder().driver(Arc::new(cipher)).driver(Arc::new(mac)).sample(0).build();
    let session = engine.session(Parameters::chain(&CHAIN)).unwrap();
    // It comes second, is dearer, and so is not chosen at first.
    let whole = D {
        does: |s| s.len() == 2,
        ..D::new("regression-02-whole", |request| {
            let Request::Chain { data, .. } = request else { return Err(Error::Closed) };
            // Measuring gives it zeros too.
            assert!(data[..16] == [0; 16], "the text is encrypted already");
            Ok(data.len())
        })
    };
    engine.register(Arc::new(whole)).unwrap();
    let dear = Linear { fixed: 1e9, per_byte: 0.0 };
    engine
        .set_cost("regression-02-whole", &[Algorithm::Aes128Ctr, Algorithm::HmacSha1], dear, dear)
        .unwrap();
    let result = ends(move || {
        let mut operation = packet();
        operation.with(|request| session.run(request))
    });
    assert!(matches!(result, Err(Error::Driver { .. })), "{result:?}");
}

#[test]
fn a_task_that_was_never_submitted_cannot_be_run_past_the_limits() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-03", fine))).build();
    let limited = Usage { seals_max: 0, forgeries_max: 0 };
    let session = engine.session(GCM.usage(limited)).unwrap();
    let mut task = Task::new(&session, seal(&[1]));
    // "`None` if the task was never placed."
    assert!(task.parts().is_none());
    task.run();
    assert!(task.result().is_err());
}

#[test]
fn a_counter_session_repeats_no_nonce_through_a_collected_task() {
    let nonces = Arc::new(Mutex::new(Vec::new()));
    let seen = nonces.clone();
    let driver = D::new("regression-04", move |request| {
        if let Request::Seal { nonce, .. } = request {
            seen.lock().unwrap().push(**nonce);
        }
        fine(request)
    });
    let engine = Engine::builder().driver(Arc::new(driver)).build();
    let session = engine.session(GCM.nonces(Nonces::Counter { iv: [0; 12], from: 0 })).unwrap();
    let mut queue = engine.queue(4);
    assert!(queue.submit_one(Task::new(&session, seal(&[1])), false).is_ok());
    let mut done = Vec::new();
    queue.poll(&mut done);
    let mut task = done.pop().unwrap();
    if let Operation::Seal { data, .. } = &mut task.operation {
        data[0] = 99;
    }
    task.run();
    let mut nonces = nonces.lock().unwrap().clone();
    let used = nonces.len();
    nonces.dedup();
    assert_eq!(nonces.len(), used);
}

#[test]
fn a_driver_that_was_alone_and_sampled_is_measured_when_there_is_a_choice() {
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = ran.clone();
    let first = D::new("regression-05-first", move |request| {
        runs.fetch_add(1, Ordering::SeqCst);
        fine(request)
    });
    let engine = Engine::builder().driver(Arc::new(first)).sample(1).build();
    let session = engine.session(GCM).unwrap();
    session.seal(&[0; 12], &[], &mut vec![0; 1 << 20]).unwrap();
    let before = ran.load(Ordering::SeqCst);
    engine.register(Arc::new(D::new("regression-05-second", fine))).unwrap();
    engine.set_sample(0);
    session.seal(&[0; 12], &[], &mut [0; 64]).unwrap();
    // Ten lone runs of a measurement, and perhaps the request itself.
    let after = ran.load(Ordering::SeqCst);
    assert!(after > before + 1, "one sample of a MiB stands for all sizes");
}

#[test]
fn xts_and_3des_are_measured_too() {
    let open = |steps: &[Step<'_>]| match steps {
        [Step { key: Key::Secret(key), .. }] if key[..16] == key[16..] => {
            Err(Error::InvalidKey("its halves are the same"))
        }
        _ => Ok(()),
    };
    let does = |steps: &[Algorithm]| steps == [Algorithm::Aes128Xts];
    let driver = |name| Arc::new(D { open, does, ..D::new(name, fine) });
    let engine = Engine::builder()
        .driver(driver("regression-06-a"))
        .driver(driver("regression-06-b"))
        .sample(0)
        .build();
    let key: Vec<u8> = (0..32).collect();
    engine.session(Parameters::new(Algorithm::Aes128Xts, Key::Secret(&key))).unwrap();
    assert_eq!(engine.costs(false).len(), 2);
}

#[test]
fn a_stream_of_something_else_is_refused_and_does_not_panic() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-07", fine))).build();
    assert!(engine.stream(Algorithm::Aes128Gcm).is_err());
}

#[test]
fn a_slow_task_comes_back_where_the_pool_has_no_room_at_all() {
    let engine =
        Engine::builder().driver(Arc::new(D::new("regression-08", fine))).slow_pool(1, 0).build();
    let parameters = Parameters::new(Algorithm::MlDsa44, Key::Secret(&[]));
    let session = engine.session(parameters).unwrap();
    let mut queue = engine.queue(4);
    let sign = Operation::Sign { parameters: Default::default(), message: vec![], out: vec![0; 8] };
    assert!(queue.submit_one(Task::new(&session, sign), false).is_ok());
    let mut done = Vec::new();
    assert_eq!(queue.wait(&mut done, Duration::from_secs(2)), 1);
}

/// Looks at the engine when it is dropped.
struct Nosy {
    engine: Mutex<Option<Engine>>,
}

impl Driver for Nosy {
    fn name(&self) -> &str {
        "regression-09"
    }
    fn supports(&self, _: &[Algorithm]) -> bool {
        true
    }
    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(S(Arc::new(fine))))
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.get_mut().unwrap() {
            engine.drivers();
        }
    }
}

#[test]
fn a_driver_is_not_dropped_under_the_lock_of_the_registry() {
    let engine = Engine::builder().build();
    let nosy = Nosy { engine: Mutex::new(Some(engine.clone())) };
    engine.register(Arc::new(nosy)).unwrap();
    assert!(ends(move || engine.unregister("regression-09")));
}

#[test]
fn a_request_that_finds_no_driver_is_counted() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-11", fine))).build();
    let session = engine.session(GCM.client("regression-11-client")).unwrap();
    engine.unregister("regression-11");
    assert_eq!(session.seal(&[0; 12], &[], &mut [0]), Err(Error::Gone));
    let client = count("client.regression-11-client.error.gone");
    assert_eq!((count("engine.regression-11.aes-128-gcm.errors"), client), (1, 1));
}

#[test]
fn a_length_that_is_not_there_does_not_turn_the_meter_back() {
    let driver = D { does: |s| s.len() == 2, ..D::new("regression-12", fine) };
    let engine = Engine::builder().driver(Arc::new(driver)).build();
    let session = engine.session(Parameters::chain(&CHAIN).client("regression-12-client")).unwrap();
    let mut operation = packet();
    if let Operation::Chain { length, .. } = &mut operation {
        *length = usize::MAX;
    }
    assert!(operation.with(|request| session.run(request)).is_err());
    assert!(
        count("client.regression-12-client.bytes") <= 36,
        "{}",
        count("client.regression-12-client.bytes")
    );
}

#[test]
fn a_chain_that_failed_to_open_once_is_tried_again_when_drivers_come() {
    let step = || Arc::new(D { does: single, ..D::new("regression-13-step", fine) });
    let whole = D { does: |s| s.len() == 2, ..D::new("regression-13-whole", fine) };
    let engine = Engine::builder().driver(Arc::new(whole)).build();
    let session = engine.session(Parameters::chain(&CHAIN)).unwrap();
    engine.unregister("regression-13-whole");
    // No driver: fine.
    assert!(packet().with(|request| session.run(request)).is_err());
    engine.register(step()).unwrap();
    assert_eq!(packet().with(|request| session.run(request)), Ok(36));
}

#[test]
fn every_waiting_derivation_is_answered_though_one_answer_panics() {
    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    let left = Mutex::new(left);
    let driver = D::new("regression-14", move |_: &mut Request<'_>| {
        enter.send(()).unwrap();
        let _ = left.lock().unwrap().recv();
        Ok(1)
    });
    let engine = Engine::builder().driver(Arc::new(driver)).slow_pool(1, 8).build();
    let (answer, answered) = mpsc::channel();
    let submit = |panics: bool| {
        let answer = answer.clone();
        let derivation = Derivation {
            algorithm: Algorithm::Pbkdf2Sha256,
            cost: Cost::Pbkdf2 { iterations: 1 },
            password: b"x".to_vec().into(),
            salt: vec![],
            output_bytes: 1,
        };
        let done: Done = Box::new(move |_| {
            answer.send(()).unwrap();
            assert!(!panics, "as told");
        });
        engine.submit(derivation, done).unwrap();
    };
    submit(false);
    entered.recv().unwrap();
    submit(true);
    submit(false);
    // Both wait while the one worker is held.
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let ends = std::panic::AssertUnwindSafe(|| drop(engine));
        send.send(std::panic::catch_unwind(ends).is_ok())
    });
    let two = || answered.recv_timeout(Duration::from_secs(5)).is_ok();
    assert!(two() && two());
    drop(leave);
    assert_eq!(receive.recv_timeout(Duration::from_secs(5)), Ok(true));
    assert!(answered.try_recv().is_ok());
}

#[test]
fn what_was_finished_before_the_callback_was_set_is_called_back() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-16", fine))).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(4);
    assert!(queue.submit_one(Task::new(&session, seal(&[1])), false).is_ok());
    let called = Arc::new(AtomicUsize::new(0));
    let calls = called.clone();
    queue.on_completion(move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
    });
    drop(queue);
    assert_eq!(called.load(Ordering::SeqCst), 1);
}

/// Works beside the caller; never finishes, or panics.
struct Hung {
    name: &'static str,
    panics: bool,
}

struct HungQueue {
    held: Vec<Box<Task>>,
    panics: bool,
}

impl DriverQueue for HungQueue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _: bool) -> Flow {
        assert!(!self.panics, "as told");
        self.held.append(tasks);
        Flow::Open
    }
    fn poll(&mut self, _: &mut Vec<Box<Task>>) {}
}

impl Driver for Hung {
    fn name(&self) -> &str {
        self.name
    }
    fn place(&self) -> Place {
        Place::Device
    }
    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps.len() == 1
    }
    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(S(Arc::new(fine))))
    }
    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(HungQueue { held: vec![], panics: self.panics }))
    }
}

#[test]
fn an_engine_can_be_dropped_though_a_device_never_answers() {
    let hung = Hung { name: "regression-17", panics: false };
    let engine = Engine::builder().driver(Arc::new(hung)).build();
    let session = engine.session(GCM).unwrap();
    let pending = engine.start(Task::new(&session, seal(&[1]))).unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        drop(engine);
        send.send(())
    });
    // Longer than `limits::CLOSE`.
    assert!(receive.recv_timeout(Duration::from_secs(8)).is_ok());
    drop(pending);
}

#[test]
fn after_a_driver_has_panicked_in_the_executor_thread_nothing_is_accepted_and_left_for_ever() {
    let hung = Hung { name: "regression-18", panics: true };
    let engine = Engine::builder().driver(Arc::new(hung)).build();
    let session = engine.session(GCM).unwrap();
    let pending = engine.start(Task::new(&session, seal(&[1]))).unwrap();
    let refused = ends(move || {
        loop {
            match engine.start(Task::new(&session, seal(&[1]))) {
                Ok(_) => std::thread::yield_now(),
                Err(refused) if refused.error == Error::Busy => std::thread::yield_now(),
                Err(refused) => return refused.error == Error::Closed,
            }
        }
    });
    assert!(refused);
    drop(pending);
}

#[test]
fn offers_says_what_a_session_can_be_opened_for() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-19", fine))).build();
    let steps = [Algorithm::Aes128Ctr, Algorithm::HmacSha1];
    assert!(engine.session(Parameters::chain(&CHAIN)).is_ok());
    assert!(engine.offers(&steps));
}

#[test]
fn offers_leaves_out_what_is_disabled() {
    let engine = Engine::builder().driver(Arc::new(D::new("regression-20", fine))).build();
    assert!(!engine.offers(&[Algorithm::TripleDesCbc]));
}

#[test]
fn finished_tasks_of_an_ordered_session_are_handed_over_on_drop() {
    let engine = Engine::builder()
        .driver(Arc::new(Hung { name: "regression-22-hung", panics: false }))
        .sample(0)
        .build();
    let session = engine.session(GCM.ordered()).unwrap();
    let mut queue = engine.queue(8);
    let called = Arc::new(AtomicUsize::new(0));
    let calls = called.clone();
    queue.on_completion(move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
    });
    // The first hangs in the device, the second is refused at once.
    let mut tasks = vec![
        Task::new(&session, seal(&[1])),
        Task::new(&session, Operation::Random { out: vec![0; 8].into() }),
    ];
    queue.submit(&mut tasks, false);
    drop(queue);
    assert_eq!(called.load(Ordering::SeqCst), 1, "the refused one is finished");
}

#[test]
fn work_that_a_driver_cannot_begin_twice_is_not_given_to_another() {
    // A driver that does chains through `run_chain` and dies between two steps.
    let whole = D {
        does: |s| s.len() == 2,
        ..D::new("regression-23-whole", |request: &mut Request<'_>| {
            run_chain(request, &[Algorithm::Aes128Ctr, Algorithm::HmacSha1], |index, request| {
                if index == 0 { fine(request) } else { Err(Error::Gone) }
            })
        })
    };
    let other = D {
        does: |s| s.len() == 2,
        ..D::new("regression-23-other", |request: &mut Request<'_>| match request {
            Request::Chain { data, .. } if data[0] == 0 => Ok(36),
            _ => Err(Error::Closed),
        })
    };
    let engine = Engine::builder().driver(Arc::new(whole)).sample(0).build();
    let session = engine.session(Parameters::chain(&CHAIN)).unwrap();
    engine.register(Arc::new(other)).unwrap();
    let dear = Linear { fixed: 1e9, per_byte: 0.0 };
    let cheap = Linear { fixed: 1.0, per_byte: 0.0 };
    let steps = [Algorithm::Aes128Ctr, Algorithm::HmacSha1];
    engine.set_cost("regression-23-whole", &steps, cheap, cheap).unwrap();
    engine.set_cost("regression-23-other", &steps, dear, dear).unwrap();
    let result = packet().with(|request| session.run(request));
    assert!(matches!(result, Err(Error::Driver { .. })), "{result:?}: begun twice");
}

#[test]
fn random_bytes_come_however_often_drivers_come_and_go() {
    let engine =
        Engine::builder().driver(Arc::new(D::new("regression-24", fine))).sample(0).build();
    for _ in 0..140_000 {
        engine.unregister_algorithm("regression-24", Algorithm::Aes128Gcm);
        assert_eq!(engine.random(&mut [0; 4]), Ok(()));
        engine.register_algorithm("regression-24", Algorithm::Aes128Gcm);
        assert_eq!(engine.random(&mut [0; 4]), Ok(()));
    }
}

#[test]
fn a_driver_is_measured_by_one_thread_at_a_time() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let first = D::new("regression-26-first", move |request| {
        // Lets the others come in, if they can.
        let before = counted.fetch_add(1, Ordering::SeqCst);
        for _ in 0..100_000 {
            if counted.load(Ordering::SeqCst) > before + 1 {
                break;
            }
            std::thread::yield_now();
        }
        fine(request)
    });
    let engine = Engine::builder()
        .driver(Arc::new(first))
        .driver(Arc::new(D::new("regression-26-second", fine)))
        .sample(0)
        .build();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| engine.session(GCM).unwrap());
        }
    });
    // Two sizes, five runs each at most.
    assert!(runs.load(Ordering::SeqCst) <= 10, "{} runs", runs.load(Ordering::SeqCst));
}

mod no_driver_left {
    use keyway_engine::*;
    use std::sync::Arc;

    struct Plain;

    impl DriverSession for Plain {
        fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
            match request {
                Request::Encrypt { data, .. } => Ok(data.len()),
                Request::Mac { out, .. } => Ok(out.len()),
                _ => Err(Error::invalid_request("not here")),
            }
        }
    }

    impl Driver for Plain {
        fn name(&self) -> &str {
            "regression-steps"
        }
        fn supports(&self, steps: &[Algorithm]) -> bool {
            steps.len() == 1
        }
        fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
            Ok(Box::new(Plain))
        }
    }

    #[test]
    fn a_queued_chain_whose_steps_have_no_driver_left_comes_back_with_an_error() {
        let engine = Engine::builder().driver(Arc::new(Plain)).sample(0).build();
        let steps = [
            Step { algorithm: Algorithm::Aes128Ctr, key: Key::Secret(&[1; 16]) },
            Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[2; 20]) },
        ];
        let session = engine.session(Parameters::chain(&steps)).unwrap();
        engine.unregister("regression-steps");
        let mut queue = engine.queue(4);
        let parts = vec![
            Part::Cipher { iv: Iv::Given([0; 16]), text: 0..16 },
            Part::Mac { over: 0..16, tag: 16..36 },
        ];
        let packet = Operation::chain(Direction::Protect, [0; 36], 0, parts);
        assert!(queue.submit_one(Task::new(&session, packet), false).is_ok());
        let mut done = Vec::new();
        queue.poll(&mut done);
        assert!(done[0].result().is_err());
    }
}

mod of_another_engine {
    use keyway_engine::*;
    use std::sync::Arc;

    struct Dying;

    impl DriverSession for Dying {
        fn run(&self, _: &mut Request<'_>) -> Result<usize, Error> {
            Err(Error::Gone)
        }
    }

    impl Driver for Dying {
        fn name(&self) -> &str {
            "regression-dying"
        }
        fn supports(&self, steps: &[Algorithm]) -> bool {
            steps.len() == 1
        }
        fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
            Ok(Box::new(Dying))
        }
    }

    #[test]
    fn a_session_of_another_engine_whose_driver_dies_comes_back_with_an_error() {
        let one = Engine::builder().driver(Arc::new(Dying)).sample(0).build();
        let other = Engine::builder().build();
        let session =
            one.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]))).unwrap();
        let mut queue = other.queue(4);
        let seal = Operation::seal([0; 12], [], [0; 4]);
        assert!(queue.submit_one(Task::new(&session, seal), false).is_ok());
        let mut done = Vec::new();
        queue.poll(&mut done);
        assert!(done[0].result().is_err());
    }
}
