//! Passing for the program that a key was granted to.

use keyway_ring::control::{self, Answer, Ask, VERSION};
use keyway_tests::cryptod::{Cryptod, beside_neighbours, eventually};
use keyway_tests::{Finished, UNPRIVILEGED, available, finish, keyway};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Connects, from a child that ends if `fork` is said, and asks what it may do with the key `granted`. Says
/// `connected` and a process when that is done; before, and before it reads the answers, it waits for a line.
const CLIENT: &str = r"
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sys.stdin.readline()
if 'fork' in sys.argv:
    child = os.fork()
    if child == 0:
        s.connect(sys.argv[1])
        os._exit(0)
    os.waitpid(child, 0)
else:
    child = os.getpid()
    s.connect(sys.argv[1])
print('connected', child, flush=True)
sys.stdin.readline()
for ask in sys.argv[2:4]:
    s.send(bytes.fromhex(ask))
    answer = s.recv(32768)
print(answer.hex(), flush=True)
";

/// A program that a key is granted to: a copy of Python in a folder that every user may read.
struct Granted {
    program: PathBuf,
}

impl Granted {
    fn new(cryptod: &Cryptod) -> Granted {
        let program = cryptod.folder().path().join("granted");
        fs::copy(fs::canonicalize(keyway_tests::PYTHON).unwrap(), &program).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let who = format!("program:{}", program.display());
        key(cryptod, &["generate", "granted", "--algorithm", "ed25519", "--for", &who]).expect(0);
        Granted { program }
    }
}

fn key(cryptod: &Cryptod, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket()), "")
}

fn hex(ask: &Ask) -> String {
    control::encode(ask).unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The client as a program, or behind a command that starts it.
struct Client {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Client {
    fn start(command: &mut Command, program: &Path, cryptod: &Cryptod, more: &[&str]) -> Client {
        let hello = hex(&Ask::Hello { version: VERSION, name: "attack".to_owned() });
        let ask = hex(&Ask::Usable { name: "granted".to_owned() });
        command.arg(program).args(["-c", CLIENT]).arg(cryptod.socket()).arg(hello).arg(ask);
        command.args(more).env("PYTHONHOME", "/usr").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Client { child, output }
    }

    /// Runs the program as [`UNPRIVILEGED`], and changes nothing else about it.
    fn plain(program: &Path, cryptod: &Cryptod, more: &[&str]) -> Client {
        let mut env = Command::new("/usr/bin/env");
        Client::start(env.uid(UNPRIVILEGED).gid(UNPRIVILEGED), program, cryptod, more)
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Connects, and says which process did.
    fn connect(&mut self) -> u32 {
        self.go_on();
        let line = self.line();
        line.strip_prefix("connected ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    }

    /// Whether it may use the key.
    fn may(mut self) -> bool {
        self.go_on();
        let digits = self.line();
        self.child.wait().unwrap();
        let pairs = digits.as_bytes().chunks(2);
        let answer: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        match control::decode_answer(&answer).unwrap() {
            Answer::Usable { purposes, .. } => purposes == ["sign"],
            Answer::Refused { why, .. } => {
                assert!(why.contains("no key of that name that you may use"), "{why}");
                false
            }
            other => panic!("{other:?}"),
        }
    }

    fn asks(mut self) -> bool {
        self.connect();
        self.may()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why the last one was refused, for those who look after the daemon.
fn last_refusal(cryptod: &Cryptod) -> String {
    let log = fs::read_to_string(cryptod.data().join("cryptod/keys/audit.log")).unwrap();
    let last: Value = serde_json::from_str(log.lines().next_back().unwrap()).unwrap();
    last["unseen"].as_str().unwrap_or_else(|| panic!("{last}")).to_owned()
}

fn is_possible() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(is_root || !ci, "nothing may be skipped in CI, but other users take root");
    is_root && available(&["unshare", "setpriv", "python3"])
}

/// The only process that a daemon has started.
fn witness_of(daemon: u32) -> Pid {
    let all =
        fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().into_string().ok());
    let is_its = |process: &i32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{daemon}"))
    };
    let found: Vec<i32> = all.filter_map(|name| name.parse().ok()).filter(is_its).collect();
    let [witness] = found[..] else { panic!("{found:?}") };
    Pid::from_raw(witness).unwrap()
}

/// Without its witness a daemon would refuse programs that it admits. It says so, and ends with a failure, which a
/// supervisor sees.
#[test]
fn a_daemon_does_not_outlive_its_witness() {
    let folder = tempfile::tempdir().unwrap();
    let (data, socket) = (folder.path().join("data"), folder.path().join("socket"));
    let mut daemon = Command::new(keyway());
    daemon.arg("cryptod").arg("--data").arg(data).arg("--socket").arg(&socket);
    let mut daemon = daemon.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(daemon.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("serves at"), "{line}");
    let witness = witness_of(daemon.id());
    // An init system sends these to all processes at once.
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(witness, signal).unwrap();
    }
    let mut list = Command::new(keyway());
    finish(list.args(["key", "list", "--socket"]).arg(&socket), "").expect(0);
    assert_eq!(witness_of(daemon.id()), witness);
    kill_process(witness, Signal::KILL).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let why = "the witness, which looks which programs clients run, has ended";
    assert!(said.contains(why), "{said}");
    assert!(!socket.exists());
}

/// In the daemon's sandbox, which is closed to clients' processes.
#[test]
fn the_granted_program_may_and_others_may_not() {
    if !is_possible() {
        return;
    }
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let granted = Granted::new(cryptod);
        assert!(Client::plain(&granted.program, cryptod, &[]).asks());
        let other = cryptod.folder().path().join("other");
        fs::copy(&granted.program, &other).unwrap();
        assert!(!Client::plain(&other, cryptod, &[]).asks());
        // Its name is not what counts: a link leads to the file.
        let link = cryptod.folder().path().join("link");
        std::os::unix::fs::symlink(&granted.program, &link).unwrap();
        assert!(Client::plain(&link, cryptod, &[]).asks());
    });
}

#[test]
fn a_bind_mount_over_the_program_is_not_the_program() {
    if !is_possible() {
        return;
    }
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let granted = Granted::new(cryptod);
        let evil = cryptod.folder().path().join("evil");
        fs::copy(&granted.program, &evil).unwrap();
        let script =
            format!("mount --bind {} {} && exec \"$@\"", evil.display(), granted.program.display());
        // A namespace that root made, and one that any user may make.
        let drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let mut by_root = Command::new("unshare");
        by_root.args(["--mount", "sh", "-c", &script, "sh"]).args(drop);
        let mut by_user = Command::new("unshare");
        by_user.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
        by_user.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        for mut command in [by_root, by_user] {
            let client = Client::start(&mut command, &granted.program, cryptod, &[]);
            assert!(!client.asks());
            let why = last_refusal(cryptod);
            // In a user namespace of its own the process has capabilities, which is seen first.
            assert!(why.contains("another namespace") || why.contains("capabilities"), "{why}");
        }
        assert!(Client::plain(&granted.program, cryptod, &[]).asks());
    });
}

#[test]
fn a_program_that_was_replaced_while_it_ran_is_another() {
    if !is_possible() {
        return;
    }
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let granted = Granted::new(cryptod);
        let client = Client::plain(&granted.program, cryptod, &[]);
        // It has started when it is the granted program, and no longer `env`.
        let exe = format!("/proc/{}/exe", client.child.id());
        eventually("it runs", || fs::read_link(&exe).is_ok_and(|it| it == granted.program));
        let new = cryptod.folder().path().join("new");
        fs::copy(&granted.program, &new).unwrap();
        fs::rename(&new, &granted.program).unwrap();
        assert!(!client.asks());
        assert!(last_refusal(cryptod).contains("not, or no longer, at its path"));
        assert!(Client::plain(&granted.program, cryptod, &[]).asks());
    });
}

/// The process that connected ends before the daemon looks, and the granted program gets its number.
#[test]
fn a_process_with_the_number_of_one_that_has_ended_lends_it_nothing() {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    if !is_possible() {
        return;
    }
    let cryptod = Cryptod::for_every_user(&[]);
    let granted = Granted::new(&cryptod);
    let other = cryptod.folder().path().join("other");
    fs::copy(&granted.program, &other).unwrap();
    let mut client = Client::plain(&other, &cryptod, &["fork"]);
    cryptod.signal(Signal::STOP);
    let pid = client.connect();
    let mut taken = None;
    for _ in 0..2_000 {
        if fs::write(NEXT, (pid - 1).to_string()).is_err() {
            break;
        }
        let mut sleeps = Command::new(&granted.program);
        sleeps.args(["-c", "import sys; sys.stdin.read()"]).env("PYTHONHOME", "/usr");
        let mut child = sleeps.uid(UNPRIVILEGED).stdin(Stdio::piped()).spawn().unwrap();
        if child.id() == pid {
            taken = Some(child);
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    cryptod.signal(Signal::CONT);
    // Where the number could not be had, the daemon is asked all the same.
    assert!(!client.may());
    assert!(last_refusal(&cryptod).contains("has ended"), "{}", last_refusal(&cryptod));
    if let Some(mut child) = taken {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(Client::plain(&granted.program, &cryptod, &[]).asks());
    assert!(cryptod.stop().success());
}
