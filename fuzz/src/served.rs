//! A daemon in this process, and clients that are put together by hand.

use keyway_daemon::keys::{KeyStore, Master, MasterKey};
use keyway_daemon::limits::ClientLimits;
use keyway_daemon::{Admission, Daemon, HandedOver, Options, listen};
use keyway_ring::control::{self, Answer, Ask, Key, PacketKey, PacketKeys, Secret, Step, VERSION};
use keyway_ring::descriptor::{Completion, Descriptor, RegionHandle, SessionHandle};
use keyway_ring::{ClientEnd, Doorbell, Received, RingMemory, SharedMemory, Socket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long an answer may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// One daemon, until another has taken over from it.
pub struct Served {
    _daemon: Daemon,
    folder: TempDir,
    handed_over: Arc<AtomicBool>,
}

impl Served {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|why| panic!("{why}"));
        let handed_over = Arc::new(AtomicBool::new(false));
        let tell = handed_over.clone();
        let tell: HandedOver = Box::new(move || tell.store(true, Ordering::Release));
        let listener = listener(&folder.path().join("socket"));
        let engine = keyway_drivers::engine();
        let master = MasterKey::create_file(&folder.path().join("master"), &engine);
        let master = master.unwrap_or_else(|why| panic!("{why}"));
        let (keys, master) = (folder.path().join("keys"), Master::Key(&master));
        let keys = KeyStore::create(&keys, master, &engine, |_| {});
        let keys = Some(Arc::new(keys.unwrap_or_else(|why| panic!("{why}"))));
        let daemon = Daemon::start(&engine, listener, Options { keys, ..options() }, tell);
        let _daemon = daemon.unwrap_or_else(|why| panic!("{why}"));
        Served { _daemon, folder, handed_over }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }
}

pub fn listener(path: &Path) -> OwnedFd {
    listen(path).unwrap_or_else(|why| panic!("{why}"))
}

/// Without keys.
pub fn options() -> Options {
    let (admission, limits) = (Admission::default(), ClientLimits::default());
    Options { admission, limits, keys: None, pumps: 1, spin: Duration::from_micros(50) }
}

/// Chains of algorithms, with the lengths of their keys.
const CHAINS: &[&[(&str, usize)]] =
    &[&[("aes-128-cbc", 16), ("hmac-sha-1", 20)], &[("aes-256-ctr", 32), ("aes-256-cmac", 32)]];

pub struct Client {
    pub socket: Socket,
    /// What the daemon does.
    pub algorithms: Vec<String>,
}

pub struct Pair {
    pub end: ClientEnd,
    pub bell: Doorbell,
    pub memory: RingMemory,
    pub number: u32,
}

impl Client {
    /// One that has said who it is.
    pub fn new(path: &Path) -> Self {
        let socket = Socket::connect(path).unwrap_or_else(|why| panic!("{why}"));
        let mut client = Client { socket, algorithms: Vec::new() };
        let hello = Ask::Hello { version: VERSION, name: "fuzz".to_owned() };
        let Answer::Hello { algorithms, .. } = client.ask(&hello, &[]).0 else {
            panic!("it is not admitted")
        };
        client.algorithms = algorithms;
        client
    }

    pub fn say(&self, ask: &Ask, fds: &[BorrowedFd<'_>]) {
        let bytes = control::encode(ask).unwrap_or_else(|why| panic!("{why}"));
        self.socket.send(&bytes, fds).unwrap_or_else(|why| panic!("{ask:?}: {why}"));
    }

    pub fn ask(&self, ask: &Ask, fds: &[BorrowedFd<'_>]) -> (Answer, Received) {
        self.say(ask, fds);
        let received = self.socket.receive().ok().flatten();
        let received = received.unwrap_or_else(|| panic!("{ask:?}: the daemon hung up"));
        let answer = control::decode_answer(&received.bytes);
        (answer.unwrap_or_else(|why| panic!("{ask:?}: {why}")), received)
    }

    pub fn pair(&self, entries: u32) -> Pair {
        let (answer, mut received) = self.ask(&Ask::Queue { entries }, &[]);
        let (Answer::Queue { queue: number, entries }, Some(bell), Some(memory)) =
            (answer, received.fds.pop(), received.fds.pop())
        else {
            panic!("no queue pair")
        };
        let memory = RingMemory::adopt(memory, entries).unwrap_or_else(|why| panic!("{why}"));
        let end = memory.client_end().unwrap_or_else(|| panic!("it is no queue pair"));
        Pair { end, bell: Doorbell::from_fd(bell), memory, number }
    }

    pub fn region(&self, memory: &SharedMemory) -> RegionHandle {
        match self.ask(&Ask::Region, &[memory.as_fd()]).0 {
            Answer::Region { region } => region,
            other => panic!("{other:?}"),
        }
    }

    /// A session of every algorithm that takes a key made up here, or makes its own, and of chains.
    pub fn sessions(&self) -> Vec<SessionHandle> {
        let single = self.algorithms.iter().filter_map(|algorithm| self.session(algorithm));
        let step = |(algorithm, bytes): &(&str, usize)| Step {
            algorithm: (*algorithm).to_owned(),
            key: Key::Secret(secret(*bytes)),
        };
        let chains = CHAINS.iter().filter_map(|steps| self.open(steps.iter().map(step).collect()));
        single.chain(chains).collect()
    }

    fn open(&self, steps: Vec<Step>) -> Option<SessionHandle> {
        match self.ask(&Ask::Open { steps }, &[]).0 {
            Answer::Session { session, .. } => Some(session),
            _ => None,
        }
    }

    fn session(&self, algorithm: &str) -> Option<SessionHandle> {
        let packet = |bytes| {
            let current = PacketKey { key: secret(bytes), iv: secret(12) };
            let (header, phase, since) = (secret(bytes), false, 0);
            let keys = PacketKeys { header, current, phase, since, previous: None, next: None };
            Key::Packet(Box::new(keys))
        };
        let lengths = [16, 20, 24, 32, 48, 64];
        let secrets = lengths.map(|bytes| Key::Secret(secret(bytes)));
        let packets = lengths.map(packet);
        let keys = [Key::Generate, Key::None].into_iter().chain(secrets).chain(packets);
        let mut steps = keys.map(|key| vec![Step { algorithm: algorithm.to_owned(), key }]);
        steps.find_map(|steps| self.open(steps))
    }
}

/// No two bytes of it are the same, since a key's halves may not be.
fn secret(bytes: usize) -> Secret {
    Secret((0..bytes).map(|at| at as u8).collect())
}

impl Pair {
    /// Publishes a request, and rings where the daemon wants it.
    pub fn submit(&mut self, descriptor: &Descriptor) {
        self.end.submit(descriptor);
        if self.end.must_ring() {
            self.bell.ring();
        }
    }

    /// Waits for the next answer.
    pub fn next(&mut self) -> Completion {
        let begun = Instant::now();
        loop {
            if let Some(completion) = self.end.poll() {
                return completion;
            }
            assert!(!self.end.is_closed(), "the daemon serves the pair no more");
            assert!(begun.elapsed() < PATIENCE, "a request has no answer");
            let Some(armed) = self.end.armed() else { continue };
            armed.set();
            if !self.end.is_ready() {
                armed.sleep(Duration::from_millis(100));
            }
        }
    }
}
