//! `keyway cryptod` on a folder of its own, and neighbours: honest clients of it that say whether they are
//! served while another client attacks it. The hostile ones are made of [`crate::ring_client`].

use crate::keyway;
use crate::ring_client::{Client, Pair, Region};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::Engine;
use keyway_ring::control::{Answer, Ask};
use keyway_ring::descriptor::{SessionHandle, Status};
use rustix::process::{Gid, Pid, Signal, Uid, kill_process};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take that takes some milliseconds on an idle machine. It only tells *slow* from
/// *never*.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
///
/// # Panics
/// If it is not so within [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Does something as another user, on a thread of its own that has become that user with that one
/// group. A connection it makes is that user's for the daemon, and stays so on any thread.
///
/// # Panics
/// If this process is not root's, or `action` panics.
pub fn as_user<T: Send>(user: u32, action: impl FnOnce() -> T + Send) -> T {
    let run = || {
        set_thread_groups(&[]).expect("this test is root's");
        set_thread_gid(Gid::from_raw(user)).expect("this test is root's");
        set_thread_uid(Uid::from_raw(user)).expect("this test is root's");
        action()
    };
    let done = thread::scope(|scope| scope.spawn(run).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A running `keyway cryptod`. Killed when it is dropped.
pub struct Cryptod {
    child: Child,
    /// Its first line of output.
    pub ready: Value,
    // Its standard output is read no more, and open as long as it runs.
    _output: BufReader<std::process::ChildStdout>,
    folder: Arc<TempDir>,
}

impl Cryptod {
    /// Starts it on a fresh folder, for this user's clients.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(arguments: &[&str]) -> Cryptod {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Cryptod::start_on(&folder, arguments)
    }

    /// Starts it on a fresh folder, for clients of every user ([`as_user`]).
    ///
    /// # Panics
    /// If it does not start.
    pub fn for_every_user(arguments: &[&str]) -> Cryptod {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("its mode");
        let socket = folder.path().join("socket").display().to_string();
        let beside = [crate::ALLOW_ALL, "--socket", &socket];
        Cryptod::start_on(&folder, &[&beside, arguments].concat())
    }

    /// Starts it on a folder that was used before ([`Cryptod::folder`]).
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_on(folder: &Arc<TempDir>, arguments: &[&str]) -> Cryptod {
        Cryptod::start_in(folder, arguments, &[], None)
    }

    /// As [`Cryptod::start_on`], with more in its environment, and its standard error in a file.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_in(
        folder: &Arc<TempDir>,
        arguments: &[&str],
        environment: &[(&str, &OsStr)],
        errors: Option<File>,
    ) -> Cryptod {
        let mut command = Command::new(keyway());
        command.args(["cryptod", "--json", "--pumps", "1"]).args(arguments);
        command.arg("--data").arg(folder.path().join("data"));
        command.envs(environment.iter().copied());
        if let Some(errors) = errors {
            command.stderr(errors);
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("keyway starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a first line");
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|why| panic!("cryptod did not come up: {line:?}: {why}"));
        assert_eq!(ready["event"], "ready", "cryptod did not come up: {line}");
        Cryptod { child, ready, _output: output, folder: folder.clone() }
    }

    /// Its folder, which lasts as long as something holds it. The data folder is `data` in it.
    pub fn folder(&self) -> &Arc<TempDir> {
        &self.folder
    }

    /// The data folder, for `--data`.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Where it listens.
    ///
    /// # Panics
    /// If it has not said so.
    pub fn socket(&self) -> &Path {
        Path::new(self.ready["socket"].as_str().expect("where it listens"))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An engine with the usual drivers that is a client of it by this name; its driver is `remote`.
    ///
    /// # Panics
    /// If the daemon does not let it in.
    pub fn engine(&self, name: &str) -> (Engine, Remote) {
        let engine = keyway_drivers::engine();
        let options = RemoteOptions::new(self.socket(), name);
        let remote = Remote::connect(&engine, options).expect("the daemon");
        (engine, remote)
    }

    /// A number that `/proc/PID/status` says of it, such as `VmRSS` or `VmLck` in KiB, or `Threads`.
    ///
    /// # Panics
    /// If it says none.
    pub fn figure(&self, name: &str) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {status}"))
    }

    /// How many files it has open.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("its files").count()
    }

    /// Whether it is still running.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn is_up(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it cannot be sent.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a pid");
        kill_process(pid, signal).expect("a signal");
    }

    /// Sends SIGTERM and waits for the end, which is not to depend on any client.
    ///
    /// # Panics
    /// If it does not end within [`PATIENCE`].
    pub fn stop(mut self) -> ExitStatus {
        assert!(self.is_up(), "it has gone");
        self.signal(Signal::TERM);
        let mut ended = None;
        eventually("SIGTERM ends the daemon", || {
            ended = self.child.try_wait().expect("its state");
            ended.is_some()
        });
        ended.expect("its end")
    }
}

impl Drop for Cryptod {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the daemon's threads:\n{}", threads(self.child.id()));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The threads of a process, and where in the kernel each waits: for a test that was not answered in time.
fn threads(process: u32) -> String {
    let read = |task: &Path, name: &str| {
        let text = fs::read_to_string(task.join(name)).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks
        .map(|task| {
            let task = task.path();
            let [name, stat, wait, call] =
                ["comm", "stat", "wchan", "syscall"].map(|file| read(&task, file));
            let stat: String = stat.chars().take(40).collect();
            let stack = read(&task, "stack");
            format!("  {name}: {stat}... waits in {wait}, call {call}, {stack}\n")
        })
        .collect()
}

/// An honest client on a thread of its own, which has one thing after another done.
pub struct Neighbour {
    name: &'static str,
    rounds: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// One that does rounds of its own until it is dropped. `begin` connects, and gives what does one
    /// round and panics if that goes wrong.
    pub fn start<R: FnMut()>(
        name: &'static str,
        begin: impl FnOnce() -> R + Send + 'static,
    ) -> Neighbour {
        let (rounds, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ends) = (rounds.clone(), over.clone());
        let thread = thread::spawn(move || {
            let mut round = begin();
            while !ends.load(Ordering::Relaxed) {
                round();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let neighbour = Neighbour { name, rounds, over, thread: Some(thread) };
        neighbour.goes_on();
        neighbour
    }

    /// One that seals texts through a ring, one after the other: whether a pump serves it.
    pub fn sealing(cryptod: &Cryptod) -> Neighbour {
        let socket = cryptod.socket().to_owned();
        Neighbour::start("requests in a ring", move || {
            let mut seals = Seals::new(&socket);
            move || seals.one()
        })
    }

    /// One that asks the control thread for signs of life, and for a connection now and then.
    pub fn asking(cryptod: &Cryptod) -> Neighbour {
        let socket = cryptod.socket().to_owned();
        Neighbour::start("messages on the socket", move || {
            let client = Client::new(&socket);
            let mut round = 0_u32;
            move || {
                assert!(matches!(client.ask(&Ask::Ping), Answer::Done));
                round += 1;
                if round.is_multiple_of(64) {
                    drop(Client::new(&socket));
                }
            }
        })
    }

    /// Both of these: what an attack must not disturb.
    pub fn all(cryptod: &Cryptod) -> Vec<Neighbour> {
        vec![Neighbour::sealing(cryptod), Neighbour::asking(cryptod)]
    }

    /// Rounds that were done.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Waits until more rounds are done.
    ///
    /// # Panics
    /// If that does not happen within [`PATIENCE`], or a round goes wrong.
    #[track_caller]
    pub fn goes_on(&self) {
        let before = self.rounds();
        let begun = Instant::now();
        while self.rounds() < before + 100 {
            let thread = self.thread.as_ref();
            assert!(thread.is_some_and(|it| !it.is_finished()), "a neighbour fails: {}", self.name);
            assert!(begun.elapsed() < PATIENCE, "a neighbour is not served: {}", self.name);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // One that waits for ever is what the test has failed for.
        if let Some(thread) = self.thread.take().filter(|_| !thread::panicking()) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "a neighbour failed: {}", self.name);
        }
    }
}

/// An honest client by hand, which seals texts.
pub struct Seals {
    // Its connection is open as long as it lives.
    _client: Client,
    pair: Pair,
    region: Region,
    session: SessionHandle,
}

impl Seals {
    /// Connects, and gets what it needs.
    ///
    /// # Panics
    /// If it is refused.
    pub fn new(socket: &Path) -> Seals {
        let client = Client::new(socket);
        let (pair, region, session) = (client.pair(8), client.region(4096), client.aes());
        Seals { _client: client, pair, region, session }
    }

    /// Seals a text, and looks whether it is sealed.
    ///
    /// # Panics
    /// If it is not.
    pub fn one(&mut self) {
        let completion = self.pair.run(&self.region.seal(self.session, b"text"));
        assert_eq!((completion.status, completion.used), (Status::Done, 4));
        assert_ne!((self.region.bytes(0, 4), completion.result), (b"text".to_vec(), [0; 16]));
    }
}

/// Makes an attack on a daemon beside honest neighbours: the daemon stays up, all neighbours are served
/// during it and after it, and SIGTERM ends the daemon. An attacker that is to be there to the end is
/// what `attack` returns.
///
/// # Panics
/// If one of these is not so.
#[track_caller]
pub fn beside_neighbours<T>(mut cryptod: Cryptod, attack: impl FnOnce(&mut Cryptod) -> T) {
    let neighbours = Neighbour::all(&cryptod);
    let attacker = attack(&mut cryptod);
    assert!(cryptod.is_up(), "the daemon has gone");
    neighbours.iter().for_each(Neighbour::goes_on);
    assert!(cryptod.is_up(), "the daemon has gone");
    drop(neighbours);
    let ended = cryptod.stop();
    assert!(ended.success(), "{ended}");
    drop(attacker);
}
