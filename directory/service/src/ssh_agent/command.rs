//! Signals, and the command that an agent runs.

use super::constraints::Expiry;
use keyway_host::failure::{Failure, plain};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::oneshot;

/// The variable that tells SSH where its agent listens.
const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";
/// The exit status for a command that a signal has ended is this and the signal's number, as shells have it.
const STATUS_SIGNALLED: i32 = 128;
/// How often the agent looks whether its lifetime is over.
const LOOK: Duration = Duration::from_secs(1);

/// SIGINT, SIGTERM and SIGHUP, from when it was made on.
pub struct Signals {
    runtime: Runtime,
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

impl Signals {
    /// Begins to catch them. They no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> Result<Signals, Failure> {
        let caught = || -> io::Result<Signals> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let inside = runtime.enter();
            let interrupt = unix::signal(SignalKind::interrupt())?;
            let terminate = unix::signal(SignalKind::terminate())?;
            let hangup = unix::signal(SignalKind::hangup())?;
            drop(inside);
            Ok(Signals { runtime, interrupt, terminate, hangup })
        };
        caught().map_err(|why| cannot_start(&why))
    }

    /// Waits for the first, or until then.
    pub fn wait(mut self, expiry: Option<Expiry>) {
        let expired = async {
            match expiry {
                // A timer stands still while the machine sleeps, and is set again.
                Some(expiry) => {
                    while !expiry.left().is_zero() {
                        tokio::time::sleep(expiry.left().min(LOOK)).await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                () = expired => {}
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = self.hangup.recv() => {}
            }
        });
    }

    /// Runs a command with an agent's socket, and waits for its end. SIGTERM and SIGHUP are handed on to it; SIGINT,
    /// which a terminal sends to both, is the command's alone.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn wait_for_command(
        mut self,
        command: &[OsString],
        socket: &Path,
    ) -> Result<ExitCode, Failure> {
        let [program, arguments @ ..] = command else { return Ok(ExitCode::SUCCESS) };
        let started = Command::new(program).args(arguments).env(SSH_AUTH_SOCK, socket).spawn();
        let shown = Path::new(program).display();
        let cannot =
            |why: &io::Error| Failure::new(format!("cannot start {shown}: {}", plain(why)));
        let mut child = started.map_err(|why| cannot(&why))?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let process = process.map_err(|why| cannot(&why.into()))?;
        let (tell, mut told) = oneshot::channel();
        thread::spawn(move || tell.send(child.wait()));
        let ended = self.runtime.block_on(async {
            loop {
                let signal = tokio::select! {
                    ended = &mut told => return ended,
                    _ = self.interrupt.recv() => continue,
                    _ = self.terminate.recv() => Signal::TERM,
                    _ = self.hangup.recv() => Signal::HUP,
                };
                // It may have ended by now.
                let _ = pidfd_send_signal(&process, signal);
            }
        });
        match ended {
            Ok(Ok(status)) => Ok(exit_code(status)),
            _ => Err(Failure::new(format!("the end of {shown} is not known"))),
        }
    }
}

/// The system's refusal, as the agent's.
pub fn cannot_start(why: &io::Error) -> Failure {
    Failure::new(format!("the agent cannot start: {}", plain(why)))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let signalled = status.signal().map(|number| STATUS_SIGNALLED + number);
    let code = status.code().or(signalled).unwrap_or(STATUS_SIGNALLED);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
