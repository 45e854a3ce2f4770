//! The part of a member's work that the server of connections hands on.

use super::stream::MemberStream;
use keyway_cluster::message::{Answer, MemberId, Place, Refusal, Reign, Status};
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::Arc;

/// A future of its own.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Why something is not done for another member.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The reason.
    pub reason: Refusal,
    /// Other words than the reason's own.
    pub text: Option<String>,
    /// The highest reign that this server has heard of, for a member that is to learn of it.
    pub heard: Option<Reign>,
}

impl Refused {
    /// For a reason that has no name, in these words.
    pub fn because(text: impl ToString) -> Refused {
        Refused { reason: Refusal::Other, text: Some(text.to_string()), heard: None }
    }
}

impl Refused {
    /// The answer that says so.
    pub fn answer(self) -> Answer {
        let Refused { reason, text, heard } = self;
        let text = text.unwrap_or_else(|| reason.to_string());
        Answer::Refused { reason, text, heard }
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => self.reason.fmt(f),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(reason: Refusal) -> Refused {
        Refused { reason, text: None, heard: None }
    }
}

/// A request to follow.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    /// The member that asks, by its certificate.
    pub member: MemberId,
    /// Where its store stands.
    pub place: Place,
    /// The highest reign that it has heard of.
    pub heard: Option<Reign>,
}

/// The work of a running member for others. Each method is called by the task of a connection, and must not block it.
pub trait MemberService: Send + Sync + 'static {
    /// Whether this server may add a member now: it writes, as far as it knows.
    ///
    /// # Errors
    /// Why not.
    fn may_add(&self) -> Result<(), Refused>;

    /// Its store has another list of members than before.
    fn members_changed(self: Arc<Self>);

    /// How it is.
    fn status(&self) -> Boxed<Result<Status, Refused>>;

    /// Makes this server the writer, with `force` also if it lacks changes of others, and returns the epoch. Only a client with this server's own certificate asks for it.
    fn promote(self: Arc<Self>, force: bool) -> Boxed<Result<u64, Refused>>;

    /// Promises a member that it may begin a reign, to the end of the connection. Nothing was answered yet.
    fn prepare(self: Arc<Self>, stream: MemberStream, reign: Reign) -> Boxed<()>;

    /// Sends a member the rows behind a place, to the end of the connection. Nothing was answered yet.
    fn follow(self: Arc<Self>, stream: MemberStream, asked: Follow) -> Boxed<()>;

    /// Does operations that a member forwards, to the end of the connection. Nothing was answered yet.
    fn forward(self: Arc<Self>, stream: MemberStream, member: MemberId) -> Boxed<()>;
}
