//! A daemon in a few hundred lines: it speaks the protocol, has the software driver do the work, and
//! dies when it is told to.

use keyway_drivers::remote::wire;
use keyway_drivers::software;
use keyway_engine::*;
use keyway_ring::control::{self, Answer, Ask};
use keyway_ring::descriptor::{
    Completion, Descriptor, Opcode, PART_BYTES, RegionHandle, Segment, SessionHandle, Status,
};
use keyway_ring::{DaemonEnd, Doorbell, RingMemory, SharedMemory, Socket};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// A key that the peer holds.
pub const NAMED: &str = "held.key";
/// One whose nonces the peer makes.
pub const COUNTED: &str = "counted.key";
pub const SECRET: [u8; 16] = [42; 16];

/// At which message it hangs up instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Hello,
    Open,
    Queue,
    Region,
}

/// What it does otherwise than a good one.
#[derive(Default)]
pub struct Behaviour {
    pub hangs_up: Option<At>,
    /// Answers each request so often with *busy* first.
    pub busy: u64,
    /// Takes regions of so many bytes at most; 0 for any.
    pub region_bytes_max: usize,
}

pub struct Peer {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
    socket: OwnedFd,
}

pub struct Shared {
    engine: Engine,
    behaviour: Behaviour,
    /// How many requests are still answered.
    budget: Mutex<u64>,
    more: Condvar,
    /// Requests that were taken.
    pub taken: AtomicU64,
    /// Bytes of each region that a request has named.
    pub regions: Mutex<Vec<usize>>,
    clients: Mutex<Vec<Arc<Client>>>,
    stopped: AtomicBool,
    nonces: AtomicU64,
}

struct Client {
    end: OwnedFd,
    dead: AtomicBool,
    sessions: Mutex<HashMap<u16, Arc<Known>>>,
    regions: Mutex<HashMap<u8, (RegionHandle, Arc<SharedMemory>)>>,
}

struct Known {
    handle: SessionHandle,
    session: Session,
    makes_nonces: bool,
}

impl Peer {
    pub fn start(path: &Path, behaviour: Behaviour) -> Peer {
        let _ = std::fs::remove_file(path);
        let kind = SocketType::SEQPACKET;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let socket = socket.unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        rustix::net::listen(&socket, 16).unwrap();
        let shared = Arc::new(Shared {
            engine: Engine::builder().legacy(true).driver(software()).build(),
            behaviour,
            budget: Mutex::new(u64::MAX),
            more: Condvar::new(),
            taken: AtomicU64::new(0),
            regions: Mutex::default(),
            clients: Mutex::default(),
            stopped: AtomicBool::new(false),
            nonces: AtomicU64::new(1),
        });
        let (of_thread, accepts) = (shared.clone(), socket.try_clone().unwrap());
        let listener = thread::spawn(move || {
            let mut threads = Vec::new();
            while let Ok(accepted) = rustix::net::accept(&accepts) {
                let (shared, end) = (of_thread.clone(), accepted.try_clone().unwrap());
                let (dead, sessions, regions) = Default::default();
                let client = Arc::new(Client { end, dead, sessions, regions });
                shared.clients.lock().unwrap().push(client.clone());
                threads.push(thread::spawn(move || serve(&shared, client, accepted)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Peer { shared, listener: Some(listener), socket }
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Answers so many more requests, and then none until it is told to.
    pub fn answer(&self, requests: u64) {
        *self.shared.budget.lock().unwrap() = requests;
        self.shared.more.notify_all();
    }

    /// Waits until so many requests were taken.
    pub fn wait_taken(&self, requests: u64) {
        while self.shared.taken.load(Ordering::Relaxed) < requests {
            thread::yield_now();
        }
    }
}

impl Drop for Peer {
    /// As a process that is killed: sockets close, and nothing is answered any more.
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.clients.lock().unwrap().iter().for_each(|client| client.die());
        rustix::net::shutdown(&self.socket, Shutdown::Both).unwrap();
        self.shared.more.notify_all();
        self.listener.take().unwrap().join().unwrap();
    }
}

impl Client {
    fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        let _ = rustix::net::shutdown(&self.end, Shutdown::Both);
    }
}

fn serve(shared: &Arc<Shared>, client: Arc<Client>, socket: OwnedFd) {
    let socket = Socket::from_fd(socket);
    let mut pumps: HashMap<u32, (Arc<AtomicBool>, JoinHandle<()>)> = HashMap::new();
    let mut next = 0;
    let hangs_up = |at| shared.behaviour.hangs_up == Some(at);
    while let Ok(Some(received)) = socket.receive() {
        let ask = control::decode_ask(&received.bytes).unwrap();
        next += 1;
        let mut fds = Vec::new();
        let answer = match ask {
            Ask::Hello { .. } if hangs_up(At::Hello) => break,
            Ask::Open { .. } if hangs_up(At::Open) => break,
            Ask::Queue { .. } if hangs_up(At::Queue) => break,
            Ask::Region if hangs_up(At::Region) => break,
            Ask::Hello { .. } => {
                let all = Algorithm::ALL.iter().map(|algorithm| algorithm.name().to_owned());
                Answer::Hello { version: control::VERSION, algorithms: all.collect(), process: 0 }
            }
            Ask::Queue { entries } => {
                let ring = RingMemory::create(entries).unwrap();
                let bell = Doorbell::new().unwrap();
                fds = vec![
                    ring.memory().as_fd().try_clone_to_owned().unwrap(),
                    bell.as_fd().try_clone_to_owned().unwrap(),
                ];
                let end = ring.daemon_end(0, 0).unwrap();
                let closed = Arc::new(AtomicBool::new(false));
                let pump = {
                    let (shared, client, closed) = (shared.clone(), client.clone(), closed.clone());
                    thread::spawn(move || pump(&shared, &client, end, &bell, &closed))
                };
                pumps.insert(next, (closed, pump));
                Answer::Queue { queue: next, entries: ring.entries() }
            }
            Ask::CloseQueue { queue } => {
                pumps[&queue].0.store(true, Ordering::Relaxed);
                continue;
            }
            Ask::Region => {
                let file = received.fds.into_iter().next().unwrap();
                let memory = Arc::new(SharedMemory::adopt(file, usize::MAX).unwrap());
                let mut regions = client.regions.lock().unwrap();
                let most = shared.behaviour.region_bytes_max;
                let free = (0..=u8::MAX).find(|index| !regions.contains_key(index));
                match free {
                    Some(index) if most == 0 || memory.bytes() <= most => {
                        let region = RegionHandle { index, generation: next as u16 };
                        regions.insert(index, (region, memory));
                        Answer::Region { region }
                    }
                    _ => Answer::refused(Status::Busy, "as many regions as there may be"),
                }
            }
            Ask::Forget { region } => {
                client.regions.lock().unwrap().remove(&region.index);
                continue;
            }
            Ask::Open { steps } => open(shared, &client, &steps, next),
            Ask::Close { session } => {
                client.sessions.lock().unwrap().remove(&session.index);
                continue;
            }
            _ => Answer::refused(Status::Unsupported, "not here"),
        };
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        if socket.send(&control::encode(&answer).unwrap(), &borrowed).is_err() {
            break;
        }
    }
    client.die();
    shared.more.notify_all();
    pumps.into_values().for_each(|(_, pump)| pump.join().unwrap());
}

fn open(shared: &Shared, client: &Client, steps: &[control::Step], next: u32) -> Answer {
    let read: Option<Vec<_>> = steps.iter().map(wire::read_step).collect();
    let Some(mut steps) = read else { return Answer::refused(Status::InvalidKey, "malformed") };
    let mut makes_nonces = false;
    for step in &mut steps {
        if let Key::Named(name) = step.key {
            makes_nonces |= name == COUNTED;
            if name != NAMED && name != COUNTED {
                return Answer::refused(Status::Unsupported, "no such key");
            }
            step.key = Key::Secret(&SECRET);
        }
    }
    let parameters = match *steps {
        [step] => Parameters::new(step.algorithm, step.key),
        _ => Parameters::chain(&steps),
    };
    match shared.engine.session(parameters) {
        Ok(session) => {
            let mut sessions = client.sessions.lock().unwrap();
            let index = (0..).find(|index| !sessions.contains_key(index)).unwrap();
            let handle = SessionHandle { index, generation: next.into() };
            let signature_bytes_max = session.signature_bytes_max() as u32;
            sessions.insert(index, Arc::new(Known { handle, session, makes_nonces }));
            Answer::Session { session: handle, signature_bytes_max, makes_nonces }
        }
        Err(error) => Answer::refused(status(error), error.to_string()),
    }
}

fn status(error: Error) -> Status {
    match error {
        Error::Unsupported(_) | Error::Disabled(_) | Error::NoSuchDriver => Status::Unsupported,
        Error::InvalidKey(_) => Status::InvalidKey,
        Error::InvalidRequest(_) => Status::InvalidRequest,
        Error::Authentication => Status::Authentication,
        Error::Busy => Status::Busy,
        Error::Exhausted(_) => Status::Exhausted,
        Error::Closed | Error::Gone => Status::Gone,
        Error::Driver { .. } => Status::Driver,
    }
}

fn pump(
    shared: &Shared,
    client: &Client,
    mut end: DaemonEnd,
    bell: &Doorbell,
    closed: &AtomicBool,
) {
    let is_over = || {
        client.dead.load(Ordering::Relaxed)
            || closed.load(Ordering::Relaxed)
            || shared.stopped.load(Ordering::Relaxed)
    };
    let (mut refused, mut idle) = (HashMap::new(), 0);
    while !is_over() {
        let Some(descriptor) = end.take() else {
            idle += 1;
            if idle > 100 {
                end.armed().unwrap().set();
                if !end.is_ready() {
                    let most = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                    let mut bells = [PollFd::new(bell, PollFlags::IN)];
                    let _ = rustix::event::poll(&mut bells, Some(&most));
                }
                end.armed().unwrap().clear();
                bell.take();
                idle = 0;
            }
            continue;
        };
        idle = 0;
        shared.taken.fetch_add(1, Ordering::Relaxed);
        let mut budget = shared.budget.lock().unwrap();
        while *budget == 0 && !is_over() {
            let slice = std::time::Duration::from_millis(20);
            budget = shared.more.wait_timeout(budget, slice).unwrap().0;
        }
        if is_over() {
            return;
        }
        *budget -= 1;
        drop(budget);
        let times: &mut u64 = refused.entry(descriptor.cookie).or_default();
        *times += 1;
        let completion = if *times <= shared.behaviour.busy {
            let (cookie, status) = (descriptor.cookie, Status::Busy);
            Completion { cookie, status, used: 0, result: [0; 16] }
        } else {
            *times = 0;
            answer(shared, client, &descriptor)
        };
        end.answer(&completion);
        end.wake();
    }
}

fn answer(shared: &Shared, client: &Client, descriptor: &Descriptor) -> Completion {
    let mut completion =
        Completion { cookie: descriptor.cookie, status: Status::Done, used: 0, result: [0; 16] };
    match run(shared, client, descriptor, &mut completion.result) {
        Ok(used) => completion.used = used as u32,
        Err(status) => completion.status = status,
    }
    completion
}

fn run(
    shared: &Shared,
    client: &Client,
    descriptor: &Descriptor,
    result: &mut wire::Bytes,
) -> Result<usize, Status> {
    let known = client.sessions.lock().unwrap().get(&descriptor.session.index).cloned();
    let known = known.filter(|known| known.handle == descriptor.session);
    let known = known.ok_or(Status::NoSession)?;
    let opcode = Opcode::new(descriptor.opcode).ok_or(Status::Unsupported)?;
    let region = client.regions.lock().unwrap().get(&descriptor.region.index).cloned();
    let region = region.filter(|(handle, _)| *handle == descriptor.region);
    let (_, memory) = region.ok_or(Status::BadSegment)?;
    shared.regions.lock().unwrap().push(memory.bytes());
    let [a, b, c] = descriptor.segments;
    if a.overlaps(b) || a.overlaps(c) || b.overlaps(c) {
        return Err(Status::BadSegment);
    }
    let read = |segment: Segment| {
        let mut bytes = vec![0; segment.bytes as usize];
        memory.read(segment.offset as usize, &mut bytes).map_err(|_| Status::BadSegment)?;
        Ok(bytes)
    };
    let mut operation = operation(opcode, descriptor, &read)?;
    if known.makes_nonces
        && let Operation::Seal { nonce, .. } = &mut operation
    {
        let count = shared.nonces.fetch_add(1, Ordering::Relaxed);
        nonce[..8].copy_from_slice(&count.to_le_bytes());
        memory.write(c.offset as usize, nonce).map_err(|_| Status::BadSegment)?;
    }
    let used = operation.with(|request| known.session.run(request)).map_err(status)?;
    let write = |segment: Segment, bytes: &[u8]| {
        assert!(bytes.len() <= segment.bytes as usize);
        memory.write(segment.offset as usize, bytes).map_err(|_| Status::BadSegment)
    };
    match &operation {
        Operation::Seal { tag, data, .. } => {
            *result = *tag;
            write(b, data)?;
        }
        Operation::Unprotect { opened, packet, .. } => {
            *result = wire::put_opened(opened);
            write(b, packet)?;
        }
        Operation::Mask { out, .. } => *result = wire::put_front(out),
        Operation::Encapsulate { ciphertext, secret, .. } => {
            write(b, ciphertext)?;
            write(c, secret)?;
        }
        Operation::Verify { .. } | Operation::VerifyPassword { .. } => {}
        other => write(b, other.output())?,
    }
    Ok(used)
}

fn operation(
    opcode: Opcode,
    descriptor: &Descriptor,
    read: &dyn Fn(Segment) -> Result<Vec<u8>, Status>,
) -> Result<Operation, Status> {
    let p = &descriptor.parameters;
    let extra = descriptor.extra as usize;
    let [a, b, c] = descriptor.segments;
    let room = |segment: Segment| vec![0; segment.bytes as usize];
    let cost = || wire::read_cost(p).ok_or(Status::InvalidRequest);
    Ok(match opcode {
        Opcode::Null => return Err(Status::Unsupported),
        Opcode::Seal => Operation::seal(wire::read_front(p), read(a)?, read(b)?),
        Opcode::Open => Operation::open(wire::read_front(p), read(a)?, read(b)?),
        Opcode::Protect => Operation::protect(wire::read_number(p), extra, read(b)?),
        Opcode::Unprotect => Operation::unprotect(wire::read_largest(p), extra, read(b)?),
        Opcode::Mask => Operation::mask(*p),
        Opcode::Encrypt => Operation::encrypt(*p, read(b)?),
        Opcode::Decrypt => Operation::decrypt(*p, read(b)?),
        Opcode::Compress => Operation::compress(read(a)?, b.bytes as usize),
        Opcode::Decompress => Operation::decompress(read(a)?, b.bytes as usize),
        Opcode::Chain => Operation::Chain {
            direction: if extra == 0 { Direction::Protect } else { Direction::Unprotect },
            length: wire::read_number(p) as usize,
            data: read(b)?.into(),
            parts: read(a)?
                .chunks(PART_BYTES)
                .map(|bytes| wire::read_part(bytes.first_chunk().unwrap()))
                .collect::<Option<_>>()
                .ok_or(Status::InvalidRequest)?,
        },
        Opcode::Digest => Operation::Digest { data: read(a)?.into(), out: room(b) },
        Opcode::Mac => Operation::Mac { data: read(a)?.into(), out: room(b) },
        Opcode::Expand => Operation::Expand { info: read(a)?, out: room(b).into() },
        Opcode::PublicKey => Operation::PublicKey { out: room(b) },
        Opcode::Agree => Operation::Agree { peer: read(a)?, out: room(b).into() },
        Opcode::Encapsulate => {
            let (peer, ciphertext) = (read(a)?, room(b));
            Operation::Encapsulate { peer, ciphertext, secret: room(c).into() }
        }
        Opcode::Decapsulate => {
            Operation::Decapsulate { ciphertext: read(a)?, secret: room(b).into() }
        }
        Opcode::Sign => Operation::Sign { message: read(a)?, out: room(b) },
        Opcode::Verify => Operation::verify(read(a)?, read(b)?, read(c)?),
        Opcode::PublicEncrypt => Operation::public_encrypt(read(a)?, read(c)?, b.bytes as usize),
        Opcode::PrivateDecrypt => Operation::private_decrypt(read(a)?, b.bytes as usize),
        Opcode::Random => Operation::random(b.bytes as usize),
        Opcode::Derive => {
            let (cost, _) = cost()?;
            Operation::derive(cost, read(a)?.into(), read(c)?, b.bytes as usize)
        }
        Opcode::VerifyPassword => {
            let ((cost, effort), mut salt) = (cost()?, read(c)?);
            let expected = salt.split_off(extra.min(salt.len()));
            let (entry, password) = (read(b)?, read(a)?.into());
            Operation::VerifyPassword { effort, cost, entry, password, salt, expected }
        }
    })
}
