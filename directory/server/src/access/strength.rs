//! How a client came in, and how strong its connection is.

use std::fmt;
use std::net::IpAddr;

/// How a subject came in: what rules can demand of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Over {
    /// Where the client is; `None` for what the server does itself.
    pub address: Option<IpAddr>,
    /// How hard it is to listen in, or to pass for another.
    pub strength: Strength,
}

/// How strong a connection is; each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Not at all.
    #[default]
    Any,
    /// Passwords may cross it: TLS, or this machine's loopback where that is trusted.
    Private,
    /// In TLS.
    Tls,
    /// In TLS, and the client has shown by a certificate who it is (SASL EXTERNAL).
    Certificate,
}

impl Strength {
    const NAMES: [(&str, Strength); 4] = [
        ("any", Strength::Any),
        ("private", Strength::Private),
        ("tls", Strength::Tls),
        ("certificate", Strength::Certificate),
    ];

    /// The one of a name, as in a configuration: `any`, `private`, `tls`, `certificate`.
    pub fn from_name(name: &str) -> Option<Strength> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, strength)| *strength)
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, strength)| strength == self);
        f.write_str(name.map_or("any", |(name, _)| name))
    }
}
