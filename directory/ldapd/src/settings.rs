//! How the server treats its connections.

use crate::administrator::Administrator;
use crate::limits::Limits;
use crate::listen::Mode;
use crate::peer::Peer;
use keyway_server::access::Network;

/// How the server treats its connections.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Bounds on connections, bytes and time.
    pub limits: Limits,
    /// Take passwords on any connection without TLS. Off unless there is a reason.
    pub allow_plain_password: bool,
    /// Take passwords without TLS from peers on this machine's loopback addresses. To be switched
    /// off where a proxy on this machine forwards connections of others.
    pub trust_loopback: bool,
    /// Which certificates of clients are the administrator's.
    pub administrators: Vec<Administrator>,
    /// The proxies that say in front of a connection whose it is.
    pub proxies: Proxies,
    /// The users of this machine that are known over a Unix socket.
    pub local: Local,
}

/// Proxies whose connections begin with a header that says whose they are
/// ([`keyway_codec::proxy`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Whether that is so on listeners that begin in the clear.
    pub plain: bool,
    /// Whether that is so on listeners that begin with TLS.
    pub tls: bool,
    /// Where they connect from. No other client is asked for a header, nor believed.
    pub from: Vec<Network>,
}

impl Proxies {
    /// Whether a connection from this address to a listener of this kind begins with a header.
    pub(crate) fn are_at(&self, mode: &Mode, peer: &Peer) -> bool {
        let is_wanted = match mode {
            Mode::Plain | Mode::StartTls(_) => self.plain,
            Mode::Tls(_) => self.tls,
        };
        match peer {
            Peer::Tcp(address) => {
                is_wanted && self.from.iter().any(|network| network.holds(address.ip()))
            }
            Peer::Proxied { .. } | Peer::Unix(_) => false,
        }
    }
}

/// The users of this machine that SASL EXTERNAL knows over a Unix socket. All others have the name
/// `gidNumber=...+uidNumber=...,cn=peercred,cn=external,cn=auth` and no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// Users whose processes are the administrator, by their ids.
    pub administrators: Vec<u32>,
    /// Whether a user is the one entry whose `uidNumber` is its id.
    pub by_uid_number: bool,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        ConnectionSettings {
            limits: Limits::default(),
            allow_plain_password: false,
            trust_loopback: true,
            administrators: Vec::new(),
            proxies: Proxies::default(),
            local: Local::default(),
        }
    }
}

impl ConnectionSettings {
    /// Whether a password may cross a connection with this peer without TLS.
    pub(crate) fn is_private(&self, peer: &Peer) -> bool {
        let is_near = match peer {
            Peer::Tcp(peer) => self.trust_loopback && peer.ip().to_canonical().is_loopback(),
            // It has come over a network, whatever the client's address is where the proxy is.
            Peer::Proxied { .. } => false,
            // It never leaves the system.
            Peer::Unix(_) => true,
        };
        self.allow_plain_password || is_near
    }
}
