//! The sockets a server listens on.

use crate::failure::{Failure, plain};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

/// Listens on an address; `flag` is the one that would name another.
///
/// # Errors
/// If it is taken, not this machine's, or not to be had by this user.
pub fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|why| {
        let port = address.port();
        Failure::new(match why.kind() {
            ErrorKind::AddrInUse => format!(
                "{address} is in use by another program; stop that, or choose another port with \
                 {flag} {}:PORT",
                ip(address)
            ),
            ErrorKind::AddrNotAvailable => format!(
                "{address} is no address of this machine; name one that is with {flag} ADDRESS:{port}"
            ),
            ErrorKind::PermissionDenied => format!(
                "port {port} is not for this user; choose one above 1023 with {flag} {}:PORT",
                ip(address)
            ),
            _ => format!("cannot listen on {address}: {}", plain(&why)),
        })
    })
}

fn ip(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// Where a socket listens.
///
/// # Errors
/// If the system does not say.
pub fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|why| Failure::new(format!("cannot ask for my address: {why}")))
}
