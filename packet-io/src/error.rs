//! Why a device or a socket could not be had or changed.

use std::fmt;
use std::io;

/// One line: what was done, with what, why it failed, and what to do.
#[derive(Debug)]
pub struct Error {
    what: String,
    why: io::Error,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<io::Error>) -> Error {
        Error { what: what.into(), why: why.into() }
    }

    /// The kind of the system's error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}
