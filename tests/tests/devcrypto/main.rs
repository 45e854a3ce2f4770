//! The library in the place of `/dev/crypto`, with programs that know nothing of it: they are loaded with it, and have
//! the daemon's socket in their environment.

use keyway_ring::Socket;
use keyway_ring::control::{self, Answer, Ask, VERSION};
use keyway_tests::cryptod::{Cryptod, as_user, eventually};
use keyway_tests::ring_client::Client;
use keyway_tests::{
    ALLOW_ALL, UNPRIVILEGED, available, devcrypto_library, finish, found_by_valgrind, nightly,
};
use rustix::process::{Signal, getuid};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A daemon, and a program that is compiled beside it.
struct Site {
    cryptod: Cryptod,
}

impl Site {
    /// `None` if the machine lacks one of these programs, beside the compiler.
    fn new(needs: &[&str]) -> Option<Site> {
        if !available(&[&["cc"], needs].concat()) {
            return None;
        }
        // Triple DES is a legacy algorithm.
        let cryptod = Cryptod::start(&["--legacy"]);
        for program in ["program", "disturbed"] {
            compile(cryptod.folder(), program, &["-lpthread"]);
        }
        Some(Site { cryptod })
    }

    /// A program that finds the daemon.
    fn command(&self, program: &str) -> Command {
        command(program, self.cryptod.socket(), self.cryptod.folder())
    }

    fn run(&self, what: &str) {
        self.run_program("./program", what);
    }

    fn run_program(&self, program: &str, what: &str) {
        let done = finish(self.command(program).arg(what), "");
        assert_eq!((done.code, &*done.out, &*done.err), (0, "", ""), "{program} {what}");
    }
}

fn compile(folder: &TempDir, name: &str, libraries: &[&str]) {
    let source = format!("{}/tests/devcrypto/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-D_FORTIFY_SOURCE=2", "-Wall", "-Wextra", "-o"]);
    finish(compile.arg(folder.path().join(name)).arg(source).args(libraries), "").expect(0);
}

fn command(program: &str, socket: &Path, folder: &TempDir) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", devcrypto_library()).env("KEYWAY_SOCKET", socket);
    command.current_dir(folder.path());
    command
}

#[test]
fn answers_are_those_of_the_standards() {
    let Some(site) = Site::new(&[]) else { return };
    site.run("answers");
    site.run("chain");
    assert!(site.cryptod.stop().success());
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let Some(site) = Site::new(&[]) else { return };
    site.run("refusals");
    assert!(site.cryptod.stop().success());
}

#[test]
fn copies_of_a_descriptor_share_its_sessions_and_the_last_ends_them() {
    let Some(site) = Site::new(&[]) else { return };
    site.run("descriptors");
    assert!(site.cryptod.stop().success());
}

#[test]
fn parents_children_and_threads_work_at_once() {
    let Some(site) = Site::new(&[]) else { return };
    site.run("forks");
    site.run("threads");
    assert!(site.cryptod.stop().success());
}

#[test]
fn children_have_their_parents_devices_whatever_its_threads_were_at() {
    let Some(site) = Site::new(&[]) else { return };
    site.run_program("./disturbed", "forks");
    assert!(site.cryptod.stop().success());
}

#[test]
fn threads_are_cancelled_between_their_calls() {
    let Some(site) = Site::new(&[]) else { return };
    site.run_program("./disturbed", "cancels");
    assert!(site.cryptod.stop().success());
}

#[test]
fn handlers_of_signals_use_the_device_and_jump_out_of_it() {
    let Some(site) = Site::new(&[]) else { return };
    site.run_program("./disturbed", "signals");
    assert!(site.cryptod.stop().success());
}

#[test]
fn pointers_to_nothing_are_refused() {
    let Some(site) = Site::new(&[]) else { return };
    site.run_program("./disturbed", "pointers");
    assert!(site.cryptod.stop().success());
}

#[test]
fn random_requests_are_done_as_libcrypto_does_them() {
    let Some(site) = Site::new(&["/usr/include/openssl/evp.h"]) else { return };
    compile(site.cryptod.folder(), "model", &["-lcrypto"]);
    let (rounds, seeds) = if nightly() { ("20000", 8) } else { ("1000", 2) };
    for seed in 1..=seeds {
        let seed = seed.to_string();
        let done = finish(site.command("./model").args([rounds, &seed]), "");
        assert_eq!((done.code, &*done.err), (0, ""));
    }
    assert!(site.cryptod.stop().success());
}

/// No invalid access, and no block that no pointer leads to any more.
#[test]
fn memory_is_sound() {
    let Some(site) = Site::new(&["valgrind"]) else { return };
    for what in ["chain", "refusals"] {
        let mut valgrind = site.command("valgrind");
        valgrind.args(["-q", "--error-exitcode=99", "--leak-check=full", "--num-callers=40"]);
        valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
        let done = finish(valgrind.args(["./program", what]), "");
        assert_eq!((done.code, found_by_valgrind(&done.err)), (0, Vec::new()), "{what}");
    }
    assert!(site.cryptod.stop().success());
}

/// The program, which does what it is told line by line.
struct Served {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Served {
    fn start(socket: &Path, folder: &TempDir) -> Served {
        Served::start_by(command("./program", socket, folder))
    }

    fn start_by(mut program: Command) -> Served {
        program.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Served { child, input, output: BufReader::new(output) }
    }

    /// The number that it answers: 0, or an `errno`.
    fn told(&mut self, what: &str) -> i32 {
        writeln!(self.input, "{what}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap_or_else(|_| panic!("{what}: {line:?}"))
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

const DONE: i32 = 0;
const NOT_THERE: i32 = 2;
const FAILED: i32 = 5;
const NOT_ALLOWED: i32 = 13;
const BUSY: i32 = 16;
const NOT_KNOWN: i32 = 22;

#[test]
fn sessions_outlive_the_daemon() {
    let Some(site) = Site::new(&[]) else { return };
    let (folder, socket) = (site.cryptod.folder().clone(), site.cryptod.socket().to_owned());
    let mut program = Served::start(&socket, &folder);
    assert_eq!(program.told("open"), DONE);
    assert_eq!(program.told("keep"), DONE);
    assert_eq!(program.told("use"), DONE);
    site.cryptod.signal(Signal::KILL);
    drop(site.cryptod);
    assert_eq!(program.told("use"), FAILED);
    assert_eq!(program.told("keep"), FAILED);
    // One that has been started meanwhile is another daemon, which knows nothing of the session.
    let arguments = ["--socket", socket.to_str().unwrap()];
    let cryptod = Cryptod::start_on(&folder, &arguments);
    assert_eq!(program.told("keep"), DONE);
    assert_eq!(program.told("use"), DONE);
    cryptod.signal(Signal::KILL);
    drop(cryptod);
    let cryptod = Cryptod::start_on(&folder, &arguments);
    assert_eq!(program.told("use"), DONE);
    // No daemon: what is closed needs none.
    assert!(cryptod.stop().success());
    assert_eq!(program.told("use"), FAILED);
    assert_eq!(program.told("close"), DONE);
    assert_eq!(program.told("use"), 9);
    program.end();
}

/// Without a daemon there is no device. The library has done nothing until then.
#[test]
fn without_a_daemon_there_is_no_device() {
    if !available(&["cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    compile(&folder, "program", &["-lpthread"]);
    let mut program = Served::start(&folder.path().join("socket"), &folder);
    let status = fs::read_to_string(format!("/proc/{}/status", program.child.id())).unwrap();
    assert!(status.contains("\nThreads:\t1\n"), "{status}");
    let files = program.told("files");
    assert_eq!(program.told("open"), NOT_THERE);
    assert_eq!(program.told("files"), files);
    assert_eq!(program.told("use"), 9);
    let socket = folder.path().join("socket").display().to_string();
    let folder = Arc::new(folder);
    let cryptod = Cryptod::start_on(&folder, &[ALLOW_ALL, "--socket", &socket]);
    assert_eq!(program.told("open"), DONE);
    // No session yet.
    assert_eq!(program.told("use"), NOT_KNOWN);
    assert_eq!(program.told("keep"), DONE);
    assert_eq!(program.told("use"), DONE);
    assert!(cryptod.stop().success());
    program.end();
}

/// How many sessions the daemon has with such programs, as it tells its administrators.
fn sessions(site: &Site) -> u32 {
    let socket = Socket::connect(site.cryptod.socket()).unwrap();
    let ask = |ask: &Ask| {
        socket.send(&control::encode(ask).unwrap(), &[]).unwrap();
        control::decode_answer(&socket.receive().unwrap().unwrap().bytes).unwrap()
    };
    ask(&Ask::Hello { version: VERSION, name: "status".into() });
    let Answer::Status(status) = ask(&Ask::Status) else { panic!("no status") };
    let programs = status.clients.iter().filter(|client| client.name == "devcrypto");
    programs.map(|client| client.sessions).sum()
}

/// The daemon has no session of a program that has closed its descriptor.
#[test]
fn the_last_close_frees_the_daemons_sessions_too() {
    let Some(site) = Site::new(&[]) else { return };
    let mut program = Served::start(site.cryptod.socket(), site.cryptod.folder());
    assert_eq!(program.told("open"), DONE);
    assert_eq!(program.told("keep"), DONE);
    assert_eq!(program.told("keep"), DONE);
    // A cipher and a MAC each.
    assert_eq!(sessions(&site), 4);
    assert_eq!(program.told("close"), DONE);
    eventually("its sessions are closed", || sessions(&site) == 0);
    program.end();
    assert!(site.cryptod.stop().success());
}

/// One that has no place for the program's user is busy, and one that the user may not connect to does not let it in.
/// Neither is the same as none.
#[test]
fn a_daemon_that_is_full_or_closed_is_not_taken_for_none() {
    if !available(&["cc"]) {
        return;
    }
    if !getuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let cryptod = Cryptod::for_every_user(&["--limit", "clients-of-user=1"]);
    let folder = cryptod.folder();
    compile(folder, "program", &["-lpthread"]);
    // Where that user finds it, too.
    let library = folder.path().join("library.so");
    fs::copy(devcrypto_library(), &library).unwrap();
    let mut program = command("./program", cryptod.socket(), folder);
    program.env("LD_PRELOAD", &library).uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    let mut program = Served::start_by(program);
    assert_eq!(program.told("open"), DONE);
    let other = as_user(UNPRIVILEGED, || Client::new(cryptod.socket()));
    assert_eq!(program.told("keep"), BUSY);
    assert_eq!(program.told("open"), BUSY);
    drop(other);
    let mut answer = BUSY;
    eventually("there is a place", || {
        answer = program.told("open");
        answer != BUSY
    });
    assert_eq!(answer, DONE);
    fs::set_permissions(cryptod.socket(), Permissions::from_mode(0o600)).unwrap();
    assert_eq!(program.told("open"), NOT_ALLOWED);
    program.end();
    assert!(cryptod.stop().success());
}

/// Two processes write to one terminal. Each write to a socket of datagrams is one of these.
#[test]
fn a_line_of_debug_is_written_in_one_piece() {
    if !available(&["cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    compile(&folder, "program", &["-lpthread"]);
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut program = command("./program", &folder.path().join("socket"), &folder);
    program.env("KEYWAY_DEVCRYPTO_DEBUG", "1").stderr(OwnedFd::from(theirs));
    let mut program = Served::start_by(program);
    assert_eq!(program.told("open"), NOT_THERE);
    let mut line = [0; 4096];
    let length = ours.recv(&mut line).unwrap();
    let line = String::from_utf8_lossy(&line[..length]);
    assert!(line.starts_with("keyway-devcrypto: no cryptod answers at "), "{line}");
    assert!(line.ends_with('\n'), "{line}");
    program.end();
}

/// A program that opens the device as root and locks itself into another root: its children connect anew.
#[test]
fn the_device_is_there_behind_chroot() {
    let Some(site) = Site::new(&[]) else { return };
    site.run_program("./disturbed", "chroots");
    assert!(site.cryptod.stop().success());
}
