//! The suite itself: drivers that do wrong in one way each have to be caught, by the check that is
//! there for it; one that does right, not.
#![allow(clippy::vec_box)]

use keyway_conformance::{Outcome, Plan, Report, run};
use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, Error, Flow, Place, Request, Step, Task, Waker,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The fault of a driver.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    Nothing,
    /// One bit of every second output.
    FlipsABit,
    /// The length of every output.
    Miscounts,
    /// Accepts what is not authentic.
    TakesBadTags,
    /// Refuses, but leaves the plaintext where it was.
    LeavesPlaintext,
    Panics,
    /// Opens sessions with any key.
    TakesAnyKey,
    /// A task of its queue never comes back.
    LosesATask,
    /// Changes a task's number.
    Renumbers,
    /// Is full for ever once it was full.
    StaysBusy,
}

struct Liar {
    lie: Lie,
    inner: Arc<dyn Driver>,
}

impl Driver for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn place(&self) -> Place {
        Place::Device
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let inner = match self.inner.open(steps) {
            Err(_) if self.lie == Lie::TakesAnyKey => None,
            inner => Some(inner?),
        };
        Ok(Box::new(State { lie: self.lie, inner, count: AtomicU64::new(0) }))
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(Backlog { lie: self.lie, tasks: Vec::new(), count: 0 }))
    }
}

struct State {
    lie: Lie,
    inner: Option<Box<dyn DriverSession>>,
    count: AtomicU64,
}

impl DriverSession for State {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let Some(inner) = &self.inner else { return Ok(0) };
        if self.lie == Lie::Panics && count % 3 == 2 {
            panic!("as planned");
        }
        if let (Lie::LeavesPlaintext, Request::Open { nonce, aad, data }) =
            (self.lie, &mut *request)
        {
            let mut copy = data.to_vec();
            let result = inner.run(&mut Request::Open { nonce, aad, data: &mut copy });
            // GCM is a stream cipher: sealing what was sealed, under the same nonce, opens it.
            let text = data.len() - 16;
            let (data, tag) = (&mut data[..text], &mut [0; 16]);
            inner.run(&mut Request::Seal { nonce, aad, data, tag })?;
            return result;
        }
        let result = inner.run(request);
        match self.lie {
            Lie::FlipsABit if count % 2 == 1 => {
                if let Request::Seal { data: out, .. }
                | Request::Open { data: out, .. }
                | Request::Mac { out, .. } = request
                    && let Some(byte) = out.first_mut()
                {
                    *byte ^= 1;
                }
                result
            }
            Lie::Miscounts => result.map(|bytes| bytes + 1),
            Lie::TakesBadTags if result == Err(Error::Authentication) => Ok(request.bytes()),
            _ => result,
        }
    }
}

/// Keeps up to 40 tasks and runs them when it is polled.
struct Backlog {
    lie: Lie,
    tasks: Vec<Box<Task>>,
    count: u64,
}

const CAPACITY: usize = 40;

impl DriverQueue for Backlog {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _: bool) -> Flow {
        let capacity = CAPACITY - self.tasks.len();
        let busy = tasks.len() > capacity;
        self.tasks.extend(tasks.drain(..tasks.len().min(capacity)));
        if busy { Flow::Busy } else { Flow::Open }
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        if self.lie == Lie::StaysBusy && self.tasks.len() == CAPACITY {
            return;
        }
        for mut task in self.tasks.drain(..) {
            self.count += 1;
            if self.lie == Lie::LosesATask && self.count % 64 == 63 {
                continue;
            }
            task.run();
            task.user ^= u64::from(self.lie == Lie::Renumbers && self.count % 16 == 9);
            done.push(task);
        }
    }
}

fn examine(lie: Lie, algorithm: Algorithm) -> Report {
    let plan = Plan { rounds: 1, only: Some(vec![algorithm]), ..Plan::default() };
    run(Arc::new(Liar { lie, inner: software() }), software(), &plan, &mut |_| {})
}

/// The names of the checks that the liar failed.
fn failed(lie: Lie, algorithm: Algorithm) -> Vec<&'static str> {
    examine(lie, algorithm).failures().map(|check| check.name).collect()
}

const GCM: Algorithm = Algorithm::Aes128Gcm;

#[test]
fn an_honest_driver_passes_every_check() {
    let report = examine(Lie::Nothing, GCM);
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:?}");
    let passed = |name| {
        let is = |outcome: &Outcome| matches!(outcome, Outcome::Passed { cases } if *cases > 0);
        report.checks.iter().any(|check| check.name == name && is(&check.outcome))
    };
    for name in
        ["vectors", "cross", "misuse", "entry-points", "busy", "threads", "unregister", "drop"]
    {
        assert!(passed(name), "{name}");
    }
}

#[test]
fn progress_is_told_before_each_check() {
    let plan = Plan { rounds: 1, only: Some(vec![Algorithm::Sha256]), ..Plan::default() };
    let mut told = Vec::new();
    let report = run(software(), software(), &plan, &mut |progress| {
        assert_eq!(progress.done, told.len());
        told.push((progress.check, progress.work.to_owned(), progress.total));
    });
    assert_eq!(told.len(), report.checks.len());
    assert!(told.iter().all(|(_, _, total)| *total == report.checks.len()));
    assert!(report.checks.iter().zip(&told).all(|(check, told)| check.name == told.0));
}

#[test]
fn wrong_bytes_are_caught() {
    for algorithm in [GCM, Algorithm::HmacSha256] {
        let failed = failed(Lie::FlipsABit, algorithm);
        assert!(failed.contains(&"cross") && failed.contains(&"entry-points"), "{failed:?}");
    }
}

#[test]
fn wrong_lengths_are_caught() {
    let failed = failed(Lie::Miscounts, GCM);
    assert!(failed.contains(&"cross"), "{failed:?}");
}

#[test]
fn a_driver_that_takes_bad_tags_is_caught() {
    let failed = failed(Lie::TakesBadTags, GCM);
    assert!(failed.contains(&"cross"), "{failed:?}");
}

#[test]
fn plaintext_left_after_a_refusal_is_caught() {
    let failed = failed(Lie::LeavesPlaintext, GCM);
    assert!(failed.contains(&"cross"), "{failed:?}");
}

#[test]
fn panics_are_caught_and_the_suite_goes_on() {
    let report = examine(Lie::Panics, Algorithm::HmacSha256);
    let said = |check: &&keyway_conformance::Check| check.to_string().contains("as planned");
    assert!(report.failures().filter(said).count() >= 2);
    let last = report.checks.last().unwrap();
    assert_eq!(last.name, "drop");
}

#[test]
fn a_driver_that_takes_any_key_is_caught() {
    let failed = failed(Lie::TakesAnyKey, GCM);
    assert_eq!(failed, ["misuse"]);
}

#[test]
fn a_lost_task_is_caught_and_waited_for_once() {
    let report = examine(Lie::LosesATask, GCM);
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("never came back"), "{failures:?}");
}

#[test]
fn a_changed_number_is_caught() {
    let failed = failed(Lie::Renumbers, GCM);
    assert!(failed.contains(&"entry-points"), "{failed:?}");
}

#[test]
fn a_queue_that_stays_busy_is_caught() {
    let failed = failed(Lie::StaysBusy, GCM);
    assert_eq!(failed.len(), 1, "{failed:?}");
}
