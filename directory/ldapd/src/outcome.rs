//! What a request that had to wait has come to.

use crate::asks::Asks;
use keyway_server::{BindOutcome, Failure, WriteDone};
use zeroize::Zeroizing;

/// The outcome of a request that had to wait.
pub(crate) enum Answer {
    /// A write, and the controls that it asked for.
    Write { request: u8, result: Result<WriteDone, Failure>, asks: Asks },
    /// A bind, likewise.
    Bind(Box<BindOutcome>, Asks),
    /// An extended operation, likewise.
    Extended { result: Result<Option<Zeroizing<Vec<u8>>>, Failure>, asks: Asks },
}
