//! A connection to the daemon: the way to it, and what is asked there.
//!
//! It is alive until the daemon hangs up, answers nonsense or does not answer in time. Then it is
//! dead for good, and whatever is under way on it ends as if the daemon were gone. Used by all
//! threads at once.
//!
//! For a child that is forked from its process it is dead from the start, and the child touches nothing
//! of it: its locks may be held by threads that the child does not have, and its socket, its rings and its
//! memory are the parent's. The child makes a connection of its own ([`Connection::follow`]).

use super::error::failed;
use super::options::RemoteOptions;
use super::sync::lock;
use crate::limits::{ANSWER, LOOK, RING_ENTRIES};
use keyway_engine::{Algorithm, Error, Step};
use keyway_fork::Generation;
use keyway_ring::control::{self, Answer, Ask};
use keyway_ring::descriptor::{RegionHandle, SessionHandle, Status};
use keyway_ring::limits::KEY_BYTES_MAX;
use keyway_ring::{Alarm, ClientEnd, Doorbell, Route, SharedMemory, Socket};
use keyway_wire as wire;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub(super) struct Connection {
    /// No other connection of this process, or of one that it was forked from, has it.
    pub number: u32,
    /// The process whose it is.
    process: Generation,
    /// Called by a child that was forked from that process, to have a connection of its own made.
    follow: Follow,
    route: Route,
    /// One message and its answer at a time.
    turn: Mutex<()>,
    /// Rung by a thread that has waited too long for the daemon.
    pings: Alarm,
    dead: AtomicBool,
    /// Whether it was the daemon that ended it.
    hung_up: AtomicBool,
    /// By [`Algorithm`], what the daemon does.
    does: [bool; Algorithm::COUNT],
}

/// Makes a connection for a forked child.
pub(super) type Follow = Box<dyn Fn() + Send + Sync>;

/// The daemon's answer about a session that it has opened.
pub(super) struct Opened {
    pub session: SessionHandle,
    pub signature_bytes_max: usize,
    pub makes_nonces: bool,
}

/// This side of a queue pair.
pub(super) struct QueuePair {
    /// The daemon's number for it.
    pub queue: u32,
    /// How many requests fit into each ring.
    pub entries: u32,
    pub end: ClientEnd,
    pub bell: Doorbell,
}

static NEXT: AtomicU32 = AtomicU32::new(1);

impl Connection {
    /// Connects and says hello.
    pub fn new(options: &RemoteOptions, follow: Follow) -> io::Result<Connection> {
        let route = match &options.connection {
            None => Route::connect(&options.path)?,
            Some(socket) => Route::Socket(Socket::from_fd(socket.as_fd().try_clone_to_owned()?)),
        };
        let name = options.client.clone();
        let hello = Ask::Hello { version: control::VERSION, name };
        let received = route.ask(&control::encode(&hello).map_err(invalid)?, ANSWER)?;
        let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        let Some(received) = received else {
            return Err(refused("the daemon hung up at once".to_owned()));
        };
        let algorithms = match control::decode_answer(&received.bytes).map_err(invalid)? {
            Answer::Hello { version: control::VERSION, algorithms, .. } => algorithms,
            Answer::Hello { version, .. } => {
                let ours = control::VERSION;
                return Err(refused(format!("the daemon speaks version {version}, not {ours}")));
            }
            Answer::Refused { why, .. } => {
                return Err(refused(format!("the daemon does not admit this client: {why}")));
            }
            _ => return Err(invalid(control::Malformed)),
        };
        let mut does = [false; Algorithm::COUNT];
        for algorithm in algorithms.iter().filter_map(|name| name.parse::<Algorithm>().ok()) {
            does[algorithm as usize] = true;
        }
        Ok(Connection {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            process: Generation::current(),
            follow,
            pings: Alarm::new()?,
            route,
            turn: Mutex::default(),
            dead: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            does,
        })
    }

    pub fn does(&self, algorithm: Algorithm) -> bool {
        self.does[algorithm as usize]
    }

    #[inline]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire) || self.is_inherited()
    }

    /// Whether it is of a process that this one was forked from.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        !self.process.is_current()
    }

    /// In a forked child: has a connection of its own made, if that can be, before the engine looks for
    /// another driver.
    #[cold]
    pub fn follow(&self) {
        (self.follow)();
    }

    /// Ends it: nothing more is asked on it, and a thread that waits for its end sees it.
    pub fn die(&self) {
        if self.is_inherited() {
            return;
        }
        if !self.dead.swap(true, Ordering::AcqRel) {
            self.route.end();
        }
    }

    /// Has a daemon that says nothing asked whether it is alive, by the thread that waits for its end.
    pub fn ping(&self) {
        if !self.is_dead() {
            self.pings.ring();
        }
    }

    /// Waits until the daemon hangs up, does not say that it is alive when it is asked, or
    /// is left here.
    pub fn wait_for_end(&self) {
        let pings = PollFd::new(&self.pings, PollFlags::IN);
        // Nothing tells of the end of a device.
        let (mut events, most) = match &self.route {
            Route::Socket(socket) => (vec![pings, PollFd::new(socket, PollFlags::RDHUP)], None),
            Route::Slot(_) => (vec![pings], Some(&LOOK)),
        };
        while !self.is_dead() {
            match rustix::event::poll(&mut events, most) {
                Ok(1..) if !events[0].revents().is_empty() => {
                    self.pings.take();
                    // If there is no answer, the connection is dead.
                    let _ = self.ask(&Ask::Ping);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) if !self.route.has_hung_up() => {}
                Ok(_) | Err(_) => {
                    // The other way round, it may have been ended here between the two.
                    self.hung_up.store(!self.is_dead(), Ordering::Release);
                    return;
                }
            }
        }
    }

    /// Whether the daemon has ended it, and so works on nothing of it any more.
    pub fn has_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Gone`] if there is none; then the connection is dead.
    fn ask(&self, ask: &Ask) -> Result<(Answer, Vec<OwnedFd>), Error> {
        let bytes = control::encode(ask).map_err(|_| TOO_LONG)?;
        if self.is_dead() {
            return Err(Error::Gone);
        }
        let turn = lock(&self.turn);
        if self.is_dead() {
            return Err(Error::Gone);
        }
        let received = self.route.ask(&bytes, ANSWER);
        drop(turn);
        let answer = received.ok().flatten().and_then(|received| {
            Some((control::decode_answer(&received.bytes).ok()?, received.fds))
        });
        answer.ok_or_else(|| {
            self.die();
            Error::Gone
        })
    }

    /// Says what has no answer.
    fn tell(&self, ask: &Ask) {
        let Ok(bytes) = control::encode(ask) else { return };
        if self.is_dead() {
            return;
        }
        let turn = lock(&self.turn);
        if !self.is_dead() && self.route.tell(&bytes, ANSWER).is_err() {
            drop(turn);
            self.die();
        }
    }

    /// The error that an answer means which was not expected.
    fn unexpected(&self, answer: Answer, algorithm: Algorithm) -> Error {
        let error = match answer {
            Answer::Refused { status, .. } => wire::error(Status::new(status), algorithm),
            _ => Error::Gone,
        };
        if error == Error::Gone {
            self.die();
        }
        error
    }

    pub fn open(&self, steps: &[Step<'_>]) -> Result<Opened, Error> {
        let algorithm = steps.first().map_or(Algorithm::Random, |step| step.algorithm);
        let ask = Ask::Open { steps: steps.iter().map(wire::step).collect() };
        if let Ask::Open { steps } = &ask
            && steps.iter().any(is_too_long)
        {
            return Err(TOO_LONG);
        }
        match self.ask(&ask)?.0 {
            Answer::Session { session, signature_bytes_max, makes_nonces } => Ok(Opened {
                session,
                signature_bytes_max: signature_bytes_max as usize,
                makes_nonces,
            }),
            other => Err(self.unexpected(other, algorithm)),
        }
    }

    pub fn close(&self, session: SessionHandle) {
        self.tell(&Ask::Close { session });
    }

    /// Memory of at least so many bytes that the daemon has made, all zero, and what it calls it.
    ///
    /// # Errors
    /// [`Error::Busy`] if it makes no more, and [`Error::Gone`].
    pub fn region(&self, bytes: usize) -> Result<(SharedMemory, RegionHandle), Error> {
        let (answer, files) = self.ask(&Ask::Region { bytes: bytes as u64 })?;
        let handle = match answer {
            Answer::Region { region } | Answer::RegionAt { region, .. } => region,
            // For whatever reason it is refused, nothing is wrong with the request.
            other => {
                return Err(match self.unexpected(other, Algorithm::Random) {
                    Error::Gone => Error::Gone,
                    _ => Error::Busy,
                });
            }
        };
        match self.route.region(&answer, files) {
            Some((memory, region)) if memory.bytes() >= bytes => Ok((memory, region)),
            _ => {
                self.forget(handle);
                Err(failed("the daemon's memory cannot be mapped"))
            }
        }
    }

    pub fn forget(&self, region: RegionHandle) {
        self.tell(&Ask::Forget { region });
    }

    /// A queue pair that the daemon has made.
    ///
    /// # Errors
    /// [`Error::Busy`] if it makes no more, and [`Error::Gone`].
    pub fn queue_pair(&self) -> Result<QueuePair, Error> {
        let (answer, fds) = self.ask(&Ask::Queue { entries: RING_ENTRIES })?;
        let number = match answer {
            Answer::Queue { queue, .. } | Answer::QueueAt { queue, .. } => queue,
            other => {
                return match self.unexpected(other, Algorithm::Random) {
                    Error::Gone => Err(Error::Gone),
                    _ => Err(Error::Busy),
                };
            }
        };
        let pair = self.route.queue_pair(&answer, fds).and_then(|(queue, ring, bell)| {
            let (entries, end) = (ring.entries(), ring.client_end()?);
            Some(QueuePair { queue, entries, end, bell })
        });
        pair.ok_or_else(|| {
            self.close_queue(number);
            failed("the queue pair cannot be mapped")
        })
    }

    pub fn close_queue(&self, queue: u32) {
        self.tell(&Ask::CloseQueue { queue });
    }
}

fn is_too_long(step: &control::Step) -> bool {
    use control::Key;
    let long = |secret: &control::Secret| secret.0.len() > KEY_BYTES_MAX;
    match &step.key {
        Key::Secret(key) | Key::Pkcs8(key) | Key::Pkcs1(key) | Key::Sec1(key) => long(key),
        Key::Extract { salt, secret } => long(salt) || long(secret),
        Key::None | Key::Packet(_) | Key::Generate | Key::Named(_) => false,
    }
}

fn invalid(why: control::Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

const TOO_LONG: Error = Error::InvalidKey("it is longer than a message to the daemon may be");
