//! What systemd and its like are told, and what they hand over (sd_notify(3), sd_listen_fds(3)).

use crate::failure::{Failure, plain};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use std::env;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The number of the first file that is handed over.
const FIRST: i32 = 3;

/// Says that it serves, and if it has taken over, that it is now the service's main process.
pub fn ready(has_taken_over: bool) {
    match has_taken_over {
        true => say(&format!("READY=1\nMAINPID={}", std::process::id())),
        false => say("READY=1"),
    }
}

/// Says that another process is the service's main one from now on. A service manager takes that
/// from the one that was, wherever the other was started.
pub fn succeeded_by(process: u32) {
    say(&format!("MAINPID={process}"));
}

/// Says that it will end soon.
pub fn stopping() {
    say("STOPPING=1");
}

fn say(what: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&path),
    };
    // Who is not heard is waited for, and that says so.
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(what.as_bytes(), &address);
    }
}

/// The socket that this process was started with, if it was.
///
/// # Errors
/// If it was started with several, or with something else.
pub fn handed_over() -> Result<Option<OwnedFd>, Failure> {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match number("LISTEN_FDS") {
        None | Some(0) => Ok(None),
        Some(1) => listening().map(Some),
        Some(count) => Err(Failure::new(format!(
            "{count} sockets were handed over, where one is wanted; let the .socket unit have one \
             ListenSequentialPacket="
        ))),
    }
}

fn listening() -> Result<OwnedFd, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(format!("cannot take the socket that was handed over: {why}"))
    };
    let socket = keyway_ring::inherited(FIRST).map_err(|why| cannot(&plain(&why)))?;
    let keeps_bounds = socket_domain(&socket) == Ok(AddressFamily::UNIX)
        && socket_type(&socket) == Ok(SocketType::SEQPACKET)
        && socket_acceptconn(&socket) == Ok(true);
    if !keeps_bounds {
        return Err(cannot(
            &"it is no listening Unix socket for messages; let the .socket unit have \
              ListenSequentialPacket=PATH and Accept=no",
        ));
    }
    // Who gave up before he was accepted holds up nobody.
    rustix::io::ioctl_fionbio(&socket, true).map_err(|why| cannot(&why))?;
    Ok(socket)
}
