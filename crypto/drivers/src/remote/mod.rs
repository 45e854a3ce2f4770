//! A daemon behind a ring, as a driver.
//!
//! [`Remote`] connects to the daemon and registers a [`Driver`] for it. Sessions and what is needed
//! for them go over a socket; requests go through memory that both sides have:
//!
//! ```text
//! RemoteSession::run ───▶ a Channel from the connection's pool ──┐ descriptor  ┌────────┐
//! RemoteQueue::submit ──▶ a Channel of its own ──────────────────┼────────────▶│ daemon │
//!                         slot ◀── encode, decode ──▶ request    │◀────────────└────────┘
//!                                                                └ completion
//! ```
//!
//! When the daemon goes, what it has not answered goes back to the engine as it was, for another
//! driver. When it comes back, a new driver is registered. The engine's sessions keep their keys,
//! and open themselves anew there. Only a key that the daemon made or holds is not to be had
//! meanwhile. One that is there and does nothing (stopped, or hung) counts as gone when it neither
//! answers a request for a while nor says over the socket that it lives.
//!
//! A single request waits for its answer: it polls about as long as a wake-up takes, and then
//! sleeps. A queue sleeps on its ring, if it waits for nothing else.

mod channel;
mod connection;
mod lent;
mod queue;
mod session;
mod silence;
pub mod wire;

use crate::limits::{RECONNECT_MAX, RECONNECT_MIN};
use connection::{Connection, lock};
use keyway_engine::{
    Algorithm, Buffer, Driver, DriverQueue, DriverSession, Engine, Error, Place, Selection, Step,
    Waker,
};
use keyway_ring::limits::STEPS_MAX;
use lent::Regions;
use queue::RemoteQueue;
use session::RemoteSession;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Which daemon, and how the engine is to see it.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The daemon's socket.
    pub path: PathBuf,
    /// What this client calls itself, for those who watch the daemon.
    pub client: String,
    /// The driver's name.
    pub name: String,
    /// Whether the engine may choose it by itself.
    pub selection: Selection,
    /// Whether it is an error that the daemon is not there at first. Else it is waited for.
    pub at_once: bool,
}

impl RemoteOptions {
    /// The daemon of this socket as driver `remote`, which the engine may choose, and which has to
    /// be there.
    pub fn new(path: impl Into<PathBuf>, client: impl Into<String>) -> Self {
        RemoteOptions {
            path: path.into(),
            client: client.into(),
            name: "remote".to_owned(),
            selection: Selection::Any,
            at_once: true,
        }
    }
}

/// Keeps an engine connected to a daemon. When it is dropped the driver is unregistered, and
/// requests that are under way go back to the engine.
pub struct Remote {
    name: String,
    shared: Arc<Shared>,
    regions: Arc<Regions>,
    watcher: Option<JoinHandle<()>>,
}

/// What the watcher and the owner share.
struct Shared {
    state: Mutex<State>,
    /// The state is another.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Whether the engine has, or had, a driver for it.
    registered: bool,
    stopped: bool,
}

impl Remote {
    /// Connects to the daemon, registers a driver for it, and starts a thread that does the same
    /// again whenever the daemon has gone.
    ///
    /// # Errors
    /// The system's; `ConnectionRefused` if the daemon does not admit this client or speaks another
    /// version, `InvalidInput` if the engine does not take a driver of that name.
    pub fn connect(engine: &Engine, options: RemoteOptions) -> io::Result<Remote> {
        Remote::connect_and_tell(engine, options, |_| {})
    }

    /// The same. That thread calls `tell` with `false` when the daemon has gone, and with `true`
    /// when it is back.
    ///
    /// # Errors
    /// As [`Remote::connect`]'s.
    pub fn connect_and_tell(
        engine: &Engine,
        options: RemoteOptions,
        tell: impl Fn(bool) + Send + 'static,
    ) -> io::Result<Remote> {
        let (name, regions) = (options.name.clone(), Arc::new(Regions::default()));
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let watcher = Watcher {
            engine: engine.clone(),
            shared: shared.clone(),
            regions: Arc::as_ptr(&regions).addr(),
            options,
            tell: Box::new(tell),
        };
        session::spin_budget();
        match watcher.connect() {
            Err(why) if watcher.options.at_once => return Err(why),
            _ => {}
        }
        let mut remote = Remote { name, shared, regions, watcher: None };
        let thread = thread::Builder::new().name("remote".into());
        remote.watcher = Some(thread.spawn(move || watcher.watch())?);
        Ok(remote)
    }

    /// Waits until the daemon is connected, and says whether it is. It may go again at any time.
    pub fn wait(&self, most: Duration) -> bool {
        let begun = Instant::now();
        let mut state = lock(&self.shared.state);
        loop {
            if state.connection.as_ref().is_some_and(|connection| !connection.is_dead()) {
                return true;
            }
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// The driver of the connection that there is now, for those who examine it by itself. `None`
    /// while the daemon is gone.
    pub fn driver(&self) -> Option<Arc<dyn Driver>> {
        let connection = lock(&self.shared.state).connection.clone()?;
        Some(Arc::new(RemoteDriver {
            name: self.name.clone(),
            selection: Selection::Any,
            connection,
        }))
    }

    /// A buffer of so many bytes that the daemon reaches. A task whose data lies in it is worked on
    /// there by the daemon, without a copy; by another driver as any other.
    ///
    /// What is in it at first is not known. If the daemon goes while it works there, the task ends
    /// with [`Error::Driver`], since its data may be half done. A queue that is dropped while such
    /// tasks are under way gives their buffers up for good: collect them first.
    ///
    /// # Errors
    /// The system's; `InvalidInput` for more than 1 GiB, `QuotaExceeded` if there are as many
    /// buffers as there may be ([`LENT_REGIONS_MAX`](crate::limits::LENT_REGIONS_MAX)).
    pub fn buffer(&self, bytes: usize) -> io::Result<Buffer> {
        self.regions.buffer(bytes)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let connection = {
            let mut state = lock(&self.shared.state);
            state.stopped = true;
            state.connection.take()
        };
        self.shared.changed.notify_all();
        // Without a connection no driver is registered, and who greets a daemon that does not
        // answer hears only later that it is over.
        let Some(connection) = connection else { return };
        connection.die();
        if let Some(watcher) = self.watcher.take()
            && watcher.thread().id() != thread::current().id()
        {
            let _ = watcher.join();
        }
    }
}

/// Waits for the end of a connection, and makes the next.
struct Watcher {
    engine: Engine,
    shared: Arc<Shared>,
    /// The address of the regions that buffers are taken from.
    regions: usize,
    options: RemoteOptions,
    /// Is told of each end and each new beginning.
    tell: Box<dyn Fn(bool) + Send>,
}

impl Watcher {
    fn connect(&self) -> io::Result<()> {
        let connection = Arc::new(Connection::new(&self.options, self.regions)?);
        let driver = RemoteDriver {
            name: self.options.name.clone(),
            selection: self.options.selection,
            connection: connection.clone(),
        };
        let mut state = lock(&self.shared.state);
        if state.stopped {
            return Ok(());
        }
        let registered = self.engine.register(Arc::new(driver));
        registered.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        (state.connection, state.registered) = (Some(connection), true);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn watch(self) {
        let mut pause = RECONNECT_MIN;
        loop {
            let connection = lock(&self.shared.state).connection.clone();
            let was_there = connection.is_some();
            if let Some(connection) = connection {
                connection.wait_for_end();
                connection.die();
            }
            self.unregister();
            if was_there && !lock(&self.shared.state).stopped {
                (self.tell)(false);
            }
            {
                let state = lock(&self.shared.state);
                let waited = self.shared.changed.wait_timeout_while(state, pause, |it| !it.stopped);
                if waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.stopped {
                    return;
                }
            }
            pause = match self.connect() {
                Ok(()) => {
                    if !lock(&self.shared.state).stopped {
                        (self.tell)(true);
                    }
                    RECONNECT_MIN
                }
                Err(_) => (2 * pause).min(RECONNECT_MAX),
            };
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.unregister();
    }
}

impl Watcher {
    fn unregister(&self) {
        let mut state = lock(&self.shared.state);
        state.connection = None;
        // No driver of somebody else's that has the name.
        if std::mem::take(&mut state.registered) {
            self.engine.unregister(&self.options.name);
        }
    }
}

struct RemoteDriver {
    name: String,
    selection: Selection,
    connection: Arc<Connection>,
}

impl Driver for RemoteDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn selection(&self) -> Selection {
        self.selection
    }

    fn place(&self) -> Place {
        Place::Host
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        (1..=STEPS_MAX).contains(&steps.len()) && steps.iter().all(|it| self.connection.does(*it))
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let algorithm = steps.first().map_or(Algorithm::Random, |step| step.algorithm);
        let opened = self.connection.open(steps)?;
        Ok(Box::new(RemoteSession::new(&self.connection, algorithm, &opened)))
    }

    fn queue(&self, _waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(RemoteQueue::new(&self.connection)?))
    }
}

/// The daemon, or what leads to it, has failed.
const fn failed(why: &'static str) -> Error {
    Error::Driver { driver: "remote", why }
}
