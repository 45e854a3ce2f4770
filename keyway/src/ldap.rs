//! A connection to an LDAP server, anybody's.

use keyway_data::Client;
use keyway_host::failure::{Failure, plain};
use keyway_load::{Trust, tls_words};
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// A server's address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub host: String,
    pub port: u16,
    pub tls: bool,
}

/// Both kinds of connections.
pub trait Connection: Read + Write + Send {}
impl<S: Read + Write + Send> Connection for S {}

/// How a server is connected to.
#[derive(Clone, Debug)]
pub struct Manner {
    /// The authority to trust; `None` for those of this system and of `own_ca`.
    pub ca: Option<PathBuf>,
    /// The authority of a data folder, which may not be there.
    pub own_ca: PathBuf,
    /// Take any certificate.
    pub insecure: bool,
    /// Begin TLS on ldap:// with StartTLS.
    pub start_tls: bool,
    /// How long a connection may take, and how long an answer.
    pub connect_wait: Duration,
    pub answer_wait: Duration,
}

impl Url {
    /// Reads `ldap://HOST:PORT`; `flag` says where it was written.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(flag: &str, url: &str) -> Result<Url, Failure> {
        let bad = || {
            Failure::usage(format!(
                "{flag} {url}: write ldaps://HOST or ldap://HOST, with :PORT if that is not 636 or 389"
            ))
        };
        let (tls, rest) = match url.split_once("://").ok_or_else(bad)? {
            ("ldaps", rest) => (true, rest),
            ("ldap", rest) => (false, rest),
            _ => return Err(bad()),
        };
        let rest = rest.trim_end_matches('/');
        let usual = if tls { 636 } else { 389 };
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(bad)?)),
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        if host.is_empty() || host.contains(['/', '?']) {
            return Err(bad());
        }
        let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| bad()))?;
        Ok(Url { host: host.to_owned(), port, tls })
    }

    /// Refuses to send a password where others could read it.
    ///
    /// # Errors
    /// If it would be.
    pub fn may_carry_password(&self, start_tls: bool) -> Result<(), Failure> {
        let is_local = self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.host == "localhost";
        if self.tls || start_tls || is_local {
            return Ok(());
        }
        Err(Failure::usage("the password would be sent in the clear; say ldaps://, or --start-tls"))
    }

    /// Connects, with TLS if that is asked for.
    ///
    /// # Errors
    /// If nobody is there, or TLS does not come about.
    pub fn connect(&self, manner: &Manner) -> Result<Box<dyn Connection>, Failure> {
        let Url { host, port, tls } = self;
        let bad = |why: std::io::Error| {
            Failure::new(format!("cannot connect to {host} port {port}: {}", plain(&why)))
        };
        let mut last = None;
        let mut stream = None;
        for address in (host.as_str(), *port).to_socket_addrs().map_err(bad)? {
            match TcpStream::connect_timeout(&address, manner.connect_wait) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(why) => last = Some(why),
            }
        }
        let stream = stream
            .ok_or_else(|| bad(last.unwrap_or(std::io::ErrorKind::HostUnreachable.into())))?;
        stream.set_nodelay(true).map_err(bad)?;
        stream.set_read_timeout(Some(manner.answer_wait)).map_err(bad)?;
        stream.set_write_timeout(Some(manner.answer_wait)).map_err(bad)?;
        let stream = match manner.start_tls && !tls {
            true => Client::new(stream, 1)
                .start_tls()
                .map_err(|why| Failure::new(format!("{host} port {port}: {why}")))?,
            false => stream,
        };
        if !tls && !manner.start_tls {
            return Ok(Box::new(stream));
        }
        secured(manner, host, stream)
    }
}

fn secured(
    manner: &Manner,
    host: &str,
    mut stream: TcpStream,
) -> Result<Box<dyn Connection>, Failure> {
    let trust = Trust {
        ca: manner.ca.clone(),
        own_ca: Some(manner.own_ca.clone()),
        insecure: manner.insecure,
        ..Trust::default()
    };
    let config = trust.config(&keyway_tls::provider(&keyway_drivers::engine()))?;
    let server = ServerName::try_from(host.to_owned())
        .map_err(|_| Failure::usage(format!("{host} is no name of a server")))?;
    let mut connection = ClientConnection::new(config, server)
        .map_err(|why| Failure::new(format!("cannot use TLS: {why}")))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|why| {
            Failure::new(format!("no TLS with {host}: {}", tls_words(&why, host)))
        })?;
    }
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |text| Url::parse("--to", text);
        let url = |host: &str, port, tls| Url { host: host.to_owned(), port, tls };
        assert_eq!(parse("ldaps://a.b").unwrap(), url("a.b", 636, true));
        assert_eq!(parse("ldap://a:1389/").unwrap(), url("a", 1389, false));
        assert_eq!(parse("ldap://[::1]:1").unwrap(), url("::1", 1, false));
        assert_eq!(parse("ldaps://[::1]").unwrap(), url("::1", 636, true));
        for bad in ["", "ldap://", "http://a", "ldap://a:x", "ldap://[::1]x", "ldap://a/dc=x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
