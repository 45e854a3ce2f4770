//! Where a member listens: `ldaps://HOST[:PORT]`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::{fmt, io};

const SCHEME: &str = "ldaps://";
/// The port of LDAPS.
const PORT: u16 = 636;

/// A member's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberUrl {
    host: String,
    port: u16,
}

impl MemberUrl {
    /// The addresses of its host.
    ///
    /// # Errors
    /// If it has none.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }

    /// The host's name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// With an address.
    pub fn of(address: SocketAddr) -> MemberUrl {
        MemberUrl { host: address.ip().to_canonical().to_string(), port: address.port() }
    }

    /// With a host's name or address, at the port of LDAPS if none is given.
    pub fn at(host: &str, port: Option<u16>) -> MemberUrl {
        MemberUrl { host: host.to_owned(), port: port.unwrap_or(PORT) }
    }
}

impl FromStr for MemberUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<MemberUrl, String> {
        let none =
            || format!("{text:?} is no URL like ldaps://a.example.com or ldaps://192.0.2.1:1636");
        let rest = text.strip_prefix(SCHEME).ok_or_else(none)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(none)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| none())?;
                (host, port.strip_prefix(':'))
            }
            None => match rest.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let is_fit = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || host.len() > 253 || !host.chars().all(is_fit) {
            return Err(none());
        }
        let port = port.map(str::parse::<u16>).transpose().map_err(|_| none())?;
        match port {
            Some(0) => Err(none()),
            port => Ok(MemberUrl::at(host, port)),
        }
    }
}

impl fmt::Display for MemberUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemberUrl { host, port } = self;
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}"),
            false => write!(f, "{SCHEME}{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, shown) in [
            ("ldaps://a.example.com", "ldaps://a.example.com:636"),
            ("ldaps://127.0.0.1:1636/", "ldaps://127.0.0.1:1636"),
            ("ldaps://[::1]:1", "ldaps://[::1]:1"),
            ("ldaps://[2001:db8::1]", "ldaps://[2001:db8::1]:636"),
        ] {
            assert_eq!(text.parse::<MemberUrl>().unwrap().to_string(), shown);
        }
        for wrong in [
            "ldap://a",
            "ldaps://",
            "ldaps://:1",
            "ldaps://a:0",
            "ldaps://a:x",
            "ldaps://a b",
            "ldaps://[::1",
            "ldaps://[a]",
        ] {
            assert!(wrong.parse::<MemberUrl>().is_err(), "{wrong}");
        }
    }
}
