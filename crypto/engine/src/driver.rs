//! The contract of drivers.
//!
//! A driver that computes on the caller's stack is two small traits: [`Driver`] says what it can do
//! and opens sessions, [`DriverSession`] runs a request. One that works beside the caller (a
//! device, a pool of threads) adds a third, [`DriverQueue`], one of which is made for each
//! consumer's [`Queue`](crate::Queue): it takes tasks as long as it has room and hands them back
//! when they are done.
//!
//! A driver takes tasks, a task names its session, and a session keeps its drivers. So that no file
//! of this crate needs one above it, a session keeps them as [`Opener`]s, which know no tasks.

use crate::opener::{DriverSession, DriverStream, Opener, Place, Selection};
use crate::registered::RegisteredDriver;
use crate::{Algorithm, Error, Step, Task, Waker};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Executes requests.
///
/// One driver serves all threads at once. It says what it can do, opens sessions that hold a key in
/// whatever form suits it, and forgets them when they are dropped. Before each call, the engine has
/// checked that the request's kind and its buffer lengths fit the algorithm, and that costs are
/// within [`limits`](crate::limits). Faults that only the driver can find (a malformed key, a point
/// that is not on the curve) it answers with an [`Error`]. It must not panic on any input. In the
/// slow class a panic is caught and answered as [`Error::Driver`].
pub trait Driver: Send + Sync {
    /// A short name for metrics and flags: lower-case letters, digits and dashes.
    fn name(&self) -> &str;

    /// Whether the scheduler may choose it by itself.
    fn selection(&self) -> Selection {
        Selection::Any
    }

    /// Where it computes.
    fn place(&self) -> Place {
        Place::Caller
    }

    /// How many requests it works on at the same time, for the scheduler's arithmetic; at least 1.
    fn parallel(&self) -> usize {
        1
    }

    /// Whether it does these steps in one request: one algorithm, or the whole of a chain, in the
    /// order of protecting. Chains that no driver does whole, the engine runs step by step.
    fn supports(&self, steps: &[Algorithm]) -> bool;

    /// Opens a session for steps that it supports. [`Error::Unsupported`] makes the scheduler try
    /// the next driver, [`Error::Gone`] says that this one is dead.
    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error>;

    /// Starts a hash that is fed in pieces.
    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        Err(Error::Unsupported(algorithm))
    }

    /// Makes a queue for one consumer's thread. `None`, for drivers that compute on the caller's
    /// stack: then the engine runs each task as it is submitted. The driver calls `waker`
    /// when it has finished something since the last poll.
    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        let _ = waker;
        None
    }
}

/// How a queue stands after it was offered tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It took them all, and would take more.
    Open,
    /// It is full: tasks that it left stay with the engine, which offers it again after the next
    /// poll.
    Busy,
    /// The driver is dead. Tasks that it had accepted come out of [`DriverQueue::poll`], finished,
    /// failed or given back.
    Gone,
}

/// A driver's end of one consumer's queue. Used by one thread at a time.
///
/// Every task that was taken comes out of [`poll`](DriverQueue::poll) exactly once, after
/// [`Task::run`] or [`Task::complete`] or, untouched, [`Task::give_back`]. Neither call waits.
pub trait DriverQueue: Send {
    /// Takes tasks from the front of `tasks`, as many as there is room for. Each is bound to a
    /// session of this driver ([`Task::parts`]). `more` says that the consumer will submit again
    /// at once, so that a batch may wait for its rest; without it nothing may wait for more.
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> Flow;

    /// Moves what has been finished to the end of `done`. A poll ends every such wait: what
    /// `more` held back is begun.
    fn poll(&mut self, done: &mut Vec<Box<Task>>);

    /// Nanoseconds until the next poll can find something, where that is known and the waker
    /// will not be called.
    fn due(&self) -> Option<u64> {
        None
    }

    /// Sleeps until the next poll may find something, or the time is over, and returns `true`. It
    /// is asked where the consumer has tasks in this queue under way and waits for nothing else.
    /// `false` says that it cannot: then the consumer sleeps until the waker is called, or the
    /// queue is [due](DriverQueue::due).
    fn sleep(&mut self, most: Duration) -> bool {
        let _ = most;
        false
    }
}

/// A whole driver as an [`Opener`].
pub(crate) struct Whole(pub Arc<dyn Driver>);

impl Opener for Whole {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn selection(&self) -> Selection {
        self.0.selection()
    }

    fn place(&self) -> Place {
        self.0.place()
    }

    fn parallel(&self) -> usize {
        self.0.parallel()
    }

    fn has_queues(&self) -> bool {
        self.0.queue(&Waker::new()).is_some()
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.0.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        self.0.open(steps)
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.0.stream(algorithm)
    }
}

/// Makes a queue of a registered driver; see [`Driver::queue`].
pub(crate) fn queue(driver: &RegisteredDriver, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
    let opener: &dyn Any = &**driver.opener.as_ref()?;
    let Whole(driver) = opener.downcast_ref()?;
    driver.queue(waker)
}
