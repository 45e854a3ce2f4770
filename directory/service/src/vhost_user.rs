//! `--vhost-user`: virtual machines whose kernels use the daemon. The device of each is a process of its own, in a sandbox
//! of its own, since it maps memory of files that the hypervisor has, and the machine's kernel says what is done there.
//!
//! ```text
//! daemon ── link: connections for the machine ── keeper ── starts, again and again ── device ── QEMU
//!        ◀──────────── rings, as of any client ────────────────────────────────────────┘
//! ```
//!
//! The keeper is started before the daemon's sandbox, which starts nothing. It ends with the link, and the device with it.

use crate::limits::{DEVICE_PAUSE_MAX, DEVICE_PAUSE_MIN, DEVICE_SAID, DEVICE_SAID_LINES};
use crate::vms::Vm;
use keyway_daemon::{DeviceOptions, is_listened_for_machine, listen_for_device};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::Engine;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_host::sandbox;
use keyway_ring::{Alarm, Received, Socket};
use keyway_vhost_user::Limits;
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio, exit};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Listens for the devices, and starts their keepers. Where another daemon has them that hands over, that is left to it.
///
/// # Errors
/// If two have a name or a socket in common, and the system's.
pub fn start(
    vms: &[Vm],
    is_taken_over: bool,
    no_sandbox: bool,
) -> Result<Vec<DeviceOptions>, Failure> {
    let mut all = Vec::new();
    for (at, Vm { name, socket }) in vms.iter().enumerate() {
        if vms[..at].iter().any(|before| before.name == *name || before.socket == *socket) {
            return Err(Failure::usage(format!(
                "--vhost-user {name}: its name or its socket is another virtual machine's too"
            )));
        }
        if is_taken_over && is_listened_for_machine(socket) {
            all.push(DeviceOptions { name: name.clone(), link: None });
            continue;
        }
        let listener = listen_for_device(socket).map_err(|why| match why.kind() {
            ErrorKind::AddrInUse => Failure::new(format!(
                "cannot listen at {}: {why}; stop that, or name another place with --vhost-user {name}=SOCKET",
                socket.display()
            )),
            _ => Failure::system("listen at", socket, &why),
        })?;
        let (link, its) = Socket::pair().map_err(|why| cannot(&why))?;
        start_again(name, Role::Keeper { no_sandbox }, its.into(), &listener)
            .map_err(|why| cannot(&why))?;
        all.push(DeviceOptions { name: name.clone(), link: Some(Arc::new(link.into())) });
    }
    Ok(all)
}

/// Which of the two processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Keeper { no_sandbox: bool },
    Device { no_sandbox: bool },
}

/// Starts this program as one of them: with that for its standard input, and the listening socket for its output.
fn start_again(name: &str, role: Role, input: OwnedFd, listener: &OwnedFd) -> io::Result<Child> {
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(program.unwrap_or_else(|| "/proc/self/exe".into()));
    let (flag, no_sandbox) = match role {
        Role::Keeper { no_sandbox } => ("--vhost-user-keeper", no_sandbox),
        Role::Device { no_sandbox } => ("--vhost-user-device", no_sandbox),
    };
    command.arg0("keyway").args(["cryptod", flag, name]).env_clear();
    if no_sandbox {
        command.arg("--no-sandbox");
    }
    command.stdin(Stdio::from(input)).stdout(Stdio::from(listener.try_clone()?));
    // A terminal's signals are for the daemon, which then ends it.
    command.process_group(0).spawn()
}

/// Is the keeper of a device: starts it, and again when it has ended, until the daemon has.
///
/// # Errors
/// If no daemon is at standard input; the system's.
pub fn keep(name: &str, no_sandbox: bool) -> Result<(), Failure> {
    // An init system sends a signal to all processes at once; this one ends with its daemon.
    let others = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect::<SigSet>();
    let _ = others.thread_block();
    let own = |file: io::Result<OwnedFd>| file.map_err(|why| cannot(&why));
    let link = Socket::from_fd(own(io::stdin().as_fd().try_clone_to_owned())?);
    let listener = own(io::stdout().as_fd().try_clone_to_owned())?;
    let mut pause = DEVICE_PAUSE_MIN;
    let mut last: Option<String> = None;
    loop {
        let begun = Instant::now();
        let asked = link.send(b"next", &[]).and_then(|()| link.receive());
        let Ok(Some(Received { mut fds, .. })) = asked else { return Ok(()) };
        let Some(connection) = fds.pop() else { return Ok(()) };
        // Only now it is clear that it has not ended because the daemon has.
        if let Some(ended) = last.take() {
            output::note(format_args!(
                "virtual machine {name}: its vhost-user device has ended ({ended}) and is started again; take it out of \
                 the machine and plug it again, or start the machine anew"
            ));
        }
        let device = start_again(name, Role::Device { no_sandbox }, connection, &listener);
        let mut device = device.map_err(|why| cannot(&why))?;
        let pid = Pid::from_raw(device.id() as i32);
        let end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut events = vec![PollFd::new(&link, PollFlags::IN)];
        events.extend(end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
        while poll(&mut events, None).is_err() {}
        // Over the link comes nothing that was not asked for, but its end.
        if !events[0].revents().is_empty() {
            let _ = device.kill();
            let _ = device.wait();
            return Ok(());
        }
        last = Some(device.wait().map_or_else(|why| why.to_string(), |it| it.to_string()));
        // The daemon ends, perhaps, or the next start has to wait.
        if is_over(&link, pause) {
            return Ok(());
        }
        if begun.elapsed() > DEVICE_PAUSE_MAX {
            pause = DEVICE_PAUSE_MIN;
        }
        pause = (2 * pause).min(DEVICE_PAUSE_MAX);
    }
}

/// Whether the link ends within this time.
fn is_over(link: &Socket, most: Duration) -> bool {
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    let mut events = [PollFd::new(link, PollFlags::IN)];
    matches!(poll(&mut events, Some(&most)), Ok(1..))
}

/// Is the device of a virtual machine, with the connection to the daemon that the keeper hands over.
///
/// # Errors
/// If it does not get on with the daemon; the system's.
pub fn serve(name: &str, no_sandbox: bool) -> Result<(), Failure> {
    let own = |file: io::Result<OwnedFd>| file.map_err(|why| cannot(&why));
    let connection = Socket::from_fd(own(io::stdin().as_fd().try_clone_to_owned())?);
    let listener = own(io::stdout().as_fd().try_clone_to_owned())?;
    let end = Alarm::new().map_err(|why| cannot(&why))?;
    let engine = Engine::builder().build();
    let options = RemoteOptions::connected(connection, format!("vm:{name} (vhost-user)"));
    let remote = Remote::connect_and_tell(&engine, options, |is_there| {
        if !is_there {
            // There is no way back to the daemon: its keeper gets another connection for the next one.
            exit(1);
        }
    });
    let _remote = remote.map_err(|why| cannot(&why))?;
    let none = CapabilitySet::empty();
    // To have less is always allowed.
    let _ = set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    );
    if !no_sandbox {
        sandbox::of_device().enter()?;
    }
    let said = RefCell::new(Said::default());
    let report = |text: &str| {
        if let Some(left_out) = said.borrow_mut().may_say(Instant::now()) {
            if left_out > 0 {
                output::note(format_args!(
                    "virtual machine {name}: {left_out} lines were left out, since they were many"
                ));
            }
            output::note(format_args!("virtual machine {name}: {text}"));
        }
    };
    keyway_vhost_user::serve(listener, end.as_fd(), &engine, Limits::default(), &report)
        .map_err(|why| cannot(&why))
}

/// How much was said of late, so that a front end that comes again and again fills no log.
#[derive(Default)]
struct Said {
    /// When the interval began, and the lines in it.
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Said {
    /// Whether another line may be said; then how many were left out before.
    fn may_say(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.duration_since(since) >= DEVICE_SAID) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines >= DEVICE_SAID_LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

fn cannot(why: &io::Error) -> Failure {
    Failure::new(format!("cannot start a vhost-user device: {}", plain(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_fills_no_log() {
        let (mut said, begun) = (Said::default(), Instant::now());
        let lines = (0..1000).filter(|_| said.may_say(begun).is_some()).count();
        assert_eq!(lines, DEVICE_SAID_LINES as usize);
        assert_eq!(said.may_say(begun + DEVICE_SAID), Some(1000 - u64::from(DEVICE_SAID_LINES)));
        assert_eq!(said.may_say(begun + DEVICE_SAID), Some(0));
    }
}
