//! Errors of the engine, and the party at fault.

use crate::Algorithm;
use std::fmt;

/// Why a request was not done. Small and `Copy`: it travels on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No driver does this algorithm with this kind of key.
    Unsupported(Algorithm),
    /// A legacy algorithm that this engine was not told to do.
    Disabled(Algorithm),
    /// The driver that was named is not there.
    NoSuchDriver,
    /// The key is malformed, of the wrong length or too weak.
    InvalidKey(&'static str),
    /// The request does not fit the session or breaks a limit.
    InvalidRequest(RequestError),
    /// A tag, a signature or a peer's key share does not check.
    Authentication,
    /// The bounded queue is full; try again later.
    Busy,
    /// The key has been used as often as it may be: make a new one.
    Exhausted(&'static str),
    /// The engine is shutting down.
    Closed,
    /// From a driver to the engine: it is gone, and the request was not begun. The engine runs it
    /// elsewhere; a consumer sees this only where there is no elsewhere.
    Gone,
    /// The driver failed.
    Driver {
        /// The driver's name.
        driver: &'static str,
        /// The driver's reason.
        why: &'static str,
    },
}

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// It is of another kind than the session's algorithm: to seal is not for a hash.
    Kind {
        /// The request's name ([`Request::name`](crate::Request::name)).
        request: &'static str,
        /// The session's algorithm.
        algorithm: Algorithm,
    },
    /// A part of it is longer or shorter than the algorithm or a limit wants it.
    Length {
        /// The part at fault.
        of: Field,
        /// How long it is, in bytes.
        given: usize,
        /// How long it has to be.
        expected: ExpectedLength,
    },
    /// Something else.
    Other(&'static str),
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The text that is worked on in place, or read.
    Data,
    /// The packet.
    Packet,
    /// The room for what is put out.
    Out,
    /// The room for a shared secret.
    Secret,
    /// The bytes that are sent to the holder of a KEM's key.
    Ciphertext,
    /// The password.
    Password,
    /// The salt.
    Salt,
    /// The name of the entry.
    Entry,
    /// The bytes that are compared with.
    Expected,
    /// OAEP's label.
    Label,
}

/// The length that a part has to have, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedLength {
    /// So many.
    Exactly(usize),
    /// So many or more.
    AtLeast(usize),
    /// So many or fewer.
    AtMost(usize),
    /// Whole blocks of so many.
    MultipleOf(usize),
}

impl ExpectedLength {
    /// With so many bytes more behind it.
    pub(crate) fn and(self, more: usize) -> Self {
        match self {
            ExpectedLength::Exactly(bytes) => ExpectedLength::Exactly(bytes + more),
            ExpectedLength::AtLeast(bytes) => ExpectedLength::AtLeast(bytes + more),
            ExpectedLength::AtMost(bytes) => ExpectedLength::AtMost(bytes + more),
            whole => whole,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Kind { request, algorithm } => {
                write!(f, "`{request}` is nothing that {algorithm} does")
            }
            RequestError::Length { of, given, expected } => {
                write!(f, "its {of} has {given} bytes, where {expected} are wanted")
            }
            RequestError::Other(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Data => "`data`",
            Field::Packet => "`packet`",
            Field::Out => "`out`",
            Field::Secret => "`secret`",
            Field::Ciphertext => "`ciphertext`",
            Field::Password => "`password`",
            Field::Salt => "`salt`",
            Field::Entry => "`entry`",
            Field::Expected => "`expected`",
            Field::Label => "the label",
        })
    }
}

impl fmt::Display for ExpectedLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedLength::Exactly(bytes) => write!(f, "{bytes}"),
            ExpectedLength::AtLeast(bytes) => write!(f, "at least {bytes}"),
            ExpectedLength::AtMost(bytes) => write!(f, "at most {bytes}"),
            ExpectedLength::MultipleOf(bytes) => write!(f, "multiples of {bytes}"),
        }
    }
}

/// The party at fault.
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
    /// [`Error::InvalidRequest`], in words.
    pub const fn invalid_request(why: &'static str) -> Self {
        Error::InvalidRequest(RequestError::Other(why))
    }

    /// [`Error::InvalidRequest`], because of a length.
    pub const fn length(of: Field, given: usize, expected: ExpectedLength) -> Self {
        Error::InvalidRequest(RequestError::Length { of, given, expected })
    }

    /// The party at fault.
    pub fn blame(&self) -> Blame {
        match self {
            Error::Unsupported(_)
            | Error::Disabled(_)
            | Error::NoSuchDriver
            | Error::InvalidKey(_)
            | Error::InvalidRequest(_) => Blame::Caller,
            Error::Authentication => Blame::Peer,
            Error::Busy | Error::Exhausted(_) => Blame::Limit,
            Error::Closed => Blame::System,
            Error::Driver { .. } | Error::Gone => Blame::Driver,
        }
    }

    /// Its name in the meters.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.kind()]
    }

    /// The names in the meters, one for each kind.
    const NAMES: [&'static str; Self::KINDS] = [
        "unsupported",
        "disabled",
        "no-such-driver",
        "invalid-key",
        "invalid-request",
        "authentication",
        "busy",
        "exhausted",
        "closed",
        "driver",
        "gone",
    ];

    /// How many kinds the meters know.
    pub(crate) const KINDS: usize = 11;

    /// The error's number.
    pub(crate) const fn kind(&self) -> usize {
        match self {
            Error::Unsupported(_) => 0,
            Error::Disabled(_) => 1,
            Error::NoSuchDriver => 2,
            Error::InvalidKey(_) => 3,
            Error::InvalidRequest(_) => 4,
            Error::Authentication => 5,
            Error::Busy => 6,
            Error::Exhausted(_) => 7,
            Error::Closed => 8,
            Error::Driver { .. } => 9,
            Error::Gone => 10,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported(algorithm) => write!(f, "no driver does {algorithm} this way"),
            Error::Disabled(algorithm) => write!(
                f,
                "{algorithm} is a legacy algorithm and off; enable it where the engine is made"
            ),
            Error::NoSuchDriver => f.write_str("no driver of that name is registered"),
            Error::InvalidKey(why) => write!(f, "the key cannot be used: {why}"),
            Error::InvalidRequest(why) => write!(f, "the request cannot be run: {why}"),
            Error::Authentication => f.write_str("authentication failed"),
            Error::Busy => f.write_str("the engine is busy; try again later"),
            Error::Exhausted(why) => write!(f, "the key is used up: {why}; make a new one"),
            Error::Gone => f.write_str(
                "the driver is gone or has the key no more, and no other can take its place",
            ),
            Error::Closed => f.write_str("the engine is shutting down"),
            Error::Driver { driver, why } => write!(f, "driver {driver} failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}
