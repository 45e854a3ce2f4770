//! A session at the daemon, and single requests on it.

use super::channel::Channel;
use super::connection::{Connection, Opened};
use super::error::failed;
use super::link::Link;
use super::watchdog::Watchdog;
use crate::limits::BUSY;
use keyway_engine::{Algorithm, DriverSession, Error, NONCE_BYTES, Request};
use keyway_ring::descriptor::{Completion, SessionHandle, Status};
use keyway_wire as wire;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{hint, thread};

/// Between two attempts on a daemon that is busy, at first and at most.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

pub(super) struct RemoteSession {
    pub link: Arc<Link>,
    pub handle: SessionHandle,
    /// The algorithm; for a chain, the first.
    pub algorithm: Algorithm,
    pub makes_nonces: bool,
    signature_bytes_max: usize,
}

impl RemoteSession {
    pub fn new(link: &Arc<Link>, algorithm: Algorithm, opened: &Opened) -> Self {
        RemoteSession {
            link: link.clone(),
            handle: opened.session,
            algorithm,
            makes_nonces: opened.makes_nonces,
            signature_bytes_max: opened.signature_bytes_max,
        }
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        self.link.connection.close(self.handle);
    }
}

/// Why a single request is not sealed where the daemon makes the nonce: there is nowhere to put it.
const NONCE_IS_MADE: Error = Error::invalid_request(
    "the daemon makes this key's nonces: seal with `Session::seal_next`, through a queue, or with \
     `Engine::start`, which say which one it was",
);

const NONCE_IS_TOLD: Error =
    Error::invalid_request("the daemon is told this key's nonces: seal with `Session::seal`");
const NO_NONCE: Error = failed("the daemon's nonce cannot be read");

impl DriverSession for RemoteSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if self.makes_nonces && matches!(request, Request::Seal { .. }) {
            return Err(NONCE_IS_MADE);
        }
        self.run_alone(request, None)
    }

    fn seal_next(
        &self,
        request: &mut Request<'_>,
        nonce: &mut [u8; NONCE_BYTES],
    ) -> Result<usize, Error> {
        match self.makes_nonces {
            true => self.run_alone(request, Some(nonce)),
            false => Err(NONCE_IS_TOLD),
        }
    }

    fn signature_bytes_max(&self) -> usize {
        self.signature_bytes_max
    }
}

impl RemoteSession {
    /// On a channel that it has to itself. Where the daemon makes the nonce, it goes into `nonce`.
    fn run_alone(
        &self,
        request: &mut Request<'_>,
        nonce: Option<&mut [u8; NONCE_BYTES]>,
    ) -> Result<usize, Error> {
        if self.link.connection.is_inherited() {
            self.link.connection.follow();
            return Err(Error::Gone);
        }
        let mut channel = self.link.wait_for_channel()?;
        let result = self.run_on(&mut channel, request, nonce);
        if result == Err(Error::Gone) {
            // Requests under way on it may still come.
            self.link.die();
        } else {
            self.link.return_channel(channel);
        }
        result
    }

    /// Until it is done or refused, or the daemon was busy for too long.
    fn run_on(
        &self,
        channel: &mut Channel,
        request: &mut Request<'_>,
        mut nonce: Option<&mut [u8; NONCE_BYTES]>,
    ) -> Result<usize, Error> {
        let mut busy_since = None;
        let mut pause = PAUSE_MIN;
        loop {
            let result = self.run_once(channel, request, nonce.as_deref_mut());
            // That a password is not looked at now is for its consumer to know.
            if result != Err(Error::Busy) || matches!(request, Request::VerifyPassword { .. }) {
                return result;
            }
            keyway_engine::found_busy();
            if busy_since.get_or_insert_with(Instant::now).elapsed() >= BUSY {
                return result;
            }
            thread::sleep(pause);
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    fn run_once(
        &self,
        channel: &mut Channel,
        request: &mut Request<'_>,
        nonce: Option<&mut [u8; NONCE_BYTES]>,
    ) -> Result<usize, Error> {
        let Link { connection, large, .. } = &*self.link;
        // Where the device of a virtual machine has gone, another's memory may be there.
        if channel.end.is_lost() {
            return Err(Error::Gone);
        }
        let placed = channel.begin(large, 0, self.handle, request, None)?;
        channel.ring();
        let completion = wait(connection, channel)?;
        let mut result = match completion.status {
            Status::Done => channel.take(&placed, &completion, request),
            status => Err(wire::error(status, self.algorithm)),
        };
        if let (Ok(_), Some(nonce)) = (result, nonce) {
            match channel.nonce(&placed) {
                Some(made) => *nonce = made,
                None => result = Err(NO_NONCE),
            }
        }
        channel.finish(large, placed, request);
        result
    }
}

/// Waits for the one request that is under way: it polls about as long as a wake-up takes, and then
/// sleeps.
fn wait(connection: &Connection, channel: &mut Channel) -> Result<Completion, Error> {
    let begun = Instant::now();
    let spin = spin_budget();
    loop {
        // Reading the clock costs as much as several looks.
        for _ in 0..16 {
            if let Some(completion) = channel.end.poll() {
                return Ok(completion);
            }
            hint::spin_loop();
        }
        if begun.elapsed() >= spin {
            break;
        }
    }
    let mut watchdog = Watchdog::default();
    loop {
        let dead = connection.is_dead() || channel.end.is_closed();
        if let Some(completion) = channel.end.poll() {
            return Ok(completion);
        }
        if dead {
            return Err(Error::Gone);
        }
        watchdog.look(connection);
        channel.sleep(Duration::MAX);
    }
}

/// How long it pays to poll before one sleeps, measured once.
pub(super) fn spin_budget() -> Duration {
    const LEAST: Duration = Duration::from_micros(2);
    const MOST: Duration = Duration::from_micros(100);
    static BUDGET: OnceLock<Duration> = OnceLock::new();
    *BUDGET.get_or_init(|| keyway_ring::wake_cost().clamp(LEAST, MOST))
}
