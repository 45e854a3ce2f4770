//! Why bytes are not an LDAP message. The peer that sent them is at fault, always.

use std::fmt;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message is longer than this side accepts.
    TooLong {
        /// Length of the whole message, as its header announces it.
        bytes: usize,
        /// The longest accepted.
        max: usize,
    },
    /// An element announces more octets than there are.
    Truncated,
    /// An element with another tag was due.
    UnexpectedTag {
        /// The identifier octet that was due.
        expected: u8,
        /// The one found.
        found: u8,
    },
    /// A rule of BER or of RFC 4511's structure is broken: where the rest of the message begins and
    /// ends cannot be trusted.
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// Structure and lengths are right, and a value in it is none of those that RFC 4511 defines:
    /// an unknown choice, a number out of its range, text that is not UTF-8.
    Invalid {
        /// The fault.
        what: &'static str,
    },
    /// A filter is nested more deeply than this side accepts.
    TooDeep {
        /// The greatest depth accepted.
        max: usize,
    },
    /// A list has more elements than this side accepts.
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// The greatest number accepted.
        max: usize,
    },
    /// The message is of no operation that RFC 4511 defines.
    UnknownOperation {
        /// Its identifier octet.
        tag: u8,
    },
}

impl DecodeError {
    pub(crate) const fn malformed(what: &'static str) -> Self {
        DecodeError::Malformed { what }
    }

    pub(crate) const fn invalid(what: &'static str) -> Self {
        DecodeError::Invalid { what }
    }

    /// Whether a request with this error is to be answered, and the session goes on. Any other error
    /// ends the session with a Notice of Disconnection (RFC 4511 § 4.1.1).
    #[must_use]
    pub const fn is_answerable(&self) -> bool {
        matches!(
            self,
            DecodeError::Invalid { .. } | DecodeError::TooDeep { .. } | DecodeError::TooMany { .. }
        )
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::TooLong { bytes, max } => {
                write!(f, "message of {bytes} octets, at most {max} are accepted")
            }
            DecodeError::Truncated => {
                write!(f, "malformed: an element announces more octets than follow")
            }
            DecodeError::UnexpectedTag { expected, found } => {
                write!(f, "malformed: tag 0x{found:02x} where 0x{expected:02x} is due")
            }
            DecodeError::Malformed { what } => write!(f, "malformed: {what}"),
            DecodeError::Invalid { what } => write!(f, "invalid: {what}"),
            DecodeError::TooDeep { max } => {
                write!(f, "filter nested too deeply, at most {max} levels are accepted")
            }
            DecodeError::TooMany { what, max } => {
                write!(f, "too many {what}, at most {max} are accepted")
            }
            DecodeError::UnknownOperation { tag } => {
                write!(f, "operation with unknown tag 0x{tag:02x}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
