//! The control thread: lets clients in and sets up for them what the fast path needs.
//!
//! It answers one message of each client that has sent any, and then of each again: a client with many
//! delays the others by one message each. It never waits for a client. One that does not read its answers
//! is sent away, and so is one whose messages make no sense.

use crate::admission::Admission;
use crate::handover::{self, Part};
use crate::keys::{Caller, KeySession, KeyStore, Wanted};
use crate::limits::{
    CLIENT_NAME_BYTES_MAX, CLIENTS_MAX, ClientLimits, HELLO, STATUS_CLIENTS_MAX, STRANGERS_MAX,
    USAGE_SAVE_S,
};
use crate::managing;
use crate::pump::{ClientId, Command, Position, Pump, Usage};
use crate::request::status_of;
use keyway_engine::{Algorithm, Engine, Error, Key, Kind, PacketKey, PacketKeys, Parameters};
use keyway_engine::{Nonces, Session, Step};
use keyway_meter::{Counter, counter};
use keyway_ring::control::{self, Answer, Ask, ClientStatus, DaemonStatus, KeyAsk, VERSION};
use keyway_ring::descriptor::{GENERATION_MAX, RegionHandle, SessionHandle, Status};
use keyway_ring::limits::REGION_BYTES_MAX;
use keyway_ring::{Doorbell, Received, RingMemory, SharedMemory, Socket, with_address};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, socket_with};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// How a daemon serves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is let in.
    pub admission: Admission,
    /// What each client may have.
    pub limits: ClientLimits,
    /// The keys that clients may name.
    pub keys: Option<Arc<KeyStore>>,
    /// Threads that poll rings, at least 1.
    pub pumps: usize,
    /// How long a pump polls a ring in which nothing comes before its client has to ring.
    pub spin: Duration,
}

/// Listens at a path, for its own user and group (0660). A socket that nobody listens at any more is
/// replaced.
///
/// # Errors
/// `AddrInUse` if somebody listens there, or something else than a socket is there; else the system's.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    if let Ok(there) = fs::symlink_metadata(path) {
        let in_use = |why| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
        if !there.file_type().is_socket() {
            return in_use("something else than a socket is there");
        }
        if Socket::connect(path).is_ok() {
            return in_use("another daemon listens there");
        }
        fs::remove_file(path)?;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    with_address(path, |address| bind(&socket, address))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// A daemon that serves. Dropping it ends its threads and, unless another one has taken over, tells its
/// clients.
pub struct Daemon {
    ended: Arc<(AtomicBool, Doorbell)>,
    thread: Option<JoinHandle<()>>,
}

/// What is called when another daemon has taken over, on a thread of this one.
pub type HandedOver = Box<dyn FnOnce() + Send>;

impl Daemon {
    /// Serves whoever connects to a [listening](listen) socket, with this engine. When another daemon
    /// has taken over, `handed_over` is called.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        engine: &Engine,
        listener: OwnedFd,
        options: Options,
        handed_over: HandedOver,
    ) -> io::Result<Daemon> {
        let ended = Arc::new((AtomicBool::new(false), Doorbell::new()?));
        let server = Server::new(engine, listener, options, &ended, handed_over)?;
        Self::run(server, ended)
    }

    /// Takes the place of the daemon that listens at a path: its clients, with all they have, and
    /// its socket. They notice nothing but a pause.
    ///
    /// # Errors
    /// The system's; `PermissionDenied` if the other daemon does not let this process, and `InvalidData`
    /// if it hands over something that makes no sense. It then goes on.
    ///
    /// `options` is called when the other daemon has given up its key store, so that this one can open
    /// it.
    pub fn take_over(
        engine: &Engine,
        path: &Path,
        options: impl FnOnce() -> io::Result<Options>,
        handed_over: HandedOver,
    ) -> io::Result<Daemon> {
        let ended = Arc::new((AtomicBool::new(false), Doorbell::new()?));
        let server = Server::take_over(engine, path, options, &ended, handed_over)?;
        Self::run(server, ended)
    }

    fn run(mut server: Server, ended: Arc<(AtomicBool, Doorbell)>) -> io::Result<Daemon> {
        let thread = thread::Builder::new().name("control".to_owned());
        let thread = Some(thread.spawn(move || server.run())?);
        Ok(Daemon { ended, thread })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.ended.0.store(true, Ordering::Release);
        self.ended.1.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client's connection.
struct Guest {
    socket: Socket,
    caller: Caller,
    /// What it calls itself, once it has.
    name: Option<String>,
    since: Instant,
    pump: usize,
    queues: Vec<QueuePair>,
    next_queue: u32,
    sessions: Places<Opened>,
    regions: Places<(u16, Arc<SharedMemory>)>,
    /// Generation of the next region.
    region_generation: u16,
    region_bytes: usize,
    usage: Arc<Usage>,
}

/// A queue pair, as it may have to be handed over.
struct QueuePair {
    number: u32,
    memory: RingMemory,
    bell: OwnedFd,
}

/// A session, as it may have to be handed over.
struct Opened {
    generation: u64,
    steps: Vec<control::Step>,
}

/// Numbered places that are given out and taken back.
struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Places<T> {
    fn new() -> Self {
        Places { places: Vec::new(), free: Vec::new() }
    }

    fn used(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn put(&mut self, it: T) -> usize {
        match self.free.pop() {
            Some(index) => {
                self.places[index] = Some(it);
                index
            }
            None => {
                self.places.push(Some(it));
                self.places.len() - 1
            }
        }
    }

    /// Puts it where it was in another daemon.
    fn put_at(&mut self, index: usize, it: T) {
        while self.places.len() <= index {
            self.free.push(self.places.len());
            self.places.push(None);
        }
        self.free.retain(|free| *free != index);
        self.places[index] = Some(it);
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(index, it)| Some((index, it.as_ref()?)))
    }

    fn take_if(&mut self, index: usize, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        let place = self.places.get_mut(index)?;
        let it = place.take_if(|it| is_it(it))?;
        self.free.push(index);
        Some(it)
    }
}

/// Whom an event is about: not a client's number.
const LISTENER: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

struct Server {
    engine: Engine,
    listener: OwnedFd,
    options: Options,
    ended: Arc<(AtomicBool, Doorbell)>,
    epoll: OwnedFd,
    pumps: Vec<Pump>,
    guests: BTreeMap<ClientId, Guest>,
    next: ClientId,
    /// When it started, in seconds since 1970.
    since: u64,
    handed_over: Option<HandedOver>,
    /// When the keys' usage counts were saved.
    saved: Instant,
    connected: Counter,
    gone: Counter,
    turned_away: Counter,
}

/// Why a client is sent away.
struct SendAway;

/// An answer and what goes with it.
struct Reply<'a> {
    answer: Answer,
    fds: Vec<BorrowedFd<'a>>,
}

impl Server {
    fn new(
        engine: &Engine,
        listener: OwnedFd,
        options: Options,
        ended: &Arc<(AtomicBool, Doorbell)>,
        handed_over: HandedOver,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &ended.1, EventData::new_u64(ENDED), EventFlags::IN)?;
        let start = |index| Pump::start(engine, index, options.spin);
        let pumps = (0..options.pumps.max(1)).map(start).collect::<io::Result<_>>()?;
        Ok(Server {
            engine: engine.clone(),
            listener,
            options,
            ended: ended.clone(),
            epoll,
            pumps,
            guests: BTreeMap::new(),
            next: 1,
            since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
            handed_over: Some(handed_over),
            saved: Instant::now(),
            connected: counter("cryptod.clients.connected"),
            gone: counter("cryptod.clients.gone"),
            turned_away: counter("cryptod.clients.turned_away"),
        })
    }

    fn run(&mut self) {
        while !self.ended.0.load(Ordering::Acquire) {
            let strangers = self.guests.values().any(|guest| guest.name.is_none());
            // Those who do not say who they are leave in time.
            let save = self.options.keys.as_ref().map(|_| USAGE_SAVE_S as i64);
            let timeout = if strangers { Some(1) } else { save };
            let timeout = timeout.map(|tv_sec| rustix::time::Timespec { tv_sec, tv_nsec: 0 });
            let mut events = [const { std::mem::MaybeUninit::uninit() }; 64];
            let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) else {
                continue;
            };
            for event in events {
                // What comes after a handover is for the daemon that took over.
                if self.ended.0.load(Ordering::Acquire) {
                    return;
                }
                match event.data.u64() {
                    LISTENER => self.accept(),
                    ENDED => {}
                    client => self.serve(client),
                }
            }
            self.drop_the_silent();
            self.save_usage();
        }
    }

    /// Saves how often keys were used, now and then.
    fn save_usage(&mut self) {
        if self.saved.elapsed() >= Duration::from_secs(USAGE_SAVE_S)
            && let Some(keys) = &self.options.keys
        {
            // What cannot be saved now is saved the next time.
            let _ = keys.save_usage();
            self.saved = Instant::now();
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC;
        let Ok(socket) = accept_with(&self.listener, flags) else { return };
        let strangers = self.guests.values().filter(|guest| guest.name.is_none()).count();
        let has_room = self.guests.len() < CLIENTS_MAX && strangers < STRANGERS_MAX;
        let caller = Caller::of(&socket).ok();
        let admits = |caller: &Caller| self.options.admission.admits(caller);
        let Some(caller) = caller.filter(|caller| has_room && admits(caller)) else {
            self.turned_away.increment();
            let why = match has_room {
                true => "this user and program are not among the daemon's clients",
                false => "the daemon has as many clients as it takes",
            };
            let status = if has_room { Status::Unsupported } else { Status::Busy };
            turn_away(&Socket::from_fd(socket), &Answer::refused(status, why));
            return;
        };
        let id = self.next;
        if epoll::add(&self.epoll, &socket, EventData::new_u64(id), EventFlags::IN).is_err() {
            return;
        }
        self.next += 1;
        self.guests.insert(id, Guest::new(Socket::from_fd(socket), caller));
    }

    /// Answers one message.
    fn serve(&mut self, id: ClientId) {
        let Some(guest) = self.guests.get(&id) else { return };
        let answered = match guest.socket.try_receive() {
            Ok(Some(message)) => self.answer(id, message),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Ok(None) | Err(_) => Err(SendAway),
        };
        if answered.is_err() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: ClientId) {
        let Some(guest) = self.guests.remove(&id) else { return };
        if guest.name.is_some() {
            self.gone.increment();
            if let Some(pump) = self.pumps.get(guest.pump) {
                pump.command(Command::Remove(id));
            }
        }
    }

    fn drop_the_silent(&mut self) {
        let silent = |guest: &Guest| guest.name.is_none() && guest.since.elapsed() > HELLO;
        let silent: Vec<_> =
            self.guests.iter().filter(|(_, guest)| silent(guest)).map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|id| self.remove(id));
    }

    fn answer(&mut self, id: ClientId, message: Received) -> Result<(), SendAway> {
        let Received { bytes, fds } = message;
        let ask = control::decode_ask(&bytes).map_err(|_| SendAway)?;
        drop(bytes);
        let is_known = self.guests.get(&id).is_some_and(|guest| guest.name.is_some());
        if !is_known && !matches!(ask, Ask::Hello { .. }) {
            return Err(SendAway);
        }
        let answer = match ask {
            Ask::Hello { version, name } => self.hello(id, version, name)?,
            Ask::Queue { entries } => return self.queue(id, entries),
            Ask::Region => self.region(id, fds)?,
            Ask::Open { steps } => self.open(id, steps)?,
            Ask::CloseQueue { queue } => return self.close_queue(id, queue),
            Ask::Forget { region } => return self.forget(id, region),
            Ask::Close { session } => return self.close(id, session),
            Ask::Status => self.status(id)?,
            Ask::TakeOver => return self.hand_over(id),
            Ask::Keys(ask) => self.manage(id, ask)?,
            Ask::Export { session, under } => self.export(id, session, &under)?,
            Ask::Import { under, sealed } => self.import(id, &under, &sealed)?,
        };
        self.reply(id, Reply { answer, fds: Vec::new() })
    }

    fn reply(&self, id: ClientId, reply: Reply<'_>) -> Result<(), SendAway> {
        let guest = self.guests.get(&id).ok_or(SendAway)?;
        let bytes = control::encode(&reply.answer).map_err(|_| SendAway)?;
        guest.socket.try_send(&bytes, &reply.fds).map_err(|_| SendAway)
    }

    fn guest(&mut self, id: ClientId) -> Result<&mut Guest, SendAway> {
        self.guests.get_mut(&id).ok_or(SendAway)
    }

    fn command(&self, id: ClientId, command: Command) {
        let pump = self.guests.get(&id).and_then(|guest| self.pumps.get(guest.pump));
        if let Some(pump) = pump {
            pump.command(command);
        }
    }

    fn hello(&mut self, id: ClientId, version: u32, name: String) -> Result<Answer, SendAway> {
        let printable = |name: &str| name.chars().all(|c| !c.is_control());
        if version != VERSION {
            let text = format!("the daemon speaks version {VERSION} and not {version}");
            return Ok(Answer::refused(Status::Unsupported, text));
        }
        let guest = self.guest(id)?;
        if guest.name.is_some() || name.len() > CLIENT_NAME_BYTES_MAX || !printable(&name) {
            return Err(SendAway);
        }
        self.admit(id, name)?;
        let does = |algorithm: &&Algorithm| self.engine.offers(&[**algorithm]);
        let algorithms =
            Algorithm::ALL.iter().filter(does).map(|it| it.name().to_owned()).collect();
        Ok(Answer::Hello { version: VERSION, algorithms, process: std::process::id() })
    }

    /// Gives a client to the pump that has the fewest.
    fn admit(&mut self, id: ClientId, name: String) -> Result<(), SendAway> {
        let loads = (0..self.pumps.len()).map(|pump| {
            (self.guests.values().filter(|it| it.name.is_some() && it.pump == pump).count(), pump)
        });
        let pump = loads.min().map_or(0, |(_, pump)| pump);
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        (guest.name, guest.pump) = (Some(name), pump);
        let (owner, usage) = (guest.caller.uid, guest.usage.clone());
        self.connected.increment();
        self.command(id, Command::Admit { client: id, owner, limits, weight: 1, usage });
        Ok(())
    }

    fn queue(&mut self, id: ClientId, entries: u32) -> Result<(), SendAway> {
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        let refuse = |server: &Self, why: &str| {
            let answer = Answer::refused(Status::Busy, why);
            server.reply(id, Reply { answer, fds: Vec::new() })
        };
        if guest.queues.len() >= limits.queues {
            return refuse(self, "a client has no more queue pairs than that");
        }
        let made = RingMemory::create(entries.min(limits.queue_entries));
        let made = made.and_then(|memory| Ok((memory, Doorbell::new()?)));
        let Ok((memory, bell)) = made else {
            return refuse(self, "the system has no room for a queue pair");
        };
        let (Some(end), Ok(to_ring)) = (memory.daemon_end(0, 0), bell.as_fd().try_clone_to_owned())
        else {
            return refuse(self, "the system has no room for a queue pair");
        };
        let number = guest.next_queue;
        guest.next_queue += 1;
        let entries = memory.entries();
        guest.queues.push(QueuePair { number, memory: memory.clone(), bell: to_ring });
        self.command(id, Command::Pair { client: id, number, end, bell, entries });
        let answer = Answer::Queue { queue: number, entries };
        let bell = self.guests.get(&id).and_then(|guest| guest.queues.last()).ok_or(SendAway)?;
        self.reply(id, Reply { answer, fds: vec![memory.memory().as_fd(), bell.bell.as_fd()] })
    }

    fn close_queue(&mut self, id: ClientId, queue: u32) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        guest.queues.retain(|known| known.number != queue);
        self.command(id, Command::ClosePair(id, queue));
        Ok(())
    }

    fn region(&mut self, id: ClientId, mut fds: Vec<OwnedFd>) -> Result<Answer, SendAway> {
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        let (Some(file), true) = (fds.pop(), fds.is_empty()) else {
            return Ok(Answer::refused(Status::InvalidRequest, "a region is one memory file"));
        };
        if guest.regions.used() >= limits.regions.min(keyway_ring::limits::REGIONS_MAX) {
            return Ok(Answer::refused(Status::Busy, "a client has no more regions than that"));
        }
        let left = limits.region_bytes.saturating_sub(guest.region_bytes);
        let memory = match SharedMemory::adopt(file, left) {
            Ok(memory) => memory,
            Err(why) => return Ok(Answer::refused(Status::InvalidRequest, why.to_string())),
        };
        guest.region_generation = guest.region_generation.wrapping_add(1);
        guest.region_bytes += memory.bytes();
        let (generation, memory) = (guest.region_generation, Arc::new(memory));
        let Ok(index) = u8::try_from(guest.regions.put((generation, memory.clone()))) else {
            return Err(SendAway);
        };
        let handle = RegionHandle { index, generation };
        self.command(id, Command::Region { client: id, handle, memory });
        Ok(Answer::Region { region: handle })
    }

    fn forget(&mut self, id: ClientId, region: RegionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |(generation, _): &(u16, _)| *generation == region.generation;
        if let Some((_, memory)) = guest.regions.take_if(usize::from(region.index), is_it) {
            guest.region_bytes -= memory.bytes();
            self.command(id, Command::Forget(id, region));
        }
        Ok(())
    }

    fn open(&mut self, id: ClientId, steps: Vec<control::Step>) -> Result<Answer, SendAway> {
        let limits = self.options.limits;
        let sessions_max = limits.sessions.min(keyway_ring::limits::SESSIONS_MAX);
        let guest = self.guest(id)?;
        if guest.sessions.used() >= sessions_max {
            return Ok(Answer::refused(Status::Busy, "a client has no more sessions than that"));
        }
        let caller = guest.caller.clone();
        let mut generation = [0; 8];
        let drawn = self.engine.random(&mut generation);
        let opened = drawn.map_err(Refusal::from).and_then(|()| self.session(&caller, &steps));
        let (session, key) = match opened {
            Ok(opened) => opened,
            Err(Refusal { status, why }) => return Ok(Answer::refused(status, why)),
        };
        let generation = u64::from_ne_bytes(generation) & GENERATION_MAX;
        let guest = self.guest(id)?;
        let Ok(index) = u16::try_from(guest.sessions.put(Opened { generation, steps })) else {
            return Err(SendAway);
        };
        let handle = SessionHandle { index, generation };
        let signature_bytes_max = session.signature_bytes_max() as u32;
        let makes_nonces = makes_nonces(key.as_ref());
        self.command(id, Command::Session { client: id, handle, session, key });
        Ok(Answer::Session { session: handle, signature_bytes_max, makes_nonces })
    }

    /// Opens a session with what a client brought, or with a key that it named and may use.
    fn session(
        &self,
        caller: &Caller,
        steps: &[control::Step],
    ) -> Result<(Session, Option<KeySession>), Refusal> {
        let [control::Step { algorithm, key: control::Key::Named(name) }] = steps else {
            return Ok((open(&self.engine, steps)?, None));
        };
        let (Some(keys), Ok(algorithm)) = (&self.options.keys, algorithm.parse()) else {
            let why = "the daemon holds no such key, or does not know the algorithm".to_owned();
            return Err(Refusal { status: Status::Unsupported, why });
        };
        let purposes = keys.granted(name, caller, algorithm);
        let wanted = Wanted::new(algorithm, purposes);
        let key = keys.session(name, caller, wanted, SystemTime::now())?;
        Ok((key.session().clone(), Some(key)))
    }

    /// Does what an administrator wants done with the keys.
    fn manage(&mut self, id: ClientId, ask: KeyAsk) -> Result<Answer, SendAway> {
        let caller = self.guest(id)?.caller.clone();
        let Some(keys) = &self.options.keys else { return Ok(holds_none()) };
        if !self.options.admission.administers(&caller) {
            return Ok(Answer::refused(
                Status::Unsupported,
                "only the daemon's own user and root look after its keys",
            ));
        }
        Ok(managing::answer(keys, &caller, ask, SystemTime::now()))
    }

    /// A session as bytes that a daemon with the same wrapping key takes in.
    fn export(
        &mut self,
        id: ClientId,
        session: SessionHandle,
        under: &str,
    ) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let guest = self.guest(id)?;
        let opened = guest.sessions.places.get(usize::from(session.index));
        let opened = opened.and_then(Option::as_ref);
        let Some(opened) = opened.filter(|opened| opened.generation == session.generation) else {
            return Ok(Answer::refused(Status::NoSession, "there is no such session"));
        };
        let is_generated = |step: &control::Step| step.key == control::Key::Generate;
        if opened.steps.iter().any(is_generated) {
            let why = "a key that was generated in a session stays there";
            return Ok(Answer::refused(Status::Unsupported, why));
        }
        let bytes = control::encode(&opened.steps).map_err(|_| SendAway)?;
        let now = SystemTime::now();
        Ok(match keys.wrap(under, &guest.caller, EXPORT_CONTEXT, &bytes, now) {
            Ok(sealed) => Answer::Exported { sealed },
            Err(why) => Refusal::from(why).into(),
        })
    }

    fn import(&mut self, id: ClientId, under: &str, sealed: &[u8]) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let caller = self.guest(id)?.caller.clone();
        let now = SystemTime::now();
        match keys.unwrap(under, &caller, EXPORT_CONTEXT, sealed, now) {
            Ok(bytes) => match control::decode_steps(&bytes) {
                Ok(steps) => self.open(id, steps),
                Err(_) => Ok(Answer::refused(Status::InvalidRequest, "it is no session")),
            },
            Err(why) => Ok(Refusal::from(why).into()),
        }
    }

    fn close(&mut self, id: ClientId, session: SessionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |opened: &Opened| opened.generation == session.generation;
        if guest.sessions.take_if(usize::from(session.index), is_it).is_some() {
            self.command(id, Command::CloseSession(id, session));
        }
        Ok(())
    }

    fn status(&mut self, id: ClientId) -> Result<Answer, SendAway> {
        let caller = self.guest(id)?.caller.clone();
        if !self.options.admission.administers(&caller) {
            return Ok(Answer::refused(
                Status::Unsupported,
                "only the daemon's administrators may",
            ));
        }
        let known = || self.guests.iter().filter(|(_, guest)| guest.name.is_some());
        Ok(Answer::Status(DaemonStatus {
            process: std::process::id(),
            since: self.since,
            pumps: self.pumps.len() as u32,
            clients: known().take(STATUS_CLIENTS_MAX).map(|(id, it)| it.status(*id)).collect(),
            clients_total: known().count() as u32,
        }))
    }
}

/// How long a pump may take to finish what it has taken, and another daemon to say that it has a part.
const FREEZE: Duration = Duration::from_secs(10);

/// Handing over, and taking over.
impl Server {
    /// Hands everything to the daemon at the other end of this client's connection. If it does not take
    /// it, everything is as before.
    fn hand_over(&mut self, id: ClientId) -> Result<(), SendAway> {
        let guest = self.guests.get(&id).ok_or(SendAway)?;
        if !self.options.admission.administers(&guest.caller) {
            let answer =
                Answer::refused(Status::Unsupported, "only the daemon's own user may take over");
            return self.reply(id, Reply { answer, fds: Vec::new() });
        }
        let sent = self.freeze().and_then(|positions| {
            self.give_up_keys()?;
            self.send_everything(id, &positions)
        });
        match sent {
            Ok(()) => {
                self.pumps.iter().for_each(|pump| pump.hand_over(true));
                self.ended.0.store(true, Ordering::Release);
                if let Some(handed_over) = self.handed_over.take() {
                    handed_over();
                }
                Ok(())
            }
            Err(_) => {
                if let Some(keys) = &self.options.keys {
                    // Where the other one has it still, keys are used here and not changed.
                    let _ = keys.take_back();
                }
                self.pumps.iter().for_each(|pump| pump.command(Command::Thaw));
                Err(SendAway)
            }
        }
    }

    fn give_up_keys(&self) -> io::Result<()> {
        let Some(keys) = &self.options.keys else { return Ok(()) };
        keys.give_up().map_err(io::Error::other)
    }

    fn freeze(&self) -> io::Result<Vec<Position>> {
        let (tell, told) = channel();
        for pump in &self.pumps {
            pump.command(Command::Freeze(tell.clone()));
        }
        let mut positions = Vec::new();
        for _ in &self.pumps {
            positions.extend(told.recv_timeout(FREEZE).map_err(|_| io::ErrorKind::TimedOut)?);
        }
        Ok(positions)
    }

    fn send_everything(&self, to: ClientId, positions: &[Position]) -> io::Result<()> {
        let socket = &self.guests.get(&to).ok_or(io::ErrorKind::NotConnected)?.socket;
        // One that hangs must not hold up the clients for longer than that.
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(socket, direction, Some(FREEZE))?;
        }
        let part = Part::Daemon { next: self.next, since: self.since };
        handover::send(socket, &part, &[self.listener.as_fd()])?;
        for (id, guest) in self.guests.iter().filter(|(id, _)| **id != to) {
            let Caller { uid, gid, groups, pid, executable } = &guest.caller;
            let part = Part::Client {
                number: *id,
                name: guest.name.clone(),
                pid: *pid,
                uid: *uid,
                gid: *gid,
                groups: groups.clone(),
                executable: executable.as_ref().and_then(|it| Some(it.to_str()?.to_owned())),
                next_queue: guest.next_queue,
                region_generation: guest.region_generation,
            };
            handover::send(socket, &part, &[guest.socket.as_fd()])?;
            for (index, (generation, memory)) in guest.regions.iter() {
                let handle = RegionHandle { index: index as u8, generation: *generation };
                handover::send(socket, &Part::Region(handle), &[memory.as_fd()])?;
            }
            for (index, Opened { generation, steps }) in guest.sessions.iter() {
                let handle = SessionHandle { index: index as u16, generation: *generation };
                handover::send(socket, &Part::Session { handle, steps: steps.clone() }, &[])?;
            }
            for QueuePair { number, memory, bell } in &guest.queues {
                let is_its = |it: &&Position| it.client == *id && it.queue == *number;
                let Some(position) = positions.iter().find(is_its) else { continue };
                let Position { taken, answered, .. } = *position;
                let (number, entries) = (*number, memory.entries());
                let part = Part::Queue { number, entries, taken, answered };
                handover::send(socket, &part, &[memory.memory().as_fd(), bell.as_fd()])?;
            }
        }
        handover::send(socket, &Part::End, &[])?;
        match handover::receive(socket)? {
            (Part::Taken, _) => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn take_over(
        engine: &Engine,
        path: &Path,
        options: impl FnOnce() -> io::Result<Options>,
        ended: &Arc<(AtomicBool, Doorbell)>,
        handed_over: HandedOver,
    ) -> io::Result<Server> {
        let socket = Socket::connect(path)?;
        let say = |ask: &Ask| {
            let bytes = control::encode(ask).map_err(|_| io::ErrorKind::InvalidData)?;
            socket.send(&bytes, &[])
        };
        say(&Ask::Hello { version: VERSION, name: "cryptod".to_owned() })?;
        let answer = socket.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match control::decode_answer(&answer.bytes) {
            Ok(Answer::Hello { .. }) => {}
            Ok(Answer::Refused { why, .. }) => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        say(&Ask::TakeOver)?;
        let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
        let (Part::Daemon { next, since }, mut files) = handover::receive(&socket)? else {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not hand over"));
        };
        let listener = files.pop().ok_or_else(nonsense)?;
        let mut server = Server::new(engine, listener, options()?, ended, handed_over)?;
        (server.next, server.since) = (next, since);
        // Nobody is served, or told that he is not, before the other daemon knows that this one has it all.
        let (tell, _) = channel();
        server.pumps.iter().for_each(|pump| {
            pump.hand_over(true);
            pump.command(Command::Freeze(tell.clone()));
        });
        let mut current = 0;
        loop {
            let (part, files) = handover::receive(&socket)?;
            if matches!(part, Part::End) {
                break;
            }
            server.take(&mut current, part, files).ok_or_else(nonsense)?;
        }
        handover::send(&socket, &Part::Taken, &[])?;
        server.pumps.iter().for_each(|pump| {
            pump.hand_over(false);
            pump.command(Command::Thaw);
        });
        Ok(server)
    }

    /// Takes a part of what another daemon hands over. `None` if it makes no sense.
    fn take(&mut self, current: &mut ClientId, part: Part, mut files: Vec<OwnedFd>) -> Option<()> {
        match part {
            Part::Client {
                number,
                name,
                pid,
                uid,
                gid,
                groups,
                executable,
                next_queue,
                region_generation,
            } => {
                let executable = executable.map(PathBuf::from);
                let caller = Caller { uid, gid, groups, pid, executable };
                let mut guest = Guest::new(Socket::from_fd(files.pop()?), caller);
                (guest.next_queue, guest.region_generation) = (next_queue, region_generation);
                let data = EventData::new_u64(number);
                epoll::add(&self.epoll, &guest.socket, data, EventFlags::IN).ok()?;
                self.guests.insert(number, guest);
                if let Some(name) = name {
                    self.admit(number, name).ok()?;
                }
                *current = number;
            }
            Part::Queue { number, entries, taken, answered } => {
                let (bell, memory) = (files.pop()?, files.pop()?);
                let memory = RingMemory::adopt(memory, entries).ok()?;
                let end = memory.daemon_end(taken, answered)?;
                let to_ring = bell.try_clone().ok()?;
                let guest = self.guests.get_mut(current)?;
                guest.queues.push(QueuePair { number, memory, bell: to_ring });
                let (client, bell) = (*current, Doorbell::from_fd(bell));
                self.command(client, Command::Pair { client, number, end, bell, entries });
            }
            Part::Region(handle) => {
                let memory = SharedMemory::adopt(files.pop()?, REGION_BYTES_MAX).ok()?;
                let (client, memory) = (*current, Arc::new(memory));
                let guest = self.guests.get_mut(current)?;
                guest.region_bytes += memory.bytes();
                guest
                    .regions
                    .put_at(usize::from(handle.index), (handle.generation, memory.clone()));
                self.command(client, Command::Region { client, handle, memory });
            }
            Part::Session { handle, steps } => {
                // One that cannot be opened here is one that its client opens anew.
                let client = *current;
                let caller = self.guests.get(current)?.caller.clone();
                let Ok((session, key)) = self.session(&caller, &steps) else { return Some(()) };
                let opened = Opened { generation: handle.generation, steps };
                self.guests.get_mut(current)?.sessions.put_at(usize::from(handle.index), opened);
                self.command(client, Command::Session { client, handle, session, key });
            }
            Part::Daemon { .. } | Part::End | Part::Taken => return None,
        }
        Some(())
    }
}

impl Guest {
    fn new(socket: Socket, caller: Caller) -> Self {
        Guest {
            socket,
            caller,
            name: None,
            since: Instant::now(),
            pump: 0,
            queues: Vec::new(),
            next_queue: 0,
            sessions: Places::new(),
            regions: Places::new(),
            region_generation: 0,
            region_bytes: 0,
            usage: Arc::default(),
        }
    }

    fn status(&self, number: ClientId) -> ClientStatus {
        let Usage { requests, bytes, refused, doorbells, wakeups } = &*self.usage;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        ClientStatus {
            number,
            name: self.name.clone().unwrap_or_default(),
            process: self.caller.pid,
            user: self.caller.uid,
            queues: self.queues.len() as u32,
            sessions: self.sessions.used() as u32,
            regions: self.regions.used() as u32,
            region_bytes: self.region_bytes as u64,
            requests: read(requests),
            bytes: read(bytes),
            refused: read(refused),
            doorbells: read(doorbells),
            wakeups: read(wakeups),
        }
    }
}

/// Says why a connection is closed. What it has sent is read before: if a socket is closed with
/// something unread, the system tells the other side of that instead.
fn turn_away(socket: &Socket, answer: &Answer) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Read);
    while let Ok(Some(_)) = socket.try_receive() {}
    if let Ok(bytes) = control::encode(answer) {
        let _ = socket.try_send(&bytes, &[]);
    }
}

/// What exported sessions are bound to, so that nothing else that is wrapped passes for one.
const EXPORT_CONTEXT: &[u8] = b"keyway session 1";

/// Why something is not done for a client.
pub struct Refusal {
    /// In a word.
    pub status: Status,
    /// In a sentence.
    pub why: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { status: status_of(&Err::<(), _>(error)), why: error.to_string() }
    }
}

impl From<crate::keys::Error> for Refusal {
    fn from(error: crate::keys::Error) -> Self {
        use crate::keys::Error as Keys;
        let status = match &error {
            Keys::Engine(error) => status_of(&Err::<(), _>(*error)),
            Keys::Unwrap => Status::Authentication,
            Keys::Refused | Keys::Revoked(_) => Status::Unsupported,
            Keys::Limit { .. } => Status::Busy,
            Keys::System { .. } | Keys::Damaged { .. } => Status::Driver,
            _ => Status::InvalidRequest,
        };
        Refusal { status, why: error.to_string() }
    }
}

impl From<Refusal> for Answer {
    fn from(Refusal { status, why }: Refusal) -> Self {
        Answer::refused(status, why)
    }
}

fn holds_none() -> Answer {
    Answer::refused(Status::Unsupported, "this daemon holds no keys; start it with a master key")
}

/// Whether the daemon makes a session's nonces: of its own keys it always does.
pub fn makes_nonces(key: Option<&KeySession>) -> bool {
    key.is_some_and(|key| key.session().algorithm().kind() == Kind::Aead)
}

/// Opens a session with what a client said. Who brings the key makes the nonces and counts its use.
fn open(engine: &Engine, steps: &[control::Step]) -> Result<Session, Error> {
    let unknown = Error::invalid_request("it names an algorithm that the daemon does not know");
    let mut pairs = Vec::new();
    for step in steps {
        let algorithm: Algorithm = step.algorithm.parse().map_err(|_| unknown)?;
        pairs.push((algorithm, &step.key));
    }
    let mut packet_keys = Vec::new();
    for (_, key) in &pairs {
        if let control::Key::Packet(keys) = key {
            packet_keys.push(Ivs::of(keys)?);
        }
    }
    let mut ivs = packet_keys.iter();
    let mut opened = Vec::new();
    for (algorithm, key) in pairs {
        let key = match key {
            control::Key::None => Key::None,
            control::Key::Secret(secret) => Key::Secret(&secret.0),
            control::Key::Extract { salt, secret } => {
                Key::Extract { salt: &salt.0, secret: &secret.0 }
            }
            control::Key::Packet(keys) => {
                let ivs = ivs.next().ok_or(Error::Unsupported(algorithm))?;
                Key::Packet(ivs.keys(keys))
            }
            control::Key::Generate => Key::Generate,
            control::Key::Pkcs8(der) => Key::Pkcs8(&der.0),
            control::Key::Pkcs1(der) => Key::Pkcs1(&der.0),
            control::Key::Sec1(der) => Key::Sec1(&der.0),
            control::Key::Named(_) => return Err(Error::Unsupported(algorithm)),
        };
        opened.push(Step { algorithm, key });
    }
    let parameters = match *opened {
        [Step { algorithm, key }] => Parameters::new(algorithm, key),
        _ => Parameters::chain(&opened),
    };
    let is_packet = matches!(*opened, [Step { algorithm, .. }] if algorithm.kind() == Kind::Packet);
    // The client's engine lets packet numbers only go upwards, in whatever order they come here.
    engine.session(if is_packet { parameters.nonces(Nonces::Given) } else { parameters })
}

/// The initialisation vectors of packet keys, of the length that they have to have.
struct Ivs<'a> {
    current: &'a [u8; 12],
    previous: Option<&'a [u8; 12]>,
    next: Option<&'a [u8; 12]>,
}

impl<'a> Ivs<'a> {
    fn of(keys: &'a control::PacketKeys) -> Result<Self, Error> {
        let iv = |key: &'a control::PacketKey| {
            let wrong = Error::InvalidKey("an initialisation vector has 12 bytes");
            key.iv.0.as_slice().try_into().map_err(|_| wrong)
        };
        Ok(Ivs {
            current: iv(&keys.current)?,
            previous: keys.previous.as_ref().map(iv).transpose()?,
            next: keys.next.as_ref().map(iv).transpose()?,
        })
    }

    fn keys(&self, keys: &'a control::PacketKeys) -> PacketKeys<'a> {
        fn pair<'a>(
            key: &'a Option<control::PacketKey>,
            iv: Option<&'a [u8; 12]>,
        ) -> Option<PacketKey<'a>> {
            Some(PacketKey { key: &key.as_ref()?.key.0, iv: iv? })
        }
        PacketKeys {
            header: &keys.header.0,
            current: PacketKey { key: &keys.current.key.0, iv: self.current },
            phase: keys.phase,
            since: keys.since,
            previous: pair(&keys.previous, self.previous),
            next: pair(&keys.next, self.next),
        }
    }
}
