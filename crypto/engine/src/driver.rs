//! The contract of drivers.
//!
//! A driver that computes on the caller's stack is two small traits: [`Driver`] says what it can do
//! and opens sessions, [`DriverSession`] runs a request. One that works beside the caller (a
//! device, a pool of threads) adds a third, [`DriverQueue`], one of which is made for each
//! consumer's [`Queue`](crate::Queue): it takes tasks as long as it has room and hands them back
//! when they are done.
//!
//! A driver takes tasks, a task names its session, and a session keeps its drivers. This circle of
//! types is the contract itself, and the only one between files of this crate.

use crate::{Algorithm, Error, NONCE_BYTES, Request, Step, Task, Waker};
use std::any::Any;
use std::time::Duration;

/// Whether the scheduler may choose a driver by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Yes.
    Any,
    /// Only when the consumer names it (the null driver, a driver under test), or names a key,
    /// which none but its holder has: a daemon that holds keys and is to do nothing else.
    Named,
}

/// Where a driver computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the processor of the thread that submits, in its time.
    Caller,
    /// On other processors of the host.
    Host,
    /// On a device.
    Device,
}

/// Executes requests.
///
/// One driver serves all threads at once. It says what it can do, opens sessions that hold a key
/// in whatever form suits it, and forgets them when they are dropped. Before each call, the engine
/// has checked that the request's kind and its buffer lengths fit the algorithm, and that costs are
/// within [`limits`](crate::limits). What only the driver can find (a malformed key, a point that
/// is not on the curve) it answers with an [`Error`]. It must not panic on any input. In the slow
/// class a panic is caught and answered as [`Error::Driver`].
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

/// A driver's side of a session: a key ready for use. Used by all threads at once.
pub trait DriverSession: Any + Send + Sync {
    /// Executes one request before it returns, and returns the bytes it put out: for
    /// [`Request::Seal`] and [`Request::Open`] the length of the text without the tag, for
    /// [`Request::Encapsulate`] that of the ciphertext, for [`Request::Chain`] that of the message,
    /// for [`Request::Verify`] 0, for [`Request::VerifyPassword`] 1 or 0 as it says, for ciphers
    /// the text's, else what was written to `out`.
    ///
    /// A driver whose work is done elsewhere waits for it. One that has died answers
    /// [`Error::Gone`] if it left the request's buffers as they were.
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error>;

    /// Executes [`Request::Seal`] under a nonce that whoever holds the key makes, and says which:
    /// for drivers with keys that consumers only name. What the request has for a nonce means
    /// nothing.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] where nobody makes nonces; else those of [`DriverSession::run`].
    fn seal_next(
        &self,
        _request: &mut Request<'_>,
        _nonce: &mut [u8; NONCE_BYTES],
    ) -> Result<usize, Error> {
        Err(Error::invalid_request("who holds this session's key is told its nonces"))
    }

    /// Longest signature [`Request::Sign`] can put out, in bytes; 0 where the key cannot sign.
    fn signature_bytes_max(&self) -> usize {
        0
    }
}

/// How a queue stands after it was offered tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It took them all, and would take more.
    Open,
    /// It is full: what it left stays with the engine, which offers it again after the next poll.
    Busy,
    /// The driver is dead. What it had accepted comes out of [`DriverQueue::poll`], finished,
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

/// A driver's side of a hash fed in pieces.
pub trait DriverStream: Send + Sync {
    /// Takes the next piece.
    fn update(&mut self, data: &[u8]) -> Result<(), Error>;

    /// A second stream that has seen the same.
    fn fork(&self) -> Result<Box<dyn DriverStream>, Error>;

    /// The digest, into exactly the algorithm's output length.
    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error>;
}
