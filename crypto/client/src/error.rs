//! Why a key could not be used: the party at fault, and a sentence for the program's user.

use std::fmt;
use std::io;
use std::path::Path;

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No daemon listens, or it has gone.
    Unreachable,
    /// The daemon is there, and does not answer.
    Silent,
    /// The daemon does not admit this user, or lets it not use that key.
    Refused,
    /// The key is another one than the program has loaded, or is for other algorithms.
    Key,
    /// The daemon failed.
    Daemon,
    /// The daemon has too much to do at present.
    Busy,
    /// The caller asked for something that cannot be.
    Caller,
}

/// Why a key could not be used. It names the key, the socket and the user where they matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The party at fault.
    pub fault: Fault,
    text: String,
}

impl ClientError {
    /// With a sentence that says what is wrong.
    pub fn new(fault: Fault, text: impl Into<String>) -> Self {
        ClientError { fault, text: text.into() }
    }

    pub(crate) fn unreachable(socket: &Path, why: &io::Error) -> Self {
        if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return ClientError::silent(socket);
        }
        if why.kind() == io::ErrorKind::PermissionDenied {
            let text = format!("this user may not connect to {}: {why}", socket.display());
            return ClientError::new(Fault::Refused, text);
        }
        let text = format!("no cryptod answers at {}: {why}", socket.display());
        ClientError::new(Fault::Unreachable, text)
    }

    pub(crate) fn gone(socket: &Path) -> Self {
        let text = format!("the cryptod at {} has gone", socket.display());
        ClientError::new(Fault::Unreachable, text)
    }

    pub(crate) fn silent(socket: &Path) -> Self {
        let shown = socket.display();
        let text =
            format!("the cryptod at {shown} does not answer: it is stopped, or has too much to do");
        ClientError::new(Fault::Silent, text)
    }

    pub(crate) fn nonsense(socket: &Path) -> Self {
        let shown = socket.display();
        let text = format!("the cryptod at {shown} answers in another version of the protocol");
        ClientError::new(Fault::Daemon, text)
    }

    /// With the name of the key that it is about.
    pub(crate) fn about(self, key: &str) -> Self {
        ClientError { fault: self.fault, text: format!("key {key}: {}", self.text) }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ClientError {}
