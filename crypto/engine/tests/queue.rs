//! The promises of a queue, shown with a device made for the purpose: it has a ring of some slots,
//! finishes requests when it is told to, in whatever order, and can die.

use keyway_engine::limits::ROUTES;
use keyway_engine::{
    Algorithm, Cost, Demand, Driver, DriverQueue, DriverSession, Engine, Error, Flow, Key, Linear,
    Nonces, Operation, Parameters, Place, Queue, Request, Step, TAG_BYTES, Task, Usage, Waker,
};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Adds one to every byte.
struct State {
    dead: Arc<AtomicBool>,
}

impl DriverSession for State {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if self.dead.load(Ordering::SeqCst) {
            return Err(Error::Gone);
        }
        match request {
            Request::Seal { data, tag, nonce, .. } => {
                data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                tag[..12].copy_from_slice(*nonce);
                Ok(data.len())
            }
            Request::Open { data, .. } if data[0] == 0 => Err(Error::Authentication),
            Request::Open { data, .. } => Ok(data.len() - TAG_BYTES),
            Request::Sign { out, .. } | Request::Digest { out, .. } => {
                out.fill(9);
                Ok(out.len())
            }
            _ => Err(Error::invalid_request("not here")),
        }
    }
}

/// On the caller's stack.
struct Direct(&'static str);

impl Driver for Direct {
    fn name(&self) -> &str {
        self.0
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps.len() == 1
    }

    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(State { dead: Arc::default() }))
    }
}

/// Beside the caller.
struct Device {
    name: &'static str,
    ring: Arc<Mutex<Ring>>,
    dead: Arc<AtomicBool>,
}

struct Ring {
    slots: usize,
    /// The slots in use by all queues together.
    used: usize,
    /// How many requests the next polls may finish.
    ready: usize,
    backwards: bool,
    /// How often a thread slept here, if one can. Then it finishes a request.
    slept: Option<usize>,
}

struct End {
    ring: Arc<Mutex<Ring>>,
    dead: Arc<AtomicBool>,
    held: VecDeque<Box<Task>>,
}

impl Device {
    fn new(name: &'static str, slots: usize) -> Arc<Self> {
        let ring = Ring { slots, used: 0, ready: 0, backwards: false, slept: None };
        Arc::new(Device { name, ring: Arc::new(Mutex::new(ring)), dead: Arc::default() })
    }

    fn finish(&self, requests: usize) {
        self.ring.lock().unwrap().ready += requests;
    }

    fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }
}

impl Driver for Device {
    fn name(&self) -> &str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Device
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps == [Algorithm::Aes128Gcm]
    }

    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        if self.dead.load(Ordering::SeqCst) {
            return Err(Error::Gone);
        }
        Ok(Box::new(State { dead: self.dead.clone() }))
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        let (ring, dead) = (self.ring.clone(), self.dead.clone());
        Some(Box::new(End { ring, dead, held: VecDeque::new() }))
    }
}

impl DriverQueue for End {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _: bool) -> Flow {
        if self.dead.load(Ordering::SeqCst) {
            return Flow::Gone;
        }
        let mut ring = self.ring.lock().unwrap();
        let capacity = (ring.slots - ring.used).min(tasks.len());
        ring.used += capacity;
        self.held.extend(tasks.drain(..capacity));
        if tasks.is_empty() { Flow::Open } else { Flow::Busy }
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        let mut ring = self.ring.lock().unwrap();
        if self.dead.load(Ordering::SeqCst) {
            for mut task in self.held.drain(..) {
                task.give_back();
                done.push(task);
            }
            return;
        }
        while ring.ready > 0 {
            let next = if ring.backwards { self.held.pop_back() } else { self.held.pop_front() };
            let Some(mut task) = next else { break };
            ring.ready -= 1;
            ring.used -= 1;
            task.run();
            done.push(task);
        }
    }

    fn sleep(&mut self, _: Duration) -> bool {
        let mut ring = self.ring.lock().unwrap();
        let Some(slept) = &mut ring.slept else { return false };
        *slept += 1;
        ring.ready += 1;
        true
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.ring.lock().unwrap().used -= self.held.len();
    }
}

const GCM: Parameters<'static> = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]));

fn seal(bytes: &[u8]) -> Operation {
    Operation::seal([0; 12], [], bytes)
}

fn data(task: &Task) -> &[u8] {
    match &task.operation {
        Operation::Seal { data, .. } => data,
        _ => panic!("only seals here"),
    }
}

fn tasks(session: &keyway_engine::Session, users: std::ops::Range<u64>) -> Vec<Box<Task>> {
    users.map(|user| Task::tagged(session, seal(&[user as u8]), user)).collect()
}

fn users(tasks: &[Box<Task>]) -> Vec<u64> {
    tasks.iter().map(|task| task.user).collect()
}

fn collect(queue: &mut Queue) -> Vec<Box<Task>> {
    let mut done = Vec::new();
    queue.poll(&mut done);
    done
}

#[test]
fn acceptance_is_exact_and_what_is_left_stays_in_order() {
    let engine = Engine::builder().driver(Arc::new(Direct("queue-direct"))).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(5);
    let mut waiting = tasks(&session, 0..12);
    assert_eq!(queue.submit(&mut waiting, false), 5);
    assert_eq!(users(&waiting), (5..12).collect::<Vec<_>>());
    assert_eq!((queue.in_flight(), queue.capacity()), (5, 0));
    assert_eq!(queue.submit(&mut waiting, false), 0);
    let done = collect(&mut queue);
    assert_eq!(users(&done), [0, 1, 2, 3, 4]);
    assert!(done.iter().all(|task| task.result() == Ok(1) && data(task) == [task.user as u8 + 1]));
    assert_eq!(queue.submit(&mut waiting, true), 5);
    assert!(queue.submit_one(waiting.pop().unwrap(), false).is_err());
    assert_eq!(collect(&mut queue).len(), 5);
    let again = done.into_iter().next().unwrap();
    assert!(queue.submit_one(again, false).is_ok());
    assert_eq!(data(&collect(&mut queue)[0]), [2]);
}

#[test]
fn a_full_device_makes_tasks_wait_and_loses_none() {
    let device = Device::new("queue-full", 2);
    let engine = Engine::builder().driver(device.clone()).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    let mut waiting = tasks(&session, 0..10);
    assert_eq!(queue.submit(&mut waiting, false), 10);
    assert!(collect(&mut queue).is_empty());
    for round in 0..5 {
        device.finish(2);
        assert_eq!(users(&collect(&mut queue)), [2 * round, 2 * round + 1]);
    }
    let busy = keyway_meter::counter("engine.queue-full.aes-128-gcm.busy").value();
    assert_eq!((busy, queue.in_flight()), (8, 0));
}

#[test]
fn ordered_sessions_leave_in_order_and_others_as_they_come() {
    let device = Device::new("queue-backwards", 100);
    device.ring.lock().unwrap().backwards = true;
    let engine = Engine::builder().driver(device.clone()).build();
    let ordered = engine.session(GCM.ordered()).unwrap();
    let free = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    queue.submit(&mut tasks(&ordered, 0..4), false);
    queue.submit(&mut tasks(&free, 10..12), false);
    device.finish(5);
    assert_eq!(users(&collect(&mut queue)), [11, 10]);
    // A refused one keeps its place.
    let mut bad = vec![Task::tagged(&ordered, Operation::Random { out: vec![0; 8].into() }, 4)];
    queue.submit(&mut bad, false);
    assert!(collect(&mut queue).is_empty());
    device.finish(1);
    let done = collect(&mut queue);
    assert_eq!(users(&done), [0, 1, 2, 3, 4]);
    assert!(matches!(done[4].result(), Err(Error::InvalidRequest(_))));
}

#[test]
fn completions_are_called_back_at_once_and_on_drop() {
    let device = Device::new("queue-callback", 1);
    let engine = Engine::builder()
        .driver(device.clone())
        .driver(Arc::new(Direct("queue-callback-direct")))
        .build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut queue = engine.queue(100);
    let sink = seen.clone();
    queue.on_completion(move |task| sink.lock().unwrap().push((task.user, task.result())));
    let direct = GCM.on(Demand::Named("queue-callback-direct"));
    let direct = engine.session(direct).unwrap();
    queue.submit(&mut tasks(&direct, 0..2), false);
    assert_eq!(*seen.lock().unwrap(), [(0, Ok(1)), (1, Ok(1))]);
    assert_eq!(queue.in_flight(), 0);
    let slow = engine.session(GCM.on(Demand::Hardware)).unwrap();
    queue.submit(&mut tasks(&slow, 2..5), false);
    device.finish(1);
    drop(queue);
    let mut seen = seen.lock().unwrap().split_off(2);
    seen.sort_by_key(|(user, _)| *user);
    // The device had taken one; the others had not begun.
    assert_eq!(seen, [(2, Ok(1)), (3, Err(Error::Closed)), (4, Err(Error::Closed))]);
}

#[test]
fn what_is_never_collected_is_not_reckoned_with() {
    let device = Device::new("queue-left", 2);
    let engine = Engine::builder().driver(device).build();
    let cost = Linear { fixed: 1_000.0, per_byte: 0.0 };
    engine.set_cost("queue-left", &[Algorithm::Aes128Gcm], cost, cost).unwrap();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    queue.submit(&mut tasks(&session, 0..5), false);
    assert_eq!(engine.drivers()[0].backlog, 5_000);
    drop(queue);
    assert_eq!(engine.drivers()[0].backlog, 0);
}

#[test]
fn high_water_marks_count_requests_of_all_queues() {
    let device = Device::new("queue-marks", 8);
    let engine = Engine::builder().driver(device.clone()).build();
    let session = engine.session(GCM.on(Demand::Hardware)).unwrap();
    let marks = || (engine.drivers()[0].pending_most, engine.pending_most());
    assert_eq!(marks(), (0, 0));
    let (mut one, mut other) = (engine.queue(100), engine.queue(100));
    one.submit(&mut tasks(&session, 0..5), false);
    other.submit(&mut tasks(&session, 5..8), false);
    assert_eq!(marks(), (8, 8));
    device.finish(8);
    let mut done = Vec::new();
    assert_eq!(one.poll(&mut done) + other.poll(&mut done), 8);
    // Collected requests make room below the mark. So do those of a queue that is dropped before it
    // collects them.
    one.submit(&mut tasks(&session, 0..6), false);
    drop(one);
    other.submit(&mut tasks(&session, 6..13), false);
    assert_eq!(marks(), (8, 8));
}

#[test]
fn a_dead_driver_is_replaced_unnoticed() {
    let device = Device::new("queue-dying", 3);
    let engine = Engine::builder().driver(device.clone()).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    queue.submit(&mut tasks(&session, 0..6), false);
    engine.register(Arc::new(Direct("queue-heir"))).unwrap();
    device.finish(1);
    let mut done = collect(&mut queue);
    device.kill();
    done.extend(collect(&mut queue));
    done.extend(collect(&mut queue));
    let mut ended: Vec<_> = done.iter().map(|task| (task.user, data(task)[0])).collect();
    ended.sort();
    assert_eq!(ended, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    assert_eq!(session.driver(), "queue-heir");
    assert!(engine.drivers().iter().all(|driver| driver.name != "queue-dying"));
    // Single requests too.
    assert_eq!(session.seal(&[0; 12], &[], &mut [1]).map(|_| ()), Ok(()));
}

#[test]
fn with_no_driver_left_the_error_is_clear_and_a_new_one_is_found() {
    let device = Device::new("queue-last", 3);
    let engine = Engine::builder().driver(device.clone()).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    queue.submit(&mut tasks(&session, 0..2), false);
    device.kill();
    let done = collect(&mut queue);
    assert_eq!(users(&done), [0, 1]);
    assert!(done.iter().all(|task| task.result() == Err(Error::Gone)));
    assert_eq!(session.seal(&[0; 12], &[], &mut [1]), Err(Error::Gone));
    engine.register(Arc::new(Direct("queue-next"))).unwrap();
    assert!(session.seal(&[0; 12], &[], &mut [1]).is_ok());
}

#[test]
fn an_unregistered_driver_finishes_what_it_has_and_gets_nothing_more() {
    let device = Device::new("queue-leaving", 2);
    let engine = Engine::builder().driver(device.clone()).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    queue.submit(&mut tasks(&session, 0..4), false);
    engine.register(Arc::new(Direct("queue-staying"))).unwrap();
    assert!(engine.unregister("queue-leaving") && !engine.unregister("queue-leaving"));
    let mut done = collect(&mut queue);
    done.extend(collect(&mut queue));
    assert_eq!(users(&done), [2, 3]);
    device.finish(2);
    assert_eq!(users(&collect(&mut queue)), [0, 1]);
    let back = Device::new("queue-leaving", 2);
    engine.register(back).unwrap();
    assert!(engine.register(Device::new("queue-leaving", 2)).is_err());
    assert!(engine.unregister_algorithm("queue-leaving", Algorithm::Aes128Gcm));
    queue.submit(&mut tasks(&session, 9..10), false);
    assert_eq!(users(&collect(&mut queue)), [9]);
    assert!(engine.unregister("queue-staying"));
    assert_eq!(session.seal(&[0; 12], &[], &mut [1]), Err(Error::Gone));
    assert!(engine.register_algorithm("queue-leaving", Algorithm::Aes128Gcm));
    assert!(session.seal(&[0; 12], &[], &mut [1]).is_ok());
}

#[test]
fn slow_work_goes_beside_and_fast_work_is_done_meanwhile() {
    let engine = Engine::builder().driver(Arc::new(Direct("queue-slow"))).slow_pool(1, 1).build();
    let rsa = engine.session(Parameters::new(Algorithm::RsaPssSha256, Key::None)).unwrap();
    let gcm = engine.session(GCM).unwrap();
    let mut queue = engine.queue(100);
    let sign =
        || Operation::Sign { parameters: Default::default(), message: vec![1], out: vec![0; 4] };
    let mut mixed: Vec<_> = (0..20).map(|user| Task::tagged(&rsa, sign(), user)).collect();
    mixed.extend(tasks(&gcm, 20..22));
    assert_eq!(queue.submit(&mut mixed, false), 22);
    let mut done = Vec::new();
    while done.len() < 22 {
        assert!(queue.wait(&mut done, Duration::from_secs(10)) > 0);
    }
    let mut all = users(&done);
    all.sort();
    assert_eq!(all, (0..22).collect::<Vec<_>>());
    assert!(done.iter().all(|task| task.result().is_ok()));
}

#[test]
fn a_session_with_its_own_nonces_repeats_none() {
    let engine = Engine::builder().driver(Arc::new(Direct("queue-nonces"))).build();
    let start = *b"abcdefghijkl";
    let usage = Usage { seals_max: 300, forgeries_max: u64::MAX };
    let own = GCM.nonces(Nonces::Counter { iv: start, from: 0 }).usage(usage);
    let session = engine.session(own).unwrap();
    let request =
        &mut Request::Seal { nonce: &[0; 12], aad: &[], data: &mut [], tag: &mut [0; 16] };
    assert!(matches!(session.run(request), Err(Error::InvalidRequest(_))));
    let (first, _) = session.seal_next(&[], &mut [1]).unwrap();
    assert_eq!(first, start);
    let mut queue = engine.queue(1_000);
    queue.submit(&mut tasks(&session.clone(), 0..400), false);
    let (done, exhausted): (Vec<_>, Vec<_>) =
        collect(&mut queue).into_iter().partition(|task| task.result().is_ok());
    let nonce = |task: &Task| match &task.operation {
        Operation::Seal { nonce, tag, .. } => {
            assert_eq!(*nonce, tag[..12]);
            *nonce
        }
        _ => unreachable!(),
    };
    let mut nonces: Vec<_> = done.iter().map(|task| nonce(task)).chain([first]).collect();
    nonces.sort();
    nonces.dedup();
    assert_eq!((nonces.len(), exhausted.len()), (300, 101));
    assert!(exhausted.iter().all(|task| matches!(task.result(), Err(Error::Exhausted(_)))));
    assert!(matches!(session.seal_next(&[], &mut [1]), Err(Error::Exhausted(_))));
    assert_eq!(session.sealed(), 300);
    // A second session goes on where the first ended, and what was sealed before counts.
    let usage = Usage { seals_max: 302, ..usage };
    let rest = GCM.nonces(Nonces::Counter { iv: start, from: session.sealed() }).usage(usage);
    let rest = engine.session(rest).unwrap();
    for _ in 0..2 {
        let (nonce, _) = rest.seal_next(&[], &mut [1]).unwrap();
        assert!(!nonces.contains(&nonce));
    }
    assert!(matches!(rest.seal_next(&[], &mut [1]), Err(Error::Exhausted(_))));
}

#[test]
fn told_nonces_are_counted_too_and_so_are_forgeries() {
    let engine = Engine::builder().driver(Arc::new(Direct("queue-usage"))).build();
    let usage = Usage { seals_max: 2, forgeries_max: 3 };
    let session = engine.session(GCM.usage(usage).client("usage-client")).unwrap();
    for _ in 0..2 {
        session.seal(&[0; 12], &[], &mut [1]).unwrap();
    }
    assert!(matches!(session.seal(&[0; 12], &[], &mut [1]), Err(Error::Exhausted(_))));
    assert_eq!(session.open_in_place(&[0; 12], &[], &mut [1; 20]), Ok(4));
    for _ in 0..3 {
        let forged = session.open_in_place(&[0; 12], &[], &mut [0; 20]);
        assert_eq!(forged, Err(Error::Authentication));
    }
    let open = session.open_in_place(&[0; 12], &[], &mut [1; 20]);
    assert!(matches!(open, Err(Error::Exhausted(_))));
    let count = |what| keyway_meter::counter(&format!("client.usage-client.{what}")).value();
    assert_eq!(count("operations"), 8);
    assert_eq!((count("error.authentication"), count("error.exhausted")), (3, 2));
}

#[test]
fn a_future_is_ready_at_once_here_and_later_elsewhere() {
    let device = Device::new("queue-future", 2);
    let engine = Engine::builder()
        .driver(device.clone())
        .driver(Arc::new(Direct("queue-future-direct")))
        .slow_pool(1, 4)
        .build();
    let here = GCM.on(Demand::Named("queue-future-direct"));
    let here = engine.session(here).unwrap();
    let ready = engine.start(Task::tagged(&here, seal(&[5]), 77)).unwrap();
    let task = futures_executor::block_on(ready);
    assert_eq!((task.user, task.result(), data(&task)), (77, Ok(1), &[6][..]));
    let rsa = Parameters::new(Algorithm::RsaPssSha256, Key::None);
    let rsa = engine.session(rsa).unwrap();
    let sign =
        Operation::Sign { parameters: Default::default(), message: vec![1], out: vec![0; 4] };
    let task = futures_executor::block_on(engine.start(Task::new(&rsa, sign)).unwrap());
    assert_eq!(task.result(), Ok(4));
    let there = engine.session(GCM.on(Demand::Hardware)).unwrap();
    let pending: Vec<_> =
        (0..6).map(|user| engine.start(Task::tagged(&there, seal(&[1]), user)).unwrap()).collect();
    device.finish(6);
    for (user, pending) in pending.into_iter().enumerate() {
        let task = futures_executor::block_on(pending);
        assert_eq!((task.user, task.result()), (user as u64, Ok(1)));
    }
    // The engine finishes work that was begun, also if no caller waits for it.
    let last = engine.start(Task::new(&there, seal(&[1]))).unwrap();
    device.finish(1);
    drop(engine);
    assert_eq!(futures_executor::block_on(last).result(), Ok(1));
}

/// An event in the life of a queue.
#[derive(Clone, Debug)]
enum Event {
    Submit(usize, bool),
    Finish(usize),
    Poll,
    Kill,
    Replace,
    Unregister,
}

fn steps() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![
        4 => (1..20usize, any::<bool>()).prop_map(|(n, more)| Event::Submit(n, more)),
        4 => (1..20usize).prop_map(Event::Finish),
        4 => Just(Event::Poll),
        1 => Just(Event::Kill),
        1 => Just(Event::Replace),
        1 => Just(Event::Unregister),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens to its drivers, a queue hands every accepted task back once, with the right
    /// bytes or (when no driver was left) untouched.
    #[test]
    fn every_accepted_task_comes_back_once(steps in steps(), depth in 1..40usize) {
        let mut device = Device::new("queue-model-device", 4);
        let engine = Engine::builder()
            .driver(device.clone())
            .driver(Arc::new(Direct("queue-model-direct")))
            .build();
        // It finishes nothing unasked, so it cannot be measured.
        let set_cost = || {
            let cost = Linear { fixed: 1.0, per_byte: 0.0 };
            engine.set_cost("queue-model-device", &[Algorithm::Aes128Gcm], cost, cost).unwrap();
        };
        set_cost();
        let ordered = engine.session(GCM.ordered()).unwrap();
        let demanding = engine.session(GCM.on(Demand::Hardware)).unwrap();
        // More than a queue remembers the ways of.
        let plain = GCM.on(Demand::Named("queue-model-direct"));
        let plain: Vec<_> =
            (0..ROUTES + 30).map(|_| engine.session(plain).unwrap()).collect();
        let mut queue = engine.queue(depth);
        let (mut next, mut back, mut accepted) = (0, Vec::new(), Vec::new());
        for step in steps {
            match step {
                Event::Submit(count, more) => {
                    let mut offered: Vec<_> = (next..next + count as u64)
                        .map(|user| {
                            let session = match user % 3 {
                                0 => &ordered,
                                1 => &demanding,
                                _ => &plain[user as usize * 7 % plain.len()],
                            };
                            Task::tagged(session, seal(&[user as u8]), user)
                        })
                        .collect();
                    let before = queue.capacity();
                    let taken = queue.submit(&mut offered, more);
                    prop_assert_eq!(taken, before.min(count));
                    accepted.extend(next..next + taken as u64);
                    next += count as u64;
                    let left: Vec<_> = (next - (count - taken) as u64..next).collect();
                    prop_assert_eq!(users(&offered), left);
                }
                Event::Finish(count) => device.finish(count),
                Event::Poll => {
                    queue.poll(&mut back);
                }
                Event::Kill => device.kill(),
                Event::Unregister => {
                    engine.unregister("queue-model-device");
                }
                Event::Replace => {
                    engine.unregister("queue-model-device");
                    // The old one will finish its tasks.
                    device.finish(1_000);
                    queue.poll(&mut back);
                    device = Device::new("queue-model-device", 4);
                    engine.register(device.clone()).unwrap();
                    set_cost();
                }
            }
        }
        device.finish(1_000_000);
        for _ in 0..100 {
            queue.poll(&mut back);
        }
        prop_assert_eq!(queue.in_flight(), 0);
        prop_assert!(engine.drivers().iter().all(|driver| driver.backlog == 0));
        let in_order: Vec<_> = users(&back).into_iter().filter(|user| user % 3 == 0).collect();
        prop_assert!(in_order.is_sorted(), "{:?}", in_order);
        let mut all = users(&back);
        all.sort();
        prop_assert_eq!(all, accepted);
        for task in &back {
            match task.result() {
                Ok(1) => prop_assert_eq!(data(task), [(task.user as u8).wrapping_add(1)]),
                Err(Error::Gone) => {
                    prop_assert_eq!(data(task), [task.user as u8]);
                    prop_assert!(task.user % 3 == 1);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// A thread that sleeps elsewhere is called when slow work is done, once for each time it asked.
#[test]
fn a_queue_calls_an_owner_that_sleeps_elsewhere() {
    let engine = keyway_drivers::engine();
    let (called, calls) = std::sync::mpsc::channel();
    let mut queue = engine.queue_calling(8, move || called.send(()).unwrap());
    let session = engine.session(Parameters::new(Algorithm::Pbkdf2Sha256, Key::None)).unwrap();
    let cost = Cost::Pbkdf2 { iterations: 20_000 };
    let mut done = Vec::new();
    for _ in 0..3 {
        let derive = Operation::derive(cost, b"secret".to_vec().into(), b"salt".to_vec(), 32);
        queue.submit_one(Task::new(&session, derive), false).unwrap();
        while !queue.arm() {
            calls.recv().unwrap();
        }
        assert_eq!(queue.poll(&mut done), 1);
    }
    assert!(done.iter().all(|task| task.result() == Ok(32)));
}

/// Where one driver has all that is awaited, it is what wakes the thread; where two have some,
/// neither.
#[test]
fn a_queue_sleeps_at_the_driver_that_has_all_its_tasks() {
    let device = Device::new("queue-sleeps", 8);
    let other = Device::new("queue-sleeps-not", 8);
    device.ring.lock().unwrap().slept = Some(0);
    let engine = Engine::builder().driver(device.clone()).driver(other.clone()).build();
    let open = |name| engine.session(GCM.on(Demand::Named(name))).unwrap();
    let (here, there) = (open("queue-sleeps"), open("queue-sleeps-not"));
    let slept = || device.ring.lock().unwrap().slept;
    let mut queue = engine.queue(8);
    queue.submit(&mut tasks(&here, 0..3), false);
    let mut done = Vec::new();
    for times in 1..=3 {
        assert_eq!(queue.wait(&mut done, Duration::from_secs(60)), 1);
        assert_eq!(slept(), Some(times));
    }
    queue.submit(&mut tasks(&here, 3..4), false);
    queue.submit(&mut tasks(&there, 4..5), false);
    assert_eq!(queue.wait(&mut done, Duration::from_millis(1)), 0);
    assert_eq!(slept(), Some(3));
    other.finish(1);
    assert_eq!(queue.wait(&mut done, Duration::from_secs(60)), 1);
    assert_eq!(queue.wait(&mut done, Duration::from_secs(60)), 1);
    assert_eq!((slept(), users(&done)), (Some(4), vec![0, 1, 2, 4, 3]));
}
