//! The transport under a session, and how a session makes use of it.

use crate::administrator::FINGERPRINT_BYTES;
use crate::peer::PeerCredentials;

/// The properties of the transport.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    /// The bytes are in TLS.
    pub tls: bool,
    /// Passwords may be shown on it: TLS, or excepted by the settings.
    pub private: bool,
    /// StartTLS can be done.
    pub can_start_tls: bool,
    /// The subject of the peer's certificate, if it showed one that has a subject.
    pub certificate_subject: Option<String>,
    /// The SHA-256 digest of that certificate.
    pub certificate_fingerprint: Option<[u8; FINGERPRINT_BYTES]>,
    /// Whose process the peer is, if it came over a Unix socket.
    pub credentials: Option<PeerCredentials>,
    /// The peer is another member of the cluster, which asks on behalf of its clients.
    pub is_member: bool,
}

/// Why `receive` stopped taking requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The rest is the beginning of a message, or nothing.
    Incomplete,
    /// The next request has to wait for earlier ones, or for room.
    Blocked,
    /// It has had its turn.
    Turn,
    /// The session ends.
    Ended,
}

/// How the session goes on after the answers so far are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Not at all, and its client does not read the answers.
    Unbound,
    /// Not at all, after the answers and a notice.
    Notice,
    /// In TLS.
    StartTls,
}
