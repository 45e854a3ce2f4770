//! `keyway decode proxy` between clients and a server.

use crate::{finish, keyway};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// One with `--json`, and what it has told so far.
pub struct Proxy {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Where clients connect to.
    pub url: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(keyway());
    command.args(["decode", "proxy", "--listen", "127.0.0.1:0"]).args(arguments);
    command
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).expect("a pid");
    kill_process(pid, signal).expect("a signal");
}

impl Proxy {
    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(arguments: &[&str]) -> Proxy {
        let mut command = command(arguments);
        let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output"));
        let ready = next(&mut lines).expect("it is ready");
        let url = ready["url"].as_str().expect("a URL").to_owned();
        Proxy { child, lines, url }
    }

    /// The message with which it refuses to start.
    ///
    /// # Panics
    /// If it starts.
    pub fn refused(arguments: &[&str]) -> String {
        finish(&mut command(arguments), "").expect(2).err
    }

    /// One that tells in words, once it is ready, and where clients connect to.
    ///
    /// # Panics
    /// If it does not start.
    pub fn in_words(arguments: &[&str]) -> (Recorder, String) {
        let mut command = command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let mut told = BufReader::new(child.stderr.take().expect("its notes"));
        let mut line = String::new();
        told.read_line(&mut line).expect("it is ready");
        let url = line.split_whitespace().find(|word| word.starts_with("ldap")).expect("a URL");
        (Recorder { child, _told: told }, url.to_owned())
    }

    /// The next line.
    ///
    /// # Panics
    /// If there is none.
    pub fn next_line(&mut self) -> Value {
        next(&mut self.lines).expect("more")
    }

    /// Waits until so many connections are closed, and gives what was told by then.
    ///
    /// # Panics
    /// If it ends before.
    pub fn until_closed(&mut self, connections: usize) -> Vec<Value> {
        let mut all = Vec::new();
        let closed = |all: &[Value]| all.iter().filter(|one| one["event"] == "closed").count();
        while closed(&all) < connections {
            all.push(self.next_line());
        }
        all
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it cannot be sent.
    pub fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// Ends it: what it told until then.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn end(mut self) -> Vec<Value> {
        self.signal(Signal::INT);
        let mut rest = Vec::new();
        while let Some(line) = next(&mut self.lines) {
            rest.push(line);
        }
        assert!(self.child.wait().expect("its end").success());
        rest
    }
}

fn next(lines: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    (!line.is_empty()).then(|| serde_json::from_str(&line).expect("JSON"))
}

/// Has what clients say while `say` runs, which is given a URL, written to a file: passwords too. So many
/// of them take their leave.
///
/// # Panics
/// If the proxy does not start, or does not end well.
pub fn captured(to: &str, file: &Path, clients: usize, say: impl FnOnce(&str)) {
    let mut command = command(&["--to", to, "--show-secrets", "-w"]);
    let mut child = command.arg(file).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(child.stderr.take().expect("its messages"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line");
    let url = line.split(' ').find(|word| word.starts_with("ldap")).expect("a URL");
    say(url);
    // The last words are on their way through the proxy when their client has gone.
    let unbinds = || {
        let mut decode = Command::new(keyway());
        decode.arg("decode").arg(file).args(["-f", "(op=unbind)"]);
        finish(&mut decode, "").out.lines().count()
    };
    while unbinds() < clients {}
    signal(&child, Signal::INT);
    errors.read_to_string(&mut String::new()).expect("the rest");
    assert!(child.wait().expect("its end").success());
}

/// One that tells in words when it ends.
pub struct Recorder {
    child: Child,
    // Open, so that it can say more.
    _told: BufReader<std::process::ChildStderr>,
}

impl Recorder {
    /// Ends it with Ctrl-C: what it says on standard output.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn interrupt(mut self) -> String {
        signal(&self.child, Signal::INT);
        let mut said = String::new();
        self.child.stdout.take().expect("its output").read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        said
    }
}
