//! The processor as an accelerator: threads, pinned to processors of their own, that run another
//! driver's requests beside the caller.

use crate::worker_queue::{ConsumerQueue, TAKE_MAX, WorkerQueue, WorkerSession, deliver, join};
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, DriverStream, Error, Place, Step, Waker,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long an idle thread, or the caller of a single request, spins before it sleeps; about what
/// going to sleep and being woken costs.
const SPIN: Duration = Duration::from_micros(10);
/// Most threads of one pool.
const THREADS_MAX: usize = 1024;

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// How many threads, 1 to 1024.
    pub threads: usize,
    /// The processors that they are pinned to, by the system's numbers: the first thread to the
    /// first, and from the beginning again if there are more threads than processors. `None` leaves
    /// the choice to the system.
    pub cores: Option<Vec<usize>>,
    /// Most tasks, of all queues together, that wait for a thread; at least 1. Those that are being
    /// run or wait to be collected do not count, nor do single requests, whose callers wait for
    /// them.
    pub depth: usize,
}

/// A driver that has `inner`'s requests run by threads of its own. Several tasks of one session may
/// be run at the same time, and come back in any order.
///
/// A single request is copied there and back, and its caller sleeps until it is done: it costs some
/// microseconds more than on the caller's own stack. A hash that is fed in pieces is `inner`'s, on
/// the caller's stack. If `inner` panics the request is answered with [`Error::Driver`].
///
/// When the driver is dropped, what waits is given back, what runs is finished, and the threads
/// end.
///
/// # Errors
/// A setting is out of bounds, a processor is not there (or not for this process), or the system
/// starts no more threads.
pub fn pool(name: &str, inner: Arc<dyn Driver>, pool: Pool) -> io::Result<Arc<dyn Driver>> {
    let Pool { threads, cores, depth } = pool;
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    if !(1..=THREADS_MAX).contains(&threads) {
        return Err(invalid("a pool has 1 to 1024 threads"));
    }
    if depth == 0 {
        return Err(invalid("a pool has capacity for at least one waiting task"));
    }
    if cores.as_ref().is_some_and(Vec::is_empty) {
        return Err(invalid("a pinned pool has at least one processor"));
    }
    let queue = WorkerQueue::new(depth, threads, SPIN);
    // From here on its drop ends what has been started.
    let mut driver = Threads { name: name.to_owned(), inner, queue, threads: Vec::new() };
    let (started, starts) = mpsc::channel();
    for index in 0..threads {
        let core = cores.as_ref().map(|cores| cores[index % cores.len()]);
        let (queue, started) = (driver.queue.clone(), started.clone());
        let work = move || {
            let pinned = core.map_or(Ok(()), pin);
            let ready = pinned.is_ok();
            let _ = started.send(pinned);
            drop(started);
            if ready {
                work(&queue);
            }
        };
        let thread = thread::Builder::new().name(format!("{name}-{index}"));
        driver.threads.push(thread.spawn(work)?);
    }
    drop(started);
    starts.iter().collect::<io::Result<()>>()?;
    Ok(Arc::new(driver))
}

/// Pins this thread to a processor.
fn pin(core: usize) -> io::Result<()> {
    let missing = || {
        let why = format!("there is no processor {core} for this process to pin a thread to");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    };
    if core >= CpuSet::MAX_CPU {
        return Err(missing());
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| match error {
        rustix::io::Errno::INVAL => missing(),
        error => error.into(),
    })
}

fn work(queue: &WorkerQueue) {
    let mut jobs = Vec::with_capacity(TAKE_MAX);
    while queue.take(&mut jobs) {
        for job in &mut jobs {
            job.run("pool");
        }
        deliver(&mut jobs);
    }
}

struct Threads {
    name: String,
    inner: Arc<dyn Driver>,
    queue: Arc<WorkerQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Driver for Threads {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> Place {
        Place::Host
    }

    fn parallel(&self) -> usize {
        self.threads.len()
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(WorkerSession::new(self.inner.open(steps)?, &self.queue)))
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.inner.stream(algorithm)
    }

    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(ConsumerQueue::new(&self.queue, waker)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if !self.queue.has_threads() {
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        let mut left = self.queue.close();
        left.iter_mut().for_each(|job| job.give_back());
        deliver(&mut left);
        join(&mut self.threads);
    }
}
