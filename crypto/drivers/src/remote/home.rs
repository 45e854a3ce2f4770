//! The part of a remote driver that outlives a connection: which daemon it is, and the thread that
//! makes the next connection.
//!
//! A process that is forked has a copy of all this and none of its threads. So each process has an era of its
//! own, with its own locks: the first that finds the connection to be the parent's makes one for the child
//! ([`Home::here`]), which is let in as the process that it is, and starts the child's own thread.

use super::connection::Connection;
use super::lent::Regions;
use super::link::Link;
use super::options::RemoteOptions;
use super::sync::lock;
use crate::limits::{RECONNECT_MAX, RECONNECT_MIN};
use keyway_engine::{Driver, Engine};
use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Makes a driver of a link.
pub(super) type MakeDriver = fn(&Arc<Home>, Arc<Link>) -> Arc<dyn Driver>;

pub(super) struct Home {
    engine: Engine,
    options: RemoteOptions,
    driver: MakeDriver,
    /// Is told of each end and each new beginning.
    tell: Box<dyn Fn(bool) + Send + Sync>,
    /// Whether the engine has, or had, a driver for it.
    registered: AtomicBool,
    /// The era of the process that made it. Those of its children follow.
    first: Era,
}

/// A process' own part.
struct Era {
    process: Generation,
    state: Mutex<State>,
    /// The state is another.
    changed: Condvar,
    regions: Regions,
    /// That of a process that was forked from this one.
    next: OnceLock<Box<Era>>,
}

#[derive(Default)]
struct State {
    /// Whether this process has tried to connect.
    begun: bool,
    link: Option<Arc<Link>>,
    watcher: Option<JoinHandle<()>>,
    stopped: bool,
}

impl Home {
    pub fn new(
        engine: &Engine,
        options: RemoteOptions,
        driver: MakeDriver,
        tell: Box<dyn Fn(bool) + Send + Sync>,
    ) -> Arc<Home> {
        Arc::new(Home {
            engine: engine.clone(),
            options,
            driver,
            tell,
            registered: AtomicBool::new(false),
            first: Era::new(Generation::current()),
        })
    }

    pub fn options(&self) -> &RemoteOptions {
        &self.options
    }

    /// This process' own. The locks of others may be held by threads that this one does not have.
    fn era(&self) -> &Era {
        let process = Generation::current();
        let mut era = &self.first;
        while era.process != process {
            era = era.next.get_or_init(|| Box::new(Era::new(process)));
        }
        era
    }

    /// Connects for the first time in this process, and starts the thread that does it again whenever the
    /// daemon has gone.
    ///
    /// # Errors
    /// The system's, and those of the first attempt if that has to succeed.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        let mut state = lock(&self.era().state);
        self.begin_once(&mut state, self.options.at_once)
    }

    fn begin_once(self: &Arc<Self>, state: &mut State, at_once: bool) -> io::Result<()> {
        if state.begun || state.stopped {
            return Ok(());
        }
        state.begun = true;
        // A driver that the parent has registered is not this process'.
        self.unregister();
        match self.connect(state) {
            Err(why) if at_once => return Err(why),
            _ => {}
        }
        let home = self.clone();
        let thread = thread::Builder::new().name("remote".into());
        state.watcher = Some(thread.spawn(move || home.watch())?);
        Ok(())
    }

    /// This process' own link, if there is one now. In a child that was forked it is made by the
    /// first that asks.
    pub fn here(self: &Arc<Self>) -> Option<Arc<Link>> {
        let mut state = lock(&self.era().state);
        // A thread that is not started is one that tries no more.
        let _ = self.begin_once(&mut state, false);
        state.link.clone()
    }

    /// Waits until the daemon is connected, and says whether it is.
    pub fn wait(self: &Arc<Self>, most: Duration) -> bool {
        self.here();
        let (begun, era) = (Instant::now(), self.era());
        let mut state = lock(&era.state);
        loop {
            if state.link.as_ref().is_some_and(|link| !link.connection.is_dead()) {
                return true;
            }
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = era.changed.wait_timeout(state, left);
            state = waited.unpoisoned().0;
        }
    }

    /// Where this process takes its buffers from.
    pub fn regions(&self) -> &Regions {
        &self.era().regions
    }

    /// Ends it in this process.
    pub fn stop(&self) {
        let era = self.era();
        let (link, watcher) = {
            let mut state = lock(&era.state);
            state.stopped = true;
            (state.link.take(), state.watcher.take())
        };
        era.changed.notify_all();
        // Without a connection no driver is registered, and a client that greets a daemon that does
        // not answer hears only later that it is over.
        let Some(link) = link else { return };
        link.die();
        if let Some(watcher) = watcher
            && watcher.thread().id() != thread::current().id()
        {
            let _ = watcher.join();
        }
    }

    /// Makes a connection, and registers a driver for it.
    fn connect(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let link = self.greet()?;
        self.register(state, link)
    }

    fn greet(self: &Arc<Self>) -> io::Result<Arc<Link>> {
        let home = Arc::downgrade(self);
        let follow = move || {
            if let Some(home) = home.upgrade() {
                home.here();
            }
        };
        Ok(Arc::new(Link::new(Connection::new(&self.options, Box::new(follow))?)))
    }

    fn register(self: &Arc<Self>, state: &mut State, link: Arc<Link>) -> io::Result<()> {
        if state.stopped {
            return Ok(());
        }
        let registered = self.engine.register((self.driver)(self, link.clone()));
        registered.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        self.registered.store(true, Ordering::Release);
        state.link = Some(link);
        Ok(())
    }

    fn watch(self: &Arc<Self>) {
        let era = self.era();
        let mut pause = RECONNECT_MIN;
        loop {
            let link = lock(&era.state).link.clone();
            let was_there = link.is_some();
            if let Some(link) = link {
                link.connection.wait_for_end();
                link.die();
            }
            {
                let mut state = lock(&era.state);
                state.link = None;
                self.unregister();
            }
            if was_there && !lock(&era.state).stopped {
                (self.tell)(false);
            }
            {
                let state = lock(&era.state);
                let waited = era.changed.wait_timeout_while(state, pause, |it| !it.stopped);
                if waited.unpoisoned().0.stopped {
                    return;
                }
            }
            // To greet it may take long, and is done without the lock.
            let connected = self.greet().and_then(|link| {
                let mut state = lock(&era.state);
                self.register(&mut state, link)
            });
            pause = match connected {
                Ok(()) => {
                    era.changed.notify_all();
                    if !lock(&era.state).stopped {
                        (self.tell)(true);
                    }
                    RECONNECT_MIN
                }
                Err(_) => (2 * pause).min(RECONNECT_MAX),
            };
        }
    }

    fn unregister(&self) {
        // A driver that another caller has registered under the name stays.
        if self.registered.swap(false, Ordering::AcqRel) {
            self.engine.unregister(&self.options.name);
        }
    }
}

impl Era {
    fn new(process: Generation) -> Era {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Era { process, state, changed, regions: Regions::default(), next: OnceLock::new() }
    }
}

impl Drop for Era {
    fn drop(&mut self) {
        // A thread of the parent's is none of this process.
        if !self.process.is_current() {
            let state = self.state.get_mut().unpoisoned();
            std::mem::forget(state.watcher.take());
        }
    }
}
