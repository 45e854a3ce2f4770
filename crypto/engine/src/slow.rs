//! The slow class: a bounded pool for work that takes milliseconds by design.
//!
//! Submitting never waits. A full queue answers *busy*, and what was accepted is completed exactly
//! once: with its result, or with [`Error::Closed`] when the pool shuts down first. The shutdown
//! waits for work that has begun, and no longer than [`SLOW_CLOSE`](limits::SLOW_CLOSE).
//!
//! A forked child has a pool of its own. Work that its parent had submitted is done in the parent alone.

use crate::process::PerProcess;
use crate::wipe::{self, Depth};
use crate::{Error, Task, limits};
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use zeroize::Zeroizing;

/// The function that gets a slow request's result, on the pool's thread; it should return at once.
pub type Done = Box<dyn FnOnce(Result<Zeroizing<Vec<u8>>, Error>) + Send>;

pub(crate) struct SlowPool {
    threads: usize,
    depth: usize,
    pool: PerProcess<Pool>,
}

struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// A worker has ended.
    ended: Condvar,
    depth: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    closed: bool,
    /// Workers that have ended.
    ended: usize,
}

/// A task, and what is done with it afterwards.
struct Job {
    task: Box<Task>,
    deliver: Deliver,
}

/// The function that gets a finished task, on the pool's thread.
pub(crate) type Deliver = Box<dyn FnOnce(Box<Task>) + Send>;

impl SlowPool {
    /// `threads` workers and room for `depth` requests that wait for one of them.
    pub fn new(threads: usize, depth: usize) -> Self {
        SlowPool { threads, depth, pool: PerProcess::new(Pool::new(threads, depth)) }
    }

    /// How many requests it works on at a time.
    pub fn threads(&self) -> usize {
        self.own().workers.len()
    }

    /// Whether a task that finds it full may wait for a place.
    pub fn may_empty(&self) -> bool {
        self.depth > 0 && self.threads() > 0
    }

    /// The task comes back if it was not accepted.
    pub fn submit(&self, task: Box<Task>, deliver: Deliver) -> Result<(), (Box<Task>, Error)> {
        self.own().submit(task, deliver)
    }

    fn own(&self) -> &Pool {
        self.pool.get(|| Pool::new(self.threads, self.depth))
    }
}

impl Pool {
    fn new(threads: usize, depth: usize) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            ended: Condvar::new(),
            depth,
        });
        let spawn = |index| {
            let shared = shared.clone();
            // A pool with fewer threads still works; with none, `submit` says busy.
            thread::Builder::new().name(format!("slow-{index}")).spawn(move || shared.work()).ok()
        };
        let workers = (0..threads).filter_map(spawn).collect();
        Pool { shared, workers }
    }

    fn submit(&self, task: Box<Task>, deliver: Deliver) -> Result<(), (Box<Task>, Error)> {
        let mut queue = self.shared.lock();
        if queue.closed {
            return Err((task, Error::Closed));
        }
        if queue.waiting.len() >= self.shared.depth || self.workers.is_empty() {
            return Err((task, Error::Busy));
        }
        queue.waiting.push_back(Job { task, deliver });
        drop(queue);
        self.shared.arrived.notify_one();
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unpoisoned()
    }

    fn work(&self) {
        while let Some(Job { mut task, deliver }) = self.next() {
            task.begin();
            // Passwords and private keys are worked on here, and a worker's stack lives long.
            let result = wipe::after(Depth::Deep, || {
                catch_unwind(AssertUnwindSafe(|| {
                    let Task { session, operation, .. } = &mut *task;
                    operation.with(|request| session.run(request))
                }))
            });
            task.complete(result.unwrap_or(Err(PANICKED)));
            // A panic of the consumer's must not end the worker.
            let _ = catch_unwind(AssertUnwindSafe(|| deliver(task)));
        }
        self.lock().ended += 1;
        self.ended.notify_all();
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        while !queue.closed {
            if let Some(job) = queue.waiting.pop_front() {
                return Some(job);
            }
            queue = self.arrived.wait(queue).unpoisoned();
        }
        None
    }
}

const PANICKED: Error = Error::Driver { driver: "in the slow class", why: "it panicked" };

impl Drop for Pool {
    fn drop(&mut self) {
        let abandoned = {
            let mut queue = self.shared.lock();
            queue.closed = true;
            std::mem::take(&mut queue.waiting)
        };
        self.shared.arrived.notify_all();
        for Job { mut task, deliver } in abandoned {
            task.complete(Err(Error::Closed));
            // After a panic of one consumer, the others still get their answers.
            let _ = catch_unwind(AssertUnwindSafe(|| deliver(task)));
        }
        // The last handle may be dropped by a completion, on a worker's own thread.
        let this = thread::current().id();
        let others = self.workers.iter().filter(|worker| worker.thread().id() != this).count();
        let queue = self.shared.lock();
        // A derivation may take many seconds more, and only its completion waits for it.
        let waited = self
            .shared
            .ended
            .wait_timeout_while(queue, limits::SLOW_CLOSE, |queue| queue.ended < others);
        let all_ended = waited.is_ok_and(|(_, waited)| !waited.timed_out());
        for worker in self.workers.drain(..) {
            if all_ended && worker.thread().id() != this {
                let _ = worker.join();
            }
        }
    }
}
