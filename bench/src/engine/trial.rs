//! Claim 6, second half: a million requests while drivers come, go and die.
//!
//! Threads keep queues of small requests full; another registers, unregisters and kills drivers by
//! chance. Every request must come back once and with the right bytes; only one that a dying driver
//! had begun in place may fail instead, and says so.

use super::{Arguments, Findings};
use crate::report::{Claim, Table};
use fastrand::Rng;
use indicatif::ProgressBar;
use keyway_drivers::Pool;
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, DriverStream, Engine, Error, Flow, Key, Kind,
    NONCE_BYTES, Operation, Parameters, Place, Selection, Session, Step, Task, Waker,
};
use keyway_test_drivers::{Card, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const DEPTH: usize = 32;
const SIZES: [usize; 6] = [1, 16, 64, 100, 256, 512];
/// Drivers that may be registered beside the one that stays, and names that they share.
const DRIVERS_MAX: usize = 6;
const NAMES: u64 = 16;
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(2);
/// Requests after which a thread opens its sessions anew, so that drivers that went are let go.
const SESSION_REQUESTS: u64 = 5_000;
/// A request that is not back by then is lost.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Counts {
    completed: AtomicU64,
    failed: AtomicU64,
    wrong: AtomicU64,
    lost: AtomicU64,
    /// Given back by a driver that had accepted them, and run elsewhere.
    moved: Arc<AtomicU64>,
    registered: AtomicU64,
    unregistered: AtomicU64,
    killed: AtomicU64,
}

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let engine = Engine::builder().driver(keyway_drivers::software()).build();
    let counts = Counts::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    progress.inc_length(arguments.requests);
    let submitted: Result<u64, String> = thread::scope(|scope| {
        let chance = scope.spawn(|| come_and_go(&engine, arguments.seed, &counts, &over));
        let workers: Vec<_> = (0..THREADS)
            .map(|number| {
                let share =
                    arguments.requests / THREADS + u64::from(number < arguments.requests % THREADS);
                let (engine, counts) = (&engine, &counts);
                scope.spawn(move || work(engine, share, number, counts, progress))
            })
            .collect();
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Release);
        chance.join().map_err(|_| "the thread that changes drivers panicked")??;
        results.into_iter().try_fold(0, |sum, result| {
            Ok(sum + result.map_err(|_| "a thread that submits panicked")??)
        })
    });
    let (submitted, seconds) = (submitted?, begun.elapsed().as_secs_f64());

    let count = |counter: &AtomicU64| counter.load(Ordering::Acquire);
    let right = count(&counts.completed) - count(&counts.wrong);
    let settled = right + count(&counts.failed);
    let name = "6 requests back once and right, drivers coming and going";
    let claim = Claim::rate(name, "of 1", &[settled as f64 / submitted as f64], "all", &[1.0]);
    let mut table = Table::new(
        "6 drivers registered, unregistered and killed by chance under load",
        &["", "number"],
    );
    let rows = [
        ("submitted", submitted),
        ("completed", count(&counts.completed)),
        ("  of them with wrong bytes", count(&counts.wrong)),
        ("failed in a dying driver", count(&counts.failed)),
        ("lost", count(&counts.lost)),
        ("taken back from a driver and run elsewhere", count(&counts.moved)),
        ("drivers registered", count(&counts.registered)),
        ("drivers unregistered", count(&counts.unregistered)),
        ("drivers killed", count(&counts.killed)),
        ("milliseconds", (seconds * 1e3) as u64),
        ("requests a second", (submitted as f64 / seconds) as u64),
    ];
    table.rows.extend(rows.map(|(what, number)| vec![what.to_owned(), number.to_string()]));
    Ok(Findings { claims: vec![claim.demand(1.0)], tables: vec![table] })
}

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305, Algorithm::HmacSha256, Algorithm::Sha256];

/// A request, and what must come of it.
struct Model {
    session: Session,
    before: Operation,
    after: Vec<u8>,
}

/// Different sizes of sealing, opening, authenticating and hashing, done once by `software` alone.
fn models(engine: &Engine) -> Result<Vec<Model>, Error> {
    let software = Engine::builder().driver(keyway_drivers::software()).build();
    let mut models = Vec::new();
    for algorithm in ALGORITHMS {
        let key = [7; 32];
        let key = match algorithm.kind() {
            Kind::Hash => Key::None,
            _ => Key::Secret(&key[..algorithm.key_bytes().unwrap_or(32)]),
        };
        let session = engine.session(Parameters::new(algorithm, key))?;
        let model = software.session(Parameters::new(algorithm, key))?;
        for bytes in SIZES {
            let data: Vec<_> = (0..bytes).map(|at| (at * 31 + bytes) as u8).collect();
            let before = match algorithm.kind() {
                Kind::Aead => Operation::seal([1; NONCE_BYTES], [2; 5], data),
                Kind::Mac => Operation::mac(algorithm, data),
                _ => Operation::digest(algorithm, data),
            };
            let mut after = before.clone();
            after.with(|request| model.run(request))?;
            models.push(Model { session: session.clone(), before, after: outcome(&after) });
        }
    }
    Ok(models)
}

/// All that it put out.
fn outcome(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::Seal { data, tag, .. } => [&data[..], tag].concat(),
        Operation::Mac { out, .. } | Operation::Digest { out, .. } => out.clone(),
        _ => Vec::new(),
    }
}

/// Has so many requests done, and returns how many were submitted.
fn work(
    engine: &Engine,
    requests: u64,
    number: u64,
    counts: &Counts,
    progress: &ProgressBar,
) -> Result<u64, String> {
    let open = || models(engine).map_err(|error| error.to_string());
    let mut models = open()?;
    let mut random = Rng::with_seed(number);
    let mut queue = engine.queue(DEPTH);
    let (mut fresh, mut done) = (Vec::new(), Vec::new());
    // Whether the request of that number has come back; a number is used once.
    let mut back = vec![false; requests as usize];
    let mut next = 0;
    let mut patience = Instant::now();
    while next < requests || queue.in_flight() > 0 {
        while next < requests && fresh.len() < queue.capacity() {
            let model = &models[random.usize(..models.len())];
            fresh.push(Task::tagged(&model.session, model.before.clone(), next));
            next += 1;
            if next % SESSION_REQUESTS == 0 {
                models = open()?;
            }
        }
        queue.submit(&mut fresh, false);
        queue.wait(&mut done, Duration::from_millis(100));
        if !done.is_empty() {
            patience = Instant::now();
            progress.inc(done.len() as u64);
        } else if patience.elapsed() > PATIENCE {
            break;
        }
        for task in done.drain(..) {
            let twice = std::mem::replace(&mut back[task.user as usize], true);
            settle(&task, &models, twice, counts);
        }
    }
    let lost = back.iter().filter(|back| !**back).count() as u64;
    counts.lost.fetch_add(lost, Ordering::Relaxed);
    Ok(next)
}

fn settle(task: &Task, models: &[Model], twice: bool, counts: &Counts) {
    let (counter, wrong) = match task.result() {
        Ok(_) => {
            // There is one model of each algorithm and size.
            let is_its = |model: &&Model| {
                model.session.algorithm() == task.session().algorithm()
                    && model.before.bytes() == task.operation.bytes()
            };
            let model = models.iter().find(is_its);
            let wrong = model.is_none_or(|model| model.after != outcome(&task.operation));
            (&counts.completed, wrong)
        }
        // A driver that died while it worked in place.
        Err(Error::Driver { .. }) => (&counts.failed, false),
        Err(_) => (&counts.completed, true),
    };
    counter.fetch_add(1, Ordering::Relaxed);
    if wrong || twice {
        counts.wrong.fetch_add(1, Ordering::Relaxed);
    }
}

/// Registers, unregisters and kills drivers until it is over.
fn come_and_go(
    engine: &Engine,
    seed: u64,
    counts: &Counts,
    over: &AtomicBool,
) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let mut here: Vec<(String, Option<Kill>)> = Vec::new();
    while !over.load(Ordering::Acquire) {
        let some = random.usize(..here.len().max(1));
        match random.usize(..4) {
            0 | 1 if here.len() < DRIVERS_MAX => {
                let (driver, kill) = driver(&mut random)?;
                let name = driver.name().to_owned();
                let watched = Watched { driver, moved: counts.moved.clone() };
                // The name may be taken still.
                if engine.register(Arc::new(watched)).is_ok() {
                    here.push((name, kill));
                    counts.registered.fetch_add(1, Ordering::Relaxed);
                }
            }
            2 if !here.is_empty() => {
                let (name, _) = here.swap_remove(some);
                if engine.unregister(&name) {
                    counts.unregistered.fetch_add(1, Ordering::Relaxed);
                }
            }
            3 if !here.is_empty() => {
                if let (_, Some(kill)) = &here[some] {
                    kill();
                    here.swap_remove(some);
                    counts.killed.fetch_add(1, Ordering::Relaxed);
                }
            }
            _ => {}
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

type Kill = Box<dyn Fn()>;

/// One of four: software under another name, on the caller's processor or beside it, that delays
/// and shuffles; a pool of threads, which cannot be killed; a simulated card.
fn driver(random: &mut Rng) -> Result<(Arc<dyn Driver>, Option<Kill>), String> {
    let (software, kind) = (keyway_drivers::software(), random.usize(..4));
    let name = format!("{}-{}", ["pool", "card", "near", "far"][kind], random.u64(..NAMES));
    Ok(match kind {
        0 => {
            let pool = Pool { threads: 2, cores: None, depth: 16 };
            let made = keyway_drivers::pool(&name, software, pool);
            (made.map_err(|error| error.to_string())?, None)
        }
        1 => {
            let card = Card::broadcom_5820().also(&ALGORITHMS);
            let card = keyway_test_drivers::simulated(&name, card, software);
            (Arc::new(card.clone()), Some(Box::new(move || card.kill())))
        }
        _ => {
            let place = if kind == 2 { Place::Caller } else { Place::Device };
            let (seed, busy, delay, shuffle) = (random.u64(..), 0.2, 3, true);
            let plan = Plan { seed, busy, delay, shuffle, place, ..Plan::default() };
            let (driver, handle) = keyway_test_drivers::fault(&name, software, plan);
            (driver, Some(Box::new(move || handle.kill())))
        }
    })
}

/// Another driver, and how many requests it took and gave back.
struct Watched {
    driver: Arc<dyn Driver>,
    moved: Arc<AtomicU64>,
}

impl Driver for Watched {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn selection(&self) -> Selection {
        self.driver.selection()
    }

    fn place(&self) -> Place {
        self.driver.place()
    }

    fn parallel(&self) -> usize {
        self.driver.parallel()
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.driver.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        self.driver.open(steps)
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.driver.stream(algorithm)
    }

    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        let (queue, moved) = (self.driver.queue(waker)?, self.moved.clone());
        Some(Box::new(WatchedQueue { queue, moved }))
    }
}

struct WatchedQueue {
    queue: Box<dyn DriverQueue>,
    moved: Arc<AtomicU64>,
}

impl DriverQueue for WatchedQueue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> Flow {
        self.queue.submit(tasks, more)
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        let before = done.len();
        self.queue.poll(done);
        let found = done.iter().skip(before);
        let back = found.filter(|task| task.result() == Err(Error::Gone)).count();
        self.moved.fetch_add(back as u64, Ordering::Relaxed);
    }

    fn due(&self) -> Option<u64> {
        self.queue.due()
    }
}
