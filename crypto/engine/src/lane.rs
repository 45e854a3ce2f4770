//! A registered driver, as the engine sees it.

use crate::costs::Costs;
use crate::{Algorithm, Driver, Error, Place, Selection};
use keyway_meter::{Counter, Histogram, counter, histogram};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The name of the lane that runs chains step by step on other lanes.
pub(crate) const CHAIN: &str = "chain";

/// One registration of a driver. A driver that is registered again gets a new lane.
pub(crate) struct Lane {
    pub name: String,
    /// `None` for the engine's own runner of chains.
    pub driver: Option<Arc<dyn Driver>>,
    pub place: Place,
    pub selection: Selection,
    /// Whether it has queues of its own; otherwise it computes on the caller's stack.
    pub queued: bool,
    /// Whether the work takes the caller's own time, queue or not.
    pub on_caller: bool,
    pub parallel: u64,
    alive: AtomicBool,
    /// Algorithms that were unregistered from it.
    withdrawn: RwLock<Vec<Algorithm>>,
    /// Predicted nanoseconds of what it has accepted and not finished, from all queues.
    pub backlog: AtomicU64,
    singles: [OnceLock<Arc<Work>>; Algorithm::COUNT],
    chains: Mutex<HashMap<Vec<Algorithm>, Arc<Work>>>,
}

impl Lane {
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        let queued = driver.queue(&crate::Waker::new()).is_some();
        let (name, place) = (driver.name().to_owned(), driver.place());
        let lane = Self::bare(name, Some(driver.clone()), place, driver.selection());
        let parallel = driver.parallel().max(1) as u64;
        Lane { queued, on_caller: place == Place::Caller, parallel, ..lane }
    }

    pub fn chain() -> Self {
        Self::bare(CHAIN.to_owned(), None, Place::Caller, Selection::Any)
    }

    fn bare(
        name: String,
        driver: Option<Arc<dyn Driver>>,
        place: Place,
        selection: Selection,
    ) -> Self {
        Lane {
            name,
            driver,
            place,
            selection,
            queued: false,
            on_caller: true,
            parallel: 1,
            alive: AtomicBool::new(true),
            withdrawn: RwLock::default(),
            backlog: AtomicU64::new(0),
            singles: [const { OnceLock::new() }; Algorithm::COUNT],
            chains: Mutex::default(),
        }
    }

    /// Whether it is registered and its driver was not seen to die.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub fn end(&self) {
        self.alive.store(false, Ordering::Release);
    }

    pub fn withdraw(&self, algorithm: Algorithm) {
        let mut withdrawn = self.withdrawn.write().unwrap_or_else(PoisonError::into_inner);
        if !withdrawn.contains(&algorithm) {
            withdrawn.push(algorithm);
        }
    }

    pub fn restore(&self, algorithm: Algorithm) {
        let mut withdrawn = self.withdrawn.write().unwrap_or_else(PoisonError::into_inner);
        withdrawn.retain(|gone| *gone != algorithm);
    }

    pub fn supports(&self, steps: &[Algorithm]) -> bool {
        let Some(driver) = &self.driver else { return false };
        // The lock last: most that are asked have nothing to do with it.
        self.is_alive() && driver.supports(steps) && !self.has_withdrawn(steps)
    }

    fn has_withdrawn(&self, steps: &[Algorithm]) -> bool {
        let withdrawn = self.withdrawn.read().unwrap_or_else(PoisonError::into_inner);
        steps.iter().any(|step| withdrawn.contains(step))
    }

    /// Meters and costs of these steps here, made when they are first used.
    pub fn work(&self, steps: &[Algorithm]) -> Arc<Work> {
        match steps {
            [step] => {
                self.singles[*step as usize].get_or_init(|| Work::new(&self.name, steps)).clone()
            }
            _ => {
                let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
                let new = || Work::new(&self.name, steps);
                chains.entry(steps.to_vec()).or_insert_with(new).clone()
            }
        }
    }

    /// Those works that were ever used, with their steps' name.
    pub fn works(&self) -> Vec<Arc<Work>> {
        let chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let singles = self.singles.iter().filter_map(|cell| cell.get().cloned());
        singles.chain(chains.values().cloned()).collect()
    }

    /// Reckons with so many nanoseconds more.
    pub fn load(&self, nanoseconds: u64) {
        self.backlog.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The same nanoseconds, when the work is done.
    pub fn unload(&self, nanoseconds: u64) {
        self.backlog.fetch_sub(nanoseconds, Ordering::Relaxed);
    }

    /// Nanoseconds that a newcomer waits for those before it.
    pub fn wait(&self) -> f64 {
        self.backlog.load(Ordering::Relaxed) as f64 / self.parallel as f64
    }
}

/// The name of steps: an algorithm's, or those of a chain joined by `+`.
pub(crate) fn label(steps: &[Algorithm]) -> String {
    let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
    names.join("+")
}

/// A stretch of a timed request's way.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// From submission to the start of the work.
    Queue,
    /// From start to finish.
    Run,
    /// From the finish until the consumer has it.
    Deliver,
}

/// What is known of one lane and one algorithm or chain.
pub(crate) struct Work {
    pub label: String,
    lane: String,
    pub operations: Counter,
    pub bytes: Counter,
    pub errors: Counter,
    by_error: ByError,
    pub busy: Counter,
    pub costs: Costs,
    /// One for each stage, made when something is first recorded there.
    stages: [OnceLock<Histogram>; 3],
}

impl Work {
    fn new(lane: &str, steps: &[Algorithm]) -> Arc<Self> {
        let label = label(steps);
        let counter = |what| counter(&format!("engine.{lane}.{label}.{what}"));
        Arc::new(Work {
            operations: counter("operations"),
            bytes: counter("bytes"),
            errors: counter("errors"),
            by_error: ByError::default(),
            busy: counter("busy"),
            costs: Costs::default(),
            stages: [const { OnceLock::new() }; 3],
            lane: lane.to_owned(),
            label,
        })
    }

    /// Counts one finished request.
    #[inline]
    pub fn count<T>(&self, bytes: usize, result: &Result<T, Error>) {
        self.operations.increment();
        self.bytes.add(bytes as u64);
        if let Err(error) = result {
            self.count_error(error);
        }
    }

    /// Records how long a stage took, in nanoseconds.
    #[cold]
    pub fn record(&self, stage: Stage, nanoseconds: u64) {
        let name = ["queue", "run", "deliver"][stage as usize];
        let new = || histogram(&format!("engine.{}.{}.{name}", self.lane, self.label));
        self.stages[stage as usize].get_or_init(new).record(nanoseconds);
    }

    /// Takes back that one was counted.
    pub fn uncount(&self, bytes: usize) {
        self.operations.add(u64::MAX);
        self.bytes.add((bytes as u64).wrapping_neg());
    }

    #[cold]
    pub fn count_error(&self, error: &Error) {
        self.errors.increment();
        self.by_error.count(error, || format!("engine.{}.{}", self.lane, self.label));
    }
}

/// A counter for each kind of error, made when the first of its kind is counted. Peers choose how
/// often some kinds come, so that later ones cost no more than what succeeds.
#[derive(Default)]
struct ByError([OnceLock<Counter>; Error::KINDS]);

impl ByError {
    fn count(&self, error: &Error, family: impl FnOnce() -> String) {
        let new = || counter(&format!("{}.error.{}", family(), error.name()));
        self.0[error.kind()].get_or_init(new).increment();
    }
}

/// What is counted for one client.
pub(crate) struct Client {
    name: String,
    operations: Counter,
    bytes: Counter,
    by_error: ByError,
}

impl Client {
    pub fn new(name: &str) -> Self {
        let counter = |what| counter(&format!("client.{name}.{what}"));
        Client {
            operations: counter("operations"),
            bytes: counter("bytes"),
            by_error: ByError::default(),
            name: name.to_owned(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn count(&self, bytes: usize, result: &Result<usize, Error>) {
        self.operations.increment();
        self.bytes.add(bytes as u64);
        if let Err(error) = result {
            self.by_error.count(error, || format!("client.{}", self.name));
        }
    }
}
