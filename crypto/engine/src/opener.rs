//! The part of a driver's contract that sessions and the scheduler need: it knows no tasks.

use crate::{Algorithm, Error, NONCE_BYTES, Request, Step};
use std::any::Any;

/// Whether the scheduler may choose a driver by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Yes.
    Any,
    /// Only when the consumer names it (the null driver, a driver under test), or names a key,
    /// which none but its holder has: a daemon that holds keys and is to do nothing else.
    Named,
}

/// Where a driver computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the processor of the thread that submits, in its time.
    Caller,
    /// On other processors of the host.
    Host,
    /// On a device.
    Device,
}

/// A driver's side of a session: a key ready for use. Used by all threads at once.
pub trait DriverSession: Any + Send + Sync {
    /// Executes one request before it returns, and returns the bytes it put out: for
    /// [`Request::Seal`] and [`Request::Open`] the length of the text without the tag, for
    /// [`Request::Encapsulate`] that of the ciphertext, for [`Request::Chain`] that of the message,
    /// for [`Request::Verify`] 0, for [`Request::VerifyPassword`] 1 or 0 as it says, for ciphers
    /// the text's, else what was written to `out`.
    ///
    /// A driver whose work is done elsewhere waits for it. One that has died answers
    /// [`Error::Gone`] if it left the request's buffers as they were.
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error>;

    /// Executes [`Request::Seal`] under a nonce that the holder of the key makes, and says which:
    /// for drivers with keys that consumers only name. The nonce in the request means nothing.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] where the holder makes no nonces; else those of
    /// [`DriverSession::run`].
    fn seal_next(
        &self,
        _request: &mut Request<'_>,
        _nonce: &mut [u8; NONCE_BYTES],
    ) -> Result<usize, Error> {
        Err(Error::invalid_request("who holds this session's key is told its nonces"))
    }

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

/// A driver without its queues. Its promises are said at [`Driver`](crate::Driver).
pub(crate) trait Opener: Any + Send + Sync {
    fn name(&self) -> &str;
    fn selection(&self) -> Selection;
    fn place(&self) -> Place;
    fn parallel(&self) -> usize;
    /// Whether it works through queues of its own.
    fn has_queues(&self) -> bool;
    fn supports(&self, steps: &[Algorithm]) -> bool;
    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error>;
    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error>;
}
