//! Operations of one size on one session, run by one thread.

use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::maker::Maker;
use crate::subject::Subject;
use keyway_engine::{Engine, Queue, Task};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The memory of an operation beside its text, in bytes; about.
const OPERATION_BYTES: usize = 256;
/// Most memory for operations, in bytes.
const MEMORY_BYTES_MAX: usize = 2 << 30;
/// After this time without any completion a queue is taken to have lost its tasks.
const COMPLETION_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a waiting thread looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many of each error.
pub type Errors = BTreeMap<&'static str, u64>;

/// How operations get to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// One after the other on the caller's stack.
    Direct,
    /// Through a queue, so many under way.
    Queue(usize),
}

impl Entry {
    /// How many are under way.
    pub fn in_flight(self) -> usize {
        match self {
            Entry::Direct => 1,
            Entry::Queue(number) => number,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Direct => f.write_str("direct"),
            Entry::Queue(number) => write!(f, "{number} in flight"),
        }
    }
}

/// Refuses what takes too much memory.
///
/// # Errors
/// If so many operations of these sizes do.
pub fn check_memory(threads: usize, in_flight: usize, sizes: &[usize]) -> Result<(), Error> {
    let largest = sizes.iter().max().copied().unwrap_or(0);
    // A queue has several operations for each that is under way, some with an output as long.
    let bytes = 16 * threads * in_flight * (largest + OPERATION_BYTES);
    if bytes <= MEMORY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::Memory {
        threads,
        in_flight,
        operation_bytes: largest,
        needed_mib: bytes >> 20,
        allowed_mib: MEMORY_BYTES_MAX >> 20,
    })
}

/// Operations of one size on one session, run by one thread.
pub struct Load {
    maker: Maker,
    /// `None` where there is none.
    queue: Option<Queue>,
    depth: usize,
    ready: Vec<Box<Task>>,
    /// Run, and not made ready again.
    finished: Vec<Box<Task>>,
    /// The errors so far.
    pub errors: Errors,
    interrupt: Interrupt,
}

impl Load {
    /// Operations are kept in about `bytes_kept` bytes, but there are some for each that is under
    /// way.
    pub fn new(
        engine: &Engine,
        subject: &Arc<Subject>,
        bytes: usize,
        entry: Entry,
        bytes_kept: usize,
        interrupt: &Interrupt,
    ) -> Load {
        let mut maker = Maker::new(subject, bytes);
        let depth = entry.in_flight();
        let (queue, often) = match entry {
            Entry::Direct => (None, 1),
            Entry::Queue(_) if subject.work.is_heavy() => (Some(engine.queue(depth)), 2),
            Entry::Queue(_) => (Some(engine.queue(depth)), 8),
        };
        let number =
            if subject.work.is_heavy() { 4 } else { bytes_kept / (bytes + OPERATION_BYTES) };
        let number = number.max(often * depth);
        let ready = (0..number).map(|_| Task::new(&subject.session, maker.operation())).collect();
        Load {
            maker,
            queue,
            depth,
            ready,
            finished: Vec::with_capacity(number),
            errors: Errors::new(),
            interrupt: interrupt.clone(),
        }
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.ready.len() + self.finished.len()
    }

    /// Runs so many operations, one of them several times if they are fewer, and returns how many
    /// were run, and how long it took.
    pub fn run(&mut self, operations: usize) -> (usize, Duration) {
        if self.maker.subject.work.is_repeatable() {
            return self.stretch(operations);
        }
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < operations && !self.interrupt.came() {
            self.renew();
            let (number, time) = self.stretch((operations - done).min(self.operations()));
            if number == 0 {
                break;
            }
            done += number;
            took += time;
        }
        (done, took)
    }

    /// Runs operations without a look at their first data.
    fn stretch(&mut self, operations: usize) -> (usize, Duration) {
        if self.ready.len() < operations {
            self.again();
        }
        let begun = Instant::now();
        let Some(mut queue) = self.queue.take() else {
            let took = self.directly(operations);
            return (operations, took);
        };
        let number = self.through(&mut queue, operations);
        self.queue = Some(queue);
        (number, begun.elapsed())
    }

    /// On the caller's stack.
    fn directly(&mut self, operations: usize) -> Duration {
        let begun = Instant::now();
        let mut left = operations;
        while left > 0 {
            for task in self.ready.iter_mut().take(left) {
                let session = &self.maker.subject.session;
                let result = task.operation.with(|request| session.run(request));
                if let Err(error) = result {
                    count(&mut self.errors, error.name());
                }
                task.complete(result);
            }
            left = left.saturating_sub(self.ready.len());
        }
        let took = begun.elapsed();
        self.finished.extend(self.ready.drain(..operations.min(self.ready.len())));
        took
    }

    fn through(&mut self, queue: &mut Queue, operations: usize) -> usize {
        let (mut submitted, mut collected) = (0, 0);
        let (mut batch, mut done) = (Vec::with_capacity(self.depth), Vec::new());
        let mut last = Instant::now();
        while collected < operations {
            let free = (self.depth - queue.in_flight()).min(operations - submitted);
            if self.ready.len() < free {
                self.again();
            }
            batch.extend(self.ready.drain(self.ready.len().saturating_sub(free)..));
            submitted += queue.submit(&mut batch, false);
            let found = queue.wait(&mut done, LOOK_EVERY);
            if found == 0 {
                if self.interrupt.came() {
                    break;
                }
                if last.elapsed() < COMPLETION_TIME_MAX && queue.in_flight() > 0 {
                    continue;
                }
                for _ in 0..queue.in_flight() {
                    count(&mut self.errors, LOST);
                }
                break;
            }
            last = Instant::now();
            collected += found;
            for task in &done {
                if let Err(error) = task.result() {
                    count(&mut self.errors, error.name());
                }
            }
            self.finished.append(&mut done);
        }
        collected
    }

    /// Makes the finished operations ready to run again.
    fn again(&mut self) {
        self.ready.append(&mut self.finished);
    }

    /// Makes what was run ready to be run again, and checked.
    pub fn renew(&mut self) {
        for task in &mut self.finished {
            self.maker.renew(&mut task.operation);
        }
        self.again();
    }

    /// Checks the results of what was run once since it was made ready.
    pub fn verify(&mut self) {
        let Maker { subject, plain, .. } = &self.maker;
        for task in &self.finished {
            if let Ok(result) = task.result()
                && !subject.is_right(&task.operation, result, plain)
            {
                count(&mut self.errors, WRONG);
            }
        }
    }
}

/// The name of an error that only the check sees.
pub const WRONG: &str = "wrong-result";
/// The name of what a queue never handed back.
pub const LOST: &str = "lost";

fn count(errors: &mut Errors, name: &'static str) {
    *errors.entry(name).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Work;
    use keyway_engine::{Algorithm, Demand};

    #[test]
    fn what_the_software_driver_does_is_right() {
        let engine = keyway_drivers::engine();
        let mut open = 0;
        for algorithm in Algorithm::ALL {
            let work = Work::from(*algorithm);
            // It has no RSA key, and what is legacy is off.
            let subject = Subject::open(&engine, &work, Demand::Named("software"), None);
            let Ok(subject) = subject.map(Arc::new) else { continue };
            open += 1;
            let (size, entry) = (work.fit(64), Entry::Direct);
            let mut load = Load::new(&engine, &subject, size, entry, 0, &Interrupt::default());
            assert_eq!(load.run(1).0, 1);
            load.verify();
            assert!(load.errors.is_empty(), "{algorithm}: {:?}", load.errors);
        }
        assert!(open > 50, "{open}");
    }

    #[test]
    fn signatures_are_verified_over_and_over() {
        let engine = keyway_drivers::engine();
        engine.register(keyway_test_drivers::null()).unwrap();
        let work = "ed25519".parse::<Work>().unwrap().verifying().unwrap();
        assert!("sha-256".parse::<Work>().unwrap().verifying().is_none());
        for (driver, wrong) in [("software", 0), ("null", 3)] {
            let subject = Subject::open(&engine, &work, Demand::Named(driver), None);
            let subject = Arc::new(subject.unwrap());
            let interrupt = Interrupt::default();
            let mut load = Load::new(&engine, &subject, 64, Entry::Direct, 4_096, &interrupt);
            assert_eq!(load.run(3).0, 3);
            load.verify();
            assert_eq!(load.errors.get(WRONG).copied().unwrap_or(0), wrong, "{driver}");
        }
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let engine = keyway_drivers::engine();
        engine.register(keyway_test_drivers::null()).unwrap();
        let interrupt = Interrupt::default();
        for name in ["aes-128-gcm", "aes-128-cbc+hmac-sha-1", "sha-256", "ed25519", "deflate"] {
            let work: Work = name.parse().unwrap();
            for (driver, wrong) in [("software", 0), ("null", 3)] {
                let subject = Subject::open(&engine, &work, Demand::Named(driver), None);
                // The null driver has no public keys that a signature could be verified with.
                let subject = Arc::new(subject.unwrap());
                let mut load = Load::new(&engine, &subject, 64, Entry::Queue(2), 4_096, &interrupt);
                assert_eq!(load.run(3).0, 3);
                load.verify();
                assert_eq!(load.errors.get(WRONG).copied().unwrap_or(0), wrong, "{name} {driver}");
            }
        }
    }
}
