//! Work that takes longer than a pump may take for anything: passwords, private keys of RSA, and requests of
//! many bytes. Threads of its own do it, and their order is decided by cost (`shares`).
//!
//! A pump hands a [`Job`] over and hears of its end through its mailbox. No thread waits for a job:
//! the jobs that a client leaves behind when it goes are dropped. A job that has begun when the
//! daemon ends is finished by its thread alone.

mod job;
mod room;
mod shares;

pub use job::{Job, Work};
pub use shares::Tag;

use crate::limits::{SLOW_SHORT_NS_MAX, SLOW_WAITING_MAX, SLOW_WAITING_OF_USER_MAX};
use keyway_engine::limits::STACK_BYTES;
use keyway_lock::Unpoisoned;
use shares::{Lanes, Shares};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;
use zeroize::zeroize_stack;

/// The threads, and what waits for them. When it is dropped, what waits is dropped too, and the threads end
/// after what they have begun.
pub struct Slow {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    shares: Shares<Job>,
    closed: bool,
}

impl Slow {
    /// Starts its threads.
    ///
    /// # Errors
    /// The system's, if it starts no thread.
    pub fn start() -> io::Result<Slow> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let lanes = Lanes::of(processors);
        let shares = Shares::new(lanes);
        let state = Mutex::new(State { shares, closed: false });
        let shared = Arc::new(Shared { state, arrived: Condvar::new() });
        // It is what ends the threads that were started before one that is not.
        let slow = Slow { shared };
        for index in 0..lanes.threads() {
            let shared = slow.shared.clone();
            let thread = thread::Builder::new().name(format!("slow-{index}"));
            drop(thread.spawn(move || shared.work())?);
        }
        Ok(slow)
    }

    /// Takes a job that is expected to take so many nanoseconds, unless as many wait as may: then it says
    /// `false`.
    pub fn put(&self, tag: Tag, cost_ns: u64, job: Job) -> bool {
        let mut state = self.shared.lock();
        let shares = &mut state.shares;
        let full = shares.waiting() >= SLOW_WAITING_MAX
            || shares.waiting_of(tag.user) >= SLOW_WAITING_OF_USER_MAX;
        if full {
            return false;
        }
        shares.put(tag, cost_ns, cost_ns > SLOW_SHORT_NS_MAX, job);
        drop(state);
        self.shared.arrived.notify_one();
        true
    }

    /// Takes back what waits for a client and is no more wanted.
    pub fn take_back(&self, tag: Tag, which: impl FnMut(&Job) -> bool) -> Vec<Job> {
        self.shared.lock().shares.take_back(tag, which)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    fn work(&self) {
        loop {
            let mut state = self.lock();
            let (ticket, job) = loop {
                if state.closed {
                    return;
                }
                match state.shares.take() {
                    Some(taken) => break taken,
                    None => {
                        state = self.arrived.wait(state).unpoisoned();
                    }
                }
            };
            drop(state);
            let begun = Instant::now();
            job.run();
            // Passwords and private keys were worked on here, and this stack lives long.
            zeroize_stack::<STACK_BYTES>();
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.lock().shares.done(ticket, took);
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let waiting = state.shares.take_all();
        drop(state);
        self.shared.arrived.notify_all();
        drop(waiting);
    }
}
