//! For drivers that have their requests run by other threads of the host: how work goes there and
//! comes back.
//!
//! ```text
//! ConsumerQueue::submit ─┐                               ┌─▶ CompletionQueue ─▶ ConsumerQueue::poll
//!                        ├─ jobs ─▶ WorkerQueue ─▶ thread ┤
//! WorkerSession::run ────┘                               └─▶ Reply ─▶ WorkerSession::run returns
//! ```
//!
//! A thread of the driver calls [`WorkerQueue::take`], [`Job::run`] and [`deliver`] in a loop. The
//! driver opens a [`WorkerSession`] for each of its sessions and a [`ConsumerQueue`] for each
//! queue. Everything here may be used from several threads at once.
//!
//! A forked child has none of the threads: there the driver is gone for all requests, and they go to another one.
//!
//! A task is dropped only where no lock is held: the last task of a session may drop the driver.

use crate::owned_request;
use keyway_engine::{DriverQueue, DriverSession, Error, Flow, Operation, Request, Task, Waker};
use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{hint, mem};
use zeroize::Zeroize;

/// Most jobs that a thread takes at a time. The first of them is delivered with the last.
pub(crate) const TAKE_MAX: usize = 8;

/// A session of a driver that has its requests run by other threads. A single request is copied
/// there and back, and its caller waits for it.
pub struct WorkerSession {
    inner: Arc<dyn DriverSession>,
    queue: Arc<WorkerQueue>,
}

impl WorkerSession {
    /// A session whose requests go through `queue`; `inner` runs them there.
    pub fn new(inner: Box<dyn DriverSession>, queue: &Arc<WorkerQueue>) -> Self {
        WorkerSession { inner: inner.into(), queue: queue.clone() }
    }
}

impl DriverSession for WorkerSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let reply = Arc::new(Reply::default());
        let single = Single {
            session: self.inner.clone(),
            operation: owned_request::own(request),
            result: Err(Error::Gone),
            reply: reply.clone(),
        };
        if self.queue.send(Job(Origin::Single(Box::new(single)))).is_err() {
            return Err(Error::Gone);
        }
        let mut single = reply.wait(self.queue.spin);
        let result = single.result;
        owned_request::copy_back(&mut single.operation, request, result);
        result
    }

    fn signature_bytes_max(&self) -> usize {
        self.inner.signature_bytes_max()
    }
}

/// A request that another thread runs.
pub struct Job(Origin);

/// Where a job comes from, and so where its result goes.
enum Origin {
    /// A consumer's queue.
    Queued { task: Box<Task>, completions: Arc<CompletionQueue> },
    /// A caller that waits for it.
    Single(Box<Single>),
}

/// The copy of a caller's request.
struct Single {
    session: Arc<dyn DriverSession>,
    operation: Operation,
    result: Result<usize, Error>,
    reply: Arc<Reply>,
}

impl Drop for Single {
    fn drop(&mut self) {
        owned_request::wipe(&mut self.operation);
    }
}

impl Job {
    /// Runs the request on this thread. If the session panics, the request is answered with
    /// [`Error::Driver`], which names `driver`.
    pub fn run(&mut self, driver: &'static str) {
        match &mut self.0 {
            // The consumer has dropped its queue: the result would not be read.
            Origin::Queued { completions, .. } if completions.abandoned.load(Ordering::Relaxed) => {
            }
            Origin::Queued { task, .. } => {
                task.begin();
                let result = match task.parts_as::<WorkerSession>() {
                    Some((session, operation)) => run(driver, &*session.inner, operation),
                    None => Err(Error::invalid_request("its session is another driver's")),
                };
                task.complete(result);
            }
            Origin::Single(single) => {
                single.result = run(driver, &*single.session, &mut single.operation);
            }
        }
    }

    /// Answers the request with [`Error::Gone`]: it was not run, and its data is as it was.
    pub fn give_back(&mut self) {
        match &mut self.0 {
            Origin::Queued { task, .. } => task.give_back(),
            Origin::Single(single) => single.result = Err(Error::Gone),
        }
    }
}

fn run(
    driver: &'static str,
    session: &dyn DriverSession,
    operation: &mut Operation,
) -> Result<usize, Error> {
    let done = catch_unwind(AssertUnwindSafe(|| operation.with(|request| session.run(request))));
    done.unwrap_or_else(|_| {
        // It may hold a plaintext whose tag was not checked.
        if let Operation::Open { data, .. } = operation {
            data.zeroize();
        }
        Err(Error::Driver { driver, why: "it panicked" })
    })
}

/// Hands jobs that were run or given back to those who wait for them. Neighbours of one queue go
/// together, with one wake-up.
pub fn deliver(jobs: &mut Vec<Job>) {
    let mut jobs = jobs.drain(..).peekable();
    while let Some(job) = jobs.next() {
        match job.0 {
            Origin::Single(single) => single.reply.clone().put(single),
            Origin::Queued { task, completions } => {
                let mut done = completions.lock();
                done.push(task);
                let same = |job: &Job| match &job.0 {
                    Origin::Queued { completions: other, .. } => Arc::ptr_eq(other, &completions),
                    Origin::Single(_) => false,
                };
                while let Some(Job(Origin::Queued { task, .. })) = jobs.next_if(same) {
                    done.push(task);
                }
                completions.any.store(true, Ordering::Release);
                drop(done);
                completions.waker.wake();
            }
        }
    }
}

/// Where a caller waits for its request.
#[derive(Default)]
struct Reply {
    /// Whether the request is done; read without the lock.
    ready: AtomicBool,
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Default)]
struct Slot {
    single: Option<Box<Single>>,
    /// Whether the caller sleeps. To wake one that spins would be a system call for nothing.
    sleeps: bool,
}

impl Reply {
    fn put(&self, done: Box<Single>) {
        let mut slot = self.lock();
        slot.single = Some(done);
        let sleeps = slot.sleeps;
        self.ready.store(true, Ordering::Release);
        drop(slot);
        if sleeps {
            self.filled.notify_one();
        }
    }

    fn wait(&self, spin: Duration) -> Box<Single> {
        spin_until(spin, || self.ready.load(Ordering::Acquire));
        let mut slot = self.lock();
        loop {
            if let Some(done) = slot.single.take() {
                return done;
            }
            slot.sleeps = true;
            slot = self.filled.wait(slot).unpoisoned();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unpoisoned()
    }
}

/// Where the finished tasks of one consumer's queue wait to be collected.
struct CompletionQueue {
    done: Mutex<Vec<Box<Task>>>,
    /// Whether there are any; read without the lock.
    any: AtomicBool,
    abandoned: AtomicBool,
    waker: Waker,
}

impl CompletionQueue {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<Task>>> {
        self.done.lock().unpoisoned()
    }
}

/// A consumer's side: its tasks go to the worker queue and come back through a completion queue.
pub struct ConsumerQueue {
    queue: Arc<WorkerQueue>,
    completions: Arc<CompletionQueue>,
}

impl ConsumerQueue {
    /// A consumer's queue in front of `queue`, which wakes `waker` when tasks are finished, or when
    /// tasks that were refused may be submitted again.
    pub fn new(queue: &Arc<WorkerQueue>, waker: &Waker) -> Self {
        let completions = CompletionQueue {
            done: Mutex::default(),
            any: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            waker: waker.clone(),
        };
        ConsumerQueue { queue: queue.clone(), completions: Arc::new(completions) }
    }
}

impl DriverQueue for ConsumerQueue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _more: bool) -> Flow {
        self.queue.submit(tasks, &self.completions)
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        if self.completions.any.load(Ordering::Acquire) {
            let mut there = self.completions.lock();
            self.completions.any.store(false, Ordering::Relaxed);
            done.append(&mut there);
        }
    }
}

impl Drop for ConsumerQueue {
    fn drop(&mut self) {
        self.completions.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Jobs that wait for a thread, first in, first out.
pub struct WorkerQueue {
    /// The process that the threads are in.
    process: Generation,
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// How many wait; read without the lock.
    count: AtomicUsize,
    /// Most tasks that wait.
    depth: usize,
    /// How many threads take from it.
    takers: usize,
    /// How long a thread without work spins before it sleeps.
    spin: Duration,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Threads that spin until there are jobs, and threads that sleep until there are some.
    spinning: usize,
    sleeping: usize,
    /// Queues whose tasks were refused; they are told when there is capacity.
    refused: Vec<Arc<CompletionQueue>>,
    closed: bool,
}

impl WorkerQueue {
    /// An empty queue for at most `depth` waiting tasks and for `takers` threads. A thread that
    /// finds no work, and the caller of a single request, spins for `spin` before it sleeps.
    pub fn new(depth: usize, takers: usize, spin: Duration) -> Arc<Self> {
        let (waiting, arrived, count) = (Mutex::default(), Condvar::new(), AtomicUsize::new(0));
        let process = Generation::current();
        Arc::new(WorkerQueue { process, waiting, arrived, count, depth, takers, spin })
    }

    /// Whether the threads are in this process, and not in one that it was forked from. If not, nothing here may be
    /// locked, and the threads cannot be waited for.
    pub fn has_threads(&self) -> bool {
        self.process.is_current()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unpoisoned()
    }

    /// Takes from the front of `tasks` as many as there is capacity for.
    fn submit(&self, tasks: &mut Vec<Box<Task>>, completions: &Arc<CompletionQueue>) -> Flow {
        if !self.has_threads() {
            return Flow::Gone;
        }
        let mut waiting = self.lock();
        if waiting.closed {
            return Flow::Gone;
        }
        let taken = tasks.len().min(self.depth.saturating_sub(waiting.jobs.len()));
        let job = |task| Job(Origin::Queued { task, completions: completions.clone() });
        waiting.jobs.extend(tasks.drain(..taken).map(job));
        let refused = !tasks.is_empty();
        if refused && !waiting.refused.iter().any(|other| Arc::ptr_eq(other, completions)) {
            waiting.refused.push(completions.clone());
        }
        self.wake(waiting, taken);
        if refused { Flow::Busy } else { Flow::Open }
    }

    /// Adds one job, also beyond the depth: its sender waits for it, or it was accepted before.
    ///
    /// # Errors
    /// The queue is closed, or its threads are those of a process that this one was forked from; the job
    /// comes back.
    pub fn send(&self, job: Job) -> Result<(), Job> {
        if !self.has_threads() {
            return Err(job);
        }
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(job);
        }
        waiting.jobs.push_back(job);
        self.wake(waiting, 1);
        Ok(())
    }

    /// Wakes the threads that `new` jobs need beyond those that spin.
    fn wake(&self, waiting: MutexGuard<'_, Waiting>, new: usize) {
        self.count.store(waiting.jobs.len(), Ordering::Release);
        let needed = new.saturating_sub(waiting.spinning).min(waiting.sleeping);
        drop(waiting);
        for _ in 0..needed {
            self.arrived.notify_one();
        }
    }

    /// Waits for jobs and moves this thread's share of them to the end of `jobs`, so that the other
    /// threads get theirs. Returns `false` once the queue is closed.
    pub fn take(&self, jobs: &mut Vec<Job>) -> bool {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return false;
            }
            if waiting.jobs.is_empty() && !self.spin.is_zero() {
                waiting.spinning += 1;
                drop(waiting);
                spin_until(self.spin, || self.count.load(Ordering::Acquire) > 0);
                waiting = self.lock();
                waiting.spinning -= 1;
            }
            if !waiting.jobs.is_empty() {
                break;
            }
            if !waiting.closed {
                waiting.sleeping += 1;
                waiting = self.arrived.wait(waiting).unpoisoned();
                waiting.sleeping -= 1;
            }
        }
        let share = waiting.jobs.len().div_ceil(self.takers).min(TAKE_MAX);
        jobs.extend(waiting.jobs.drain(..share));
        let refused = mem::take(&mut waiting.refused);
        // Fewer threads may have been spinning than the rest needs.
        let rest = waiting.jobs.len();
        self.wake(waiting, rest.min(1));
        for completions in refused {
            completions.waker.wake();
        }
        true
    }

    /// Closes the queue: it takes no more jobs, its threads end, and the waiting jobs come back.
    pub fn close(&self) -> Vec<Job> {
        let mut waiting = self.lock();
        waiting.closed = true;
        let left = mem::take(&mut waiting.jobs);
        let refused = mem::take(&mut waiting.refused);
        drop(waiting);
        self.arrived.notify_all();
        for completions in refused {
            completions.waker.wake();
        }
        left.into()
    }
}

fn spin_until(most: Duration, mut ready: impl FnMut() -> bool) {
    if most.is_zero() {
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < most {
        // Reading the clock costs as much as several checks.
        for _ in 0..16 {
            if ready() {
                return;
            }
            hint::spin_loop();
        }
    }
}

/// Waits until the threads have ended, except for the calling one: the last task of a driver's last
/// session drops the driver, and one of its own threads may do that.
pub fn join(threads: &mut Vec<JoinHandle<()>>) {
    let this = thread::current().id();
    for thread in threads.drain(..) {
        if thread.thread().id() != this {
            let _ = thread.join();
        }
    }
}
