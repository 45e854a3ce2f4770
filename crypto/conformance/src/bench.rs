//! Parts that all checks share: the drivers, how thoroughly to look, and how a check ends.

use keyway_engine::{Algorithm, Driver, Engine};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How thoroughly to look, and at what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where all that is random here comes from, so that what failed fails again.
    pub seed: u64,
    /// How often each size of random input is tried; at least 1.
    pub rounds: usize,
    /// These algorithms and the chains they occur in; `None` for all.
    pub only: Option<Vec<Algorithm>>,
    /// How many threads use the driver at once where threads are looked at; at least 1.
    pub threads: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { seed: 1, rounds: 2, only: None, threads: 4 }
    }
}

/// Why a check ended early.
pub enum Stop {
    Skip(String),
    Fail { why: String, case: String },
}

impl Stop {
    pub fn fail(case: impl Into<String>, why: impl Into<String>) -> Stop {
        Stop::Fail { why: why.into(), case: case.into() }
    }
}

/// The number of cases that were looked at.
pub type Checked = Result<usize, Stop>;

/// The state that all checks share.
pub struct Bench {
    pub driver: Arc<dyn Driver>,
    pub reference: Arc<dyn Driver>,
    /// Engines with one driver each.
    pub subject_engine: Engine,
    pub reference_engine: Engine,
    pub plan: Plan,
    /// Set once the driver kept a task: from then on its queues are not worth waiting for.
    pub loses: AtomicBool,
}

/// The message of a panic.
pub fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}
