//! Counts and times: for each driver and algorithm, and for each client.

use crate::costs::Costs;
use crate::{Algorithm, Error};
use keyway_meter::{Counter, Gauge, Histogram, counter, histogram};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// The name of steps: an algorithm's, or those of a chain joined by `+`.
pub(crate) fn label(steps: &[Algorithm]) -> String {
    let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
    names.join("+")
}

/// A part of the time that a timed request takes.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// From submission to the start of the work.
    Queue,
    /// From start to finish.
    Run,
    /// From the finish until the consumer has the task back.
    Deliver,
}

/// Meters and costs of one driver for one algorithm or chain.
pub(crate) struct Work {
    pub label: String,
    driver: String,
    pub operations: Counter,
    pub bytes: Counter,
    pub errors: Counter,
    by_error: ByError,
    pub busy: Counter,
    /// Passwords that were asked for without a derivation, and those of them that the driver knew
    /// to be right; made with the first of them.
    recalls: OnceLock<[Counter; 2]>,
    pub costs: Costs,
    pub shown: Shown,
    /// One for each stage, made when something is first recorded there.
    stages: [OnceLock<Histogram>; 3],
}

/// The figures of a driver for one algorithm.
#[derive(Default)]
pub(crate) struct Shown {
    pub predicted: OnceLock<Gauge>,
    pub last_failure: OnceLock<Gauge>,
    /// Errors when it was looked at last.
    pub errors: AtomicU64,
}

impl Work {
    pub fn new(driver: &str, steps: &[Algorithm]) -> Arc<Self> {
        let label = label(steps);
        let counter = |what| counter(&format!("engine.{driver}.{label}.{what}"));
        Arc::new(Work {
            operations: counter("operations"),
            bytes: counter("bytes"),
            errors: counter("errors"),
            by_error: ByError::default(),
            busy: counter("busy"),
            recalls: OnceLock::new(),
            costs: Costs::default(),
            shown: Shown::default(),
            stages: [const { OnceLock::new() }; 3],
            driver: driver.to_owned(),
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

    /// Counts one finished request that only asked what the driver remembers. It is no operation:
    /// those of a password algorithm are derivations.
    pub fn count_recall(&self, result: &Result<usize, Error>) {
        let counter = |what| counter(&format!("engine.{}.{}.{what}", self.driver, self.label));
        let [asked, known] = self.recalls.get_or_init(|| ["recalls", "recalled"].map(counter));
        asked.increment();
        match result {
            Ok(0) => {}
            Ok(_) => known.increment(),
            Err(error) => self.count_error(error),
        }
    }

    /// Records how long a stage took, in nanoseconds.
    #[cold]
    pub fn record(&self, stage: Stage, nanoseconds: u64) {
        let name = ["queue", "run", "deliver"][stage as usize];
        let new = || histogram(&format!("engine.{}.{}.{name}", self.driver, self.label));
        self.stages[stage as usize].get_or_init(new).record(nanoseconds);
    }

    /// Counts finished requests, but for their errors.
    #[inline]
    pub fn count_many(&self, operations: u64, bytes: u64) {
        self.operations.add(operations);
        self.bytes.add(bytes);
    }

    #[cold]
    pub fn count_error(&self, error: &Error) {
        self.errors.increment();
        self.by_error.count(error, || format!("engine.{}.{}", self.driver, self.label));
    }
}

/// A counter for each kind of error, made when the first of its kind is counted. A peer can cause
/// some kinds as often as it likes, so to count a later one costs no more than to count a success.
#[derive(Default)]
struct ByError([OnceLock<Counter>; Error::KINDS]);

impl ByError {
    fn count(&self, error: &Error, family: impl FnOnce() -> String) {
        let new = || counter(&format!("{}.error.{}", family(), error.name()));
        self.0[error.kind()].get_or_init(new).increment();
    }
}

/// The counts for one client.
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
