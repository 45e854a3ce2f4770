//! A token: its sessions, each on a thread of its own, and the calls that wait for one.
//!
//! A module may never return from a call, and nothing ends such a call. So no thread of a caller ever enters a module:
//! it hands the call to a thread that has a session, and waits for so long and no longer. A token whose threads
//! do not come back is *silent*, and is asked nothing more until one does.

use crate::error::Error;
use crate::limits::{CALL_MAX, SAID, SAID_MAX, SESSIONS_MAX, WAITING_MAX};
use crate::module::Module;
use crate::pin::Pin;
use crate::seat::{Fault, Seat, Seated, Source};
use cryptoki::mechanism::MechanismType;
use keyway_lock::Unpoisoned;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Hears what happens to tokens, in sentences, from any thread.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// A token, by its label.
pub(crate) struct Token {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<Source>,
    report: Report,
    state: Mutex<State>,
    arrived: Condvar,
    ended: Condvar,
}

struct State {
    waiting: VecDeque<Job>,
    /// Threads that wait for a call.
    idle: usize,
    threads: usize,
    /// As many as the token has been found to allow.
    threads_max: usize,
    /// A call has not come back in time, and none has since.
    silent: bool,
    closed: bool,
    /// The fault that was reported last, until the token is well again.
    fault: Option<String>,
    /// Troubles with keys that were said, and when.
    said: VecDeque<(String, Instant)>,
    /// Those that wait for an answer, by a number, and how each hears that none comes any more.
    callers: HashMap<u64, Box<dyn Fn() + Send>>,
    calls: u64,
}

/// A call, which is told of a session that could not be opened.
type Job = Box<dyn FnOnce(&mut Seat, Result<(), Error>) + Send>;

impl Token {
    pub fn new(label: &str, module: Arc<Module>, pin: Option<Pin>, report: Report) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            idle: 0,
            threads: 0,
            threads_max: SESSIONS_MAX,
            silent: false,
            closed: false,
            fault: None,
            said: VecDeque::new(),
            callers: HashMap::new(),
            calls: 0,
        };
        let (label, restarts) = (label.to_owned(), Mutex::default());
        let shared = Shared {
            source: Arc::new(Source { label, module, pin, restarts }),
            report,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            ended: Condvar::new(),
        };
        Token { shared: Arc::new(shared) }
    }

    pub fn label(&self) -> &str {
        &self.shared.source.label
    }

    /// Tells the administrator something of it.
    pub fn say(&self, what: &str) {
        (self.shared.report)(what);
    }

    /// Tells the administrator of a fault with a key, and not for each request. Faults of the token as a whole are told
    /// where it is asked.
    pub fn say_of(&self, key: &str, fault: &Error) {
        if fault.is_notable() {
            return;
        }
        let text = format!("key {key}: {fault}");
        let now = Instant::now();
        let mut state = self.shared.lock();
        while state.said.front().is_some_and(|(_, when)| now.duration_since(*when) > SAID) {
            state.said.pop_front();
        }
        let is_said = state.said.iter().any(|(said, _)| *said == text);
        if is_said || state.said.len() >= SAID_MAX {
            return;
        }
        state.said.push_back((text.clone(), now));
        drop(state);
        self.say(&text);
    }

    /// How many calls wait or are under way.
    pub fn load(&self) -> usize {
        let state = self.shared.lock();
        state.waiting.len() + state.threads - state.idle
    }

    /// Has a session do something, which is tried a second time in a new session if the first one turns out to be
    /// gone before anything was done.
    ///
    /// # Errors
    /// Errors of the token; [`Error::Silent`] past `limit`, when the work may still be done.
    pub fn call<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Fn(&mut Seated<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = sync_channel(1);
        let given_up = Arc::new(AtomicBool::new(false));
        let is_given_up = given_up.clone();
        let label = self.shared.source.label.clone();
        let (end, its) = (answer.clone(), label.clone());
        let end = move || {
            let _ = end.try_send(Err(ended(&its)));
        };
        let number = self.shared.put(
            Box::new(end),
            Box::new(move |seat, ready| {
                if !is_given_up.load(Ordering::Acquire) {
                    // A caller that gives up meanwhile hears nothing more.
                    let _ = answer.send(ready.and_then(|()| seat.attempt(&work)));
                }
            }),
        )?;
        let answered = answered.recv_timeout(limit);
        let result = match answered {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                given_up.store(true, Ordering::Release);
                self.shared.lock().silent = true;
                Err(Error::Silent { label })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let why = "its thread ended in the middle".to_owned();
                Err(Error::Refused { label, why })
            }
        };
        self.shared.lock().callers.remove(&number);
        self.shared.note(result.as_ref().err());
        result
    }

    /// The token's mechanisms.
    pub fn mechanisms(&self) -> Result<Vec<MechanismType>, Error> {
        self.call(CALL_MAX, |seated| Ok(seated.pkcs11.get_mechanism_list(seated.slot)?))
    }
}

impl State {
    /// Whether it has not answered in time. If no thread is inside any more, the answer only came late.
    fn is_silent(&self) -> bool {
        self.silent && self.threads > self.idle
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    /// Puts a call into the queue, and says by what number its caller is known.
    fn put(self: &Arc<Self>, end: Box<dyn Fn() + Send>, job: Job) -> Result<u64, Error> {
        let label = || self.source.label.clone();
        let mut state = self.lock();
        if state.closed {
            return Err(ended(&label()));
        }
        if state.is_silent() {
            return Err(Error::Silent { label: label() });
        }
        if state.waiting.len() >= WAITING_MAX {
            return Err(Error::Busy { label: label() });
        }
        let wants_thread = state.idle <= state.waiting.len() && state.threads < state.threads_max;
        if wants_thread {
            let shared = self.clone();
            let thread = thread::Builder::new().name("token".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads > 0 => {}
                Err(why) => return Err(Error::Gone { label: label(), why: why.to_string() }),
            }
        }
        state.waiting.push_back(job);
        state.calls += 1;
        let number = state.calls;
        state.callers.insert(number, end);
        drop(state);
        self.arrived.notify_one();
        Ok(number)
    }

    /// The work of a thread with a session.
    fn work(self: Arc<Self>) {
        let mut seat = Seat::new(self.source.clone());
        while let Some(job) = self.next() {
            let label = &self.source.label;
            let ready = caught(|| seat.open()).unwrap_or_else(|| {
                Err(Error::Gone { label: label.clone(), why: "its thread panicked".to_owned() })
            });
            if matches!(ready, Err(Error::Sessions { .. })) && self.leave_to_others() {
                self.lock().waiting.push_front(job);
                self.arrived.notify_one();
                break;
            }
            // After a panic an operation may be under way in the session.
            if caught(|| job(&mut seat, ready)).is_none() {
                caught(|| seat.close());
            }
            self.lock().silent = false;
        }
        drop(seat);
        self.lock().threads -= 1;
        self.ended.notify_all();
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.waiting.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            state = self.arrived.wait(state).unpoisoned();
            state.idle -= 1;
        }
    }

    /// Whether other threads have sessions already; then there are to be no more.
    fn leave_to_others(&self) -> bool {
        let mut state = self.lock();
        let others = state.threads.saturating_sub(1);
        if others > 0 {
            state.threads_max = others;
        }
        others > 0
    }

    /// Says once what is wrong with the token, and once that it is well again.
    fn note(&self, error: Option<&Error>) {
        let fault = error.filter(|error| error.is_notable()).map(|error| error.to_string());
        if error.is_some() && fault.is_none() {
            return;
        }
        let mut state = self.lock();
        // The end is no news.
        if state.closed {
            return;
        }
        let said = match (&state.fault, &fault) {
            (before, Some(now)) if before.as_ref() != Some(now) => now.clone(),
            (Some(_), None) => format!("token {} works again", self.source.label),
            _ => return,
        };
        state.fault = fault;
        drop(state);
        (self.report)(&said);
    }
}

/// `None` if it panics.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// The answer to calls when the process ends.
fn ended(label: &str) -> Error {
    Error::Gone { label: label.to_owned(), why: "the daemon ends".to_owned() }
}

impl Token {
    /// Takes no calls any more. Those that wait for an answer get none.
    pub fn shut(&self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let abandoned = std::mem::take(&mut state.waiting);
        let callers = std::mem::take(&mut state.callers);
        drop(state);
        self.shared.arrived.notify_all();
        drop(abandoned);
        callers.values().for_each(|end| end());
    }

    /// Waits until its sessions are closed, after [`Token::shut`], or until then. A thread that does not come back from
    /// its module is left there.
    pub fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let state = self.shared.lock();
        drop(self.shared.ended.wait_timeout_while(state, left, |it| it.threads > 0));
    }
}
