//! The control thread: lets clients in and sets up for them what the fast path needs.
//!
//! It answers one message of each client that has sent any, and then of each again: a client with many
//! delays the others by one message each. It never waits for a client. One that does not read its answers
//! is sent away, and so is one whose messages make no sense.

use crate::admission::{Admission, Caller};
use crate::limits::{
    CLIENT_NAME_BYTES_MAX, CLIENTS_MAX, ClientLimits, HELLO, STATUS_CLIENTS_MAX, STRANGERS_MAX,
};
use crate::pump::{ClientId, Command, Pump, Usage};
use crate::request::status_of;
use keyway_engine::{Algorithm, Engine, Error, Key, Kind, PacketKey, PacketKeys, Parameters};
use keyway_engine::{Nonces, Session, Step};
use keyway_meter::{Counter, counter};
use keyway_ring::control::{self, Answer, Ask, ClientStatus, DaemonStatus, VERSION};
use keyway_ring::descriptor::{GENERATION_MAX, RegionHandle, SessionHandle, Status};
use keyway_ring::{Doorbell, Received, RingMemory, SharedMemory, Socket};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, socket_with,
};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// A daemon that serves. Dropping it ends its threads and tells its clients.
pub struct Daemon {
    ended: Arc<(AtomicBool, Doorbell)>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Serves whoever connects to a [listening](listen) socket, with this engine.
    ///
    /// # Errors
    /// The system's.
    pub fn start(engine: &Engine, listener: OwnedFd, options: Options) -> io::Result<Daemon> {
        let ended = Arc::new((AtomicBool::new(false), Doorbell::new()?));
        let mut server = Server::new(engine, listener, options, &ended)?;
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
    queues: Vec<u32>,
    next_queue: u32,
    sessions: Places<u64>,
    regions: Places<(u16, usize)>,
    /// Generation of the next region.
    region_generation: u16,
    region_bytes: usize,
    usage: Arc<Usage>,
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
    since: SystemTime,
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
            since: SystemTime::now(),
            connected: counter("cryptod.clients.connected"),
            gone: counter("cryptod.clients.gone"),
            turned_away: counter("cryptod.clients.turned_away"),
        })
    }

    fn run(&mut self) {
        while !self.ended.0.load(Ordering::Acquire) {
            let strangers = self.guests.values().any(|guest| guest.name.is_none());
            // Those who do not say who they are leave in time.
            let timeout = strangers.then_some(rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 });
            let mut events = [const { std::mem::MaybeUninit::uninit() }; 64];
            let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) else {
                continue;
            };
            for event in events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    ENDED => {}
                    client => self.serve(client),
                }
            }
            self.drop_the_silent();
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
            if let Ok(bytes) = control::encode(&Answer::refused(status, why)) {
                let _ = Socket::from_fd(socket).try_send(&bytes, &[]);
            }
            return;
        };
        let id = self.next;
        if epoll::add(&self.epoll, &socket, EventData::new_u64(id), EventFlags::IN).is_err() {
            return;
        }
        self.next += 1;
        let guest = Guest {
            socket: Socket::from_fd(socket),
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
        };
        self.guests.insert(id, guest);
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
            Ask::Open { steps } => self.open(id, &steps)?,
            Ask::CloseQueue { queue } => return self.close_queue(id, queue),
            Ask::Forget { region } => return self.forget(id, region),
            Ask::Close { session } => return self.close(id, session),
            Ask::Status => self.status(id)?,
            Ask::Export { .. } | Ask::Import { .. } | Ask::Keys(_) => {
                Answer::refused(Status::Unsupported, "this daemon holds no keys")
            }
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
        let loads = (0..self.pumps.len()).map(|pump| {
            (self.guests.values().filter(|it| it.name.is_some() && it.pump == pump).count(), pump)
        });
        let pump = loads.min().map_or(0, |(_, pump)| pump);
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        if guest.name.is_some() || name.len() > CLIENT_NAME_BYTES_MAX || !printable(&name) {
            return Err(SendAway);
        }
        (guest.name, guest.pump) = (Some(name), pump);
        let usage = guest.usage.clone();
        self.connected.increment();
        self.command(id, Command::Admit { client: id, limits, weight: 1, usage });
        let does = |algorithm: &&Algorithm| self.engine.offers(&[**algorithm]);
        let algorithms =
            Algorithm::ALL.iter().filter(does).map(|it| it.name().to_owned()).collect();
        Ok(Answer::Hello { version: VERSION, algorithms, process: std::process::id() })
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
        guest.queues.push(number);
        let entries = memory.entries();
        self.command(id, Command::Pair { client: id, number, end, bell, entries });
        let answer = Answer::Queue { queue: number, entries };
        self.reply(id, Reply { answer, fds: vec![memory.memory().as_fd(), to_ring.as_fd()] })
    }

    fn close_queue(&mut self, id: ClientId, queue: u32) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        guest.queues.retain(|known| *known != queue);
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
        let generation = guest.region_generation;
        let Ok(index) = u8::try_from(guest.regions.put((generation, memory.bytes()))) else {
            return Err(SendAway);
        };
        let handle = RegionHandle { index, generation };
        let memory = Arc::new(memory);
        self.command(id, Command::Region { client: id, handle, memory });
        Ok(Answer::Region { region: handle })
    }

    fn forget(&mut self, id: ClientId, region: RegionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |(generation, _): &(u16, usize)| *generation == region.generation;
        if let Some((_, bytes)) = guest.regions.take_if(usize::from(region.index), is_it) {
            guest.region_bytes -= bytes;
            self.command(id, Command::Forget(id, region));
        }
        Ok(())
    }

    fn open(&mut self, id: ClientId, steps: &[control::Step]) -> Result<Answer, SendAway> {
        let limits = self.options.limits;
        let sessions_max = limits.sessions.min(keyway_ring::limits::SESSIONS_MAX);
        if self.guest(id)?.sessions.used() >= sessions_max {
            return Ok(Answer::refused(Status::Busy, "a client has no more sessions than that"));
        }
        let mut generation = [0; 8];
        let drawn = self.engine.random(&mut generation);
        let opened = drawn.and_then(|()| open(&self.engine, steps));
        let session = match opened {
            Ok(session) => session,
            Err(why) => {
                let status = status_of(&Err::<(), _>(why));
                return Ok(Answer::refused(status, why.to_string()));
            }
        };
        let generation = u64::from_ne_bytes(generation) & GENERATION_MAX;
        let guest = self.guest(id)?;
        let Ok(index) = u16::try_from(guest.sessions.put(generation)) else {
            return Err(SendAway);
        };
        let handle = SessionHandle { index, generation };
        let signature_bytes_max = session.signature_bytes_max() as u32;
        let makes_nonces = false;
        self.command(id, Command::Session { client: id, handle, session, makes_nonces });
        Ok(Answer::Session { session: handle, signature_bytes_max, makes_nonces })
    }

    fn close(&mut self, id: ClientId, session: SessionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |generation: &u64| *generation == session.generation;
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
        let since = self.since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(Answer::Status(DaemonStatus {
            process: std::process::id(),
            since,
            pumps: self.pumps.len() as u32,
            clients: known().take(STATUS_CLIENTS_MAX).map(|(id, it)| it.status(*id)).collect(),
            clients_total: known().count() as u32,
        }))
    }
}

impl Guest {
    fn status(&self, number: ClientId) -> ClientStatus {
        let Usage { requests, bytes, refused, doorbells, wakeups } = &*self.usage;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        ClientStatus {
            number,
            name: self.name.clone().unwrap_or_default(),
            process: self.caller.process,
            user: self.caller.user,
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
