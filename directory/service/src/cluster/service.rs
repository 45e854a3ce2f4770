//! The part of a member's work that the server of connections hands on.

use super::stream::MemberStream;
use keyway_cluster::message::{MemberId, Place, Refusal, Status};
use std::pin::Pin;

/// A future of its own.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Why something is not done for another member.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The reason.
    pub reason: Refusal,
    /// Other words than the reason's own.
    pub text: Option<String>,
}

impl Refused {
    /// For a reason that has no name, in these words.
    pub fn because(text: impl ToString) -> Refused {
        Refused { reason: Refusal::Other, text: Some(text.to_string()) }
    }
}

impl From<Refusal> for Refused {
    fn from(reason: Refusal) -> Refused {
        Refused { reason, text: None }
    }
}

/// The work of a running member for others. Each method is called by the task of a connection, and must not block it.
pub trait MemberService: Send + Sync + 'static {
    /// Whether this server may add a member now: it writes, as far as it knows.
    ///
    /// # Errors
    /// Why not.
    fn may_add(&self) -> Result<(), Refused>;

    /// How it is.
    fn status(&self) -> Boxed<Result<Status, Refused>>;

    /// Makes this server the writer, and returns the epoch. Only a client with this server's own certificate asks for it.
    fn promote(&self) -> Boxed<Result<u64, Refused>>;

    /// Sends a member the rows behind a place, to the end of the connection.
    fn follow(&self, stream: MemberStream, member: MemberId, place: Place) -> Boxed<()>;

    /// Does operations that a member forwards, to the end of the connection.
    fn forward(&self, stream: MemberStream, member: MemberId) -> Boxed<()>;
}
