//! A value that is given to be stored: a password, or one that is hashed already.

use crate::error::StoredError;
use crate::stored::{self, Stored};
use std::fmt;

/// A value that is to be stored. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// A password, to be hashed before it is stored.
    Password(&'a [u8]),
    /// A value of a known scheme, fit to be stored as it is.
    Hashed,
}

impl fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Given::Password(_) => "Password(..)",
            Given::Hashed => "Hashed",
        })
    }
}

/// Says whether a value given for `userPassword` is a password or is hashed already.
///
/// # Errors
/// A value that names a scheme which is not known, or does not fit it, or asks for more work than
/// the limits allow. Storing or hashing it would make it look right and never match, or worse,
/// make the hash itself the password.
pub fn classify(value: &[u8]) -> Result<Given<'_>, StoredError> {
    match stored::parse(value)? {
        Stored::Clear(password) => Ok(Given::Password(password)),
        Stored::Digest { .. } | Stored::Derived { .. } | Stored::Locked => Ok(Given::Hashed),
    }
}
