//! Daemons to be a client of: a good one in this process, one of its own process that can be
//! killed, and one that is none.

use keyway_daemon::limits::{ClientLimits, SharedLimits};
use keyway_daemon::{Admission, Daemon, Machines, NameSpaces, Options, Weights, listen};
use keyway_drivers::software;
use keyway_engine::{Algorithm, Engine};
use keyway_ring::control::{self, Answer, Ask, Key};
use keyway_ring::descriptor::{Completion, RegionHandle, SessionHandle, Status};
use keyway_ring::{DaemonEnd, Doorbell, RingMemory, SharedMemory, Socket};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

/// Where daemons of one test listen, one after the other.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn socket(&self) -> PathBuf {
        self.0.path().join("socket")
    }

    /// A daemon of this process. To drop it is to shut it down.
    pub fn daemon(&self) -> Daemon {
        serve(&self.socket(), ClientLimits::default())
    }

    pub fn daemon_with(&self, limits: ClientLimits) -> Daemon {
        serve(&self.socket(), limits)
    }

    /// A daemon of its own process.
    pub fn process(&self) -> Process {
        Process::start(&self.socket())
    }

    /// A stub that is no good daemon.
    pub fn stub(&self, habit: Habit) -> Stub {
        Stub::start(&self.socket(), habit)
    }
}

fn serve(socket: &Path, limits: ClientLimits) -> Daemon {
    let engine = Engine::builder().legacy(true).driver(software()).build();
    let admission = Admission::default();
    let spin = Duration::from_micros(20);
    let (shared, weights) = (SharedLimits::of_this_machine(), Weights::default());
    let listener = listen(socket).unwrap();
    let (keys, socket) = (None, None);
    let (name_spaces, machines, pumps) = (NameSpaces::default(), Machines::default(), 1);
    let options = Options {
        admission,
        limits,
        shared,
        weights,
        name_spaces,
        keys,
        machines,
        socket,
        pumps,
        spin,
    };
    Daemon::start(&engine, listener, options, Box::new(|_| {})).unwrap()
}

/// A daemon of its own process, which is killed when this is dropped.
pub struct Process(Child);

/// Names the socket to the process that is to be a daemon.
const SOCKET: &str = "KEYWAY_TEST_SOCKET";

impl Process {
    fn start(socket: &Path) -> Process {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", "daemons::is_a_daemon", "--nocapture"]).env(SOCKET, socket);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }

    /// From now on it takes and answers nothing.
    pub fn stop(&self) {
        let process = Pid::from_child(&self.0);
        kill_process(process, Signal::STOP).unwrap();
        waitpid(Some(process), WaitOptions::UNTRACED).unwrap().unwrap();
    }

    /// And goes on.
    pub fn go_on(&self) {
        kill_process(Pid::from_child(&self.0), Signal::CONT).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The code that runs in that process: until it is killed, or its starter is gone.
#[test]
fn is_a_daemon() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        let _daemon = serve(Path::new(&socket), ClientLimits::default());
        let _ = std::io::stdin().read(&mut [0]);
    }
}

/// The behaviour of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Answers.
    Good,
    /// Hangs up.
    HangsUp(At),
    /// Answers no request before it was asked twice whether it is alive.
    Slow,
}

/// At which message it hangs up instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Hello,
    Open,
    Queue,
    Region,
}

/// Knows every algorithm and any key of the name [`HELD`], whose nonces it makes, and does nothing:
/// the text of each request is what it was.
pub struct Stub {
    ended: Arc<AtomicBool>,
    listener: JoinHandle<()>,
    socket: PathBuf,
}

pub const HELD: &str = "held.key";

impl Stub {
    fn start(socket: &Path, habit: Habit) -> Stub {
        let listener = listen(socket).unwrap();
        rustix::io::ioctl_fionbio(&listener, false).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let of_thread = ended.clone();
        let listener = thread::spawn(move || {
            while !of_thread.load(Ordering::Relaxed) {
                let client = Socket::from_fd(rustix::net::accept(&listener).unwrap());
                let ended = of_thread.clone();
                thread::spawn(move || pretend(&client, habit, &ended));
            }
        });
        Stub { ended, listener, socket: socket.to_owned() }
    }

    pub fn end(self) {
        self.ended.store(true, Ordering::Relaxed);
        Socket::connect(&self.socket).unwrap();
        self.listener.join().unwrap();
    }
}

fn pretend(socket: &Socket, habit: Habit, ended: &Arc<AtomicBool>) {
    let pings = Arc::new(AtomicU32::new(if habit == Habit::Slow { 0 } else { PINGS }));
    let mut regions = Vec::new();
    let mut pumps = Vec::new();
    let (region, session) = (RegionHandle::default(), SessionHandle::default());
    rustix::net::sockopt::set_socket_timeout(
        socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_millis(10)),
    )
    .unwrap();
    while !ended.load(Ordering::Relaxed) {
        let received = match socket.receive() {
            Ok(Some(received)) => received,
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => continue,
            _ => break,
        };
        let mut fds = Vec::new();
        let (at, answer) = match control::decode_ask(&received.bytes).unwrap() {
            Ask::Hello { .. } => {
                let all = Algorithm::ALL.iter().map(|algorithm| algorithm.name().to_owned());
                let (version, algorithms) = (control::VERSION, all.collect());
                (At::Hello, Answer::Hello { version, algorithms, process: 0 })
            }
            Ask::Open { steps } => {
                let held = matches!(&steps[0].key, Key::Named(name) if name == HELD);
                let opened =
                    Answer::Session { session, signature_bytes_max: 0, makes_nonces: held };
                let unknown = Answer::refused(Status::Unsupported, "it holds no such key");
                (At::Open, if held { opened } else { unknown })
            }
            Ask::Queue { entries } => {
                let (ring, bell) = (RingMemory::create(entries).unwrap(), Doorbell::new().unwrap());
                fds.push(ring.memory().file().unwrap().try_clone_to_owned().unwrap());
                fds.push(bell.as_fd().try_clone_to_owned().unwrap());
                pumps.push(ring.daemon_end(0, 0).unwrap());
                (At::Queue, Answer::Queue { queue: 0, entries: ring.entries() })
            }
            Ask::Region { bytes } => {
                let memory = SharedMemory::create(bytes as usize).unwrap();
                fds.push(memory.file().unwrap().try_clone_to_owned().unwrap());
                regions.push(memory);
                (At::Region, Answer::Region { region })
            }
            Ask::Ping => {
                pings.fetch_add(1, Ordering::Relaxed);
                socket.send(&control::encode(&Answer::Done).unwrap(), &[]).unwrap();
                continue;
            }
            _ => continue,
        };
        if habit == Habit::HangsUp(at) {
            break;
        }
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        socket.send(&control::encode(&answer).unwrap(), &borrowed).unwrap();
        // A queue pair's memory comes with the region that belongs to it.
        if at == At::Region
            && let (Some(end), Some(memory)) = (pumps.pop(), regions.pop())
        {
            let (ended, pings) = (ended.clone(), pings.clone());
            thread::spawn(move || pump(end, &memory, &ended, &pings));
        }
    }
}

/// After so many it answers, if it is slow.
const PINGS: u32 = 2;

/// Each nonce is another.
fn pump(mut end: DaemonEnd, memory: &SharedMemory, ended: &AtomicBool, pings: &AtomicU32) {
    let mut count = 0_u64;
    while !ended.load(Ordering::Relaxed) {
        if pings.load(Ordering::Relaxed) < PINGS {
            thread::yield_now();
            continue;
        }
        let Some(descriptor) = end.take() else {
            thread::yield_now();
            continue;
        };
        count += 1;
        let [_, b, c] = descriptor.segments;
        if c.bytes == 12 {
            memory.write(c.offset as usize, &count.to_le_bytes()).unwrap();
        }
        let (cookie, used) = (descriptor.cookie, b.bytes);
        end.answer(&Completion { cookie, status: Status::Done, used, result: [0; 16] });
        end.wake();
    }
}
