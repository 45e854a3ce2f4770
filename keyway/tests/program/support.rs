//! Runs the program and reads what it says.

use keyway_codec::ber;
use keyway_codec::message::{Authentication, BindRequest, Message, Op, ResultCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Bytes of a page on the machines that we know.
pub const PAGE: u64 = 4096;

/// The program.
pub const KEYWAY: &str = env!("CARGO_BIN_EXE_keyway");

/// The number of Debian's user without rights, and of that user's group.
pub const UNPRIVILEGED: u32 = 65534;

/// The status and output of a program that has ended.
pub struct Finished {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the program to its end.
pub fn keyway<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Finished {
    keyway_with(arguments, "")
}

/// As [`keyway`], with something on standard input.
pub fn keyway_with<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    input: &str,
) -> Finished {
    finish(Command::new(KEYWAY).args(arguments), input)
}

/// Copies the program to where another user may run it. Another process writes the copy: a child that a test
/// beside this one starts meanwhile would have a file of ours open, and what is open for writing cannot be run.
pub fn copy_program(to: &Path) {
    finish(Command::new("cp").arg(KEYWAY).arg(to), "").well();
}

/// Runs a command to its end.
pub fn finish(command: &mut Command, input: &str) -> Finished {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that ends early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Finished {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Finished {
    /// It did what it was asked.
    #[track_caller]
    pub fn well(self) -> Finished {
        assert_eq!(self.code, Some(0), "\nout: {}\nerr: {}", self.out, self.err);
        self
    }

    /// It refused, with one line that has all of this in it. Returns the line.
    #[track_caller]
    pub fn refused(self, code: i32, parts: &[&str]) -> String {
        assert_eq!(self.code, Some(code), "\nout: {}\nerr: {}", self.out, self.err);
        assert_eq!(self.out, "", "a refusal prints nothing on standard output");
        let line = self.err.strip_suffix('\n').unwrap_or_default();
        assert!(line.starts_with("keyway: ") && !line.contains('\n'), "{:?}", self.err);
        for part in parts {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
        line.to_owned()
    }

    /// Its standard output as one line of JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{:?}: {why}", self.out))
    }
}

/// A running `keyway up --json` on ports that the system chose, or another server. Killed when
/// dropped.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Its first line.
    pub ready: Value,
}

impl Running {
    /// Starts it and waits until it is ready.
    pub fn start(data: &Path, arguments: &[&str]) -> Running {
        let mut command = Command::new(KEYWAY);
        command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
        command.arg("--data").arg(data).args(arguments);
        Running::spawn(&mut command)
    }

    /// Starts a command that is to become `keyway up --json`, or another server.
    pub fn spawn(command: &mut Command) -> Running {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready =
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("not up: {line:?}: {why}"));
        Running { child, output, ready }
    }

    pub fn text(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.ready))
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process that serves: ldapd's, or that of another server.
    pub fn server(&self) -> u32 {
        self.ready["ldapd_pid"].as_u64().map_or(self.child.id(), |id| id as u32)
    }

    /// The process that `keyway up` has started with this command, if it runs.
    pub fn child(&self, command: &str) -> Option<u32> {
        child_of(self.child.id(), command)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// Waits for the next thing that it says.
    pub fn next_event(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }

    /// Waits for its end; returns the rest of its output too.
    pub fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// Stops it in good order.
    pub fn stop(self) {
        self.signal(Signal::TERM);
        let (status, _) = self.end();
        assert!(status.success(), "{status}");
    }

    /// kill -9, and waits for the end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long something may take that takes no time.
const LONG: Duration = Duration::from_secs(60);

/// A child of a `keyway up` that was started with this command.
pub fn child_of(up: u32, command: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{up}/task/{up}/children")).ok()?;
    let is_it = |id: &u32| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some(command)
    };
    children.split_whitespace().filter_map(|id| id.parse().ok()).find(is_it)
}

/// Waits until it is so.
#[track_caller]
pub fn until(mut so: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + LONG;
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// The text on standard error, without the warning that root gets where the tests run as root.
pub fn but_for_root(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.contains("warning: the server runs as root"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Whether a program of others is here; said on standard error if not. In CI that is a failure.
pub fn installed(program: &str) -> bool {
    let mut look = Command::new("sh");
    look.args(["-c", "command -v \"$1\" > /dev/null", "sh", program]);
    if look.status().is_ok_and(|status| status.success()) {
        return true;
    }
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI, but {program} is not installed");
    eprintln!("skipped: {program} is not installed (`cargo xtask test` installs it)");
    false
}

/// Whether tests are as long as they can be: `cargo xtask nightly` says so by `KEYWAY_NIGHTLY`.
pub fn nightly() -> bool {
    std::env::var_os("KEYWAY_NIGHTLY").is_some()
}

/// A command that runs `script` in a mount namespace of its own, where `$1` can be mounted upon;
/// `None`, said on standard error, where the system does not let us. In CI that is a failure.
pub fn with_mounts(script: &str, place: &Path) -> Option<Command> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(place);
        command
    };
    let mut probe = unshare("mount -t tmpfs tmpfs \"$1\"");
    if probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Some(unshare(script));
    }
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI, but mounts in a namespace are not allowed here");
    eprintln!("skipped: this system allows no mounts in a namespace of one's own");
    None
}

/// A simple bind without TLS, over loopback.
pub fn bind(running: &Running, name: &str, password: &str) -> ResultCode {
    let address: SocketAddr = running.text("ldap").trim_start_matches("ldap://").parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let authentication = Authentication::Simple(password.as_bytes());
    let op = Op::BindRequest(BindRequest { version: 3, name, authentication });
    let mut out = Vec::new();
    Message { id: 1, op, controls: Vec::new() }.encode(&mut out);
    stream.write_all(&out).unwrap();
    let mut input = Vec::new();
    while ber::frame(&input, 1 << 16).unwrap().is_none() {
        let mut piece = [0; 512];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the server closed");
        input.extend(&piece[..read]);
    }
    match Message::decode(&input).unwrap().op {
        Op::BindResponse(response) => response.result.code,
        other => panic!("{other:?}"),
    }
}

/// The mappings of a process: where, with what name, and whether it is locked (proc(5), smaps).
pub fn mappings(process: u32) -> Vec<(Range<u64>, String, bool)> {
    let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
    let smaps = fs::read_to_string(format!("/proc/{process}/smaps")).unwrap();
    let mut found = Vec::new();
    let mut of = None;
    for line in smaps.lines() {
        match (line.strip_prefix("VmFlags:"), of.take()) {
            (Some(flags), Some((range, name))) => {
                found.push((range, name, flags.split_whitespace().any(|flag| flag == "lo")));
            }
            (_, Some(mapping)) => of = Some(mapping),
            (_, None) => {
                let (range, name) = line.split_once(' ').unwrap();
                let (start, end) = range.split_once('-').unwrap();
                of = Some((number(start)..number(end), name.to_owned()));
            }
        }
    }
    found
}

/// How often each of these is in the memory of a process; `None`, said on standard error, if we are no root
/// who could look. In CI that is a failure.
pub fn hold_of_memory<const N: usize>(process: u32, secrets: &[[u8; 32]; N]) -> Option<[usize; N]> {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but to look into memory takes root");
        eprintln!("skipped: to look into a server's memory takes root");
        return None;
    }
    let open = |file: &str| File::open(format!("/proc/{process}/{file}")).unwrap();
    let (memory, pages) = (open("mem"), open("pagemap"));
    let mut found = [0; N];
    for (range, name, _) in mappings(process) {
        // No secret was put into memory that cannot be written; the store's file cannot.
        if !name.starts_with("rw") || name.ends_with("data.mdb") {
            continue;
        }
        for start in range.step_by(PAGE as usize) {
            // Bits 63 and 62 say that the page is in memory or swapped out (Linux's pagemap.rst).
            let mut entry = [0; 8];
            if pages.read_exact_at(&mut entry, start / PAGE * 8).is_err()
                || u64::from_ne_bytes(entry) >> 62 == 0
            {
                continue;
            }
            // With the beginning of the next, for what lies in both.
            let mut page = [0; PAGE as usize + 31];
            let read = memory.read_at(&mut page, start).unwrap_or_default();
            if page[..read] == [0; PAGE as usize + 31][..read] {
                continue;
            }
            for (secret, found) in secrets.iter().zip(&mut found) {
                *found += occurrences(&page[..read], secret);
            }
        }
    }
    Some(found)
}

/// How often these bytes are in the text. A plain loop: it is run without optimization.
fn occurrences(text: &[u8], wanted: &[u8; 32]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at + wanted.len() <= text.len() {
        if text[at] == wanted[0] && text[at..at + wanted.len()] == *wanted {
            count += 1;
        }
        at += 1;
    }
    count
}
