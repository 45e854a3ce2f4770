//! Where the server is: `ldap://host:port`, `ldaps://host:port`, `ldapi://%2Fpath`.

use std::fmt;
use std::path::PathBuf;

/// A server's URL (RFC 4516; of which only the scheme, the host and the port are used).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Whether TLS comes first.
    pub tls: bool,
    text: String,
}

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Over TCP.
    Host {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Socket(PathBuf),
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Url {
    /// Reads one.
    ///
    /// # Errors
    /// The fault of the text, and how it should look.
    pub fn parse(text: &str) -> Result<Url, String> {
        let wrong = |why: &str| {
            format!(
                "'{text}' {why}; expected ldap://HOST[:PORT], ldaps://HOST[:PORT] or ldapi://%2FPATH"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("is not a URL"))?;
        let (tls, port) = match scheme.to_ascii_lowercase().as_str() {
            "ldap" => (false, 389),
            "ldaps" => (true, 636),
            "ldapi" => {
                let rest = rest.trim_end_matches('/');
                let path = decode(rest).filter(|path| path.starts_with('/'));
                let path = path.ok_or_else(|| wrong("has no path, written with %2F for each /"))?;
                let endpoint = Endpoint::Socket(path.into());
                return Ok(Url { endpoint, tls: false, text: text.to_owned() });
            }
            _ => return Err(wrong("has an unknown scheme")),
        };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if rest.len() > authority.len() + 1 {
            return Err(wrong("has more than a host and a port (--base names where to search)"));
        }
        let (host, port) =
            match authority.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
                Some((host, "")) => (host, Some(port)),
                Some((host, after)) => {
                    (host, after.strip_prefix(':').and_then(|text| text.parse().ok()))
                }
                None => match authority.split_once(':') {
                    Some((host, port)) => (host, port.parse().ok()),
                    None => (authority, Some(port)),
                },
            };
        let port =
            port.filter(|port| *port > 0).ok_or_else(|| wrong("has no port from 1 to 65535"))?;
        let host = if host.is_empty() { "localhost" } else { host }.to_owned();
        Ok(Url { endpoint: Endpoint::Host { host, port }, tls, text: text.to_owned() })
    }
}

/// Percent-encoding, undone.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (two, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let host = |text: &str| match Url::parse(text).map(|url| (url.endpoint, url.tls)) {
            Ok((Endpoint::Host { host, port }, tls)) => format!("{host} {port} {tls}"),
            other => format!("{other:?}"),
        };
        assert_eq!(host("ldap://localhost"), "localhost 389 false");
        assert_eq!(host("LDAPS://ds1.example.com:1636/"), "ds1.example.com 1636 true");
        assert_eq!(host("ldap://[::1]:1389"), "::1 1389 false");
        assert_eq!(host("ldap://[::1]"), "::1 389 false");
        let socket = Url::parse("ldapi://%2Frun%2Fldapi").unwrap().endpoint;
        assert_eq!(socket, Endpoint::Socket("/run/ldapi".into()));
        for bad in [
            "",
            "localhost",
            "http://x",
            "ldap://x:0",
            "ldap://x:y",
            "ldap://x:70000",
            "ldapi://",
            "ldapi://%2",
            "ldap://x/dc=example?cn",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
