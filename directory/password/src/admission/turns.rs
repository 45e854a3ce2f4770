//! The one place through which all go that want a password checked or hashed.

use super::attempt::{Attempt, BindHistory, Way};
use super::brake::Brake;
use super::limits::{HASHES_WAITING_MAX, TICK_MS};
use super::line::{Line, Waiting};
use crate::error::Error;
use crate::limits::CHECKS_WAITING_MAX;
use keyway_lock::Unpoisoned;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Whether a password may be compared with what is known at once.
pub enum Recognition {
    /// Now: it has begun.
    Now(Begun),
    /// When the brake lets it, as [`Admission::recognise`] says.
    Later,
    /// Never: its source has not shown the right password lately.
    Never,
}

/// The one place through which all go who want a password checked or hashed.
#[derive(Clone)]
pub struct Admission {
    inner: Arc<Inner>,
}

struct Inner {
    hasher: RandomState,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    brake: Brake,
    line: Line<Job>,
    /// A thread is handing out turns.
    handing_out: bool,
    /// There is a task that looks after those who wait.
    ticking: bool,
}

/// The work to do when a turn has come, or will not come. It should return at once.
type Job = Box<dyn FnOnce(Result<Turn, Error>) + Send>;

/// A turn. Dropping it gives back the thread.
pub struct Turn {
    /// The attempt, if it began with this turn.
    pub begun: Option<Begun>,
    /// The thread, if it needed one.
    pub thread: Option<Thread>,
}

/// A thread of the slow class; dropping it lets the next one have it.
pub struct Thread(Arc<Inner>);

/// An attempt that has begun. Dropped without a verdict it counts as a failure: a client that
/// leaves before the answer gains nothing over one that waits for it.
pub struct Begun {
    inner: Arc<Inner>,
    attempt: Attempt,
    way: Way,
    verdict: bool,
}

/// A place in the line; dropping it gives it up.
struct Place {
    inner: Weak<Inner>,
    number: u64,
}

impl Admission {
    /// For a slow class of so many threads. Where there is none, its queue says so.
    pub fn new(threads: usize) -> Self {
        let state = State {
            brake: Brake::new(),
            line: Line::new(threads.max(1), CHECKS_WAITING_MAX),
            handing_out: false,
            ticking: false,
        };
        let (hasher, started) = (RandomState::new(), Instant::now());
        Admission { inner: Arc::new(Inner { hasher, started, state: Mutex::new(state) }) }
    }

    /// Lets so many attempts wait at most.
    pub fn set_waiting_max(&self, waiting_max: usize) {
        self.inner.lock().line.waiting_max = waiting_max.max(1);
    }

    /// Describes an attempt at a name, in a form in which equal names are equal.
    pub fn attempt(&self, from: IpAddr, name: &[u8], history: BindHistory) -> Attempt {
        let hash = |value: (u8, &[u8])| self.inner.hasher.hash_one(value).max(1);
        let (source, wide) = match from.to_canonical() {
            IpAddr::V4(address) => (hash((4, &address.octets())), None),
            IpAddr::V6(address) => {
                let octets = address.octets();
                let prefix = |bytes| octets.get(..bytes).unwrap_or_default();
                (hash((6, prefix(8))), Some(hash((7, prefix(6)))))
            }
        };
        let name = hash((0, name));
        let pair = self.inner.hasher.hash_one((name, source)).max(1);
        let recognised = self.inner.hasher.hash_one((pair, 8)).max(1);
        Attempt { source, wide, name, pair, recognised, history }
    }

    /// For how long the source of an attempt is known to have the name's right password, in
    /// milliseconds; `None` if it is not, or has failed at it since.
    pub fn trusted_ms(&self, attempt: &Attempt) -> Option<u64> {
        self.inner.lock().brake.trusted_ms(attempt, self.inner.now_ms())
    }

    /// Begins an attempt that needs no thread, if it need not wait.
    pub fn begin_now(&self, attempt: Attempt) -> Option<Begun> {
        let now_ms = self.inner.now_ms();
        self.begin_at(&mut self.inner.lock(), attempt, Way::Stranger, now_ms)
    }

    /// Whether an attempt may be recognised, if the name's right password was shown lately from its
    /// source. It needs no thread.
    pub fn recognition(&self, attempt: Attempt) -> Recognition {
        let now_ms = self.inner.now_ms();
        let mut state = self.inner.lock();
        if !state.brake.is_proven(&attempt, now_ms) {
            return Recognition::Never;
        }
        match self.begin_at(&mut state, attempt, Way::Recognised, now_ms) {
            Some(begun) => Recognition::Now(begun),
            None => Recognition::Later,
        }
    }

    fn begin_at(
        &self,
        state: &mut State,
        attempt: Attempt,
        way: Way,
        now_ms: u64,
    ) -> Option<Begun> {
        if state.brake.not_before_ms(&attempt, way) > now_ms {
            return None;
        }
        state.brake.begin(&attempt, way, now_ms);
        Some(Begun::new(&self.inner, attempt, way))
    }

    /// Begins an attempt that needs no thread when the brake lets it.
    ///
    /// # Errors
    /// [`Error::Busy`] if that takes too long, or too many wait.
    pub async fn begin(&self, attempt: Attempt) -> Result<Begun, Error> {
        self.begin_on(attempt, Way::Stranger).await
    }

    /// Begins an attempt that may be recognised when the brake lets it.
    ///
    /// # Errors
    /// As [`Admission::begin`].
    pub async fn recognise(&self, attempt: Attempt) -> Result<Begun, Error> {
        self.begin_on(attempt, Way::Recognised).await
    }

    async fn begin_on(&self, attempt: Attempt, way: Way) -> Result<Begun, Error> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move |turn| drop(sender.send(turn)));
        let _place = self.enter(Some(attempt), Some(way), false, job);
        let turn: Turn = receiver.await.unwrap_or(Err(Error::Busy))?;
        turn.begun.ok_or(Error::Busy)
    }

    /// Waits in line for a thread of the slow class; `begins` if the attempt has not begun yet.
    /// `job` has the turn, or learns that the server is busy. Giving up what is returned gives up
    /// the place.
    pub fn wait_for_thread(&self, attempt: Attempt, begins: bool, job: Job) -> impl Send + use<> {
        self.enter(Some(attempt), begins.then_some(Way::Stranger), true, job)
    }

    /// Waits in line for a thread for a new password that is to be hashed. It keeps its place in any case.
    ///
    /// # Errors
    /// [`Error::Busy`] if too many wait.
    pub fn wait_to_hash(&self, job: Job) -> Result<(), Error> {
        if self.inner.lock().line.hashes() >= HASHES_WAITING_MAX {
            return Err(Error::Busy);
        }
        self.enter(None, None, true, job).keep();
        Ok(())
    }

    fn enter(
        &self,
        attempt: Option<Attempt>,
        begins: Option<Way>,
        needs_thread: bool,
        job: Job,
    ) -> Place {
        let now_ms = self.inner.now_ms();
        let mut state = self.inner.lock();
        let (number, dropped) = state.line.enter(attempt, begins, needs_thread, job, now_ms);
        drop(state);
        if let Some(dropped) = dropped {
            (dropped.job)(Err(Error::Busy));
        }
        Inner::hand_out(&self.inner);
        Inner::look_after(&self.inner);
        Place { inner: Arc::downgrade(&self.inner), number }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Gives turns to all who can have one. Only one thread does it at a time, and never within
    /// itself: the turns that a job gives back, that one hands out too.
    fn hand_out(this: &Arc<Inner>) {
        let mut state = this.lock();
        if state.handing_out {
            return;
        }
        state.handing_out = true;
        loop {
            let now_ms = this.now_ms();
            let State { brake, line, handing_out, .. } = &mut *state;
            let Some(Waiting { attempt, begins, needs_thread, job, .. }) = line.next(brake, now_ms)
            else {
                *handing_out = false;
                return;
            };
            drop(state);
            job(Ok(Turn {
                begun: attempt.zip(begins).map(|(attempt, way)| Begun::new(this, attempt, way)),
                thread: needs_thread.then(|| Thread(this.clone())),
            }));
            state = this.lock();
        }
    }

    /// Sees to it that those that the brake holds go on in time, and that none waits for ever.
    fn look_after(this: &Arc<Inner>) {
        // Outside a runtime none is held: there only new passwords are hashed.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = this.lock();
        if state.line.is_empty() || std::mem::replace(&mut state.ticking, true) {
            return;
        }
        drop(state);
        let inner = Arc::downgrade(this);
        runtime.spawn(async move {
            let mut ticking = Ticking(inner);
            while ticking.0.upgrade().is_some_and(|inner| Inner::tick(&inner)) {
                tokio::time::sleep(Duration::from_millis(TICK_MS)).await;
            }
            // The last look has said so already, and another task may have begun since.
            ticking.0 = Weak::new();
        });
    }

    /// Looks at those who wait; says whether there are any.
    fn tick(this: &Arc<Inner>) -> bool {
        Inner::hand_out(this);
        let now_ms = this.now_ms();
        loop {
            let mut state = this.lock();
            let Some(expired) = state.line.expired(now_ms) else {
                state.ticking = !state.line.is_empty();
                return state.ticking;
            };
            drop(state);
            (expired.job)(Err(Error::Busy));
        }
    }
}

/// The task that looks after those who wait; if its runtime ends, another one may.
struct Ticking(Weak<Inner>);

impl Drop for Ticking {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.lock().ticking = false;
        }
    }
}

impl Place {
    /// Keeps it whatever becomes of this.
    fn keep(mut self) {
        self.inner = Weak::new();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            let left = inner.lock().line.leave(self.number);
            // Its job is dropped without the lock.
            drop(left);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.0.lock().line.idle();
        Inner::hand_out(&self.0);
    }
}

impl Begun {
    fn new(inner: &Arc<Inner>, attempt: Attempt, way: Way) -> Self {
        Begun { inner: inner.clone(), attempt, way, verdict: false }
    }

    /// Notes how it ended.
    pub fn ended(mut self, right: bool) {
        self.verdict = right;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let now_ms = self.inner.now_ms();
        let brake = &mut self.inner.lock().brake;
        match self.verdict {
            true => brake.right(&self.attempt, self.way, now_ms),
            false => brake.wrong(&self.attempt, self.way, now_ms),
        }
    }
}
