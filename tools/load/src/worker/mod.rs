//! One thread of a run: its connections, its share of the starts, and the loop that serves them.
//!
//! Everything is here and nothing is shared while it runs, but the counters of sources whose order
//! matters. Times are nanoseconds since an origin that all threads have in common.

mod answer;
mod connection;
mod due;
mod opening;
mod poller;
mod setup;
mod state;
mod stream;
mod virtual_user;

use crate::control::RateOverride;
use crate::entries::Makers;
use crate::limits::{INTERRUPTED_DRAIN_MAX, TIMEOUT_LOOK_EVERY};
use crate::scenario::{Group, Scenario};
use crate::schedule::{Start, Starts};
use crate::server::{REFUSED, Server};
use crate::tally::{Fault, SecondTally};
use fastrand::Rng;
use poller::{Happened, Poller};
use rustix::time::{ClockId, clock_gettime};
use rustls::ClientConfig;
use state::{Connection, Pending, State, VirtualUser, Wake};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

const SECOND_NS: u64 = 1_000_000_000;

/// The state that threads share.
pub(crate) struct Shared {
    pub(crate) servers: Vec<Server>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// The moment that times are counted from.
    pub(crate) origin: Instant,
    /// An end was asked for.
    pub(crate) stop: AtomicBool,
    /// The rate that the caller sets during the run.
    pub(crate) rate_override: RateOverride,
    /// Starts of a closed loop that has only so many.
    pub(crate) taken: AtomicU64,
    /// The first bind of an account has been answered: others may follow it.
    pub(crate) may_bind: AtomicBool,
    /// The server does not take the account that connections begin with. It is not asked again: each time would
    /// count as a guess.
    pub(crate) is_refused: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        scenario: &Scenario,
        servers: Vec<Server>,
        tls: Option<Arc<ClientConfig>>,
        rate_override: RateOverride,
    ) -> Shared {
        Shared {
            servers,
            tls,
            origin: Instant::now(),
            stop: AtomicBool::new(false),
            rate_override,
            taken: AtomicU64::new(0),
            may_bind: AtomicBool::new(!scenario.groups.iter().any(Group::has_account)),
            is_refused: AtomicBool::new(false),
        }
    }
}

/// A thread's message to the collector.
pub(crate) enum WorkerMessage {
    /// Its connections are open: so many are, and of the others the last did not for this reason.
    Ready { open: usize, wanted: usize, why_not: Option<(Fault, String)> },
    /// A second is over.
    Second(Box<SecondTally>),
    /// These threads are done.
    End(Range<usize>),
    /// A connection was of no use, for this reason.
    Broken(Fault, String),
    /// An agent with these threads is gone.
    Lost { agent: usize, threads: Range<usize>, why: String },
    /// The server does not take the account of connections.
    Refused(String),
    /// The system has refused something.
    Failed(String),
}

pub(crate) struct Worker<'s> {
    scenario: &'s Scenario,
    shared: &'s Shared,
    thread: usize,
    /// Its number among all threads of all agents.
    stripe: u64,
    sender: Sender<WorkerMessage>,
    poller: Poller,
    connections: Vec<Connection>,
    virtual_users: Vec<VirtualUser>,
    /// Virtual users that are free, by group; the one that has been so for longest comes next.
    free: Vec<VecDeque<usize>>,
    /// Starts that wait, by group.
    backlog: Vec<VecDeque<Pending>>,
    backlogged: usize,
    starts: Starts,
    next_start: Option<Start>,
    /// The rate that the caller has set last.
    rate_override: Option<f64>,
    timers: BinaryHeap<Reverse<(u64, Wake)>>,
    dirty: Vec<usize>,
    happened: Vec<Happened>,
    /// When the run begins, when each phase ends, and when the last does.
    start_ns: u64,
    phase_ends_ns: Vec<u64>,
    phase: usize,
    end_ns: u64,
    is_interrupted: bool,
    look_ns: u64,
    /// Sequences of closed loops.
    closed: u64,
    /// All starts have been made of a phase that has only so many.
    is_counted_out: bool,
    random: Rng,
    makers: Makers,
    tally: SecondTally,
    tally_began_ns: u64,
    cpu_ns: u64,
    input: Vec<u8>,
    raw: Vec<u8>,
    scratch: Vec<u8>,
    bind_values: Vec<u64>,
    last_error: Option<(Fault, String)>,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(
        scenario: &'s Scenario,
        shared: &'s Shared,
        thread: usize,
        threads: usize,
        sender: Sender<WorkerMessage>,
    ) -> io::Result<Worker<'s>> {
        // The number among all threads of all agents.
        let (agent, agents) = scenario.share;
        let stripe = agent + agents * thread as u64;
        let stripes = agents * threads as u64;
        let starts =
            Starts::new(&scenario.phases, scenario.arrivals, scenario.seed, stripe, stripes);
        let mut worker = Worker {
            scenario,
            shared,
            thread,
            sender,
            poller: Poller::new()?,
            connections: Vec::new(),
            virtual_users: Vec::new(),
            free: vec![VecDeque::new(); scenario.groups.len()],
            backlog: vec![VecDeque::new(); scenario.groups.len()],
            backlogged: 0,
            starts,
            next_start: None,
            rate_override: None,
            timers: BinaryHeap::new(),
            dirty: Vec::new(),
            happened: Vec::new(),
            start_ns: u64::MAX,
            phase_ends_ns: Vec::new(),
            phase: 0,
            end_ns: u64::MAX,
            is_interrupted: false,
            look_ns: 0,
            closed: 0,
            is_counted_out: false,
            stripe,
            random: Rng::with_seed(mix(scenario.seed, stripe)),
            makers: Makers::new(&scenario.sources),
            tally: SecondTally::new(thread, 0, scenario),
            tally_began_ns: 0,
            cpu_ns: 0,
            input: Vec::new(),
            raw: Vec::new(),
            scratch: Vec::new(),
            bind_values: Vec::new(),
            last_error: None,
        };
        worker.set_up(stripe as usize, stripes as usize);
        Ok(worker)
    }

    /// Nanoseconds since the origin.
    fn now(&self) -> u64 {
        self.shared.origin.elapsed().as_nanos() as u64
    }

    /// Opens its connections, says so, and works from the moment on that it is told.
    pub(crate) fn run(mut self, begin: &Receiver<u64>) {
        let worked = self.prepare().and_then(|()| match begin.recv() {
            Ok(start_ns) => self.work(start_ns),
            // Others have failed.
            Err(_) => Ok(()),
        });
        let said = match worked {
            Ok(()) => WorkerMessage::End(self.thread..self.thread + 1),
            Err(why) => WorkerMessage::Failed(why.to_string()),
        };
        // A collector that does not listen any more has ended the run.
        let _ = self.sender.send(said);
    }

    /// Waits, and handles what happens meanwhile.
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.poller.wait(now, until)?;
        let mut happened = std::mem::take(&mut self.happened);
        self.poller.take(&mut happened);
        if !happened.is_empty() {
            let now = self.now();
            for event in &happened {
                self.happened(event.token, event.has_ended, now);
            }
        }
        self.happened = happened;
        Ok(())
    }

    fn work(&mut self, start_ns: u64) -> io::Result<()> {
        self.start_ns = start_ns;
        let mut end = start_ns;
        for phase in &self.scenario.phases {
            end += phase.length.as_nanos() as u64;
            self.phase_ends_ns.push(end);
        }
        self.end_ns = end;
        self.next_start = self.starts.next();
        while self.now() < start_ns {
            let now = self.now();
            self.wait(now, start_ns)?;
        }
        (self.tally_began_ns, self.cpu_ns) = (start_ns, thread_cpu_ns());
        let mut drain_ns = self.scenario.drain.as_nanos() as u64;
        loop {
            let now = self.now();
            if !self.is_interrupted && self.shared.stop.load(Ordering::Relaxed) {
                self.is_interrupted = true;
                self.end_ns = now.min(self.end_ns);
                drain_ns = drain_ns.min(INTERRUPTED_DRAIN_MAX.as_nanos() as u64);
            }
            self.end_second(now);
            self.apply_rate_override(now);
            self.come_due(now);
            self.wake(now);
            self.look_for_timeouts(now);
            self.assign(now);
            if let Some(why) = self.makers.failed() {
                return Err(io::Error::other(why.to_string()));
            }
            self.flush_all(now);
            if self.shared.is_refused.load(Ordering::Relaxed) && !self.is_interrupted {
                let _ = self.sender.send(WorkerMessage::Refused(self.refusal()));
                self.shared.stop.store(true, Ordering::Relaxed);
                continue;
            }
            if now >= self.end_ns || self.is_counted_out {
                let is_idle =
                    self.backlogged == 0 && self.virtual_users.iter().all(|user| !user.is_busy);
                if is_idle && self.is_counted_out {
                    self.end_ns = self.end_ns.min(now);
                    break;
                }
                if is_idle || now >= self.end_ns + drain_ns {
                    break;
                }
            }
            let until = self.next_moment(now);
            self.wait(now, until)?;
        }
        self.end();
        Ok(())
    }

    /// The error where the server does not take the account of connections.
    pub(super) fn refusal(&self) -> String {
        let url = self.scenario.urls.first().map(ToString::to_string).unwrap_or_default();
        format!("{url}: {REFUSED}")
    }

    fn wake_at(&mut self, at_ns: u64, what: Wake) {
        self.timers.push(Reverse((at_ns, what)));
    }

    fn wake(&mut self, now: u64) {
        while let Some(Reverse((at_ns, what))) = self.timers.peek().copied() {
            if at_ns > now {
                return;
            }
            self.timers.pop();
            match what {
                Wake::Free(user) => self.free[self.virtual_users[user].group].push_back(user),
                Wake::Step(user) => self.waited(user, now),
            }
        }
    }

    fn look_for_timeouts(&mut self, now: u64) {
        if now < self.look_ns {
            return;
        }
        self.look_ns = now + TIMEOUT_LOOK_EVERY.as_nanos() as u64;
        let timeout = self.scenario.timeout.as_nanos() as u64;
        for user in 0..self.virtual_users.len() {
            let state = &self.virtual_users[user];
            if state.message_id != 0 && state.sent_ns + timeout < now {
                self.timed_out(user, now);
            }
        }
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection.is_opening() && connection.opening_ns + timeout < now {
                let fault = match connection.state {
                    State::StartTls | State::Handshaking => Fault::TlsTimedOut,
                    _ => Fault::ConnectTimedOut,
                };
                self.fail(index, fault, "it was not open in time", now);
            }
        }
    }

    /// When there is something to do at the latest.
    fn next_moment(&self, now: u64) -> u64 {
        let start = self.next_start.map_or(u64::MAX, |start| self.start_ns + start.at_ns);
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let second = self.tally_began_ns + SECOND_NS;
        let end = if now < self.end_ns { self.end_ns } else { u64::MAX };
        start.min(timer).min(second).min(end)
    }

    /// Hands over what was counted, if a second is over.
    fn end_second(&mut self, now: u64) {
        let second = (now.saturating_sub(self.start_ns)) / SECOND_NS;
        if second > self.tally.second {
            self.hand_over(now, second);
        }
    }

    fn hand_over(&mut self, now: u64, next: u64) {
        if let Some((fault, why)) = self.last_error.take() {
            let _ = self.sender.send(WorkerMessage::Broken(fault, why));
        }
        let cpu_ns = thread_cpu_ns();
        let new = SecondTally::new(self.thread, next, self.scenario);
        let mut tally = std::mem::replace(&mut self.tally, new);
        tally.cpu_ns = cpu_ns - self.cpu_ns;
        tally.length_ns = now.saturating_sub(self.tally_began_ns);
        tally.backlog = self.backlogged;
        self.cpu_ns = cpu_ns;
        self.tally_began_ns = self.start_ns + next * SECOND_NS;
        let _ = self.sender.send(WorkerMessage::Second(Box::new(tally)));
    }

    /// Counts what is not done, and takes leave.
    fn end(&mut self) {
        let now = self.now();
        for group in 0..self.backlog.len() {
            for pending in std::mem::take(&mut self.backlog[group]) {
                let tally = self.tally.job(self.scenario, pending.phase, pending.job);
                tally.fail(0, Fault::Unstarted, now.saturating_sub(pending.at_ns));
            }
        }
        self.backlogged = 0;
        for user in 0..self.virtual_users.len() {
            if self.virtual_users[user].is_busy {
                self.failed(user, Fault::Unanswered, now);
            }
        }
        for index in 0..self.connections.len() {
            self.retire(index, now);
        }
        let second = self.tally.second;
        self.hand_over(now, second + 1);
    }
}

/// Two numbers made one that looks random (the finish of SplitMix64).
fn mix(one: u64, other: u64) -> u64 {
    let mut z = one.wrapping_add(other.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The processor time of this thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}
