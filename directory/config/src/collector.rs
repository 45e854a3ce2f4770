//! The URL of a collector of metrics.

use http::Uri;
use http::uri::{Authority, Scheme};

/// Where collectors take metrics (OTLP 1.x, "OTLP/HTTP Request").
const USUAL_PATH: &str = "/v1/metrics";

/// A collector that takes OTLP over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorUrl {
    /// Whether it is `https://`.
    pub has_tls: bool,
    /// Its host and port.
    pub authority: Authority,
    /// Where on that host; it begins with `/`.
    pub path: String,
}

impl CollectorUrl {
    /// Reads `http://HOST:PORT/PATH`, or `https://`; without a path it is the usual one.
    ///
    /// # Errors
    /// A sentence that says what it should look like.
    pub fn parse(text: &str) -> Result<CollectorUrl, String> {
        let bad = || {
            format!(
                "\"{text}\" is no URL of a collector that takes OTLP over HTTP, like \
                 http://127.0.0.1:4318/v1/metrics"
            )
        };
        let parts = text.parse::<Uri>().map_err(|_| bad())?.into_parts();
        let scheme = parts.scheme.ok_or_else(bad)?;
        let authority = parts.authority.ok_or_else(bad)?;
        if (scheme != Scheme::HTTP && scheme != Scheme::HTTPS) || authority.host().is_empty() {
            return Err(bad());
        }
        if authority.as_str().contains('@') {
            let why = "a name and a password in the URL are not sent; leave them out, and have a \
                       collector of this machine pass on what needs them";
            return Err(why.to_owned());
        }
        let path = parts.path_and_query.map(|path| path.as_str().to_owned()).unwrap_or_default();
        let path = if path.is_empty() || path == "/" { USUAL_PATH.to_owned() } else { path };
        Ok(CollectorUrl { has_tls: scheme == Scheme::HTTPS, authority, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let shown = |text: &str| {
            CollectorUrl::parse(text).map(|url| {
                let scheme = if url.has_tls { "https" } else { "http" };
                format!("{scheme}://{}{}", url.authority, url.path)
            })
        };
        let usual = "http://127.0.0.1:4318/v1/metrics";
        for same in [usual, "http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            assert_eq!(shown(same).as_deref(), Ok(usual));
        }
        let other = "https://[2001:db8::1]/otlp/v1/metrics?tenant=a";
        assert_eq!(shown(other).as_deref(), Ok(other));
        for bad in ["", "127.0.0.1:4318", "grpc://a:4317", "http://", "http://a b/", "/v1/metrics"]
        {
            assert!(shown(bad).is_err(), "{bad}");
        }
        assert!(shown("http://me:secret@a/").unwrap_err().contains("password"));
    }
}
