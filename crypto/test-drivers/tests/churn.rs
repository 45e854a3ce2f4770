//! Drivers come, go and die while requests run: each request completes exactly once, with right
//! bytes. `CHURN_REQUESTS` sets how many (default 60,000; the benchmark does a million).

use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Direction, Engine, Error, Iv, Key, Operation, Parameters, Part, Session, Step, Task,
};
use keyway_test_drivers::{FaultHandle, Plan, fault};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const THREADS: u64 = 3;
const DEPTH: usize = 48;
const KINDS: u64 = 16;

/// Splitmix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn sessions(engine: &Engine) -> [Session; 3] {
    let gcm = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    let hmac = Parameters::new(Algorithm::HmacSha256, Key::Secret(&[8; 32]));
    let steps = [
        Step { algorithm: Algorithm::Aes128Cbc, key: Key::Secret(&[1; 16]) },
        Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[2; 20]) },
    ];
    [gcm, hmac.ordered(), Parameters::chain(&steps)].map(|one| engine.session(one).unwrap())
}

/// The work of some kind, and which session it is for.
fn work(kind: u64) -> (usize, Operation) {
    let data = vec![kind as u8; 16 * (kind as usize + 1)];
    match kind % 3 {
        0 => (0, Operation::seal([kind as u8; 12], [5; 5], data)),
        1 => (1, Operation::mac(Algorithm::HmacSha256, data)),
        _ => {
            let text = data.len();
            let parts = vec![
                Part::Cipher { iv: Iv::Given([3; 16]), text: 0..text },
                Part::Mac { over: 0..text, tag: text..text + 12 },
            ];
            let data = [data, vec![0; 12]].concat();
            (2, Operation::chain(Direction::Protect, data, 0, parts))
        }
    }
}

fn output(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::Seal { data, tag, .. } => [&data[..], tag].concat(),
        Operation::Mac { out, .. } => out.clone(),
        Operation::Chain { data, .. } => data.to_vec(),
        _ => unreachable!("no such work is made here"),
    }
}

fn expected() -> Vec<Vec<u8>> {
    let engine = Engine::builder().driver(software()).build();
    let sessions = sessions(&engine);
    let run = |kind| {
        let (session, mut operation) = work(kind);
        operation.with(|request| sessions[session].run(request)).unwrap();
        output(&operation)
    };
    (0..KINDS).map(run).collect()
}

/// The errors that a driver that dies may end begun work with.
fn may_fail(error: Error) -> bool {
    matches!(error, Error::Driver { .. })
}

/// One thread's requests through a queue and, now and then, directly and as futures.
fn worker(
    engine: &Engine,
    sessions: &[Session; 3],
    expected: &[Vec<u8>],
    seed: u64,
    count: u64,
    progress: &AtomicU64,
) {
    let mut dice = Dice(seed);
    let mut queue = engine.queue(DEPTH);
    let (mut offered, mut done) = (Vec::new(), Vec::new());
    let mut back = vec![0u8; count as usize];
    let (mut made, mut last_ordered) = (0, 0);
    let mut collect = |done: &mut Vec<Box<Task>>| {
        progress.fetch_add(done.len() as u64, Ordering::Relaxed);
        for task in done.drain(..) {
            let (number, kind) = (task.user / KINDS, task.user % KINDS);
            back[number as usize] += 1;
            match task.result() {
                Ok(_) => assert_eq!(output(&task.operation), expected[kind as usize]),
                Err(error) => assert!(may_fail(error), "{error}"),
            }
            if kind % 3 == 1 {
                assert!(number >= last_ordered, "{number} came after {last_ordered}");
                last_ordered = number;
            }
        }
    };
    while made < count || queue.in_flight() > 0 || !offered.is_empty() {
        for _ in 0..dice.next(DEPTH as u64).min(count - made) {
            let kind = dice.next(KINDS);
            let (session, operation) = work(kind);
            offered.push(Task::tagged(&sessions[session], operation, made * KINDS + kind));
            made += 1;
        }
        let (before, capacity) = (offered.len(), queue.capacity());
        let accepted = queue.submit(&mut offered, dice.next(4) == 0);
        assert_eq!((accepted, offered.len()), (before.min(capacity), before - accepted));
        match dice.next(8) {
            0 => drop(queue.wait(&mut done, Duration::from_millis(1))),
            _ => drop(queue.poll(&mut done)),
        }
        collect(&mut done);
        let kind = dice.next(KINDS);
        let (session, mut operation) = work(kind);
        let (result, out) = match dice.next(8) {
            0 => (operation.with(|request| sessions[session].run(request)), output(&operation)),
            1 => match engine.start(Task::new(&sessions[session], operation)) {
                Ok(pending) => {
                    let task = futures_executor::block_on(pending);
                    (task.result(), output(&task.operation))
                }
                Err(refused) => panic!("{refused:?}"),
            },
            _ => continue,
        };
        match result {
            Ok(_) => assert_eq!(out, expected[kind as usize]),
            Err(error) => assert!(may_fail(error), "{error}"),
        }
    }
    assert!(back.iter().all(|times| *times == 1), "each exactly once");
}

/// Registers, unregisters and kills until it is told to end, once in some hundred requests: a
/// driver has to be measured before it is used.
fn chaos(engine: &Engine, seed: u64, over: &AtomicBool, progress: &AtomicU64) {
    let mut dice = Dice(seed);
    let mut next = 0;
    let mut handles: Vec<(String, FaultHandle)> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        if progress.load(Ordering::Relaxed) < next {
            thread::yield_now();
            continue;
        }
        next += dice.next(300);
        match dice.next(6) {
            0 | 1 if handles.len() < 4 => {
                let name = format!("churn-{}", dice.next(6));
                let plan = Plan {
                    seed: dice.next(u64::MAX),
                    busy: 0.2,
                    delay: dice.next(3) as u32,
                    shuffle: dice.next(2) == 0,
                    dies_after: (dice.next(3) == 0).then(|| 100 + dice.next(2_000)),
                    ..Plan::default()
                };
                let (driver, handle) = fault(&name, software(), plan);
                if engine.register(driver).is_ok() {
                    handles.push((name, handle));
                }
            }
            2 | 3 if !handles.is_empty() => {
                let (name, _) = handles.swap_remove(dice.next(handles.len() as u64) as usize);
                // It may have died meanwhile.
                engine.unregister(&name);
            }
            4 if !handles.is_empty() => {
                let (name, handle) = handles.swap_remove(dice.next(handles.len() as u64) as usize);
                handle.kill();
                if dice.next(2) == 0 {
                    engine.unregister(&name);
                }
            }
            _ => {
                if let Some((name, _)) = handles.first() {
                    let algorithm = [Algorithm::Aes128Gcm, Algorithm::HmacSha256];
                    let algorithm = algorithm[dice.next(2) as usize];
                    engine.unregister_algorithm(name, algorithm);
                    engine.register_algorithm(name, algorithm);
                }
            }
        }
        handles.retain(|(_, handle)| !handle.is_dead());
    }
}

#[test]
fn each_request_completes_exactly_once_with_right_bytes() {
    let count: u64 =
        std::env::var("CHURN_REQUESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(60_000);
    let expected = expected();
    let engine = Engine::builder().driver(software()).build();
    let sessions = sessions(&engine);
    let over = AtomicBool::new(false);
    let (left, progress) = (AtomicU64::new(THREADS), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 1..=THREADS {
            let (engine, sessions, expected) = (&engine, &sessions, &expected);
            let (over, left, progress) = (&over, &left, &progress);
            scope.spawn(move || {
                // However it ends, the others are told.
                struct End<'a>(&'a AtomicU64, &'a AtomicBool);
                impl Drop for End<'_> {
                    fn drop(&mut self) {
                        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
                            self.1.store(true, Ordering::Relaxed);
                        }
                    }
                }
                let _end = End(left, over);
                worker(engine, sessions, expected, seed, count / THREADS, progress);
            });
        }
        scope.spawn(|| chaos(&engine, 99, &over, &progress));
    });
    let backlog: u64 = engine.drivers().iter().map(|driver| driver.backlog).sum();
    assert_eq!(backlog, 0);
    let mut data = [0; 4];
    assert!(sessions[0].seal(&[0; 12], &[], &mut data).is_ok());
}
