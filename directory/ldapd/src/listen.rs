//! Where connections are accepted, and how they begin.

use crate::tls::CurrentTls;
use std::sync::{Arc, RwLock};

/// How connections of a listener begin.
#[derive(Clone)]
pub enum Mode {
    /// In the clear, and so they stay.
    Plain,
    /// In the clear, until the peer asks for StartTLS.
    StartTls(CurrentTls),
    /// With a TLS handshake.
    Tls(CurrentTls),
}

/// Where to accept connections.
pub struct Listener {
    /// A socket that is bound and listens.
    pub socket: Socket,
    /// How its connections begin; those of a Unix socket are in the clear in any case.
    pub mode: Mode,
}

/// The kind of a listener's connections, for callers that name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// They come over a network and begin in the clear.
    Plain,
    /// They come over a network and begin with TLS.
    Tls,
    /// They come from processes of this machine.
    Unix,
}

impl Listener {
    /// Which of a server's listeners it is.
    pub fn kind(&self) -> ListenerKind {
        match (&self.socket, &self.mode) {
            (Socket::Unix(_), _) => ListenerKind::Unix,
            (Socket::Tcp(_), Mode::Tls(_)) => ListenerKind::Tls,
            (Socket::Tcp(_), Mode::Plain | Mode::StartTls(_)) => ListenerKind::Plain,
        }
    }
}

/// Listeners, and what clients call them.
pub(crate) type Urls = Arc<RwLock<Vec<(ListenerKind, String)>>>;

/// A socket that is bound and listens.
pub enum Socket {
    /// On an address.
    Tcp(std::net::TcpListener),
    /// On a file.
    Unix(std::os::unix::net::UnixListener),
}

impl From<std::net::TcpListener> for Socket {
    fn from(socket: std::net::TcpListener) -> Self {
        Socket::Tcp(socket)
    }
}

impl From<std::os::unix::net::UnixListener> for Socket {
    fn from(socket: std::os::unix::net::UnixListener) -> Self {
        Socket::Unix(socket)
    }
}
