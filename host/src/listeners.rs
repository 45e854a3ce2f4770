//! The sockets a server listens on.

use crate::failure::{Failure, plain};
use crate::notify::{self, HandedOver};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Where to listen, if at all.
pub type Listen = Option<SocketAddr>;

/// Reads an address to listen on; `off` is none.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn parse(text: &str) -> Result<Listen, String> {
    match text {
        "off" => Ok(None),
        text => parse_address(text).map(Some).map_err(|why| format!("{why}, nor 'off'")),
    }
}

/// Reads an address that is required.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "it is not an address and a port, like 127.0.0.1:1389 or [::1]:1389".to_owned()
    })
}

/// Listens on an address; `flag` is the one that would name another.
///
/// # Errors
/// If it is taken, not this machine's, or not to be had by this user.
pub fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|why| refused(address, flag, &why))
}

/// The sockets of a directory.
#[derive(Default)]
pub struct Sockets {
    /// LDAP with StartTLS.
    pub plain: Option<TcpListener>,
    /// LDAPS.
    pub tls: Option<TcpListener>,
}

impl Sockets {
    /// Listens on these addresses, where there is one; whether there is a Unix socket as well.
    ///
    /// # Errors
    /// As [`listen`], and if there is nothing at all.
    pub fn open(plain: Listen, tls: Listen, has_unix: bool) -> Result<Sockets, Failure> {
        let open = |address: Listen, flag| address.map(|address| listen(address, flag)).transpose();
        let (plain, tls) = (open(plain, "--listen")?, open(tls, "--listen-tls")?);
        if plain.is_none() && tls.is_none() && !has_unix {
            return Err(nothing_to_listen_on());
        }
        Ok(Sockets { plain, tls })
    }

    /// Those that systemd hands over, if it does: the first one is for LDAP and the second for LDAPS, unless
    /// they are named `ldap` and `ldaps`.
    ///
    /// # Errors
    /// If they are not what is wanted.
    pub fn handed_over() -> Result<Option<Sockets>, Failure> {
        let all = notify::handed_over()?;
        if all.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            Failure::new(
                "the sockets that were handed over are not one for LDAP and one for LDAPS; let .socket \
                 units have ListenStream=, Accept=no, and FileDescriptorName=ldap or ldaps",
            )
        };
        let mut sockets = Sockets { plain: None, tls: None };
        for (index, HandedOver { name, file }) in all.into_iter().enumerate() {
            let place = match (name.as_str(), index) {
                ("ldap", _) => &mut sockets.plain,
                ("ldaps", _) => &mut sockets.tls,
                (_, 0) => &mut sockets.plain,
                _ => &mut sockets.tls,
            };
            let fits = socket_acceptconn(&file) == Ok(true)
                && socket_type(&file) == Ok(SocketType::STREAM)
                && socket_domain(&file) != Ok(AddressFamily::UNIX);
            if !fits || place.replace(file.into()).is_some() {
                return Err(wrong());
            }
        }
        Ok(Some(sockets))
    }

    /// Where they listen.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        self.plain.iter().chain(&self.tls).map(address).collect()
    }
}

/// Whether two listeners would be in each other's way.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // One of IPv6 that is everywhere takes the addresses of IPv4 too.
    let covers = |one: IpAddr, other: IpAddr| {
        one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
    };
    one.port() == other.port()
        && one.port() != 0
        && (covers(one.ip(), other.ip()) || covers(other.ip(), one.ip()))
}

/// A server that no client could reach.
pub fn nothing_to_listen_on() -> Failure {
    Failure::new("there is nothing to listen on: listen, listen_tls and listen_unix are all off")
}

/// Why a socket could not be bound to an address that `flag` names.
pub fn refused(address: SocketAddr, flag: &str, why: &io::Error) -> Failure {
    let port = address.port();
    Failure::new(match why.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is in use by another program; stop that, or choose another port with {flag} \
             {}:PORT",
            ip(address)
        ),
        ErrorKind::AddrNotAvailable => format!(
            "{address} is no address of this machine; name one that is with {flag} ADDRESS:{port}"
        ),
        ErrorKind::PermissionDenied => format!(
            "port {port} is not for this user; choose one above 1023 with {flag} {}:PORT",
            ip(address)
        ),
        _ => format!("cannot listen on {address}: {}", plain(why)),
    })
}

/// Where clients on this machine find it: who listens everywhere is found at home.
pub fn at_home(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
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
