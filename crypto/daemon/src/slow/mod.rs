//! Work that takes longer than a pump may take for anything: passwords, private keys of RSA, and requests of
//! many bytes, and all that is done under a key in a token. Threads of its own do it, and their order is decided by
//! cost (`shares`).
//!
//! A pump hands a [`Job`] over and hears of its end through its mailbox. No thread waits for a job:
//! the jobs that a client leaves behind when it goes are dropped. A job that has begun when the
//! daemon ends is finished by its thread alone.

mod job;
mod room;
mod shares;

pub use job::{Job, Work};
pub use shares::Tag;

use crate::keys::KeySession;
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
    /// One for each token: its threads wait for it and take no processor's time, and when it does not answer, no work
    /// but its own waits.
    tokens: Vec<Arc<Shared>>,
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
    /// Starts its threads, those for so many tokens too.
    ///
    /// # Errors
    /// The system's, if it starts no thread.
    pub fn start(tokens: usize) -> io::Result<Slow> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let lanes = Lanes::of(processors);
        // It is what ends the threads that were started before one that is not.
        let mut slow = Slow { shared: Shared::new(lanes), tokens: Vec::new() };
        slow.shared.start("slow", lanes)?;
        for index in 0..tokens {
            let lanes = Lanes::of_token();
            slow.tokens.push(Shared::new(lanes));
            slow.tokens[index].start(&format!("token-{index}"), lanes)?;
        }
        Ok(slow)
    }

    /// Where a job belongs.
    fn of(&self, job: &Job) -> &Shared {
        let token = job.work.key.as_ref().and_then(KeySession::token);
        token.and_then(|index| self.tokens.get(index)).unwrap_or(&self.shared)
    }

    /// Takes a job that is expected to take so many nanoseconds, unless as many wait as may: then it says
    /// `false`.
    pub fn put(&self, tag: Tag, cost_ns: u64, job: Job) -> bool {
        let shared = self.of(&job);
        let mut state = shared.lock();
        let shares = &mut state.shares;
        let full = shares.waiting() >= SLOW_WAITING_MAX
            || shares.waiting_of(tag.user) >= SLOW_WAITING_OF_USER_MAX;
        if full {
            return false;
        }
        let long = cost_ns > SLOW_SHORT_NS_MAX && !shares.has_one_lane();
        shares.put(tag, cost_ns, long, job);
        drop(state);
        shared.arrived.notify_one();
        true
    }

    /// Takes back what waits for a client and is no more wanted.
    pub fn take_back(&self, tag: Tag, mut which: impl FnMut(&Job) -> bool) -> Vec<Job> {
        let all = self.all();
        all.flat_map(|shared| shared.lock().shares.take_back(tag, &mut which)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Shared>> {
        [&self.shared].into_iter().chain(&self.tokens)
    }
}

impl Shared {
    fn new(lanes: Lanes) -> Arc<Self> {
        let state = State { shares: Shares::new(lanes), closed: false };
        Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new() })
    }

    fn start(self: &Arc<Self>, name: &str, lanes: Lanes) -> io::Result<()> {
        for index in 0..lanes.threads() {
            let shared = self.clone();
            let thread = thread::Builder::new().name(format!("{name}-{index}"));
            drop(thread.spawn(move || shared.work())?);
        }
        Ok(())
    }

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
        for shared in self.all() {
            let mut state = shared.lock();
            state.closed = true;
            let waiting = state.shares.take_all();
            drop(state);
            shared.arrived.notify_all();
            drop(waiting);
        }
    }
}
