//! Requests that are awaited: a future each, for any executor.
//!
//! What would run on the caller's stack anyway does so at once, and its future is ready. Slow work
//! goes to the slow pool. The rest is carried by one thread, started when it is first needed, that
//! owns a [`Queue`] and sleeps while nothing happens.

use crate::registry::Registry;
use crate::slow::SlowPool;
use crate::{Error, Queue, Task, Waker, limits};
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A task under way; resolves to it when it is done. Dropping it lets the work go on unseen.
pub struct Pending {
    slot: Arc<Slot>,
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

/// For those who do not want the task back.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        refused.error
    }
}

/// Where a task's future finds it.
#[derive(Default)]
pub(crate) struct Slot {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    task: Option<Box<Task>>,
    waker: Option<task::Waker>,
}

impl Slot {
    /// The work is done.
    pub fn fill(&self, task: Box<Task>) {
        let mut inside = lock(&self.inside);
        inside.task = Some(task);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Pending {
    pub(crate) fn new() -> (Pending, Arc<Slot>) {
        let slot = Arc::new(Slot::default());
        (Pending { slot: slot.clone() }, slot)
    }
}

impl Future for Pending {
    type Output = Box<Task>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Box<Task>> {
        let mut inside = lock(&self.slot.inside);
        match inside.task.take() {
            Some(task) => Poll::Ready(task),
            None => {
                inside.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The thread, and the way to it.
pub(crate) struct Carrier {
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
    /// Handed over and not yet done.
    in_flight: usize,
    closed: bool,
}

impl Carrier {
    pub fn new(registry: &Arc<Registry>, slow: &Arc<SlowPool>) -> Self {
        let queue = Queue::on(registry, slow, limits::CARRIED_MAX);
        let shared = Arc::new(Shared { inbox: Mutex::default(), waker: queue.waker().clone() });
        let carried = shared.clone();
        let thread = thread::Builder::new().name("carrier".into());
        // Without a thread every task is refused as if the engine were closed.
        let thread = thread.spawn(move || {
            let _end = End(&carried);
            carried.carry(queue);
        });
        let thread = thread.ok();
        lock(&shared.inbox).closed |= thread.is_none();
        Carrier { shared, thread }
    }

    /// Hands over a task whose slot is set.
    pub fn submit(&self, task: Box<Task>) -> Result<(), Refused> {
        let mut inbox = lock(&self.shared.inbox);
        let error = match inbox.closed {
            true => Error::Closed,
            false if inbox.in_flight >= limits::CARRIED_MAX => Error::Busy,
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

/// Has nothing more accepted once the thread has ended, should a driver make it panic.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        lock(&self.0.inbox).closed = true;
    }
}

impl Shared {
    fn carry(&self, mut queue: Queue) {
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
                let begun = *closing.get_or_insert_with(Instant::now);
                most = limits::CLOSE.saturating_sub(begun.elapsed());
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
    /// Whether the carrier has nothing new to look at.
    fn is_idle(&self, closed_seen: bool) -> bool {
        self.tasks.is_empty() && self.closed == closed_seen
    }
}

impl Drop for Carrier {
    /// What was handed over is finished first.
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
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
