//! How work goes to other threads of the host and comes back.
//!
//! ```text
//! End::submit ─┐                                        ┌─▶ Back ── waker ──▶ End::poll
//!              ├─ jobs ─▶ Line ─▶ Line::take ─ Job::run ┤
//! State::run ──┘                                        └─▶ Reply ─▶ State::run returns
//! ```
//!
//! A task is dropped only where no lock is held: with the last of its session's tasks the driver
//! itself may go.

use crate::owned;
use keyway_engine::{DriverQueue, DriverSession, Error, Flow, Operation, Request, Task, Waker};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{hint, mem};
use zeroize::Zeroize;

/// Most jobs that a thread takes at a time. The first of them is delivered with the last.
pub(crate) const TAKE_MAX: usize = 8;

/// A session of a driver that has its requests run by other threads.
pub(crate) struct State {
    inner: Arc<dyn DriverSession>,
    line: Arc<Line>,
}

impl State {
    pub fn new(inner: Box<dyn DriverSession>, line: &Arc<Line>) -> Self {
        State { inner: inner.into(), line: line.clone() }
    }
}

impl DriverSession for State {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let reply = Arc::new(Reply::default());
        let lone = Lone {
            state: self.inner.clone(),
            operation: owned::own(request),
            result: Err(Error::Gone),
            reply: reply.clone(),
        };
        if self.line.send(Job::Lone(Box::new(lone))).is_err() {
            return Err(Error::Gone);
        }
        let mut lone = reply.wait(self.line.spin);
        let result = lone.result;
        owned::give(&mut lone.operation, request, result);
        result
    }

    fn signature_bytes_max(&self) -> usize {
        self.inner.signature_bytes_max()
    }
}

/// Something to be done by another thread.
pub(crate) enum Job {
    /// Of a consumer's queue.
    Queued { task: Box<Task>, back: Arc<Back> },
    /// Of a caller who waits for it.
    Lone(Box<Lone>),
}

/// The copy of a caller's request.
pub(crate) struct Lone {
    state: Arc<dyn DriverSession>,
    operation: Operation,
    result: Result<usize, Error>,
    reply: Arc<Reply>,
}

impl Drop for Lone {
    fn drop(&mut self) {
        owned::wipe(&mut self.operation);
    }
}

impl Job {
    /// Does it, on this thread. `driver` is who is to blame for a panic.
    pub fn run(&mut self, driver: &'static str) {
        match self {
            // Nobody is left to collect it.
            Job::Queued { back, .. } if back.abandoned.load(Ordering::Relaxed) => {}
            Job::Queued { task, .. } => {
                task.begin();
                let result = match task.parts_as::<State>() {
                    Some((state, operation)) => run(driver, &*state.inner, operation),
                    None => Err(Error::invalid_request("its session is another driver's")),
                };
                task.complete(result);
            }
            Job::Lone(lone) => lone.result = run(driver, &*lone.state, &mut lone.operation),
        }
    }

    /// It will not be done.
    pub fn give_back(&mut self) {
        match self {
            Job::Queued { task, .. } => task.give_back(),
            Job::Lone(lone) => lone.result = Err(Error::Gone),
        }
    }
}

fn run(
    driver: &'static str,
    state: &dyn DriverSession,
    operation: &mut Operation,
) -> Result<usize, Error> {
    let done = catch_unwind(AssertUnwindSafe(|| operation.with(|request| state.run(request))));
    done.unwrap_or_else(|_| {
        // It may hold a plaintext that nobody has found authentic.
        if let Operation::Open { data, .. } = operation {
            data.as_mut_slice().zeroize();
        }
        Err(Error::Driver { driver, why: "it panicked" })
    })
}

/// Hands jobs that were run or given back to those who wait for them, neighbours of one queue
/// together.
pub(crate) fn deliver(jobs: &mut Vec<Job>) {
    let mut jobs = jobs.drain(..).peekable();
    while let Some(job) = jobs.next() {
        match job {
            Job::Lone(lone) => lone.reply.clone().put(lone),
            Job::Queued { task, back } => {
                let mut done = back.lock();
                done.push(task);
                let same = |job: &Job| match job {
                    Job::Queued { back: other, .. } => Arc::ptr_eq(other, &back),
                    Job::Lone(_) => false,
                };
                while let Some(Job::Queued { task, .. }) = jobs.next_if(same) {
                    done.push(task);
                }
                back.any.store(true, Ordering::Release);
                drop(done);
                back.waker.wake();
            }
        }
    }
}

/// Where a caller waits for his request.
#[derive(Default)]
struct Reply {
    /// Whether it is there, to be looked at without the lock.
    there: AtomicBool,
    held: Mutex<Held>,
    put: Condvar,
}

#[derive(Default)]
struct Held {
    lone: Option<Box<Lone>>,
    /// Whether the caller sleeps; to wake one who looks on would be a system call for nothing.
    sleeps: bool,
}

impl Reply {
    fn put(&self, done: Box<Lone>) {
        let mut held = self.lock();
        held.lone = Some(done);
        let sleeps = held.sleeps;
        self.there.store(true, Ordering::Release);
        drop(held);
        if sleeps {
            self.put.notify_one();
        }
    }

    fn wait(&self, spin: Duration) -> Box<Lone> {
        spin_until(spin, || self.there.load(Ordering::Acquire));
        let mut held = self.lock();
        loop {
            if let Some(done) = held.lone.take() {
                return done;
            }
            held.sleeps = true;
            held = self.put.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a queue's finished tasks wait to be collected.
pub(crate) struct Back {
    done: Mutex<Vec<Box<Task>>>,
    /// Whether there are any, to be looked at without the lock.
    any: AtomicBool,
    abandoned: AtomicBool,
    waker: Waker,
}

impl Back {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<Task>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A consumer's end of a line.
pub(crate) struct End {
    line: Arc<Line>,
    back: Arc<Back>,
}

impl End {
    pub fn new(line: &Arc<Line>, waker: &Waker) -> Self {
        let back = Back {
            done: Mutex::default(),
            any: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            waker: waker.clone(),
        };
        End { line: line.clone(), back: Arc::new(back) }
    }
}

impl DriverQueue for End {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _more: bool) -> Flow {
        self.line.submit(tasks, &self.back)
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        if self.back.any.load(Ordering::Acquire) {
            let mut there = self.back.lock();
            self.back.any.store(false, Ordering::Relaxed);
            done.append(&mut there);
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.back.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Jobs that wait for a thread, in the order in which they came.
pub(crate) struct Line {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// How many wait, to be looked at without the lock.
    count: AtomicUsize,
    /// Most tasks that wait.
    depth: usize,
    /// How many threads take from it.
    takers: usize,
    /// How long one that finds nothing looks on before it sleeps.
    spin: Duration,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Threads that look for jobs, and threads that sleep until there are some.
    spinning: usize,
    sleeping: usize,
    /// Queues that found no room, to be told when there is some.
    refused: Vec<Arc<Back>>,
    closed: bool,
}

impl Line {
    pub fn new(depth: usize, takers: usize, spin: Duration) -> Arc<Self> {
        let (waiting, arrived, count) = (Mutex::default(), Condvar::new(), AtomicUsize::new(0));
        Arc::new(Line { waiting, arrived, count, depth, takers, spin })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes from the front of `tasks` what there is room for.
    fn submit(&self, tasks: &mut Vec<Box<Task>>, back: &Arc<Back>) -> Flow {
        let mut waiting = self.lock();
        if waiting.closed {
            return Flow::Gone;
        }
        let taken = tasks.len().min(self.depth.saturating_sub(waiting.jobs.len()));
        let job = |task| Job::Queued { task, back: back.clone() };
        waiting.jobs.extend(tasks.drain(..taken).map(job));
        let refused = !tasks.is_empty();
        if refused && !waiting.refused.iter().any(|other| Arc::ptr_eq(other, back)) {
            waiting.refused.push(back.clone());
        }
        self.wake(waiting, taken);
        if refused { Flow::Busy } else { Flow::Open }
    }

    /// Takes one job whatever the depth: whoever sends it waits for it, or it was taken before.
    /// It comes back if the line is closed.
    pub fn send(&self, job: Job) -> Result<(), Job> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(job);
        }
        waiting.jobs.push_back(job);
        self.wake(waiting, 1);
        Ok(())
    }

    /// Wakes as many threads as so many new jobs need, beside those that are looking.
    fn wake(&self, waiting: MutexGuard<'_, Waiting>, new: usize) {
        self.count.store(waiting.jobs.len(), Ordering::Release);
        let needed = new.saturating_sub(waiting.spinning).min(waiting.sleeping);
        drop(waiting);
        for _ in 0..needed {
            self.arrived.notify_one();
        }
    }

    /// Waits for jobs and moves some to the end of `jobs`: this thread's share of those that wait,
    /// so that the others get theirs. `false` once the line is closed.
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
                waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                waiting.sleeping -= 1;
            }
        }
        let share = waiting.jobs.len().div_ceil(self.takers).min(TAKE_MAX);
        jobs.extend(waiting.jobs.drain(..share));
        let refused = mem::take(&mut waiting.refused);
        // Those who looked on when the rest came may have been fewer than it needs.
        let rest = waiting.jobs.len();
        self.wake(waiting, rest.min(1));
        for back in refused {
            back.waker.wake();
        }
        true
    }

    /// Takes no more, sends the threads home, and returns what was waiting.
    pub fn close(&self) -> Vec<Job> {
        let mut waiting = self.lock();
        waiting.closed = true;
        let left = mem::take(&mut waiting.jobs);
        let refused = mem::take(&mut waiting.refused);
        drop(waiting);
        self.arrived.notify_all();
        for back in refused {
            back.waker.wake();
        }
        left.into()
    }
}

fn spin_until(most: Duration, mut there: impl FnMut() -> bool) {
    if most.is_zero() {
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < most {
        // Asking for the time costs as much as some looks.
        for _ in 0..16 {
            if there() {
                return;
            }
            hint::spin_loop();
        }
    }
}

/// Waits until threads have ended. One of them may be this one, since a driver goes with the last
/// task of its last session, wherever that is dropped.
pub(crate) fn join(threads: &mut Vec<JoinHandle<()>>) {
    let this = thread::current().id();
    for thread in threads.drain(..) {
        if thread.thread().id() != this {
            let _ = thread.join();
        }
    }
}
