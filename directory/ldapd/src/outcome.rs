//! The outcome of a request that had to wait.

use crate::forward::Answered;
use crate::requested_controls::RequestedControls;
use keyway_server::{BindOutcome, Failure, WriteDone};
use zeroize::Zeroizing;

/// The outcome of a request that had to wait.
pub(crate) enum Answer {
    /// A write, and the controls that it asked for.
    Write { request: u8, result: Result<WriteDone, Failure>, requested: RequestedControls },
    /// A bind, likewise.
    Bind(Box<BindOutcome>, RequestedControls),
    /// A request that the server that writes has answered.
    Forwarded { request: u8, result: Result<Answered, Failure>, requested: RequestedControls },
    /// A request that has waited for what its client has written elsewhere, and whether that is here now.
    Again { message: Zeroizing<Vec<u8>>, reached: bool },
    /// An extended operation, likewise.
    Extended { result: Result<Option<Zeroizing<Vec<u8>>>, Failure>, requested: RequestedControls },
}
