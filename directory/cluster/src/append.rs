//! The calls on a tail of the feed (`append`, `lease`), and the order of appends.
//!
//! A tail is etcd. One append is under way at a time: several would land out of
//! order. What comes meanwhile is one group, the next one.

use std::time::Duration;

use crate::backoff::Backoff;
pub use crate::fence::Fence;
use crate::message::Digest;

/// A row of the feed in a tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its position.
    pub position: u64,
    /// The digest of the row before it.
    pub before: Digest,
    /// Its own digest.
    pub digest: Digest,
    /// Its stored form.
    pub stored: Vec<u8>,
}

/// What became of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    /// The row is in the tail: put now, or found there with these octets.
    Done,
    /// The fence does not hold any more, or another row is in the place: the row is not in the tail and will never be.
    Fenced,
    /// No answer: the row is there, is not, or will be.
    Unknown,
    /// It was not tried.
    Unavailable,
}

/// The calls.
pub trait Tail {
    /// Puts a row, in one transaction: if the fence holds, its position is free and the one before it is there.
    fn append(&mut self, fence: &Fence, row: &Row) -> Appended;
    /// What [`Lease`](crate::lease::Lease) asks for.
    fn lease(&mut self, ask: &crate::lease::Ask) -> crate::lease::Told;
}

/// What a writer does with the row that it has given to an [`Appender`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is applied, and its changes are answered.
    Done,
    /// Its changes are answered as unavailable: it is in no tail, and the next row may have its position.
    NotDone,
    /// It is appended again at this time. Its changes may be answered as unavailable meanwhile, with the remark that they may
    /// still be made. No other row may have its position.
    Again(Duration),
    /// It is not there, and this member writes no more. Its changes are answered as unavailable.
    Fenced,
}

/// A writer's appends, one at a time.
#[derive(Debug)]
pub struct Appender {
    fence: Fence,
    state: State,
    backoff: Backoff,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Sent { row: Row, may_be_there: bool, rounds: u32 },
    Fenced,
}

impl Appender {
    /// For the holder of this fence.
    pub fn new(fence: Fence) -> Appender {
        Appender { fence, state: State::Idle, backoff: Backoff::new(fence.nonce) }
    }

    /// The next row. Returns whether it is to be appended now; not while another one is, and not when fenced.
    pub fn push(&mut self, row: Row) -> bool {
        let is_ready = self.state == State::Idle;
        if is_ready {
            self.state = State::Sent { row, may_be_there: false, rounds: 0 };
        }
        is_ready
    }

    /// The fence and the row that is under way.
    pub fn sent(&self) -> Option<(&Fence, &Row)> {
        match &self.state {
            State::Sent { row, .. } => Some((&self.fence, row)),
            State::Idle | State::Fenced => None,
        }
    }

    /// The answer to an append of [`Appender::sent`].
    pub fn told(&mut self, answer: Appended, now: Duration) -> Outcome {
        let State::Sent { may_be_there, rounds, .. } = &mut self.state else {
            return Outcome::Fenced;
        };
        match answer {
            Appended::Done => {
                self.state = State::Idle;
                Outcome::Done
            }
            Appended::Fenced => {
                self.state = State::Fenced;
                Outcome::Fenced
            }
            Appended::Unavailable if !*may_be_there => {
                self.state = State::Idle;
                Outcome::NotDone
            }
            Appended::Unknown | Appended::Unavailable => {
                *may_be_there = true;
                *rounds = rounds.saturating_add(1);
                let pause = self.backoff.pause(*rounds);
                Outcome::Again(now.saturating_add(pause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MemberId;

    fn appender() -> Appender {
        Appender::new(Fence { revision: 5, member: MemberId(1), nonce: 7 })
    }

    fn row(position: u64) -> Row {
        Row { position, before: Digest([0; 32]), digest: Digest([1; 32]), stored: Vec::new() }
    }

    #[test]
    fn one_row_is_under_way_at_a_time() {
        let (mut appender, now) = (appender(), Duration::ZERO);
        assert!(appender.push(row(1)));
        assert!(!appender.push(row(2)));
        assert_eq!(appender.sent().map(|(_, row)| row.position), Some(1));
        assert_eq!(appender.told(Appended::Done, now), Outcome::Done);
        assert!(appender.push(row(2)));
        assert_eq!(appender.told(Appended::Unavailable, now), Outcome::NotDone);
        assert!(appender.push(row(2)));
    }

    #[test]
    fn a_row_that_may_be_there_keeps_its_position() {
        let (mut appender, now) = (appender(), Duration::ZERO);
        assert!(appender.push(row(1)));
        assert!(matches!(appender.told(Appended::Unknown, now), Outcome::Again(at) if at > now));
        assert!(matches!(appender.told(Appended::Unavailable, now), Outcome::Again(_)));
        assert!(!appender.push(row(1)));
        assert_eq!(appender.told(Appended::Done, now), Outcome::Done);
        assert!(appender.push(row(2)));
        assert_eq!(appender.told(Appended::Fenced, now), Outcome::Fenced);
        assert!(!appender.push(row(2)));
        assert!(appender.sent().is_none());
        assert_eq!(appender.told(Appended::Done, now), Outcome::Fenced, "too late");
    }
}
