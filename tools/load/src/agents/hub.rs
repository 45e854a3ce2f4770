//! The hub: it waits for agents, lets in those that are known, and compares clocks.

use super::link::Link;
use super::{FORM, Message, clock_ns};
use crate::control::Interrupt;
use crate::error::Error;
use crate::limits::{AGENT_CLOCK_LOOKS, AGENT_SILENCE_MAX, AGENTS_GREETED_MAX};
use crate::trust::Identity;
use rustls::crypto::CryptoProvider;
use rustls::{Connection, ServerConfig, ServerConnection};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The pause between two looks for an agent that calls.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where agents call.
pub struct Hub {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    /// Those that have said who they are, or something else.
    greeted: (Sender<Greeted>, Receiver<Greeted>),
    /// How many have not.
    greeting: Cell<usize>,
}

/// The agent that has called, and the result.
type Greeted = (SocketAddr, io::Result<Called>);

/// An agent that has called.
pub struct Called {
    pub(super) link: Link,
    pub(super) name: String,
    /// How far its clock is ahead, and half of how long that took to ask, in nanoseconds.
    pub(super) clock_ns: (i64, u64),
    /// Why there is nothing more to be said to it.
    pub(super) lost: Option<String>,
}

impl Drop for Called {
    /// Says that there is nothing more to be done.
    fn drop(&mut self) {
        if self.lost.is_none() {
            // An agent that misses this message notices that the connection is gone.
            let _ = self.link.send(&Message::Bye);
        }
    }
}

impl Called {
    /// The name that the agent gives itself, and the address that it calls from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has not gone while it waited for others.
    pub fn is_there(&mut self) -> bool {
        let gone = self.link.poll().err();
        self.lost = gone.map(|why| format!("{} is gone: {why}", self.name));
        self.lost.is_none()
    }

    /// How far its clock is ahead of ours, and how sure that is, in nanoseconds.
    #[must_use]
    pub fn clock_ns(&self) -> (i64, u64) {
        self.clock_ns
    }
}

impl Hub {
    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be had, or the certificate is none.
    pub fn new(
        listen: SocketAddr,
        identity: &Identity,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Hub, Error> {
        let cannot = |why| Error::System("listen for agents", why);
        let config = identity.server(provider)?;
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        Ok(Hub { listener, config, greeted: channel(), greeting: Cell::new(0) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next agent that calls; `None` if an end was asked for. Callers that are no agents are noted.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn called(
        &self,
        interrupt: &Interrupt,
        noted: &mut dyn FnMut(&str),
    ) -> Result<Option<Called>, Error> {
        while !interrupt.came() {
            self.greet()?;
            let Ok((from, greeted)) = self.greeted.1.recv_timeout(LOOK_EVERY) else { continue };
            self.greeting.set(self.greeting.get().saturating_sub(1));
            match greeted {
                Ok(called) => return Ok(Some(called)),
                Err(why) => noted(&format!("{from} is not an agent: {why}")),
            }
        }
        Ok(None)
    }

    /// Greets those that have called, each on a thread of its own: a silent caller does not keep the
    /// others waiting.
    fn greet(&self) -> Result<(), Error> {
        while self.greeting.get() < AGENTS_GREETED_MAX {
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(why) if is_of_the_caller(why.kind()) => continue,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) => return Err(Error::System("listen for agents", why)),
            };
            let (config, greeted) = (self.config.clone(), self.greeted.0.clone());
            let greet = move || {
                // If the hub no longer waits for agents, the result is of no use.
                let _ = greeted.send((from, greet(socket, from, config)));
            };
            let spawned = thread::Builder::new().name("load greet".into()).spawn(greet);
            spawned.map_err(|why| Error::System("start a thread", why))?;
            self.greeting.set(self.greeting.get() + 1);
        }
        Ok(())
    }
}

/// Whether the caller, and not the hub, is the reason that it could not be accepted.
fn is_of_the_caller(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionAborted | ErrorKind::Interrupted)
}

/// Reads the caller's name and clock.
fn greet(socket: TcpStream, from: SocketAddr, config: Arc<ServerConfig>) -> io::Result<Called> {
    socket.set_nonblocking(false)?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut link = Link::new(Connection::Server(tls), socket)?;
    let name = match link.receive(AGENT_SILENCE_MAX)? {
        Message::Hello { form: FORM, name } => format!("{name} ({from})"),
        Message::Hello { form, .. } => {
            return Err(io::Error::other(format!("it is of another version (form {form})")));
        }
        _ => return Err(io::Error::other("it does not say who it is")),
    };
    let clock_ns = compare_clocks(&mut link)?;
    Ok(Called { link, name, clock_ns, lost: None })
}

/// How far the other clock is ahead; of several looks the one that took least time.
fn compare_clocks(link: &mut Link) -> io::Result<(i64, u64)> {
    let mut best = (0, u64::MAX);
    for _ in 0..AGENT_CLOCK_LOOKS {
        let before = clock_ns();
        link.send(&Message::Ping)?;
        let Message::Pong(theirs) = link.receive(AGENT_SILENCE_MAX)? else {
            return Err(io::Error::other("it does not say what its clock says"));
        };
        let half = clock_ns().saturating_sub(before) / 2;
        if half < best.1 {
            best = (theirs.wrapping_sub(before + half) as i64, half);
        }
    }
    Ok(best)
}
