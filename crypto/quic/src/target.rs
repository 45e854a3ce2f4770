//! The target of a request: a host and a path.

use std::fmt;

/// A server, and a path on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name or an address; without the brackets of an IPv6 address.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// With a slash in front, escaped as in the URL.
    pub path: String,
}

const HTTPS_PORT: u16 = 443;

/// Reads a URL.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn target(text: &str) -> Result<Target, String> {
    let uri = text.parse::<http::Uri>().ok();
    let parts = uri.as_ref().and_then(|uri| {
        let host = uri.host().filter(|host| !host.is_empty())?;
        let port = match uri.port_u16() {
            Some(port) => port,
            // The text beside the host then is a port that is none, or a user's name.
            None => (uri.authority()?.as_str() == host).then_some(HTTPS_PORT)?,
        };
        Some((uri.scheme_str()?, host, port, uri.path_and_query()?))
    });
    match parts {
        Some(("https", host, port, path)) if port > 0 && !text.contains('@') => {
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Ok(Target { host, port, path: path.as_str().to_owned() })
        }
        _ => Err("it is not a URL like https://localhost:4433/file (QUIC is always encrypted, so \
                  there is no http://)"
            .to_owned()),
    }
}

/// Reads a host and a port.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn address(text: &str) -> Result<Target, String> {
    let bad = || "it is not a host and a port, like localhost:4433 or [::1]:4433".to_owned();
    if text.contains('/') || !text.contains(':') {
        return Err(bad());
    }
    let found = target(&format!("https://{text}/")).map_err(|_| bad())?;
    // The port may only be left out where there is a usual one.
    if text.ends_with(&format!(":{}", found.port)) { Ok(found) } else { Err(bad()) }
}

impl Target {
    /// The name of its file: the last part of the path.
    pub fn file_name(&self) -> &str {
        let path = self.path.split_once('?').map_or(&*self.path, |(path, _)| path);
        match path.rsplit('/').next() {
            None | Some("" | "." | "..") => "index.html",
            Some(name) => name,
        }
    }

    /// Host and port.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let of = |host: &str, port, path: &str| {
            Ok(Target { host: host.to_owned(), port, path: path.to_owned() })
        };
        assert_eq!(target("https://localhost:4433/a/b"), of("localhost", 4433, "/a/b"));
        assert_eq!(target("https://[::1]:4433/a?b"), of("::1", 4433, "/a?b"));
        assert_eq!(target("https://example.com"), of("example.com", 443, "/"));
        for bad in [
            "",
            "localhost",
            "localhost:4433/a",
            "http://localhost/a",
            "https:///a",
            "https://localhost:0/a",
            "https://localhost:x/a",
            "https://localhost:65536/a",
            "https://me@localhost/a",
            "https://local host/a",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:443").unwrap().port, 443);
        assert_eq!(address("[::1]:4433").unwrap().authority(), "[::1]:4433");
        for bad in ["localhost", "localhost:", "[::1]", "::1", "localhost:1/x", ":4433", "a:b"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_have_names() {
        let name = |url: &str| target(url).unwrap().file_name().to_owned();
        assert_eq!(name("https://h/a/b.txt?c/d"), "b.txt");
        for url in ["https://h", "https://h/", "https://h/a/", "https://h/a/.."] {
            assert_eq!(name(url), "index.html");
        }
    }
}
