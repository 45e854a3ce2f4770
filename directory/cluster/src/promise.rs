//! What a member promises to one that is to become the writer.
//!
//! Before a promotion all members that can be reached are asked to let it happen (a *prepare* and its *promise*, as in
//! Lamport, "Paxos Made Simple", section 2.2, without its majority: members that do not answer are not waited for). A writer
//! that has promised takes no changes, so that the new one begins with all that was acknowledged. Of two that are promoted at
//! one moment the one with the lower identifier goes on.

use std::time::Duration;

use crate::message::{MemberId, Refusal, Reign};

/// How long a promise lasts at most. One that asked for it and hangs holds up changes for no longer.
pub const PROMISE_MAX: Duration = Duration::from_secs(10);

/// Which promise it is. A member may ask twice for one reign, and the end of the first question does not end the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PromiseId(pub(crate) u64);

/// A promise to let a reign begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promise {
    pub id: PromiseId,
    pub to: Reign,
    until: Duration,
    /// It is its own, and is given away no more.
    is_final: bool,
}

impl Promise {
    pub fn new(id: PromiseId, to: Reign, now: Duration) -> Promise {
        Promise { id, to, until: now.saturating_add(PROMISE_MAX), is_final: false }
    }

    /// Whether it counts still.
    pub fn lasts(&self, now: Duration) -> bool {
        self.is_final || now < self.until
    }

    /// Whether its member, which is to begin this reign itself, may do so: nothing else is promised from then on.
    pub fn make_final(&mut self, now: Duration) -> bool {
        let may = self.lasts(now);
        self.is_final |= may;
        may
    }

    /// Whether its member does what it has promised to itself, by now for certain.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Whether member `own` promises `asked` in the place of this promise.
    ///
    /// # Errors
    /// [`Refusal::Promised`], if not.
    pub fn gives_way(&self, own: MemberId, asked: Reign) -> Result<(), Refusal> {
        let to = self.to.writer;
        let gives_way = match to == own {
            true => !self.is_final && asked.writer < own,
            false => to == asked.writer,
        };
        match gives_way {
            true => Ok(()),
            false => Err(Refusal::Promised { to }),
        }
    }
}
