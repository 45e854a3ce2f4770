//! The engine: drivers, a scheduler and the slow pool behind one cheap handle.

use crate::costs::Linear;
use crate::driver::Whole;
use crate::executor::{ExecutorThread, Pending, Refused};
use crate::metrics::Work;
use crate::process::PerProcess;
use crate::registered::RegisteredDriver;
use crate::registry::{Hooks, Registry};
use crate::slow::SlowPool;
use crate::{
    Algorithm, Class, Demand, Derivation, Done, Driver, Error, Key, Operation, Parameters, Place,
    Queue, Request, Selection, Session, Stream, Task, Waker, calibrate, chain, limits,
};
use std::fmt;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// The handle a consumer keeps. Clones share everything; all methods may be called by any thread.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) registry: Arc<Registry>,
    /// Before the pool, which it hands tasks to: fields are dropped in this order.
    executor: PerProcess<OnceLock<ExecutorThread>>,
    slow: Arc<SlowPool>,
    /// Sessions without a key, one an algorithm, opened when first used.
    keyless: [OnceLock<Session>; Algorithm::COUNT],
}

/// The parts of an engine.
pub struct Builder {
    drivers: Vec<Arc<dyn Driver>>,
    slow_threads: usize,
    slow_depth: usize,
    legacy: bool,
    sample: u32,
}

/// One request in so many is timed, unless the builder is told otherwise.
const SAMPLE: u32 = 1024;

const HOOKS: Hooks = Hooks { open_chain: chain::open, calibrate: calibrate::once };

impl Builder {
    /// Registers a driver. Among drivers of the same cost the first registered is preferred.
    #[must_use]
    pub fn driver(mut self, driver: Arc<dyn Driver>) -> Self {
        self.drivers.push(driver);
        self
    }

    /// Sets the slow class's threads, and how many requests may wait for one. Default: a thread a
    /// processor and 32 waiting for each, so that the last in line waits about half a second for
    /// Argon2id.
    #[must_use]
    pub fn slow_pool(mut self, threads: usize, depth: usize) -> Self {
        (self.slow_threads, self.slow_depth) = (threads, depth);
        self
    }

    /// Allows legacy algorithms ([`Algorithm::is_legacy`]). Default: no.
    #[must_use]
    pub fn legacy(mut self, allowed: bool) -> Self {
        self.legacy = allowed;
        self
    }

    /// Times one request in so many, rounded up to a power of two; 0 for none. Default: 1,024.
    #[must_use]
    pub fn sample(mut self, every: u32) -> Self {
        self.sample = rounded(every);
        self
    }

    /// Starts the pool and hands out the engine. The second of two drivers of one name is left out,
    /// and so are those beyond [`DRIVERS_MAX`](limits::DRIVERS_MAX).
    pub fn build(self) -> Engine {
        let registry = Arc::new(Registry::new(self.legacy, self.sample, HOOKS));
        for driver in self.drivers {
            let _ = registry.register(Arc::new(Whole(driver)));
        }
        Engine {
            inner: Arc::new(Inner {
                registry,
                executor: PerProcess::new(OnceLock::new()),
                slow: Arc::new(SlowPool::new(self.slow_threads, self.slow_depth)),
                keyless: [const { OnceLock::new() }; Algorithm::COUNT],
            }),
        }
    }
}

fn rounded(every: u32) -> u32 {
    if every == 0 { 0 } else { every.checked_next_power_of_two().unwrap_or(1 << 31) }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers = self.inner.registry.drivers();
        let names: Vec<_> = drivers.iter().map(|driver| &*driver.name).collect();
        f.debug_struct("Engine").field("drivers", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.drivers.iter().map(|driver| driver.name()).collect();
        f.debug_struct("Builder").field("drivers", &names).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine with no driver yet.
    pub fn builder() -> Builder {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Builder {
            drivers: Vec::new(),
            slow_threads: threads,
            slow_depth: 32 * threads,
            legacy: false,
            sample: SAMPLE,
        }
    }

    /// Registers a driver, at any time; sessions that are open use it from their next request on.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if a driver of that name is there, or as many as an engine holds.
    pub fn register(&self, driver: Arc<dyn Driver>) -> Result<(), Error> {
        self.inner.registry.register(Arc::new(Whole(driver)))
    }

    /// Unregisters a driver, at any time, and says whether there was one of that name. It finishes
    /// the work that it has accepted; sessions go elsewhere with their next request. The driver is
    /// dropped with the last session that could have used it, the engine's own among them.
    pub fn unregister(&self, driver: &str) -> bool {
        self.inner.registry.unregister(driver)
    }

    /// Unregisters one algorithm of a driver; says whether there is such a driver.
    pub fn unregister_algorithm(&self, driver: &str, algorithm: Algorithm) -> bool {
        self.inner.registry.set_algorithm(driver, algorithm, false)
    }

    /// Registers an algorithm of a driver again; says whether there is such a driver.
    pub fn register_algorithm(&self, driver: &str, algorithm: Algorithm) -> bool {
        self.inner.registry.set_algorithm(driver, algorithm, true)
    }

    /// Times one request in so many from now on, rounded up to a power of two; 0 for none.
    pub fn set_sample(&self, every: u32) {
        self.inner.registry.set_sample(rounded(every));
    }

    /// Opens a session.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if the key does not fit, [`Error::Unsupported`] or
    /// [`Error::NoSuchDriver`] if no driver can do it, [`Error::Disabled`] for a legacy algorithm.
    pub fn session(&self, parameters: Parameters<'_>) -> Result<Session, Error> {
        Session::open(&self.inner.registry, parameters)
    }

    /// A queue for the thread that will own it, with room for so many requests (1 to
    /// [`QUEUE_DEPTH_MAX`](limits::QUEUE_DEPTH_MAX)) that were accepted and not handed back.
    pub fn queue(&self, depth: usize) -> Queue {
        self.queue_with(depth, Waker::new())
    }

    /// A queue for a thread that waits for other things too, and so sleeps elsewhere: `call` wakes
    /// it there, from any thread. [`Queue::arm`] asks for a call.
    pub fn queue_calling(&self, depth: usize, call: impl Fn() + Send + Sync + 'static) -> Queue {
        self.queue_with(depth, Waker::calling(call))
    }

    fn queue_with(&self, depth: usize, waker: Waker) -> Queue {
        let depth = depth.clamp(1, limits::QUEUE_DEPTH_MAX);
        Queue::on(&self.inner.registry, &self.inner.slow, depth, waker)
    }

    /// Starts a hash that is fed in pieces.
    pub fn stream(&self, algorithm: Algorithm) -> Result<Stream, Error> {
        Stream::open(&self.inner.registry, algorithm)
    }

    /// Runs a request that needs no key: a digest, random bytes, a verification, an encapsulation,
    /// or a derivation on the caller's own time.
    pub fn run(&self, algorithm: Algorithm, request: &mut Request<'_>) -> Result<usize, Error> {
        self.keyless(algorithm)?.run(request)
    }

    /// Hashes the parts one after the other into exactly [`Algorithm::output_bytes`].
    pub fn digest(
        &self,
        algorithm: Algorithm,
        data: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), Error> {
        self.run(algorithm, &mut Request::Digest { data, out }).map(drop)
    }

    /// Fills `out` with random bytes fit for keys.
    pub fn random(&self, out: &mut [u8]) -> Result<(), Error> {
        self.run(Algorithm::Random, &mut Request::Random { out }).map(drop)
    }

    /// How many requests the slow class works on at a time. A consumer that submits no more than
    /// that decides the order of its requests itself.
    pub fn slow_threads(&self) -> usize {
        self.inner.slow.threads()
    }

    /// Submits slow work. If this returns `Ok`, `done` is called exactly once, on another thread
    /// (or on the one that drops the engine).
    ///
    /// # Errors
    /// [`Error::Busy`] if the bounded queue is full, [`Error::InvalidRequest`] if the derivation
    /// is not one or breaks a limit; `done` is then dropped uncalled.
    pub fn submit(&self, derivation: Derivation, done: Done) -> Result<(), Error> {
        derivation.check()?;
        let Derivation { algorithm, cost, password, salt, output_bytes } = derivation;
        let session = self.keyless(algorithm)?;
        let out = Zeroizing::new(vec![0; output_bytes]);
        let task = Task::new(session, Operation::Derive { cost, password, salt, out });
        let deliver = move |task: Box<Task>| {
            let Task { operation, result, .. } = *task;
            done(match (result, operation) {
                (Ok(_), Operation::Derive { out, .. }) => Ok(out),
                (Ok(_), _) => Err(Error::Closed),
                (Err(error), _) => Err(error),
            });
        };
        self.submit_task(task, deliver)
    }

    /// Submits any task of the slow class. If this returns `Ok`, `done` is called exactly once, on
    /// another thread (or on the one that drops the engine), with the task and its result; it
    /// should return at once.
    ///
    /// # Errors
    /// [`Error::Busy`] if the bounded queue is full; task and `done` are then dropped.
    pub fn submit_task(
        &self,
        task: Box<Task>,
        done: impl FnOnce(Box<Task>) + Send + 'static,
    ) -> Result<(), Error> {
        self.inner.slow.submit(task, Box::new(done)).map_err(|(task, error)| {
            if error == Error::Busy {
                task.session.inner().count_busy();
            }
            error
        })
    }

    /// Starts a task and returns a future for any async executor. Work that the scheduler puts on
    /// the caller's processor is done before this returns. It waits for nothing else.
    ///
    /// ```
    /// # async fn run(engine: &keyway_engine::Engine) -> Result<(), keyway_engine::Error> {
    /// use keyway_engine::{Algorithm, Key, Operation, Parameters, Task};
    ///
    /// let session = engine.session(Parameters::new(Algorithm::Sha256, Key::None))?;
    /// let digest = Operation::digest(Algorithm::Sha256, b"abc");
    /// let task = engine.start(Task::new(&session, digest))?.await;
    /// task.result()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The task with [`Error::Busy`] if as many as
    /// [`EXECUTOR_IN_FLIGHT_MAX`](limits::EXECUTOR_IN_FLIGHT_MAX) are under way or the slow pool is
    /// full.
    pub fn start(&self, mut task: Box<Task>) -> Result<Pending, Refused> {
        let (pending, slot) = Pending::new();
        let algorithm = task.session.algorithm();
        if task.operation.class(algorithm) == Class::Slow {
            let deliver = Box::new(move |task| slot.fill(task));
            return match self.inner.slow.submit(task, deliver) {
                Ok(()) => Ok(pending),
                Err((task, error)) => {
                    task.session.inner().count_busy();
                    Err(Refused { task, error })
                }
            };
        }
        let Task { session, operation, .. } = &*task;
        if session.inner().placement.runs_here(operation.bytes()) {
            let admitted = task.admit();
            let Task { session, operation, .. } = &mut *task;
            let result = match admitted {
                Ok(()) => operation.with(|request| session.inner().run_admitted(request, false)),
                Err(error) => {
                    session.inner().count_refusal(operation.bytes(), error);
                    Err(error)
                }
            };
            task.complete(result);
            slot.fill(task);
            return Ok(pending);
        }
        task.slot = Some(slot);
        let executor = || ExecutorThread::new(&self.inner.registry, &self.inner.slow);
        self.inner.executor.get(OnceLock::new).get_or_init(executor).submit(task)?;
        Ok(pending)
    }

    /// Whether a session for these steps finds a driver, or, for a chain, one for each step.
    pub fn offers(&self, steps: &[Algorithm]) -> bool {
        let registry = &self.inner.registry;
        let does = |steps: &[Algorithm]| !registry.fitting(steps, Demand::Any, false).0.is_empty();
        steps.iter().all(|step| registry.allows(*step).is_ok())
            && (does(steps) || steps.len() > 1 && steps.iter().all(|step| does(&[*step])))
    }

    /// Whether the other is a clone of this one.
    pub fn is_same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The registered drivers, in order of registration.
    pub fn drivers(&self) -> Vec<DriverReport> {
        self.inner.registry.drivers().iter().map(|driver| DriverReport::new(driver)).collect()
    }

    /// The most requests that drivers beside the caller had at one time and had not finished, all
    /// drivers together. A driver's own mark is in its [`DriverReport`].
    pub fn pending_most(&self) -> u64 {
        self.inner.registry.pending.most()
    }

    /// The known costs of every driver: of all that was in use where there was a choice, and with
    /// `all` of everything that can be measured, which takes a moment.
    pub fn costs(&self, all: bool) -> Vec<CostReport> {
        let drivers = self.inner.registry.drivers();
        if all {
            for driver in &drivers {
                for algorithm in Algorithm::ALL {
                    if driver.supports(&[*algorithm]) {
                        calibrate::to_show(&self.inner.registry, driver, *algorithm);
                    }
                }
            }
        }
        let report = |driver: &Arc<RegisteredDriver>| {
            let works = driver.works();
            let known = works.into_iter().filter(|work| work.costs.is_calibrated());
            known.map(|work| CostReport::new(driver, &work)).collect::<Vec<_>>()
        };
        drivers.iter().chain([&self.inner.registry.chain]).flat_map(report).collect()
    }

    /// Sets by hand what a driver's work is taken to cost; measurements no longer change it.
    ///
    /// # Errors
    /// [`Error::NoSuchDriver`] if no driver of that name is registered.
    pub fn set_cost(
        &self,
        driver: &str,
        steps: &[Algorithm],
        single: Linear,
        batched: Linear,
    ) -> Result<(), Error> {
        let driver = self.inner.registry.named(driver).ok_or(Error::NoSuchDriver)?;
        driver.work(steps).costs.fix(single, batched);
        Ok(())
    }

    fn keyless(&self, algorithm: Algorithm) -> Result<&Session, Error> {
        let cell = &self.inner.keyless[algorithm as usize];
        if let Some(session) = cell.get() {
            return Ok(session);
        }
        let session = self.session(Parameters::new(algorithm, Key::None))?;
        Ok(cell.get_or_init(|| session))
    }
}

/// One registered driver's account of itself.
#[derive(Clone, Debug)]
pub struct DriverReport {
    /// Its name.
    pub name: String,
    /// Where it computes.
    pub place: Place,
    /// Whether it is chosen without being named.
    pub selection: Selection,
    /// Whether it has queues of its own.
    pub queued: bool,
    /// Requests it works on at a time.
    pub parallel: u64,
    /// The algorithms it does, without those that were unregistered.
    pub algorithms: Vec<Algorithm>,
    /// Nanoseconds of work that it is reckoned to have before it.
    pub backlog: u64,
    /// The most requests that it had at one time and had not finished, where each queue counts with
    /// the most that it had there since it was last empty; 0 where the driver works on the caller's
    /// own time.
    pub pending_most: u64,
}

impl DriverReport {
    fn new(driver: &RegisteredDriver) -> Self {
        let does = |algorithm: &Algorithm| driver.supports(&[*algorithm]);
        DriverReport {
            name: driver.name.clone(),
            place: driver.place,
            selection: driver.selection,
            queued: driver.queued,
            parallel: driver.parallel,
            algorithms: Algorithm::ALL.iter().copied().filter(does).collect(),
            backlog: driver.backlog.load(std::sync::atomic::Ordering::Relaxed),
            pending_most: driver.pending.most(),
        }
    }
}

/// The estimated cost of one driver's work.
#[derive(Clone, Debug)]
pub struct CostReport {
    /// The driver.
    pub driver: String,
    /// The algorithm, or the steps of a chain joined by `+`.
    pub work: String,
    /// A single request, until its result is there.
    pub single: Linear,
    /// One request of a batch.
    pub batched: Linear,
    /// By what factor later measurements differ, for each size class: up to 64 bytes, each next
    /// one four times as long, the last without end. First of single requests, then of batches.
    pub corrections: [Vec<f32>; 2],
}

impl CostReport {
    fn new(driver: &RegisteredDriver, work: &Work) -> Self {
        let [(single, first), (batched, second)] = work.costs.show();
        CostReport {
            driver: driver.name.clone(),
            work: work.label.clone(),
            single,
            batched,
            corrections: [first.to_vec(), second.to_vec()],
        }
    }
}
