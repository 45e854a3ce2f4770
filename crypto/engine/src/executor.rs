//! Requests that are awaited: a future each, for any async executor.
//!
//! Work that would run on the caller's stack anyway does so at once, and its future is ready. Slow
//! work goes to the slow pool. The rest goes to the *executor thread*. It is started when it is
//! first needed, owns a [`Queue`], and sleeps while nothing happens.

use crate::registry::Registry;
use crate::slot::Slot;
use crate::slow::SlowPool;
use crate::{Error, Queue, Task, Waker, clock, limits};
use keyway_lock::Unpoisoned;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A task under way. It resolves to the task when that is done. If it is dropped, the work goes on
/// and its result is dropped too.
pub struct Pending {
    slot: Arc<Slot<Box<Task>>>,
}

/// A task that was not accepted, and why: [`Error::Busy`] or [`Error::Closed`].
pub struct Refused {
    /// The task, untouched.
    pub task: Box<Task>,
    /// Why.
    pub error: Error,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused({:?})", self.error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// For callers that do not want the task back.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        refused.error
    }
}

impl Pending {
    pub(crate) fn new() -> (Pending, Arc<Slot<Box<Task>>>) {
        let slot = Arc::new(Slot::new());
        (Pending { slot: slot.clone() }, slot)
    }
}

impl Future for Pending {
    type Output = Box<Task>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Box<Task>> {
        self.slot.poll(context)
    }
}

/// The executor thread, and the way to it.
pub(crate) struct ExecutorThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    inbox: Mutex<Inbox>,
    waker: Waker,
}

#[derive(Default)]
struct Inbox {
    tasks: Vec<Box<Task>>,
    /// Submitted and not yet done.
    in_flight: usize,
    closed: bool,
}

impl ExecutorThread {
    pub fn new(registry: &Arc<Registry>, slow: &Arc<SlowPool>) -> Self {
        let queue = Queue::on(registry, slow, limits::EXECUTOR_IN_FLIGHT_MAX, Waker::new());
        let shared = Arc::new(Shared { inbox: Mutex::default(), waker: queue.waker().clone() });
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("executor".into());
        let thread = thread.spawn(move || {
            let _close = CloseAtEnd(&of_thread);
            of_thread.execute(queue);
        });
        // Without a thread every task is refused as if the engine were closed.
        let thread = thread.ok();
        lock(&shared.inbox).closed |= thread.is_none();
        ExecutorThread { shared, thread }
    }

    /// Submits a task whose slot is set.
    pub fn submit(&self, task: Box<Task>) -> Result<(), Refused> {
        let mut inbox = lock(&self.shared.inbox);
        let error = match inbox.closed {
            true => Error::Closed,
            false if inbox.in_flight >= limits::EXECUTOR_IN_FLIGHT_MAX => Error::Busy,
            false => {
                inbox.in_flight += 1;
                inbox.tasks.push(task);
                drop(inbox);
                self.shared.waker.wake();
                return Ok(());
            }
        };
        Err(Refused { task, error })
    }
}

/// Closes the inbox when the thread ends, also when a driver made it panic.
struct CloseAtEnd<'a>(&'a Shared);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        lock(&self.0.inbox).closed = true;
    }
}

impl Shared {
    fn execute(&self, mut queue: Queue) {
        let mut done = Vec::new();
        let mut tasks = Vec::new();
        let mut closing = None;
        loop {
            let closed = {
                let mut inbox = lock(&self.inbox);
                tasks.append(&mut inbox.tasks);
                inbox.closed
            };
            queue.submit(&mut tasks, false);
            let mut most = Duration::MAX;
            if closed {
                let begun = *closing.get_or_insert_with(clock::now);
                let gone = Duration::from_nanos(clock::now() - begun);
                most = limits::CLOSE.saturating_sub(gone);
                if queue.in_flight() == 0 || most.is_zero() {
                    return;
                }
            }
            queue.wait_or(&mut done, most, || !lock(&self.inbox).is_idle(closed));
            lock(&self.inbox).in_flight -= done.len();
            for mut task in done.drain(..) {
                if let Some(slot) = mem::take(&mut task.slot) {
                    slot.fill(task);
                }
            }
        }
    }
}

impl Inbox {
    /// Whether there is nothing new for the executor thread.
    fn is_idle(&self, closed_seen: bool) -> bool {
        self.tasks.is_empty() && self.closed == closed_seen
    }
}

impl Drop for ExecutorThread {
    /// Submitted work is finished first.
    fn drop(&mut self) {
        lock(&self.shared.inbox).closed = true;
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}
