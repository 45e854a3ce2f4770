//! Messages to systemd and similar init systems, and sockets that they hand over (sd_notify(3), sd_listen_fds(3)).

use crate::failure::{Failure, plain};
use std::env;
use std::iter;
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
    // systemd waits for a message that does not arrive; this says why.
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(what.as_bytes(), &address);
    }
}

/// A file that this process was started with.
pub struct HandedOver {
    /// Its name, if it has one.
    pub name: String,
    /// It.
    pub file: OwnedFd,
}

/// The files that this process was started with. To be called once, before it opens any.
///
/// # Errors
/// If one of them is not there.
pub fn handed_over() -> Result<Vec<HandedOver>, Failure> {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(Vec::new());
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned).chain(iter::repeat(String::new()));
    let numbers = FIRST..FIRST.saturating_add_unsigned(number("LISTEN_FDS").unwrap_or(0));
    let take = |(number, name)| match keyway_ring::inherited(number) {
        Ok(file) => Ok(HandedOver { name, file }),
        Err(why) => Err(Failure::new(format!(
            "cannot take the sockets that were handed over: {}",
            plain(&why)
        ))),
    };
    numbers.zip(names).map(take).collect()
}
