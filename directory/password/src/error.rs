//! Why a password was not made, not checked, or cannot be stored.

use crate::limits::PASSWORD_BYTES_MAX;
use crate::scheme::Scheme;
use std::fmt;

/// Why a password was not made or checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The password is longer than [`PASSWORD_BYTES_MAX`].
    TooLong,
    /// Too many wait for their turn, or it did not come in time; try again later.
    Busy,
    /// The engine could not do it.
    Engine(keyway_engine::Error),
    /// The engine cannot use the key that the stored value is, or is to be, peppered with.
    Pepper(keyway_engine::Error),
}

impl From<keyway_engine::Error> for Error {
    fn from(error: keyway_engine::Error) -> Self {
        match error {
            keyway_engine::Error::Busy => Error::Busy,
            other => Error::Engine(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLong => write!(f, "a password may have {PASSWORD_BYTES_MAX} bytes at most"),
            Error::Busy => f.write_str("too many passwords are being checked; try again later"),
            Error::Engine(error) => write!(f, "the password could not be worked on: {error}"),
            Error::Pepper(error) => write!(
                f,
                "the key that passwords are peppered with cannot be used here now: {error}"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Why a value cannot be used as a stored password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredError {
    /// It names a scheme that is not known here.
    UnknownScheme,
    /// It names a known scheme and does not fit it.
    Malformed(&'static str),
    /// It asks for more work than the limits allow.
    TooCostly,
    /// It fits a known scheme that is not accepted here.
    NotAccepted(Scheme),
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredError::UnknownScheme => f.write_str(
                "the value names a password scheme that is not known here; \
                 give the password itself or a value of a known scheme",
            ),
            StoredError::Malformed(why) => write!(f, "the value does not fit its scheme: {why}"),
            StoredError::NotAccepted(scheme) => write!(
                f,
                "the value is of scheme \"{}\", which is not among those that [password] accept \
                 names in the configuration; give the password itself",
                scheme.name()
            ),
            StoredError::TooCostly => f.write_str("the value asks for more work than is allowed"),
        }
    }
}

impl std::error::Error for StoredError {}
