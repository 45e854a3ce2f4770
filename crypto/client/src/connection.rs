//! A connection to the daemon: what is asked of it, its sessions, and its channels.
//!
//! It is used by all threads of its process at once, and by no other process.

use crate::channel::{Channel, Life};
use crate::error::{ClientError, Fault};
use crate::kept::{Kept, above_standard};
use crate::limits::{
    ANSWER, CHANGE, CHANNEL_WAIT, CHANNELS_MAX, REGION_BYTES, RING_ENTRIES, SESSIONS_MAX,
};
use crate::own_key::OwnKey;
use crate::place::Place;
use keyway_engine::{Algorithm, Request};
use keyway_lock::Unpoisoned;
use keyway_ring::control::{self, Answer, Ask, KeyAsk, KeyPolicy};
use keyway_ring::descriptor::{RegionHandle, SessionHandle, Status};
use keyway_ring::{Route, SharedMemory, Socket};
use keyway_wire as wire;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A key that the daemon holds, as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// Its name.
    pub name: String,
    /// Its algorithms, as far as this program knows them.
    pub algorithms: Vec<Algorithm>,
    /// The purposes that this process has for it (`sign`, ...); none if it only looks after the key.
    pub purposes: Vec<String>,
    /// The public half as a SubjectPublicKeyInfo, DER; empty for a key that has none.
    pub public_key: Vec<u8>,
    /// Whether certificates are kept beside it.
    pub has_certificates: bool,
}

/// A key and its certificates in DER, that of the key first.
pub type KeyAndChain = (NamedKey, Vec<Vec<u8>>);

/// The user of a process: a daemon knows a client by the user that has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User(u32, u32);

impl User {
    /// The one that this process is now.
    pub fn current() -> User {
        User(rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    }
}

/// What a request is done with.
#[derive(Clone, Copy)]
pub(crate) enum With<'a> {
    /// No key.
    Nothing(Algorithm),
    /// A key that the daemon holds: its name, and its public half.
    Named(&'a str, &'a [u8], Algorithm),
    /// A key of the program's.
    Own(&'a OwnKey),
}

/// Which session.
#[derive(PartialEq, Eq, Hash)]
enum SessionKey {
    /// With a key of the daemon or, for what needs none, the empty name.
    Named(Box<str>, Algorithm),
    /// With a key of the program's, by its number.
    Own(u64),
}

impl With<'_> {
    fn algorithm(self) -> Algorithm {
        match self {
            With::Nothing(algorithm) | With::Named(_, _, algorithm) => algorithm,
            With::Own(key) => key.algorithm,
        }
    }

    fn session_key(self) -> SessionKey {
        match self {
            With::Nothing(algorithm) => SessionKey::Named("".into(), algorithm),
            With::Named(name, _, algorithm) => SessionKey::Named(name.into(), algorithm),
            With::Own(key) => SessionKey::Own(key.number),
        }
    }

    /// The only step of its session.
    fn step(self) -> control::Step {
        let key = match self {
            With::Nothing(_) => control::Key::None,
            With::Named(name, ..) => control::Key::Named(name.to_owned()),
            With::Own(key) => return key.step.clone(),
        };
        control::Step { algorithm: self.algorithm().name().to_owned(), key }
    }
}

pub(crate) struct Connection {
    path: PathBuf,
    pub user: User,
    route: Kept<Route>,
    /// One message and its answer at a time.
    turn: Mutex<()>,
    dead: AtomicBool,
    /// Whether it is dead since the daemon did not answer.
    silent: AtomicBool,
    sessions: Mutex<HashMap<SessionKey, SessionHandle>>,
    channels: Mutex<Channels>,
    returned: Condvar,
}

#[derive(Default)]
struct Channels {
    free: Vec<Channel>,
    /// Those in use too.
    made: usize,
}

impl Life for Connection {
    fn is_over(&self) -> bool {
        let over = self.dead.load(Ordering::Acquire) || self.has_hung_up();
        if over {
            self.dead.store(true, Ordering::Release);
        }
        over
    }

    fn ping(&self) {
        // Without an answer the connection is dead.
        let _ = self.ask(&Ask::Ping);
    }

    fn give_up(&self) {
        self.silent.store(true, Ordering::Release);
        self.dead.store(true, Ordering::Release);
    }
}

impl Connection {
    /// Connects as the user that this process is now, under this name. A daemon that hangs up at once had no patience
    /// left for a process that was stopped before it said its name, or is at its end: that is tried once more.
    pub fn new(place: &Place, name: &str) -> Result<Connection, ClientError> {
        let mut connection = Connection::unnamed(place)?;
        let mut said = connection.say_hello(name);
        if matches!(&said, Err(why) if why.fault == Fault::Unreachable) && connection.has_hung_up()
        {
            connection = Connection::unnamed(place)?;
            said = connection.say_hello(name);
        }
        said.map(|()| connection)
    }

    fn unnamed(place: &Place) -> Result<Connection, ClientError> {
        let (path, user) = (place.path(), User::current());
        let unreachable = |why: io::Error| ClientError::unreachable(path, &why);
        let route = match place.connect().map_err(unreachable)? {
            Route::Socket(socket) => {
                let socket = above_standard(socket.into()).map_err(unreachable)?;
                Route::Socket(Socket::from_fd(socket))
            }
            device => device,
        };
        Ok(Connection {
            path: path.to_owned(),
            user,
            route: Kept::new(route).map_err(unreachable)?,
            turn: Mutex::default(),
            dead: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            sessions: Mutex::default(),
            channels: Mutex::default(),
            returned: Condvar::new(),
        })
    }

    fn say_hello(&self, name: &str) -> Result<(), ClientError> {
        let hello = Ask::Hello { version: control::VERSION, name: name.to_owned() };
        match self.ask(&hello)?.0 {
            Answer::Hello { version: control::VERSION, .. } => Ok(()),
            Answer::Refused { status, why } if Status::new(status) == Status::Busy => {
                let text = format!("the cryptod at {} is full: {why}", self.path.display());
                Err(ClientError::new(Fault::Busy, text))
            }
            Answer::Refused { why, .. } => {
                let (User(user, _), shown) = (self.user, self.path.display());
                let text = format!("the cryptod at {shown} does not admit user {user}: {why}");
                Err(ClientError::new(Fault::Refused, text))
            }
            _ => Err(ClientError::nonsense(&self.path)),
        }
    }

    fn has_hung_up(&self) -> bool {
        // A program that has closed it has closed what belongs to it, too.
        self.route.get().is_none_or(Route::has_hung_up)
    }

    pub fn die(&self) {
        self.dead.store(true, Ordering::Release);
        self.channels.lock().unpoisoned().free.clear();
        self.returned.notify_all();
    }

    /// Asks, and waits for the answer.
    fn ask(&self, ask: &Ask) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.ask_within(ANSWER, ask)
    }

    fn ask_within(&self, most: Duration, ask: &Ask) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        let too_long = || ClientError::new(Fault::Caller, "the message is too long");
        let bytes = control::encode(ask).map_err(|_| too_long())?;
        let answer = {
            let _turn = self.turn.lock().unpoisoned();
            let Some(route) = self.route.get().filter(|_| !self.dead.load(Ordering::Acquire))
            else {
                return Err(self.over());
            };
            route.ask(&bytes, most)
        };
        match answer {
            Ok(Some(received)) => match control::decode_answer(&received.bytes) {
                Ok(answer) => {
                    let files: io::Result<Vec<_>> =
                        received.fds.into_iter().map(above_standard).collect();
                    let files = files.map_err(|why| ClientError::unreachable(&self.path, &why));
                    files.map(|files| (answer, files))
                }
                Err(_) => Err(ClientError::nonsense(&self.path)),
            },
            Err(why) if why.kind() == io::ErrorKind::TimedOut => {
                self.give_up();
                Err(self.over())
            }
            Ok(None) | Err(_) => {
                self.dead.store(true, Ordering::Release);
                Err(self.over())
            }
        }
    }

    /// Why a connection that is over is of no more use.
    fn over(&self) -> ClientError {
        match self.silent.load(Ordering::Acquire) {
            true => ClientError::silent(&self.path),
            false => ClientError::gone(&self.path),
        }
    }

    /// Says what has no answer.
    fn tell(&self, ask: &Ask) {
        let Ok(bytes) = control::encode(ask) else { return };
        let _turn = self.turn.lock().unpoisoned();
        let route = self.route.get().filter(|_| !self.dead.load(Ordering::Acquire));
        if let Some(route) = route {
            let _ = route.tell(&bytes, ANSWER);
        }
    }

    /// The keys that this process may use.
    pub fn granted(&self) -> Result<Vec<NamedKey>, ClientError> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let answer = self.ask(&Ask::Granted { after: after.clone() })?.0;
            let Answer::Granted { keys, more } = answer else {
                return Err(ClientError::nonsense(&self.path));
            };
            let last = keys.last().map(|key| key.name.clone());
            all.extend(keys.into_iter().map(|key| NamedKey {
                name: key.name,
                algorithms: known(&key.algorithms),
                purposes: key.purposes,
                public_key: key.public_key,
                has_certificates: key.has_certificates,
            }));
            match last.filter(|_| more) {
                Some(last) => after = last,
                None => return Ok(all),
            }
        }
    }

    /// A key that this process may use or, if it looks after the daemon's keys, that there is.
    pub fn find(&self, name: &str) -> Result<NamedKey, ClientError> {
        match self.granted()?.into_iter().find(|key| key.name == name) {
            Some(key) => Ok(key),
            None => self.managed(name)?.ok_or_else(|| self.refused(name)),
        }
    }

    /// As one of the daemon's administrators, who need not be allowed to use a key.
    fn managed(&self, name: &str) -> Result<Option<NamedKey>, ClientError> {
        let public = Ask::Keys(KeyAsk::Public { name: name.to_owned() });
        let Answer::Public { algorithm, key } = self.ask(&public)?.0 else { return Ok(None) };
        let Ok(algorithm) = algorithm.parse() else { return Ok(None) };
        let public_key = wire::subject_public_key_info(algorithm, &key).unwrap_or_default();
        Ok(Some(NamedKey {
            name: name.to_owned(),
            algorithms: vec![algorithm],
            purposes: Vec::new(),
            public_key,
            has_certificates: false,
        }))
    }

    /// The certificates beside a key, in DER, that of the key first; none for a key that has gone meanwhile.
    pub fn certificates(&self, name: &str) -> Result<Vec<Vec<u8>>, ClientError> {
        match self.ask(&Ask::Certificates { name: name.to_owned() })?.0 {
            Answer::Certificates { certificates } => Ok(certificates),
            Answer::Refused { .. } => Ok(Vec::new()),
            _ => Err(ClientError::nonsense(&self.path)),
        }
    }

    /// Where this process may make keys: their names begin with one of these.
    pub fn name_spaces(&self) -> Result<Vec<String>, ClientError> {
        match self.ask(&Ask::NameSpaces)?.0 {
            Answer::NameSpaces { prefixes } => Ok(prefixes),
            answer => Err(self.unexpected(answer)),
        }
    }

    /// Has a key made in a name space of this process.
    pub fn generate(&self, name: &str, policy: KeyPolicy) -> Result<NamedKey, ClientError> {
        self.change(KeyAsk::Generate { name: name.to_owned(), policy })?;
        self.find(name)
    }

    /// Ends a key in a name space of this process, and has it forgotten. An administrator could end any key: a program
    /// that one runs should not.
    pub fn destroy(&self, name: &str) -> Result<(), ClientError> {
        if !self.name_spaces()?.iter().any(|prefix| name.starts_with(prefix)) {
            let text = format!(
                "key {name} is in no name space of this program: keyway key delete removes it"
            );
            return Err(ClientError::new(Fault::Refused, text));
        }
        // One that is revoked already is only to be forgotten.
        let _ = self.change(KeyAsk::Revoke { name: name.to_owned() });
        self.change(KeyAsk::Delete { name: name.to_owned() })
    }

    fn change(&self, ask: KeyAsk) -> Result<(), ClientError> {
        match self.ask_within(CHANGE, &Ask::Keys(ask))?.0 {
            Answer::Done => Ok(()),
            Answer::Refused { status, why } if Status::new(status) != Status::Busy => {
                let text = format!("the cryptod at {} refuses: {why}", self.path.display());
                Err(ClientError::new(Fault::Refused, text))
            }
            answer => Err(self.unexpected(answer)),
        }
    }

    fn refused(&self, name: &str) -> ClientError {
        let (User(user, _), shown) = (self.user, self.path.display());
        let text = format!("the cryptod at {shown} has no key {name} that user {user} may use");
        ClientError::new(Fault::Refused, text)
    }

    /// Runs a request.
    ///
    /// # Errors
    /// With [`Fault::Unreachable`] if the connection is over.
    pub fn run(&self, with: With<'_>, request: &mut Request<'_>) -> Result<usize, ClientError> {
        let session = self.session(with)?;
        let result = self.run_on(session, request)?;
        let result = match result {
            Err(Status::NoSession) => {
                self.sessions.lock().unpoisoned().retain(|_, held| *held != session);
                let again = self.session(with)?;
                self.run_on(again, request)?
            }
            result => result,
        };
        result.map_err(|status| self.failed(status, with.algorithm()))
    }

    /// Opens a session with a key of the program's, unless there is one.
    pub fn admit(&self, key: &OwnKey) -> Result<(), ClientError> {
        self.session(With::Own(key)).map(drop)
    }

    /// Closes the session with a key of the program's, if there is one.
    pub fn forget(&self, key: &OwnKey) {
        let closed = self.sessions.lock().unpoisoned().remove(&With::Own(key).session_key());
        if let Some(session) = closed {
            self.tell(&Ask::Close { session });
        }
    }

    fn run_on(
        &self,
        session: SessionHandle,
        request: &mut Request<'_>,
    ) -> Result<Result<usize, Status>, ClientError> {
        let mut channel = self.channel(request)?;
        let result = channel.run(self, session, request);
        if result == Err(Status::Gone) {
            // The daemon may still work on it: the channel is not used again.
            self.die();
            return Err(self.over());
        }
        self.give_back(channel);
        Ok(result)
    }

    fn failed(&self, status: Status, algorithm: Algorithm) -> ClientError {
        let fault = match status {
            Status::Unsupported | Status::NoSession | Status::InvalidKey => Fault::Key,
            Status::InvalidRequest | Status::Authentication => Fault::Caller,
            Status::Gone => Fault::Unreachable,
            Status::Busy => Fault::Busy,
            _ => Fault::Daemon,
        };
        let why = wire::error(status, algorithm);
        let text = format!("the cryptod at {} did not do {algorithm}: {why}", self.path.display());
        ClientError::new(fault, text)
    }

    fn session(&self, with: With<'_>) -> Result<SessionHandle, ClientError> {
        let wanted = with.session_key();
        let mut sessions = self.sessions.lock().unpoisoned();
        if let Some(session) = sessions.get(&wanted) {
            return Ok(*session);
        }
        let opened = self.open(with)?;
        if sessions.len() >= SESSIONS_MAX {
            for (_, session) in sessions.drain() {
                self.tell(&Ask::Close { session });
            }
        }
        sessions.insert(wanted, opened);
        Ok(opened)
    }

    fn open(&self, with: With<'_>) -> Result<SessionHandle, ClientError> {
        let algorithm = with.algorithm();
        let session = match self.ask(&Ask::Open { steps: vec![with.step()] })?.0 {
            Answer::Session { session, .. } => session,
            Answer::Refused { status, why } if Status::new(status) == Status::Busy => {
                let shown = self.path.display();
                let text =
                    format!("the cryptod at {shown} opens no session for {algorithm}: {why}");
                return Err(ClientError::new(Fault::Busy, text));
            }
            Answer::Refused { status, .. } if matches!(with, With::Own(_)) => {
                return Err(self.failed(Status::new(status), algorithm));
            }
            Answer::Refused { why, .. } => {
                let (User(user, _), shown) = (self.user, self.path.display());
                let text = format!(
                    "the cryptod at {shown} does not let user {user} use it for {algorithm}: {why}"
                );
                return Err(ClientError::new(Fault::Refused, text));
            }
            _ => return Err(ClientError::nonsense(&self.path)),
        };
        if let With::Named(_, public_key, _) = with
            && let Err(why) = self.check(session, algorithm, public_key)
        {
            self.tell(&Ask::Close { session });
            return Err(why);
        }
        Ok(session)
    }

    /// Whether a session's key still is the one that the program has loaded: keys are rotated.
    fn check(
        &self,
        session: SessionHandle,
        algorithm: Algorithm,
        public_key: &[u8],
    ) -> Result<(), ClientError> {
        let mut out = vec![0; public_key.len().max(64)];
        let used = self.run_on(session, &mut Request::PublicKey { out: &mut out })?;
        let used = used.map_err(|status| self.failed(status, algorithm))?;
        let now = out.get(..used).and_then(|key| wire::subject_public_key_info(algorithm, key));
        match now.is_some_and(|now| now == public_key) {
            true => Ok(()),
            false => Err(ClientError::new(
                Fault::Key,
                format!(
                    "the cryptod at {} has another key under that name by now: load it again",
                    self.path.display()
                ),
            )),
        }
    }

    /// A channel into which the request fits; waits until there is one.
    fn channel(&self, request: &Request<'_>) -> Result<Channel, ClientError> {
        let mut channel = self.any_channel()?;
        if !channel.fits(request) {
            let bytes = wire::bytes_max(request).checked_next_power_of_two();
            match self.region(bytes.unwrap_or(usize::MAX)) {
                Ok((memory, region)) => {
                    self.tell(&Ask::Forget { region: channel.region });
                    (channel.memory, channel.region) = (memory, region);
                }
                Err(why) => {
                    self.give_back(channel);
                    return Err(why);
                }
            }
        }
        Ok(channel)
    }

    fn any_channel(&self) -> Result<Channel, ClientError> {
        let begun = Instant::now();
        let mut channels = self.channels.lock().unpoisoned();
        loop {
            if self.dead.load(Ordering::Acquire) {
                return Err(self.over());
            }
            if let Some(channel) = channels.free.pop() {
                return Ok(channel);
            }
            if channels.made < CHANNELS_MAX {
                channels.made += 1;
                drop(channels);
                let made = self.new_channel();
                channels = self.channels.lock().unpoisoned();
                channels.made -= usize::from(made.is_err());
                match made {
                    // The daemon makes no more at present: those that there are have to do.
                    Err(why) if why.fault == Fault::Busy && channels.made > 0 => {}
                    made => return made,
                }
            }
            let most = CHANNEL_WAIT.saturating_sub(begun.elapsed());
            if most.is_zero() {
                let text = format!("all connections to {} are in use", self.path.display());
                return Err(ClientError::new(Fault::Busy, text));
            }
            channels = self.returned.wait_timeout(channels, most).unpoisoned().0;
        }
    }

    fn give_back(&self, channel: Channel) {
        let large = channel.is_large();
        let mut channels = self.channels.lock().unpoisoned();
        if large {
            channels.made -= 1;
        } else if !self.dead.load(Ordering::Acquire) {
            channels.free.push(channel);
            drop(channels);
            self.returned.notify_one();
            return;
        }
        drop(channels);
        self.tell(&Ask::CloseQueue { queue: channel.queue });
        self.tell(&Ask::Forget { region: channel.region });
        self.returned.notify_one();
    }

    fn new_channel(&self) -> Result<Channel, ClientError> {
        let (answer, files) = self.ask(&Ask::Queue { entries: RING_ENTRIES })?;
        if !matches!(answer, Answer::Queue { .. } | Answer::QueueAt { .. }) {
            return Err(self.unexpected(answer));
        }
        let nonsense = || ClientError::nonsense(&self.path);
        let pair = self.route.get().and_then(|route| route.queue_pair(&answer, files));
        let (queue, ring, bell) = pair.ok_or_else(nonsense)?;
        let end = ring.without_file().and_then(|ring| ring.client_end()).ok_or_else(nonsense)?;
        let region = self.region(REGION_BYTES);
        let (memory, region) = region.inspect_err(|_| self.tell(&Ask::CloseQueue { queue }))?;
        let bell = Kept::new(bell).map_err(|why| ClientError::unreachable(&self.path, &why))?;
        Ok(Channel { queue, end, bell, memory, region })
    }

    fn region(&self, bytes: usize) -> Result<(SharedMemory, RegionHandle), ClientError> {
        let (answer, files) = self.ask(&Ask::Region { bytes: bytes as u64 })?;
        if !matches!(answer, Answer::Region { .. } | Answer::RegionAt { .. }) {
            return Err(self.unexpected(answer));
        }
        let region = self.route.get().and_then(|route| route.region(&answer, files));
        let region = region.filter(|(memory, _)| memory.bytes() >= bytes);
        let (memory, region) = region.ok_or_else(|| ClientError::nonsense(&self.path))?;
        Ok((memory.without_file(), region))
    }

    fn unexpected(&self, answer: Answer) -> ClientError {
        match answer {
            Answer::Refused { status, why } => {
                let busy = Status::new(status) == Status::Busy;
                let text = format!("the cryptod at {} refuses: {why}", self.path.display());
                ClientError::new(if busy { Fault::Busy } else { Fault::Daemon }, text)
            }
            _ => ClientError::nonsense(&self.path),
        }
    }
}

fn known(names: &[String]) -> Vec<Algorithm> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}
