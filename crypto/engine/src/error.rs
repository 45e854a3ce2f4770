//! What can go wrong, and who is at fault.

use crate::Algorithm;
use std::fmt;

/// Why a request was not done. Small and `Copy`: it travels on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No driver does this algorithm with this kind of key.
    Unsupported(Algorithm),
    /// The driver that was named is not there.
    NoSuchDriver,
    /// The key is malformed, of the wrong length or too weak.
    InvalidKey(&'static str),
    /// The request does not fit the session or breaks a limit.
    InvalidRequest(&'static str),
    /// A tag, a signature or a peer's key share does not check.
    Authentication,
    /// The bounded queue is full; try again later.
    Busy,
    /// The engine is shutting down.
    Closed,
    /// The driver failed.
    Driver {
        /// Which one.
        driver: &'static str,
        /// What it said.
        why: &'static str,
    },
}

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The one who called.
    Caller,
    /// The one whose bytes these are.
    Peer,
    /// A stated limit.
    Limit,
    /// The driver.
    Driver,
    /// This process.
    System,
}

impl Error {
    /// Who is at fault.
    pub fn blame(&self) -> Blame {
        match self {
            Error::Unsupported(_)
            | Error::NoSuchDriver
            | Error::InvalidKey(_)
            | Error::InvalidRequest(_) => Blame::Caller,
            Error::Authentication => Blame::Peer,
            Error::Busy => Blame::Limit,
            Error::Closed => Blame::System,
            Error::Driver { .. } => Blame::Driver,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported(algorithm) => write!(f, "no driver does {algorithm} this way"),
            Error::NoSuchDriver => f.write_str("no driver of that name is registered"),
            Error::InvalidKey(why) => write!(f, "the key cannot be used: {why}"),
            Error::InvalidRequest(why) => write!(f, "the request cannot be run: {why}"),
            Error::Authentication => f.write_str("authentication failed"),
            Error::Busy => f.write_str("the engine is busy; try again later"),
            Error::Closed => f.write_str("the engine is shutting down"),
            Error::Driver { driver, why } => write!(f, "driver {driver} failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}
