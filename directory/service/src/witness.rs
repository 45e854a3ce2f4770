//! The witness of a daemon: a process that looks which programs clients run, for a daemon whose sandbox keeps it
//! from that. Started before the daemon becomes another user, it keeps from root the one right to look at
//! processes of others (`CAP_SYS_PTRACE`), and no call that changes anything.
//!
//! The daemon is at its standard input; when that has ended, it ends. A daemon that has become another user cannot start
//! another witness, so one whose witness has ended ends too ([`Watch`]).

use keyway_daemon::witness::{Sight, Witness, serve};
use keyway_host::failure::{Failure, plain};
use keyway_host::sandbox;
use keyway_ring::control::{self, Malformed};
use keyway_ring::{Received, Socket};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// One that was started, and waits to hear which user it is to become.
pub struct Started {
    socket: Socket,
    watch: Watch,
}

/// Sees the end of a witness: the other end of what that has for its standard output, and never writes to.
pub struct Watch(UnixStream);

/// The user that the witness is to become.
#[derive(Serialize, Deserialize)]
struct Become {
    uid: u32,
    gid: u32,
}

/// Starts it, with what this process may.
///
/// # Errors
/// The system's.
pub fn start() -> Result<Started, Failure> {
    let (socket, its) = Socket::pair().map_err(|why| cannot(&plain(&why)))?;
    let its = its.as_fd().try_clone_to_owned().map_err(|why| cannot(&plain(&why)))?;
    let (watch, its_end) = UnixStream::pair().map_err(|why| cannot(&plain(&why)))?;
    watch.set_nonblocking(true).map_err(|why| cannot(&plain(&why)))?;
    // It may have been replaced since, or taken away.
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(program.unwrap_or_else(|| "/proc/self/exe".into()));
    command.arg0("keyway").args(["cryptod", "--witness"]).env_clear();
    command.stdin(Stdio::from(its)).stdout(Stdio::from(OwnedFd::from(its_end)));
    // A terminal's signals are for the daemon, which then ends it.
    command.process_group(0);
    command.spawn().map_err(|why| cannot(&plain(&why)))?;
    Ok(Started { socket, watch: Watch(watch) })
}

impl Started {
    /// Has it go on as the user that this process is now, and gives what sees its end.
    ///
    /// # Errors
    /// If it does not.
    pub fn witness(self) -> Result<(Witness, Watch), Failure> {
        let its = Become { uid: geteuid().as_raw(), gid: getegid().as_raw() };
        let say = |socket: &Socket| -> io::Result<Sight> {
            socket.send(&control::encode(&its).map_err(malformed)?, &[])?;
            let answer = socket.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            control::decode(&answer.bytes).map_err(malformed)
        };
        let sight = say(&self.socket).map_err(|why| cannot(&plain(&why)))?;
        let witness = Witness::helper(self.socket, sight).map_err(|why| cannot(&plain(&why)))?;
        Ok((witness, self.watch))
    }
}

impl Watch {
    /// Waits until the witness has ended, which it does not before its daemon.
    /// Gives the sentence to end with: that it has ended, or that the system does not say so.
    pub async fn ended(self) -> Failure {
        let ended = match tokio::net::UnixStream::from_std(self.0) {
            Ok(end) => end.readable().await,
            Err(why) => Err(why),
        };
        match ended {
            Ok(()) => Failure::new(
                "the witness, which looks which programs clients run, has ended: it was killed. A daemon without it \
                 would refuse programs that it admits, so this one ends; start it again",
            ),
            Err(why) => cannot(&plain(&why)),
        }
    }
}

/// Gives up the right to look at others' processes, if this process has it and is not root, since the witness
/// has it now.
pub fn leave_it_to_the_witness() {
    if geteuid().is_root() {
        return;
    }
    if let Ok(CapabilitySets { effective, permitted, inheritable }) = capabilities(None) {
        let without = |set: CapabilitySet| set - CapabilitySet::SYS_PTRACE;
        let left = CapabilitySets {
            effective: without(effective),
            permitted: without(permitted),
            inheritable: without(inheritable),
        };
        // To have less is always allowed.
        let _ = set_capabilities(None, left);
    }
}

/// Is the witness, until its daemon has ended.
///
/// # Errors
/// If no daemon is at standard input, or the system refuses.
pub fn run() -> Result<(), Failure> {
    // An init system sends a signal to all processes at once; the witness ends with its daemon, which may take a while.
    let others = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect::<SigSet>();
    let _ = others.thread_block();
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let socket: OwnedFd = socket.map_err(|why| cannot(&plain(&why)))?;
    let socket = Socket::from_fd(socket);
    let bytes = match socket.receive() {
        Ok(Some(Received { bytes, .. })) => bytes,
        // The daemon has ended before it became one, and has said why.
        Ok(None) => return Ok(()),
        Err(_) => return Err(Failure::usage("keyway cryptod starts its witness by itself")),
    };
    let Become { uid, gid } = control::decode(&bytes).map_err(|why| cannot(&malformed(why)))?;
    give_up(uid, gid).map_err(|why| cannot(&plain(&why)))?;
    let sight = Sight::here();
    sandbox::of_witness().enter()?;
    let sight = control::encode(&sight).map_err(|why| cannot(&malformed(why)))?;
    socket.send(&sight, &[]).map_err(|why| cannot(&plain(&why)))?;
    serve(&socket).map_err(|why| cannot(&plain(&why)))
}

/// Becomes the daemon's user and keeps the one right, if it is there.
fn give_up(uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if geteuid().is_root() && !uid.is_root() {
        set_keep_capabilities(true)?;
        setgroups(&[])?;
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        set_keep_capabilities(false)?;
    }
    let left = capabilities(None)?.permitted & CapabilitySet::SYS_PTRACE;
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable })?)
}

fn malformed(_: Malformed) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn cannot(why: &dyn Display) -> Failure {
    Failure::new(format!(
        "cannot look which programs clients run ({why}); --no-sandbox does it without a process of its own"
    ))
}
