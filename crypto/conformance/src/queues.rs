//! How work gets to the driver and back: sessions and queues, full ones, many threads, drivers that
//! leave, queues that are dropped.

use crate::bench::{Bench, Checked, Stop, panicked};
use crate::jobs::{Job, Pair, mixture};
use crate::work::Work;
use fastrand::Rng;
use keyway_engine::{
    Class, Demand, Driver, DriverQueue, DriverSession, DriverStream, Engine, Error, Flow, Kind,
    Linear, Operation, Parameters, Place, Queue, Selection, Session, Step, Task, Waker,
};
use keyway_lock::Unpoisoned;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long nothing may happen before a task counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most tasks offered to fill a driver's queue.
const FILL_MAX: usize = 4096;

type Tasks = Vec<Box<Task>>;

/// So many tasks on a session, each with its job's index in the low half of its number.
fn tasks(session: &Session, jobs: &[Job], count: usize, rng: &mut Rng) -> Tasks {
    let mark = u64::from(rng.u32(..)) << 32;
    let task = |index: usize| {
        let job = index % jobs.len();
        let serial = mark ^ (index as u64) << 44;
        Task::tagged(session, jobs[job].operation.clone(), serial ^ job as u64)
    };
    (0..count).map(task).collect()
}

fn job_of<'a>(jobs: &'a [Job], task: &Task) -> Result<&'a Job, Stop> {
    let known = jobs.get((task.user & 0xffff_ffff) as usize);
    known.ok_or_else(|| Stop::fail(format!("task {:x}", task.user), "it has another number now"))
}

/// Each of these came back once, with what its job expects.
fn settle(jobs: &[Job], users: &[u64], done: &[Box<Task>]) -> Result<(), Stop> {
    let mut back: Vec<_> = done.iter().map(|task| task.user).collect();
    all_once(&back, users.len()).map_err(|why| Stop::fail("a queue", why))?;
    let mut sent = users.to_vec();
    sent.sort_unstable();
    back.sort_unstable();
    if sent != back {
        return Err(Stop::fail("a queue", "other tasks came back than went in"));
    }
    done.iter().try_for_each(|task| job_of(jobs, task)?.judge(&task.operation, task.result()))
}

fn users(tasks: &[Box<Task>]) -> Vec<u64> {
    tasks.iter().map(|task| task.user).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}

impl Bench {
    /// After a task was lost there is no use in waiting for others.
    fn loses_nothing(&self) -> Result<(), Stop> {
        if self.loses.load(Ordering::Relaxed) {
            return Err(Stop::Skip("the driver has kept a task already".into()));
        }
        Ok(())
    }

    /// Calls `step` until it says that all is there; fails when nothing has changed for long.
    /// `step` answers how much is missing.
    fn until(&self, case: &str, mut step: impl FnMut() -> usize) -> Result<(), Stop> {
        let (mut least, mut since) = (usize::MAX, Instant::now());
        loop {
            let missing = step();
            if missing == 0 {
                return Ok(());
            }
            if missing < least {
                (least, since) = (missing, Instant::now());
            } else if since.elapsed() > PATIENCE {
                self.loses.store(true, Ordering::Relaxed);
                return Err(Stop::fail(case, format!("{missing} tasks never came back")));
            }
        }
    }

    /// Waits until so many tasks are in `done`.
    fn collect(
        &self,
        queue: &mut Queue,
        done: &mut Tasks,
        expected: usize,
        case: &str,
    ) -> Result<(), Stop> {
        self.until(case, || {
            if done.len() < expected {
                queue.wait(done, Duration::from_millis(100));
            }
            expected.saturating_sub(done.len())
        })?;
        // A task that comes twice may come late.
        queue.poll(done);
        Ok(())
    }
}

/// Submits them all to a queue that has room: in one piece, or in several that announce each other.
fn submit(queue: &mut Queue, mut tasks: Tasks, more: bool) -> Result<(), Stop> {
    let whole = tasks.len();
    let mut accepted = 0;
    if more {
        let mut front: Tasks = tasks.drain(..whole / 2).collect();
        for task in front.drain(..) {
            accepted += usize::from(queue.submit_one(task, true).is_ok());
        }
    }
    accepted += queue.submit(&mut tasks, false);
    if accepted == whole && tasks.is_empty() {
        return Ok(());
    }
    Err(Stop::fail(format!("{whole} tasks"), format!("a queue with room took {accepted}")))
}

/// Runs equal work through a session and through queues, in bursts, collected and delivered.
pub(crate) fn entry_points(bench: &Bench, work: &Work) -> Checked {
    bench.loses_nothing()?;
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let jobs = mixture(bench, &pair, work, &mut rng)?;
    let mut cases = 0;
    for job in &jobs {
        let mut operation = job.operation.clone();
        let result = operation.with(|request| pair.subject.run(request));
        job.judge(&operation, result)?;
        cases += 1;
    }
    let bursts: &[usize] = if work.is_heavy() { &[1, 9] } else { &[1, 3, 32, 70] };
    for (burst, more) in bursts.iter().flat_map(|burst| [(*burst, false), (*burst, true)]) {
        let case = format!("a burst of {burst}, more: {more}");
        let mut queue = bench.subject_engine.queue(70);
        let sent = tasks(&pair.subject, &jobs, burst, &mut rng);
        let (numbers, mut done) = (users(&sent), Tasks::new());
        submit(&mut queue, sent, more)?;
        bench.collect(&mut queue, &mut done, burst, &case)?;
        settle(&jobs, &numbers, &done)?;
        // The same boxes once more, delivered.
        let delivered = Arc::new(Mutex::new(Tasks::new()));
        let sink = delivered.clone();
        queue.on_completion(move |task| lock(&sink).push(task));
        for task in &mut done {
            task.operation = job_of(&jobs, task)?.operation.clone();
        }
        submit(&mut queue, done, more)?;
        bench.until(&format!("{case}, delivered"), || {
            if queue.in_flight() > 0 {
                queue.wait(&mut Tasks::new(), Duration::from_millis(100));
            }
            queue.in_flight()
        })?;
        settle(&jobs, &numbers, &lock(&delivered))?;
        cases += 2 * burst;
    }
    cases += promised_more(bench, &pair, &jobs, &mut rng)?;
    cases += partial(bench, &pair, &jobs, &mut rng)?;
    Ok(cases + ordered(bench, work, &mut rng)?)
}

/// A consumer who announced more, and then had nothing but a task that the engine refuses.
fn promised_more(bench: &Bench, pair: &Pair, jobs: &[Job], rng: &mut Rng) -> Checked {
    let mut queue = bench.subject_engine.queue(8);
    let mut sent = tasks(&pair.subject, jobs, 3, rng);
    let (numbers, mut done) = (users(&sent), Tasks::new());
    queue.submit(&mut sent, true);
    bench.collect(&mut queue, &mut done, 3, "more was announced and did not come")?;
    settle(jobs, &numbers, &done)?;
    Ok(3)
}

/// A queue of 5 that is offered 12 takes the first 5.
fn partial(bench: &Bench, pair: &Pair, jobs: &[Job], rng: &mut Rng) -> Checked {
    let case = "12 tasks offered to a queue of 5";
    let mut queue = bench.subject_engine.queue(5);
    let mut offered = tasks(&pair.subject, jobs, 12, rng);
    let numbers = users(&offered);
    let accepted = queue.submit(&mut offered, false);
    if accepted != 5 || users(&offered) != numbers[5..] {
        return Err(Stop::fail(case, format!("it took {accepted}, or not the first")));
    }
    let refused = queue.submit(&mut offered, false) == 0 && queue.capacity() == 0;
    if !refused || users(&offered) != numbers[5..] {
        return Err(Stop::fail(case, "a full queue took more"));
    }
    let mut done = Tasks::new();
    bench.collect(&mut queue, &mut done, 5, case)?;
    settle(jobs, &numbers[..5], &done)?;
    Ok(12)
}

/// Results of an ordered session leave in the order in which they went in, whatever their sizes.
fn ordered(bench: &Bench, work: &Work, rng: &mut Rng) -> Checked {
    let demand = Demand::Named(bench.driver.name());
    let open = |parameters: Parameters<'_>| bench.subject_engine.session(parameters.ordered());
    let pair = bench.pair_on(work, rng, demand, &open)?;
    let jobs = mixture(bench, &pair, work, rng)?;
    let burst = if work.is_heavy() { 6 } else { 70 };
    let sent = tasks(&pair.subject, &jobs, burst, rng);
    let (numbers, mut done) = (users(&sent), Tasks::new());
    let mut queue = bench.subject_engine.queue(burst);
    submit(&mut queue, sent, true)?;
    bench.collect(&mut queue, &mut done, burst, "an ordered session")?;
    settle(&jobs, &numbers, &done)?;
    if users(&done) != numbers {
        return Err(Stop::fail("an ordered session", "its results came out of order"));
    }
    Ok(burst)
}

/// Fills the driver's own queue until it says busy, and empties it.
pub(crate) fn busy(bench: &Bench, work: &Work) -> Checked {
    bench.loses_nothing()?;
    let waker = Waker::new();
    let Some(mut queue) = bench.driver.queue(&waker) else {
        return Err(Stop::Skip("it computes on the caller's stack".into()));
    };
    if !bench.driver.supports(&work.steps) {
        return Err(Stop::Skip("it does not do this chain whole".into()));
    }
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let algorithm = pair.subject.algorithm();
    let mut jobs = mixture(bench, &pair, work, &mut rng)?;
    // The engine keeps slow work and what is malformed from the driver's queue.
    jobs.retain_mut(|job| {
        let malformed = matches!(job.expect, crate::jobs::Expect::Refused { .. });
        !malformed && job.operation.class(algorithm) == Class::Fast
    });
    if jobs.is_empty() {
        return Err(Stop::Skip("nothing of it is of the fast class".into()));
    }
    let cheap = match work.algorithm().map(|algorithm| algorithm.kind()) {
        Some(Kind::Aead | Kind::Packet | Kind::Mask | Kind::Cipher | Kind::Hash | Kind::Mac) => {
            true
        }
        Some(_) => false,
        None => work.steps.len() == 2,
    };
    let most = if cheap { FILL_MAX } else { 96 };
    let (mut numbers, mut done) = (Vec::new(), Tasks::new());
    while numbers.len() < most {
        let mut offered = tasks(&pair.subject, &jobs, 32, &mut rng);
        let all = users(&offered);
        let flow = queue.submit(&mut offered, false);
        let taken = all.len() - offered.len();
        numbers.extend(&all[..taken]);
        if users(&offered) != all[taken..] {
            return Err(Stop::fail("filling", "what it did not take is not as it was"));
        }
        match flow {
            Flow::Open if taken == all.len() => {}
            Flow::Open => return Err(Stop::fail("filling", "it left tasks and said open")),
            Flow::Busy => break,
            Flow::Gone => return Err(Stop::fail("filling", "it said that it is gone")),
        }
    }
    let mut drain = |queue: &mut Box<dyn DriverQueue>, numbers: &[u64]| {
        bench.until("emptying a full queue", || {
            queue.poll(&mut done);
            thread::yield_now();
            numbers.len().saturating_sub(done.len())
        })?;
        queue.poll(&mut done);
        settle(&jobs, numbers, &done)?;
        done.clear();
        Ok(())
    };
    drain(&mut queue, &numbers)?;
    let mut again = tasks(&pair.subject, &jobs, 1, &mut rng);
    let last = users(&again);
    queue.submit(&mut again, false);
    if !again.is_empty() {
        return Err(Stop::fail("an emptied queue", "it takes nothing any more"));
    }
    drain(&mut queue, &last)?;
    Ok(numbers.len() + 1)
}

/// Several threads, a queue each, one session.
pub(crate) fn threads(bench: &Bench, work: &Work) -> Checked {
    bench.loses_nothing()?;
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let jobs = mixture(bench, &pair, work, &mut rng)?;
    let (burst, rounds) = if work.is_heavy() { (3, 1) } else { (32, 3) };
    let one = |mut rng: Rng| {
        let mut queue = bench.subject_engine.queue(burst);
        for round in 0..rounds {
            let sent = tasks(&pair.subject, &jobs, burst, &mut rng);
            let (numbers, mut done) = (users(&sent), Tasks::new());
            submit(&mut queue, sent, round % 2 == 1)?;
            let job = &jobs[round % jobs.len()];
            let mut operation = job.operation.clone();
            let result = operation.with(|request| pair.subject.run(request));
            job.judge(&operation, result)?;
            bench.collect(&mut queue, &mut done, burst, "one of many threads")?;
            settle(&jobs, &numbers, &done)?;
        }
        Ok(rounds * (burst + 1))
    };
    let count = bench.plan.threads.max(1);
    let one = &one;
    thread::scope(|scope| {
        let started: Vec<_> =
            (0..count).map(|_| rng.fork()).map(|rng| scope.spawn(move || one(rng))).collect();
        // All are joined before the first failure is told.
        let failed = |panic: Box<dyn std::any::Any + Send>| {
            Err(Stop::fail("one of many threads", panicked(&*panic)))
        };
        let results: Vec<Checked> =
            started.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect();
        results.into_iter().sum()
    })
}

/// A driver under another name, and one that the scheduler may choose.
struct Alias {
    name: &'static str,
    driver: Arc<dyn Driver>,
}

impl Driver for Alias {
    fn name(&self) -> &str {
        self.name
    }

    fn selection(&self) -> Selection {
        Selection::Any
    }

    fn place(&self) -> Place {
        self.driver.place()
    }

    fn parallel(&self) -> usize {
        self.driver.parallel()
    }

    fn supports(&self, steps: &[keyway_engine::Algorithm]) -> bool {
        self.driver.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        self.driver.open(steps)
    }

    fn stream(&self, algorithm: keyway_engine::Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.driver.stream(algorithm)
    }

    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        self.driver.queue(waker)
    }
}

const SUBJECT: &str = "conformance-subject";
const STANDBY: &str = "conformance-standby";

/// The driver leaves and returns, whole and by algorithm, while work is under way; a second one
/// stands by.
pub(crate) fn unregister(bench: &Bench, work: &Work) -> Checked {
    bench.loses_nothing()?;
    let [subject, standby] = [(SUBJECT, &bench.driver), (STANDBY, &bench.reference)]
        .map(|(name, driver)| Arc::new(Alias { name, driver: driver.clone() }));
    let engine = Engine::builder().legacy(true).slow_pool(2, 128).build();
    let register = |driver: &Arc<Alias>, nanoseconds| {
        let failed = |error: Error| Stop::fail("registering", error.to_string());
        engine.register(driver.clone()).map_err(failed)?;
        let cost = Linear { fixed: nanoseconds, per_byte: 0.0 };
        // So that the choice is clear, and nothing is measured.
        engine.set_cost(driver.name, &work.steps, cost, cost).map_err(failed)?;
        for step in &work.steps {
            engine.set_cost(driver.name, &[*step], cost, cost).map_err(failed)?;
        }
        Ok(())
    };
    register(&subject, 0.0)?;
    register(&standby, 1e6)?;
    let mut rng = bench.rng(work);
    let open = |parameters: Parameters<'_>| engine.session(parameters);
    let pair = bench.pair_on(work, &mut rng, Demand::Any, &open)?;
    let jobs = mixture(bench, &pair, work, &mut rng)?;
    // A generated key goes with its driver.
    let mortal = pair.private && !pair.shared;
    let right = |job: &Job, done: &Operation, result: Result<usize, Error>| match result {
        Err(Error::Gone) if mortal => Ok(()),
        result => job.judge(done, result),
    };
    let burst = if work.is_heavy() { 3 } else { 20 };
    let over = AtomicBool::new(false);
    let beside = || {
        let mut cases = 0;
        while cases == 0 || !over.load(Ordering::Relaxed) {
            let job = &jobs[cases % jobs.len()];
            let mut operation = job.operation.clone();
            let result = operation.with(|request| pair.subject.run(request));
            right(job, &operation, result)?;
            cases += 1;
        }
        Ok(cases)
    };
    let mut leave_and_return = || {
        let mut queue = engine.queue(6 * burst);
        let (mut numbers, mut done) = (Vec::new(), Tasks::new());
        for phase in 0..6 {
            let sent = tasks(&pair.subject, &jobs, burst, &mut rng);
            numbers.extend(users(&sent));
            submit(&mut queue, sent, phase % 2 == 1)?;
            let step = work.steps[0];
            let known = match phase {
                0 => engine.unregister(SUBJECT),
                1 => register(&subject, 0.0).map(|()| true)?,
                2 => engine.unregister_algorithm(SUBJECT, step),
                3 => engine.register_algorithm(SUBJECT, step),
                4 => engine.unregister(STANDBY),
                _ => true,
            };
            if !known {
                return Err(Stop::fail("a registered driver", "the engine does not know it"));
            }
        }
        let expected = numbers.len();
        bench.collect(&mut queue, &mut done, expected, "drivers came and went")?;
        all_once(&users(&done), expected)
            .map_err(|why| Stop::fail("drivers came and went", why))?;
        for task in &done {
            right(job_of(&jobs, task)?, &task.operation, task.result())?;
        }
        Ok(expected)
    };
    thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let result = leave_and_return();
        over.store(true, Ordering::Relaxed);
        let other = beside.join();
        let other = other.unwrap_or_else(|panic| Err(Stop::fail("beside", panicked(&*panic))));
        Ok(result? + other?)
    })
}

/// A queue that is dropped with work in flight does not hang, and hands over what it accepted.
pub(crate) fn dropped(bench: &Bench, work: &Work) -> Checked {
    bench.loses_nothing()?;
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let jobs = mixture(bench, &pair, work, &mut rng)?;
    let burst = if work.is_heavy() { 6 } else { 70 };
    for delivers in [true, false] {
        let case = format!("dropping a queue with {burst} in flight, delivering: {delivers}");
        let mut queue = bench.subject_engine.queue(burst);
        let delivered = Arc::new(Mutex::new(Tasks::new()));
        if delivers {
            let sink = delivered.clone();
            queue.on_completion(move |task| lock(&sink).push(task));
        }
        let sent = tasks(&pair.subject, &jobs, burst, &mut rng);
        let numbers = users(&sent);
        submit(&mut queue, sent, false)?;
        let (gone, dropped) = mpsc::channel();
        // Not joined: if it hangs, it does so for good.
        thread::spawn(move || {
            drop(queue);
            let _ = gone.send(());
        });
        if dropped.recv_timeout(3 * PATIENCE).is_err() {
            bench.loses.store(true, Ordering::Relaxed);
            return Err(Stop::fail(case, "it hangs"));
        }
        if !delivers {
            continue;
        }
        let back = lock(&delivered);
        all_once(&users(&back), numbers.len()).map_err(|why| Stop::fail(case, why))?;
        for task in back.iter().filter(|task| task.result() != Err(Error::Closed)) {
            job_of(&jobs, task)?.judge(&task.operation, task.result())?;
        }
    }
    Ok(2 * burst)
}

/// Names that were not seen before, for panicking and lost work to be told apart.
fn all_once(users: &[u64], expected: usize) -> Result<(), String> {
    let distinct: HashSet<_> = users.iter().collect();
    if users.len() != expected || distinct.len() != expected {
        return Err(format!(
            "of {expected} tasks {} came back, {} different ones",
            users.len(),
            distinct.len()
        ));
    }
    Ok(())
}
