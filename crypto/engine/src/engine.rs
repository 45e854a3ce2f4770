//! The engine: drivers, a scheduler and the slow pool behind one cheap handle.

use crate::scheduler::Scheduler;
use crate::slow::SlowPool;
use crate::{
    Algorithm, Class, Derivation, Done, Driver, Error, Key, Parameters, Request, Session, Stream,
};
use std::sync::{Arc, OnceLock};

/// The handle a consumer keeps. Clones share everything; all methods may be called by any thread.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    scheduler: Scheduler,
    slow: SlowPool,
    /// Sessions without a key, one an algorithm, opened when first used.
    keyless: [OnceLock<Session>; Algorithm::COUNT],
}

/// What an engine is made of.
pub struct Builder {
    drivers: Vec<Arc<dyn Driver>>,
    slow_threads: usize,
    slow_depth: usize,
}

impl Builder {
    /// Registers a driver; the first registered is preferred.
    #[must_use]
    pub fn driver(mut self, driver: Arc<dyn Driver>) -> Self {
        self.drivers.push(driver);
        self
    }

    /// Sets the slow class's threads, and how many requests may wait for one. Default: a thread a
    /// processor and 32 waiting for each, so that the last in line waits about half a second for
    /// Argon2id.
    #[must_use]
    pub fn slow_pool(mut self, threads: usize, depth: usize) -> Self {
        (self.slow_threads, self.slow_depth) = (threads, depth);
        self
    }

    /// Starts the pool and hands out the engine.
    pub fn build(self) -> Engine {
        Engine {
            inner: Arc::new(Inner {
                scheduler: Scheduler::new(self.drivers),
                slow: SlowPool::new(self.slow_threads, self.slow_depth),
                keyless: [const { OnceLock::new() }; Algorithm::COUNT],
            }),
        }
    }
}

impl Engine {
    /// An engine with no driver yet.
    pub fn builder() -> Builder {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Builder { drivers: Vec::new(), slow_threads: threads, slow_depth: 32 * threads }
    }

    /// Opens a session on the driver that was named, or on the one the scheduler picks.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if the key does not fit, [`Error::Unsupported`] or
    /// [`Error::NoSuchDriver`] if nobody can do it.
    pub fn session(&self, parameters: Parameters<'_>) -> Result<Session, Error> {
        self.inner
            .scheduler
            .place(&parameters, |lane| Session::open(lane, parameters.algorithm, parameters.key))
    }

    /// Starts a hash that is fed in pieces.
    pub fn stream(&self, algorithm: Algorithm) -> Result<Stream, Error> {
        let parameters = Parameters::new(algorithm, Key::None);
        self.inner.scheduler.place(&parameters, |lane| Stream::open(lane, algorithm))
    }

    /// Runs a request that needs no key: a digest, random bytes, a verification, an encapsulation,
    /// or a derivation on the caller's own time.
    pub fn run(&self, algorithm: Algorithm, request: &mut Request<'_>) -> Result<usize, Error> {
        self.keyless(algorithm)?.run(request)
    }

    /// Hashes the parts one after the other into exactly [`Algorithm::output_bytes`].
    pub fn digest(
        &self,
        algorithm: Algorithm,
        data: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), Error> {
        self.run(algorithm, &mut Request::Digest { data, out }).map(drop)
    }

    /// Fills `out` with random bytes fit for keys.
    pub fn random(&self, out: &mut [u8]) -> Result<(), Error> {
        self.run(Algorithm::Random, &mut Request::Random { out }).map(drop)
    }

    /// Submits slow work. If this returns `Ok`, `done` is called exactly once, on another thread
    /// (or on the one that drops the engine).
    ///
    /// # Errors
    /// [`Error::Busy`] if the bounded queue is full, [`Error::InvalidRequest`] if the derivation
    /// is not one or breaks a limit; `done` is then dropped uncalled.
    pub fn submit(&self, derivation: Derivation, done: Done) -> Result<(), Error> {
        debug_assert_eq!(derivation.algorithm.class(), Class::Slow);
        derivation.check()?;
        let session = self.keyless(derivation.algorithm)?.clone();
        let meters = session.meters();
        let result = self.inner.slow.submit(session, derivation, done);
        if result == Err(Error::Busy) {
            meters.busy.increment();
        }
        result
    }

    /// The registered drivers, in order of preference.
    pub fn drivers(&self) -> impl Iterator<Item = &dyn Driver> {
        self.inner.scheduler.drivers().map(|driver| &**driver)
    }

    fn keyless(&self, algorithm: Algorithm) -> Result<&Session, Error> {
        let cell = &self.inner.keyless[algorithm as usize];
        if let Some(session) = cell.get() {
            return Ok(session);
        }
        let session = self.session(Parameters::new(algorithm, Key::None))?;
        Ok(cell.get_or_init(|| session))
    }
}
