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
//! In a process that is forked from this one, all of that is the parent's: the child touches nothing of it,
//! connects by itself with its first request, and opens its sessions anew.
//!
//! A single request waits for its answer: it polls about as long as a wake-up takes, and then
//! sleeps. A queue sleeps on its ring, if it waits for nothing else.

mod channel;
mod connection;
mod error;
mod home;
mod large;
mod lent;
mod link;
mod options;
mod queue;
mod session;
mod sync;
mod watchdog;

pub use options::RemoteOptions;

use home::Home;
use keyway_engine::{
    Algorithm, Buffer, Driver, DriverQueue, DriverSession, Engine, Error, Place, Selection, Step,
    Waker,
};
use keyway_ring::limits::STEPS_MAX;
use link::Link;
use queue::RemoteQueue;
use session::RemoteSession;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Keeps an engine connected to a daemon. When it is dropped the driver is unregistered, and
/// requests that are under way go back to the engine.
///
/// A child that is forked from its process touches nothing of the connection: the parent goes on with
/// it. The child gets a connection of its own with its first request, as the process that it is. Sessions
/// whose keys the engine has, or that name one, are opened anew there; a key that the daemon generated for
/// a session, and buffers, stay with the parent.
pub struct Remote {
    home: Arc<Home>,
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

    /// As [`Remote::connect`], with a function that hears of the daemon's end. The driver's thread calls
    /// `tell` with `false` when the daemon has gone, and with `true` when it is back.
    ///
    /// # Errors
    /// As [`Remote::connect`]'s.
    pub fn connect_and_tell(
        engine: &Engine,
        options: RemoteOptions,
        tell: impl Fn(bool) + Send + Sync + 'static,
    ) -> io::Result<Remote> {
        session::spin_budget();
        let home = Home::new(engine, options, RemoteDriver::make, Box::new(tell));
        home.begin()?;
        Ok(Remote { home })
    }

    /// Waits until the daemon is connected, and says whether it is. It may go again at any time.
    pub fn wait(&self, most: Duration) -> bool {
        self.home.wait(most)
    }

    /// The driver of the connection that there is now, for those who examine it by itself. `None`
    /// while the daemon is gone.
    pub fn driver(&self) -> Option<Arc<dyn Driver>> {
        let link = self.home.here()?;
        let selection = Selection::Any;
        Some(Arc::new(RemoteDriver { selection, ..RemoteDriver::new(&self.home, link) }))
    }

    /// A buffer of so many bytes that the daemon reaches. A task whose data lies in it is worked on
    /// there by the daemon, without a copy; by another driver, or by a daemon that has come since, as any
    /// other. While the daemon is gone, it is an ordinary one.
    ///
    /// Its first contents are not known. If the daemon goes while it works there, the task ends
    /// with [`Error::Driver`], since its data may be half done. A queue that is dropped while such
    /// tasks are under way gives their buffers up for good: collect them first. In a child that is
    /// forked, a buffer of the parent's panics when its bytes are asked for.
    ///
    /// # Errors
    /// The system's; `InvalidInput` for more than 1 GiB, `QuotaExceeded` if there are as many
    /// buffers as there may be ([`LENT_REGIONS_MAX`](crate::limits::LENT_REGIONS_MAX)).
    pub fn buffer(&self, bytes: usize) -> io::Result<Buffer> {
        match self.home.here() {
            Some(link) => self.home.regions().buffer(bytes, &link.connection),
            None => Ok(vec![0; bytes].into()),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.home.stop();
    }
}

struct RemoteDriver {
    name: String,
    selection: Selection,
    link: Arc<Link>,
    home: Weak<Home>,
}

impl RemoteDriver {
    fn new(home: &Arc<Home>, link: Arc<Link>) -> RemoteDriver {
        let RemoteOptions { name, selection, .. } = home.options();
        let (name, selection) = (name.clone(), *selection);
        RemoteDriver { name, selection, link, home: Arc::downgrade(home) }
    }

    fn make(home: &Arc<Home>, link: Arc<Link>) -> Arc<dyn Driver> {
        Arc::new(RemoteDriver::new(home, link))
    }

    /// Its link; in a forked child, the child's.
    fn link(&self) -> Option<Arc<Link>> {
        match self.link.connection.is_inherited() {
            false => Some(self.link.clone()),
            true => self.home.upgrade()?.here(),
        }
    }
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
        (1..=STEPS_MAX).contains(&steps.len())
            && steps.iter().all(|it| self.link.connection.does(*it))
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let algorithm = steps.first().map_or(Algorithm::Random, |step| step.algorithm);
        let link = self.link().ok_or(Error::Gone)?;
        let opened = link.connection.open(steps)?;
        Ok(Box::new(RemoteSession::new(&link, algorithm, &opened)))
    }

    fn queue(&self, _waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(RemoteQueue::new(&self.link()?)?))
    }
}
