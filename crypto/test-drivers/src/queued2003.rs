//! How the systems of 2003 dispatched, as a baseline to measure against. Every request is put on a
//! queue; one thread takes it from there and runs it, a second one delivers it. That is two thread
//! switches for a request. Nothing spins: a thread without work sleeps at once.

use keyway_drivers::worker_queue::{ConsumerQueue, WorkerQueue, WorkerSession, deliver, join};
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, DriverStream, Error, Place, Selection, Step,
    Waker, limits,
};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const NAME: &str = "queued2003";

/// A driver, `queued2003`, that has `inner`'s requests run by one dispatch thread and delivered by
/// one return thread, in the order in which they came. The return thread wakes the caller of a
/// single request and the owner of a queue. A thread that is woken takes what waits. A hash that is
/// fed in pieces is `inner`'s.
///
/// The scheduler never chooses it; only sessions that name it use it.
///
/// # Errors
/// The system starts no more threads.
pub fn queued2003(inner: Arc<dyn Driver>) -> io::Result<Arc<dyn Driver>> {
    let queue = || WorkerQueue::new(limits::QUEUE_DEPTH_MAX, 1, Duration::ZERO);
    let (requests, returns) = (queue(), queue());
    // From here on its drop ends the threads that were started.
    let mut driver = Queued2003 {
        inner,
        requests: requests.clone(),
        returns: returns.clone(),
        dispatch: Vec::new(),
        deliver: Vec::new(),
    };
    let spawn = |name: &str| thread::Builder::new().name(format!("2003-{name}"));
    let to = returns.clone();
    driver.dispatch.push(spawn("dispatch").spawn(move || dispatch_all(&requests, &to))?);
    driver.deliver.push(spawn("return").spawn(move || deliver_all(&returns))?);
    Ok(Arc::new(driver))
}

fn dispatch_all(requests: &WorkerQueue, returns: &WorkerQueue) {
    let mut jobs = Vec::new();
    while requests.take(&mut jobs) {
        for mut job in jobs.drain(..) {
            job.run(NAME);
            if let Err(job) = returns.send(job) {
                deliver(&mut vec![job]);
            }
        }
    }
}

fn deliver_all(returns: &WorkerQueue) {
    let mut jobs = Vec::new();
    while returns.take(&mut jobs) {
        deliver(&mut jobs);
    }
}

struct Queued2003 {
    inner: Arc<dyn Driver>,
    requests: Arc<WorkerQueue>,
    returns: Arc<WorkerQueue>,
    /// The dispatch thread.
    dispatch: Vec<JoinHandle<()>>,
    /// The return thread.
    deliver: Vec<JoinHandle<()>>,
}

impl Driver for Queued2003 {
    fn name(&self) -> &str {
        NAME
    }

    fn selection(&self) -> Selection {
        Selection::Named
    }

    fn place(&self) -> Place {
        Place::Host
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(WorkerSession::new(self.inner.open(steps)?, &self.requests)))
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.inner.stream(algorithm)
    }

    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(ConsumerQueue::new(&self.requests, waker)))
    }
}

impl Drop for Queued2003 {
    /// Waiting tasks are given back, running ones are finished and delivered.
    fn drop(&mut self) {
        let mut left = self.requests.close();
        left.iter_mut().for_each(|job| job.give_back());
        deliver(&mut left);
        join(&mut self.dispatch);
        deliver(&mut self.returns.close());
        join(&mut self.deliver);
    }
}
