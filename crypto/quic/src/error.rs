//! Why something could not be done over QUIC.

use crate::target::Target;
use quinn::{ConnectionError, ReadError, VarInt};
use rustls::AlertDescription;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

// The code that a server resets a stream with.

/// The stream's request was none.
pub const BAD_REQUEST: VarInt = VarInt::from_u32(1);
/// There is no such file.
pub const NO_SUCH_FILE: VarInt = VarInt::from_u32(2);
/// The file is there and cannot be read.
pub const UNREADABLE: VarInt = VarInt::from_u32(3);

/// Why something could not be done. [`fmt::Display`] says it in words; what to do about it depends
/// on how the caller was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller's cryptography has no keys for QUIC.
    NoQuicKeys,
    /// The caller's cryptography has not the key exchange that is demanded.
    NoSuchGroup,
    /// The caller's largest UDP payload, in bytes, is none that QUIC allows.
    Mtu(u16, String),
    /// The system gives no socket.
    Socket(Arc<io::Error>),
    /// A server's certificate or key does not do.
    Serve(String),
    /// The cryptography cannot do TLS 1.3.
    Connect(String),
    /// No host has this name.
    UnknownHost(String),
    /// A server's address is none that can be connected to.
    Address {
        /// Host and port.
        peer: String,
        /// Why.
        why: quinn::ConnectError,
    },
    /// The peer's system says that no server listens there.
    NobodyListens(String),
    /// There is no connection to the peer, or none any more.
    Connection {
        /// Host and port.
        peer: String,
        /// Why.
        why: ConnectionError,
    },
    /// A file could not be had from a server.
    Refused {
        /// The target.
        from: Target,
        /// Why.
        why: ReadError,
    },
    /// A file could not be written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: Arc<io::Error>,
    },
    /// The stream that a file should go to could not be written.
    Output(Arc<io::Error>),
    /// A measurement lost its connection.
    Lost(String),
}

impl Error {
    /// Whether the peer's certificate is not believed.
    pub fn is_distrust(&self) -> bool {
        matches!(
            self.connection(),
            Some((_, ConnectionError::TransportError(error)))
                if !is_alert(error.code, AlertDescription::NoApplicationProtocol)
                    && error.reason.contains("certificate")
        )
    }

    /// The peer and what became of the connection to it, if that is what this is about.
    fn connection(&self) -> Option<(String, &ConnectionError)> {
        match self {
            Error::Connection { peer, why } => Some((peer.clone(), why)),
            Error::Refused { from, why: ReadError::ConnectionLost(why) } => {
                Some((from.authority(), why))
            }
            _ => None,
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((peer, why)) = self.connection() {
            return write_connection(f, &peer, why);
        }
        match self {
            Error::NoQuicKeys => f.write_str("this cryptography has no keys for QUIC"),
            Error::NoSuchGroup => f.write_str("this cryptography has no such key exchange"),
            Error::Mtu(bytes, why) => write!(f, "a UDP payload of {bytes} bytes: {why}"),
            Error::Socket(why) => write!(f, "cannot open a socket: {why}"),
            Error::Serve(why) => write!(f, "cannot serve: {why}"),
            Error::Connect(why) => write!(f, "cannot connect: {why}"),
            Error::UnknownHost(host) => {
                write!(f, "there is no host {host}; look at the address's spelling")
            }
            Error::Address { peer, why } => write!(f, "cannot connect to {peer}: {why}"),
            Error::NobodyListens(peer) => write!(f, "no server listens at {peer} (UDP)"),
            Error::Connection { peer, why } => write_connection(f, peer, why),
            Error::Refused { from, why } => write_refused(f, from, why),
            Error::File { path, why } => write!(f, "cannot write {}: {why}", path.display()),
            Error::Output(why) => write!(f, "cannot write: {why}"),
            Error::Lost(why) => write!(f, "the connection was lost: {why}"),
        }
    }
}

/// Whether a transport error stands for this alert of TLS (RFC 9001 § 4.8).
fn is_alert(code: quinn::TransportErrorCode, alert: AlertDescription) -> bool {
    code == quinn::TransportErrorCode::crypto(u8::from(alert))
}

fn write_connection(f: &mut fmt::Formatter<'_>, peer: &str, why: &ConnectionError) -> fmt::Result {
    let code = match why {
        ConnectionError::TransportError(error) => Some(error.code),
        ConnectionError::ConnectionClosed(close) => Some(close.error_code),
        _ => None,
    };
    if code.is_some_and(|code| is_alert(code, AlertDescription::NoApplicationProtocol)) {
        return write!(
            f,
            "{peer} speaks QUIC, but not this protocol (ALPN); is it another kind of server?"
        );
    }
    match why {
        ConnectionError::TimedOut => {
            write!(f, "{peer} does not answer; is a QUIC server there, and does UDP get through?")
        }
        ConnectionError::VersionMismatch => write!(f, "{peer} does not speak QUIC version 1"),
        ConnectionError::TransportError(error) if error.reason.contains("certificate") => {
            write!(f, "{peer} is not believed: {}", error.reason)
        }
        ConnectionError::ConnectionClosed(close)
            if is_alert(close.error_code, AlertDescription::HandshakeFailure) =>
        {
            write!(f, "{peer} has no cipher or no key exchange in common with us")
        }
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
            write!(f, "{peer} closed the connection: {why}")
        }
        ConnectionError::Reset => {
            write!(f, "{peer} has forgotten the connection; was it restarted?")
        }
        _ => write!(f, "the connection to {peer} failed: {why}"),
    }
}

fn write_refused(f: &mut fmt::Formatter<'_>, from: &Target, why: &ReadError) -> fmt::Result {
    let (authority, path) = (from.authority(), &from.path);
    match why {
        ReadError::Reset(NO_SUCH_FILE) => write!(f, "{authority} has no file {path}"),
        ReadError::Reset(BAD_REQUEST) => write!(f, "{authority} does not understand GET {path}"),
        ReadError::Reset(UNREADABLE) => write!(f, "{authority} cannot read its file {path}"),
        ReadError::Reset(code) => write!(f, "{authority} refuses {path} with its code {code}"),
        other => write!(f, "{from} cannot be read: {other}"),
    }
}
