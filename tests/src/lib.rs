//! End to end, through what a user sees: the built program, and other people's clients.
//!
//! This library starts `keyway` and foreign clients for the tests beside it. If the machine lacks
//! something that a test needs, that is said on standard error and the test ends; with `CI=true`
//! that is a failure instead.
#![forbid(unsafe_code)]

pub mod authority;
pub mod browser;
pub mod capture;
pub mod client;
pub mod cryptod;
pub mod debian;
pub mod dice;
pub mod dirsrv;
pub mod disk;
pub mod etcd;
pub mod hypervisor;
pub mod link;
pub mod machines;
pub mod namespace;
pub mod proxy;
#[path = "../../crypto/daemon/tests/daemon/client.rs"]
#[allow(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "it is the daemon's tests' own, see there"
)]
pub mod ring_client;
pub mod slapd;
pub mod vm;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use tempfile::TempDir;

/// Whether all of these are here: a program's name, the path of a file, or `python:MODULE` for Debian's Python.
///
/// # Panics
/// In CI, where nothing may be skipped, if one is missing.
pub fn available(needs: &[&str]) -> bool {
    let here = |need: &&str| match need.strip_prefix("python:") {
        Some(module) => runs(PYTHON, &["-c", &format!("import {module}")]),
        None if need.starts_with('/') => Path::new(need).exists(),
        None => runs("sh", &["-c", &format!("command -v {need}")]),
    };
    let missing: Vec<&str> = needs.iter().filter(|need| !here(need)).copied().collect();
    if missing.is_empty() {
        return true;
    }
    assert!(!ci(), "nothing may be skipped in CI, but these are missing: {missing:?}");
    eprintln!("skipped: not installed: {missing:?} (`cargo xtask test` installs them)");
    false
}

/// Whether this process is root's, which a test with namespaces has to be.
///
/// # Panics
/// In CI, where nothing may be skipped, if it is not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root || !ci(), "nothing may be skipped in CI, but this is not root");
    if !is_root {
        eprintln!("skipped: only root may make name spaces");
    }
    is_root
}

fn ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Debian's own Python, whose packages we ask for, whatever else is first in the path.
pub const PYTHON: &str = "/usr/bin/python3";

/// The number of Debian's user without rights, and of that user's group.
pub const UNPRIVILEGED: u32 = 65534;

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The program under test: what `KEYWAY_PROGRAM` names, else one in this library's own form (debug
/// or release), built once a test run.
///
/// # Panics
/// If it does not build.
pub fn keyway() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::var_os("KEYWAY_PROGRAM").map_or_else(build, PathBuf::from))
}

/// The provider for OpenSSL: what `KEYWAY_OPENSSL_PROVIDER` names, else one in this library's own form, built once a
/// test run.
///
/// # Panics
/// If it does not build.
pub fn openssl_provider() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| library("keyway-openssl", "KEYWAY_OPENSSL_PROVIDER"))
}

/// The PKCS#11 module: what `KEYWAY_PKCS11_MODULE` names, else one in this library's own form, built once a test run.
///
/// # Panics
/// If it does not build.
pub fn pkcs11_module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| library("keyway-pkcs11", "KEYWAY_PKCS11_MODULE"))
}

/// The library in the place of `/dev/crypto`: what `KEYWAY_DEVCRYPTO` names, else one in this library's own form, built
/// once a test run.
///
/// # Panics
/// If it does not build.
pub fn devcrypto_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| library("keyway-devcrypto", "KEYWAY_DEVCRYPTO"))
}

/// The library that a variable names, else that of a package.
fn library(package: &str, variable: &str) -> PathBuf {
    std::env::var_os(variable).map(PathBuf::from).unwrap_or_else(|| {
        let files = built(package);
        let is_library = |file: &&PathBuf| file.extension().is_some_and(|it| it == "so");
        files.iter().find(is_library).expect("cargo says where the library is").clone()
    })
}

fn build() -> PathBuf {
    let is_program = |file: &&PathBuf| file.file_stem() == file.file_name();
    built("keyway").iter().rfind(is_program).expect("cargo says where the program is").clone()
}

/// Builds a package, and says which files that has made.
fn built(package: &str) -> Vec<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--profile", profile, "--package", package])
        .args(["--message-format", "json"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{package} does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let its = |message: &Value| {
        let name = message["target"]["name"].as_str().unwrap_or_default().replace('_', "-");
        name == package
    };
    let files = messages.filter(its).flat_map(|message| {
        let files = message["filenames"].as_array().cloned().unwrap_or_default();
        files.into_iter().filter_map(|file| file.as_str().map(PathBuf::from))
    });
    files.collect()
}

/// Whether tests are as long as they can be: `cargo xtask nightly` says so by `KEYWAY_NIGHTLY`.
pub fn nightly() -> bool {
    std::env::var_os("KEYWAY_NIGHTLY").is_some()
}

/// An address of loopback that no program has now, and that no connection gets for its own end: a server that was killed
/// finds it free again.
///
/// # Panics
/// If the system has none.
pub fn port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below those that the system gives to clients, and no other one of this process.
    let first = (std::process::id() % 97) as u16 * 100;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let address = format!("127.0.0.1:{port}");
        if std::net::TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// A running `keyway up` on free ports of 127.0.0.1. Killed when dropped.
pub struct Server {
    child: Child,
    /// Its first line.
    pub ready: Value,
    /// The rest of its standard output.
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// Starts it on a data folder and waits until it says that it is ready.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(data: &Path, arguments: &[&str]) -> Server {
        let mut command = Command::new(keyway());
        command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
        Server::spawn(command.arg("--data").arg(data).args(arguments))
    }

    /// Starts a command that is to become `keyway up --json` and waits until it is ready.
    ///
    /// # Panics
    /// If it does not start.
    pub fn spawn(command: &mut Command) -> Server {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("keyway starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a first line");
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|why| panic!("keyway did not come up: {line:?}: {why}"));
        assert_ne!(ready["event"], "failed", "keyway did not come up: {line}");
        Server { child, ready, output }
    }

    /// Waits for the next line of its standard output.
    ///
    /// # Panics
    /// If there is none, or it is not JSON.
    pub fn next_event(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it cannot be sent.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a pid");
        kill_process(pid, signal).expect("a signal");
    }

    /// A string of its first line.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn text(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.ready))
    }

    /// `ldap://127.0.0.1:PORT`
    pub fn ldap(&self) -> &str {
        self.text("ldap")
    }

    /// `ldaps://127.0.0.1:PORT`
    pub fn ldaps(&self) -> &str {
        self.text("ldaps")
    }

    /// Host and port without TLS.
    pub fn address(&self) -> &str {
        self.ldap().trim_start_matches("ldap://")
    }

    /// Host and port with TLS.
    pub fn tls_address(&self) -> &str {
        self.ldaps().trim_start_matches("ldaps://")
    }

    /// The administrator's DN.
    pub fn administrator(&self) -> &str {
        self.text("administrator")
    }

    /// The administrator's password.
    pub fn password(&self) -> String {
        let file = self.text("administrator_password_file");
        std::fs::read_to_string(file).expect("the password file").trim_end().to_owned()
    }

    /// One of the ldap-utils, as the administrator over ldaps, checked against the server's CA.
    pub fn admin_tool(&self, program: &str) -> Command {
        let mut command = self.tool(program, self.ldaps());
        command.args(["-D", self.administrator(), "-y", self.text("administrator_password_file")]);
        command
    }

    /// One of the ldap-utils, simple authentication, checked against the server's CA.
    pub fn tool(&self, program: &str, url: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["-x", "-H", url]).env("LDAPNOINIT", "1");
        command.env_remove("LDAPNOINIT");
        command.env("LDAPTLS_CACERT", self.text("ca_certificate"));
        command.env("LDAPTLS_REQCERT", "demand").env("LDAPCONF", "/dev/null");
        command
    }

    /// How many binds its log says were refused, once it says that of one: its lines are written a moment later.
    ///
    /// # Panics
    /// If it does not before long.
    pub fn refused_binds(&self, data: &Path) -> usize {
        let begun = std::time::Instant::now();
        loop {
            let mut command = Command::new(keyway());
            let command = command.args(["log", "--where", "result=49", "--data"]).arg(data);
            match finish(command, "").out.lines().count() {
                0 => assert!(begun.elapsed().as_secs() < 20, "no bind was refused"),
                count => return count,
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Like it, `keyway ldapd` alone, with its keys in files.
    ///
    /// # Panics
    /// If it does not start.
    pub fn ldapd(data: &Path, arguments: &[&str]) -> Server {
        let mut command = Command::new(keyway());
        command.args(["ldapd", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
        Server::spawn(command.arg("--data").arg(data).args(arguments))
    }

    /// The process that serves, which one of `keyway up` has started.
    ///
    /// # Panics
    /// If it has not said which.
    pub fn server_pid(&self) -> u32 {
        let id = self.ready["ldapd_pid"].as_u64().and_then(|id| u32::try_from(id).ok());
        id.expect("the process")
    }

    /// All that do something for clients: with `keyway up`, cryptod as well.
    pub fn server_pids(&self) -> Vec<u32> {
        let up = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{up}/task/{up}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        [up].into_iter().chain(children).collect()
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// If it cannot be signalled.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().expect("its end")
    }

    /// Whether it is still running.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn is_up(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// kill -9, and waits for the end of it and of those that it has started: they die with it, a moment
    /// later, and hold the store until then.
    ///
    /// # Panics
    /// If it cannot be signalled.
    pub fn kill(&mut self) {
        let ids = self.server_pids().into_iter().filter_map(|id| Pid::from_raw(id as i32));
        let all: Vec<_> = ids.filter_map(|id| pidfd_open(id, PidfdFlags::empty()).ok()).collect();
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
        for process in &all {
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], None);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

/// A server on a fresh folder with `people` sample people.
pub fn sample(people: u32) -> (TempDir, Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&folder.path().join("data"), &["--sample", &people.to_string()]);
    (folder, server)
}

/// The status and output of a finished program.
pub struct Finished {
    /// Its exit status; for ldap-utils the LDAP result code.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// A file that only its owner may read, as passwords have to be in.
///
/// # Panics
/// If it cannot be written.
pub fn secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("closed");
}

/// Runs it to its end with `input` on standard input.
///
/// # Panics
/// If it cannot be started.
pub fn finish(command: &mut Command, input: &str) -> Finished {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let mut stdin = child.stdin.take().expect("its input");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that ends early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let Output { status, stdout, stderr } = child.wait_with_output().expect("its end");
    writer.join().expect("the writer");
    Finished {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// The value of `--for` that lets every caller use a key.
pub const ALL_CALLERS: &str = "everybody";
/// The flag of cryptod that lets every user in.
pub const ALLOW_ALL: &str = "--allow-everybody";

/// The lines of valgrind, without those on system calls that are newer than it is.
pub fn found_by_valgrind(err: &str) -> Vec<&str> {
    err.lines().filter(|line| !line.starts_with("--")).collect()
}

impl Finished {
    /// Asserts the exit status.
    ///
    /// # Panics
    /// If it is another, with what the program said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Finished {
        assert_eq!(self.code, code, "\nout: {}\nerr: {}", self.out, self.err);
        self
    }
}
