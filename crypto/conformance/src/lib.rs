//! Checks that every driver has to pass.
//!
//! [`run`] takes a driver and a reference to hold it against, and makes a list of checks: published
//! vectors, every operation against the reference, both entry points (sessions and queues), full
//! queues, threads, drivers that come and go under load, misuse, queues dropped with work in them.
//! Each check is made once for every algorithm, and for every chain, that the driver says it does.
//! This code serves the tests of this repository and an operator who wants to know whether a
//! device is to be trusted.
//!
//! These may not enter: a driver, and anything that knows one by name.
#![forbid(unsafe_code)]
// The queues take boxes, so that a task may go round without being moved.
#![allow(clippy::vec_box)]

mod bench;
mod cross;
mod jobs;
mod misuse;
mod queues;
mod vectors;
mod work;
mod wycheproofs;

pub use bench::Plan;

use bench::{Bench, Checked, Stop, panicked};
use keyway_engine::{Algorithm, Driver, Engine, Kind};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use work::Work;

/// Where the suite is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The check that begins.
    pub check: &'static str,
    /// The algorithm or chain it is made for, as in [`Check::work`].
    pub work: &'a str,
    /// Checks made so far.
    pub done: usize,
    /// Checks in all.
    pub total: usize,
}

/// The findings of all checks.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| matches!(check.outcome, Outcome::Failed { .. }))
    }
}

/// One check of one algorithm or chain.
#[derive(Clone, Debug)]
pub struct Check {
    /// The name of the check: `vectors`, `cross`, `entry-points`, ….
    pub name: &'static str,
    /// The algorithm's name, or those of a chain joined by `+`.
    pub work: String,
    /// The algorithm; `None` for a chain.
    pub algorithm: Option<Algorithm>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, in nanoseconds.
    pub nanoseconds: u64,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.name, self.work)?;
        match &self.outcome {
            Outcome::Passed { cases } => write!(f, "passed ({cases} cases)"),
            Outcome::Skipped { why } => write!(f, "skipped: {why}"),
            Outcome::Failed { why, case } => write!(f, "FAILED: {why} ({case})"),
        }
    }
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The driver did right.
    Passed {
        /// In so many cases.
        cases: usize,
    },
    /// There was nothing to look at.
    Skipped {
        /// Why.
        why: String,
    },
    /// The driver did wrong.
    Failed {
        /// The driver's behaviour.
        why: String,
        /// With what, so that it can be tried again.
        case: String,
    },
}

type Examine = fn(&Bench, &Work) -> Checked;

/// The checks, in order.
const CHECKS: [(&str, Examine); 9] = [
    ("vectors", vectors::check),
    ("wycheproof", wycheproofs::check),
    ("cross", cross::check),
    ("misuse", misuse::check),
    ("entry-points", queues::entry_points),
    ("busy", queues::busy),
    ("threads", queues::threads),
    ("unregister", queues::unregister),
    ("drop", queues::dropped),
];

/// Examines a driver. `reference` is one whose results are taken to be right; it may be the same.
/// `progress` is called before each check. Takes seconds to a minute for a driver of all
/// algorithms; uses `plan.threads` threads.
///
/// A driver that panics fails the check; what it prints goes wherever the panic hook sends it.
pub fn run(
    driver: Arc<dyn Driver>,
    reference: Arc<dyn Driver>,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    let engine = |driver: &Arc<dyn Driver>| {
        Engine::builder().legacy(true).slow_pool(2, 128).driver(driver.clone()).build()
    };
    let bench = Bench {
        subject_engine: engine(&driver),
        reference_engine: engine(&reference),
        driver,
        reference,
        plan: plan.clone(),
        loses: AtomicBool::new(false),
    };
    let works = bench.works();
    let total = CHECKS.len() * works.len();
    let mut checks = Vec::with_capacity(total);
    for (name, examine) in CHECKS {
        for work in &works {
            let label = work.label();
            progress(&Progress { check: name, work: &label, done: checks.len(), total });
            let begun = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| examine(&bench, work)));
            let outcome = match result {
                Ok(Ok(cases)) => Outcome::Passed { cases },
                Ok(Err(Stop::Skip(why))) => Outcome::Skipped { why },
                Ok(Err(Stop::Fail { why, case })) => Outcome::Failed { why, case },
                Err(panic) => Outcome::Failed { why: panicked(&*panic), case: label.clone() },
            };
            let nanoseconds = begun.elapsed().as_nanos() as u64;
            let algorithm = work.algorithm();
            checks.push(Check { name, work: label, algorithm, outcome, nanoseconds });
        }
    }
    Report { checks }
}

impl Bench {
    /// Everything the driver does and the plan asks for.
    fn works(&self) -> Vec<Work> {
        let asked = |steps: &[Algorithm]| {
            let only = self.plan.only.as_ref();
            only.is_none_or(|only| steps.iter().any(|step| only.contains(step)))
        };
        let does = |step: &Algorithm| self.driver.supports(&[*step]);
        let singles = Algorithm::ALL.iter().filter(|algorithm| does(algorithm));
        let mut works: Vec<_> = singles.map(|algorithm| Work::new(&[*algorithm])).collect();
        let chains = chains().into_iter();
        // A chain that the driver does not do whole, the engine runs on it step by step.
        let can = |steps: &Vec<Algorithm>| self.driver.supports(steps) || steps.iter().all(does);
        works.extend(chains.filter(can).map(|steps| Work::new(&steps)));
        works.retain(|work| asked(&work.steps));
        works
    }
}

/// The chains of the papers: cipher and MAC in both orders, and with compression before them.
fn chains() -> Vec<Vec<Algorithm>> {
    let of =
        |kind| Algorithm::ALL.iter().copied().filter(move |algorithm| algorithm.kind() == kind);
    let xts = |cipher: &Algorithm| matches!(cipher, Algorithm::Aes128Xts | Algorithm::Aes256Xts);
    let mut chains = Vec::new();
    for cipher in of(Kind::Cipher).filter(|cipher| !xts(cipher)) {
        for mac in of(Kind::Mac) {
            chains.extend([vec![cipher, mac], vec![mac, cipher]]);
        }
    }
    for compression in of(Kind::Compression) {
        // The output of compression is seldom whole blocks.
        for cipher in [Algorithm::Aes128Ctr, Algorithm::Aes256Ctr] {
            chains.push(vec![compression, cipher, Algorithm::HmacSha256]);
        }
    }
    chains
}
