//! The contract of those who do the work.

use crate::{Algorithm, Error, Key, Request};

/// Whether the scheduler may choose a driver by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Yes.
    Any,
    /// Only when the consumer names it: the null driver, a driver under test.
    Named,
}

/// Something that executes requests.
///
/// One driver serves all threads at once. It says what it can do, opens sessions that hold a key
/// in whatever form it likes best, and forgets them when they are dropped. The engine has checked
/// before each call that the request's kind and its buffer lengths fit the algorithm, and that
/// costs are within [`limits`](crate::limits); what only the driver can know (is this key well
/// formed, is this point on the curve) it answers with an [`Error`]. It must not panic on any
/// input; in the slow class a panic is caught and answered as [`Error::Driver`].
pub trait Driver: Send + Sync {
    /// A short name for metrics and flags: lower-case letters, digits and dashes.
    fn name(&self) -> &'static str;

    /// Whether the scheduler may choose it by itself.
    fn selection(&self) -> Selection {
        Selection::Any
    }

    /// Whether it does this algorithm at all.
    fn supports(&self, algorithm: Algorithm) -> bool;

    /// Opens a session. [`Error::Unsupported`] makes the scheduler try the next driver.
    fn open(&self, algorithm: Algorithm, key: Key<'_>) -> Result<Box<dyn DriverSession>, Error>;

    /// Starts a hash that is fed in pieces.
    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error>;
}

/// A driver's side of a session: a key ready for use.
pub trait DriverSession: Send + Sync {
    /// Executes one request now, on this stack, and returns the bytes it put out: for
    /// [`Request::Seal`] and [`Request::Open`] the length of the text without the tag, for
    /// [`Request::Encapsulate`] that of the ciphertext, for [`Request::Verify`] 0, else what was
    /// written to `out`.
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error>;

    /// Longest signature [`Request::Sign`] can put out, in bytes; 0 where the key cannot sign.
    fn signature_bytes_max(&self) -> usize {
        0
    }
}

/// A driver's side of a hash fed in pieces.
pub trait DriverStream: Send + Sync {
    /// Takes the next piece.
    fn update(&mut self, data: &[u8]) -> Result<(), Error>;

    /// A second stream that has seen the same.
    fn fork(&self) -> Result<Box<dyn DriverStream>, Error>;

    /// The digest, into exactly the algorithm's output length.
    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error>;
}
