//! Where a server is, as its URL says it.

use std::fmt;
use std::str::FromStr;

/// A server: `ldap://HOST[:PORT]` or `ldaps://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Whether TLS begins at once (`ldaps`).
    pub tls: bool,
    /// Its name or address, an IPv6 address without brackets.
    pub host: String,
    /// Its port; that of the scheme where the URL has none.
    pub port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "ldaps" } else { "ldap" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerAddress, String> {
        let wrong = || "it should be ldap://HOST[:PORT] or ldaps://HOST[:PORT]".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let tls = match scheme {
            "ldap" => false,
            "ldaps" => true,
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match (rest.strip_prefix('['), rest.rsplit_once(':')) {
            (Some(v6), _) => {
                let (host, port) = v6.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':'))
            }
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (rest, None),
        };
        let usual = if tls { 636 } else { 389 };
        let port = port.map_or(Ok(usual), str::parse).map_err(|_| wrong())?;
        if host.is_empty() || host.contains(['/', '?']) {
            return Err(wrong());
        }
        Ok(ServerAddress { tls, host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_url() {
        let shown = |text: &str| text.parse().map(|url: ServerAddress| url.to_string());
        assert_eq!(shown("ldap://a"), Ok("ldap://a:389".to_owned()));
        assert_eq!(shown("ldaps://a/"), Ok("ldaps://a:636".to_owned()));
        assert_eq!(shown("ldap://[::1]:1389"), Ok("ldap://[::1]:1389".to_owned()));
        for bad in
            ["a", "a:389", "http://a", "ldap://", "ldap://a:b", "ldap://a/dc=b", "ldap://[::1"]
        {
            assert!(bad.parse::<ServerAddress>().is_err(), "{bad}");
        }
    }
}
