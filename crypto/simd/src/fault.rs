//! Requests and packets that cannot be right.

use crate::limits::MESSAGE_BYTES_MAX;
use std::fmt;

/// A request that cannot be right: the caller's fault. Nothing of the batch was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which request, counted from 0.
    pub job: usize,
    /// The kind of its fault.
    pub kind: FaultKind,
}

/// The kind of a request's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The range to encrypt is not within the message.
    CipherRange,
    /// The range to encrypt is not a multiple of 16 bytes long.
    CipherBlocks,
    /// The range to authenticate is not within the message.
    MacRange,
    /// The tag is empty or longer than the digest.
    TagLength,
    /// A part is longer than [`MESSAGE_BYTES_MAX`].
    TooLong,
    /// A packet's number does not fit into 62 bits.
    Number,
    /// A packet's header is shorter than its packet number and one byte.
    HeaderLength,
    /// A packet has no space for its tag, or its number and payload have less than 4 bytes
    /// together.
    TooShort,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.kind {
            FaultKind::CipherRange => "the range to encrypt reaches out of the message",
            FaultKind::CipherBlocks => {
                "the range to encrypt is not a multiple of 16 bytes long; pad it first"
            }
            FaultKind::MacRange => "the range to authenticate reaches out of the message",
            FaultKind::TagLength => "the tag must have at least 1 byte and at most the digest's",
            FaultKind::Number => "a packet number has at most 62 bits",
            FaultKind::HeaderLength => "the header is too short for its packet number",
            FaultKind::TooShort => {
                "the packet is too short: pad number and payload to 4 bytes, and leave space for the tag"
            }
            FaultKind::TooLong => {
                return write!(
                    f,
                    "request {} of the batch: a part is over {MESSAGE_BYTES_MAX} bytes",
                    self.job
                );
            }
        };
        write!(f, "request {} of the batch: {why}", self.job)
    }
}

impl std::error::Error for Fault {}
