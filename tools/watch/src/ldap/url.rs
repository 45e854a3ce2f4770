//! The address of an LDAP server.

use keyway_host::failure::Failure;
use std::net::{IpAddr, SocketAddr};

/// A server's address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether TLS comes first.
    pub tls: bool,
}

impl ServerUrl {
    /// Reads `ldap://HOST:PORT`; `flag` says where it was written.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(flag: &str, url: &str) -> Result<ServerUrl, Failure> {
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
        Ok(ServerUrl { host: host.to_owned(), port, tls })
    }

    /// The address of a server of this machine that listens there for LDAPS.
    #[must_use]
    pub fn of_own(address: SocketAddr) -> ServerUrl {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            ip => ip.to_string(),
        };
        ServerUrl { host, port: address.port(), tls: true }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |text| ServerUrl::parse("--to", text);
        let url = |host: &str, port, tls| ServerUrl { host: host.to_owned(), port, tls };
        assert_eq!(parse("ldaps://a.b").unwrap(), url("a.b", 636, true));
        assert_eq!(parse("ldap://a:1389/").unwrap(), url("a", 1389, false));
        assert_eq!(parse("ldap://[::1]:1").unwrap(), url("::1", 1, false));
        assert_eq!(parse("ldaps://[::1]").unwrap(), url("::1", 636, true));
        for bad in ["", "ldap://", "http://a", "ldap://a:x", "ldap://[::1]x", "ldap://a/dc=x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
