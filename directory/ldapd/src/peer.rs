//! Who is at the other end of a connection, as the system knows it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::unix::UCred;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// An address and a port.
    Tcp(SocketAddr),
    /// Those of a client of a proxy, by the proxy's word.
    Proxied {
        /// Where the client is.
        client: SocketAddr,
        /// Where the proxy is.
        proxy: SocketAddr,
    },
    /// A process of this machine, over a Unix socket.
    Unix(PeerCredentials),
}

/// Whose process it was that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerCredentials {
    pub uid: u32,
    pub gid: u32,
}

impl Peer {
    /// Where it is; a process of this machine is at home.
    pub fn ip(&self) -> IpAddr {
        match self {
            Peer::Tcp(address) | Peer::Proxied { client: address, .. } => address.ip(),
            Peer::Unix(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Its address, if it is none of this machine's own processes.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(address) | Peer::Proxied { client: address, .. } => Some(*address),
            Peer::Unix(_) => None,
        }
    }

    /// The proxy in between, if there is one.
    pub fn proxy(&self) -> Option<SocketAddr> {
        match self {
            Peer::Proxied { proxy, .. } => Some(*proxy),
            Peer::Tcp(_) | Peer::Unix(_) => None,
        }
    }

    /// Whose process it is, if that is known.
    pub fn credentials(&self) -> Option<PeerCredentials> {
        match self {
            Peer::Tcp(_) | Peer::Proxied { .. } => None,
            Peer::Unix(credentials) => Some(*credentials),
        }
    }
}

impl From<UCred> for PeerCredentials {
    fn from(credentials: UCred) -> Self {
        PeerCredentials { uid: credentials.uid(), gid: credentials.gid() }
    }
}

impl PeerCredentials {
    /// The name that OpenLDAP gives to such a one.
    pub fn dn(&self) -> String {
        let PeerCredentials { uid, gid } = self;
        format!("gidNumber={gid}+uidNumber={uid},cn=peercred,cn=external,cn=auth")
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) | Peer::Proxied { client: address, .. } => address.fmt(f),
            Peer::Unix(PeerCredentials { uid, gid }) => write!(f, "unix:uid={uid},gid={gid}"),
        }
    }
}
