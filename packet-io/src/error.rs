//! Why a device or a socket could not be had or changed.

use std::fmt;
use std::io;

/// One line: what was done, with what, why it failed, and what to do.
#[derive(Debug)]
pub struct Error {
    what: String,
    why: io::Error,
    /// Begins with a colon, or is empty.
    advice: &'static str,
}

impl Error {
    pub(crate) fn new(what: String, why: io::Error, advice: &'static str) -> Error {
        Error { what, why, advice }
    }

    /// The kind of the system's error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.what, self.why, self.advice)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}
