//! Where a member of etcd listens.

use crate::error::Error;
use http::Uri;
use http::uri::Authority;
use rustls_pki_types::ServerName;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The URL of a member: `https://host:2379`, or `http` on loopback.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    authority: Authority,
    has_tls: bool,
}

impl Endpoint {
    /// Whether TLS is spoken there.
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Host and port as in a header.
    pub(crate) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Host and port to connect to; 2379 is etcd's.
    pub(crate) fn address(&self) -> (&str, u16) {
        (self.host(), self.authority.port_u16().unwrap_or(2379))
    }

    /// The name that a certificate has to have.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, Error> {
        let name = ServerName::try_from(self.host().to_owned());
        name.map_err(|why| Error::Config(format!("{self}: no name for a certificate: {why}")))
    }

    fn host(&self) -> &str {
        // An address of version 6 is in brackets.
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Endpoint, Error> {
        let bad = |why: &str| Error::Config(format!("etcd's URL {text:?}: {why}"));
        let uri = Uri::from_str(text).map_err(|why| bad(&why.to_string()))?;
        let has_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("it has to begin with https://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("a host is missing"))?.clone();
        if authority.as_str().contains('@') {
            return Err(bad("it may name no user: use a client certificate"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(bad("it has to end after the port"));
        }
        let endpoint = Endpoint { authority, has_tls };
        let is_loopback = endpoint.host() == "localhost"
            || endpoint.host().parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match has_tls || is_loopback {
            true => Ok(endpoint),
            false => Err(bad("http is for loopback only: use https")),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_or_refused_with_the_reason() {
        for good in ["https://a.example.com:2379", "http://127.0.0.1:1", "http://[::1]:2379/"] {
            let endpoint: Endpoint = good.parse().unwrap();
            assert_eq!(endpoint.to_string(), good.trim_end_matches('/'));
        }
        let endpoint: Endpoint = "https://[2001:db8::1]".parse().unwrap();
        assert_eq!(endpoint.address(), ("2001:db8::1", 2379));
        endpoint.server_name().unwrap();
        for (bad, why) in [
            ("http://10.0.0.1:2379", "loopback only"),
            ("http://localhost.example.com", "loopback only"),
            ("a.example.com:2379", "begin with https://"),
            ("https://a:2379/v3", "end after the port"),
            ("https://u@a:2379", "name no user"),
            ("ftp://a", "begin with https://"),
        ] {
            let refused = bad.parse::<Endpoint>().unwrap_err().to_string();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
