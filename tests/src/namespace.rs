//! Network namespaces: links, addresses and routes that no other process sees.

use crate::{available, finish, is_root};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::thread;

/// A namespace, which ends with this and the processes in it.
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Makes one, in which only loopback is there; `None`, which is said, where it cannot be made.
    ///
    /// # Panics
    /// In CI, if this process is not root's or something is missing, where nothing may be skipped.
    #[must_use]
    pub fn new() -> Option<Namespace> {
        if !available(&["unshare", "nsenter", "ip", "/dev/net/tun"]) || !is_root() {
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().expect("a process in a namespace");
        let mut input = holder.stdin.take().expect("its input");
        input.write_all(b"\n").expect("it reads");
        let mut output = BufReader::new(holder.stdout.take().expect("its output"));
        output.read_line(&mut String::new()).expect("it writes");
        let file = File::open(format!("/proc/{}/ns/net", holder.id())).expect("its namespace");
        drop(input);
        holder.wait().expect("its end");
        let namespace = Namespace { file };
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Where `ip` and others find it, as long as it lives.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// A command that runs in it. Its process is the program's own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg("--").arg(program);
        command
    }

    /// Runs `ip` in it, with several commands if there are several lines.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn ip(&self, lines: &str) -> String {
        let done = finish(self.command("ip").args(["-batch", "-"]), lines);
        done.expect(0).out
    }

    /// Does something on a thread of its own in it. A socket or a device that it opens stays in it.
    ///
    /// # Panics
    /// If `action` does.
    pub fn within<T: Send>(&self, action: impl FnOnce() -> T + Send) -> T {
        let run = || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.file.as_fd(), kind).expect("a namespace");
            action()
        };
        let done = thread::scope(|scope| scope.spawn(run).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
