//! The follower's side of following: which member it asks, whether each row continues its own, how far it is behind.

mod lag;
mod stop;
mod targets;

use std::time::Duration;

use crate::backoff::Backoff;
use crate::message::{
    Answer, ClusterRow, Contents, Digest, Heartbeat, MemberId, Place, Refusal, Reign, Request,
};
use lag::Heads;
pub use lag::{HEARTBEAT_EVERY, Lag};
pub use stop::Stop;
use targets::Targets;

/// After which silence a connection counts as lost. A writer sends a heartbeat several times within it.
pub const SILENCE: Duration = Duration::from_secs(8);

/// What a row says of itself, before its changes are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowHeader {
    /// Its position.
    pub position: u64,
    /// The digest of the row before it.
    pub before: Digest,
    /// Its own digest.
    pub digest: Digest,
    /// The reign of the cluster row that it puts, if it puts one.
    pub reign: Option<Reign>,
}

/// What a follower does now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Connects to this URL; then [`Follower::connected`] or [`Follower::lost`].
    Connect(String),
    /// Closes its connection, which is silent; then [`Follower::lost`].
    Close,
    /// Waits for a frame, or until then.
    Wait(Duration),
    /// Has stopped until a person has mended it.
    Stopped,
}

/// A member that follows.
#[derive(Debug)]
pub struct Follower {
    own: MemberId,
    /// What is applied.
    place: Place,
    /// Position and digest of the last row that came.
    received: (u64, Digest),
    /// The epoch after that row.
    epoch: u64,
    heard: Option<Reign>,
    state: State,
    targets: Targets,
    backoff: Backoff,
    heads: Heads,
    /// The writer's contents at a position that is not applied yet.
    contents: [Option<Contents>; 2],
    last_error: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    Idle { at: Duration },
    Connecting { since: Duration },
    Asked { heard: Duration },
    Following { heard: Duration },
    Stopped(Stop),
}

impl Follower {
    /// A member whose store stands at `place` with this cluster row. `urls` are those of its folder; they are asked
    /// before those of the row.
    pub fn new(
        own: MemberId,
        place: Place,
        row: Option<&ClusterRow>,
        urls: Vec<String>,
        now: Duration,
    ) -> Follower {
        let mut follower = Follower {
            own,
            place,
            received: (place.position, place.digest),
            epoch: place.epoch,
            heard: None,
            state: State::Idle { at: now },
            targets: Targets::new(urls),
            backoff: Backoff::new(own.0),
            heads: Heads::default(),
            contents: [None; 2],
            last_error: None,
        };
        follower.row_applied(row);
        follower
    }

    /// The store has this cluster row now.
    pub fn row_applied(&mut self, row: Option<&ClusterRow>) {
        if let Some(row) = row {
            self.heard = self.heard.max(Some(Reign { epoch: row.epoch, writer: row.writer }));
            self.targets.row(self.own, row);
        }
    }

    /// Another member speaks of this reign.
    pub fn heard(&mut self, reign: Reign) {
        self.heard = self.heard.max(Some(reign));
    }

    /// What to do now.
    pub fn step(&mut self, now: Duration) -> Step {
        match &self.state {
            State::Idle { at } if *at <= now => match self.targets.next_url() {
                Some(url) => {
                    self.state = State::Connecting { since: now };
                    Step::Connect(url)
                }
                None => Step::Wait(now.saturating_add(SILENCE)),
            },
            State::Idle { at } => Step::Wait(*at),
            State::Connecting { since: at }
            | State::Asked { heard: at }
            | State::Following { heard: at } => {
                let end = at.saturating_add(SILENCE);
                if end <= now { Step::Close } else { Step::Wait(end) }
            }
            State::Stopped(_) => Step::Stopped,
        }
    }

    /// The connection is there; this is the request to send.
    pub fn connected(&mut self, now: Duration) -> Request {
        self.state = State::Asked { heard: now };
        // Rows that came over an earlier connection and were not applied come again.
        self.received = (self.place.position, self.place.digest);
        self.epoch = self.place.epoch;
        Request::Follow { member: self.own, place: self.place, heard: self.heard }
    }

    /// The connection could not be made, or has ended. `why` is for people.
    pub fn lost(&mut self, why: String, now: Duration) {
        if !matches!(self.state, State::Stopped(_)) {
            self.last_error = Some(why);
            self.again(now);
        }
    }

    fn again(&mut self, now: Duration) {
        let pause = match self.targets.failed() {
            Some(rounds) => self.backoff.pause(rounds),
            None => Duration::ZERO,
        };
        self.heads.lost();
        self.state = State::Idle { at: now.saturating_add(pause) };
    }

    /// The answer to [`Follower::connected`]'s request. If it is an error, and if it says to try elsewhere
    /// ([`Follower::is_asking`] is false then), the connection is to be closed.
    ///
    /// # Errors
    /// Why this member cannot follow until a person has mended it.
    pub fn answered(&mut self, answer: &Answer, now: Duration) -> Result<(), Stop> {
        if !matches!(self.state, State::Asked { .. }) {
            return Ok(());
        }
        match answer {
            Answer::Following { epoch, .. } if *epoch < self.place.epoch => {
                self.refused(&Refusal::OlderEpoch { epoch: *epoch }, now);
            }
            Answer::Following { head, .. } => {
                self.heads.at(*head, self.place.position, now);
                self.state = State::Following { heard: now };
            }
            Answer::Refused { reason, text, heard } => {
                let before = self.heard;
                heard.iter().for_each(|reign| self.heard(*reign));
                // A member that has missed a promotion has no say in whose changes count.
                let counts = heard.is_none() || *heard >= before;
                if !reason.is_passing() && counts {
                    return Err(self.stop(Stop::Refused(reason.clone())));
                }
                self.refused(reason, now);
                if *reason == Refusal::Other {
                    self.last_error = Some(text.clone());
                }
            }
            _ => self.lost(
                "the member gave an answer to something else; are the versions alike?".into(),
                now,
            ),
        }
        Ok(())
    }

    fn refused(&mut self, reason: &Refusal, now: Duration) {
        let is_sent_on = match reason {
            Refusal::NotWriter { writer_url: Some(url) } => self.targets.redirect(url),
            _ => false,
        };
        // The one that it is sent to says what is wrong, if anything is.
        if !is_sent_on {
            self.last_error = Some(reason.to_string());
        }
        self.again(now);
    }

    /// A row has come. If all is well it may be applied, after those that came before.
    ///
    /// # Errors
    /// If it does not continue what is here: this member stops.
    pub fn row(&mut self, row: &RowHeader, now: Duration) -> Result<(), Stop> {
        if let State::Stopped(why) = &self.state {
            return Err(why.clone());
        }
        let (position, digest) = self.received;
        if position.checked_add(1) != Some(row.position) {
            return Err(self.stop(Stop::Gap { position, came: row.position }));
        }
        if row.before != digest {
            return Err(self.stop(Stop::Refused(Refusal::Diverged { position })));
        }
        if let Some(reign) = row.reign {
            if reign.epoch < self.epoch {
                let epoch = self.epoch;
                return Err(self.stop(Stop::Epoch {
                    position: row.position,
                    epoch,
                    came: reign.epoch,
                }));
            }
            self.epoch = reign.epoch;
        }
        self.received = (row.position, row.digest);
        self.heads.at(row.position, self.place.position, now);
        self.well(now);
        Ok(())
    }

    /// The writer is there.
    ///
    /// # Errors
    /// If it is in an older epoch than the rows that came.
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat, now: Duration) -> Result<(), Stop> {
        if let State::Stopped(why) = &self.state {
            return Err(why.clone());
        }
        if heartbeat.epoch < self.epoch {
            let (position, epoch) = (self.received.0, self.epoch);
            return Err(self.stop(Stop::Epoch { position, epoch, came: heartbeat.epoch }));
        }
        self.heads.at(heartbeat.head, self.place.position, now);
        if let Some(theirs) = heartbeat.contents {
            let [older, newer] = self.contents;
            if newer.is_none_or(|newer| newer.position < theirs.position) {
                self.contents = [newer.or(older), Some(theirs)];
            }
        }
        self.well(now);
        Ok(())
    }

    fn well(&mut self, now: Duration) {
        if let State::Following { heard } = &mut self.state {
            *heard = now;
            self.targets.succeeded();
            self.last_error = None;
        }
    }

    /// Rows were applied; the store stands there now.
    pub fn applied(&mut self, place: Place) {
        self.place = place;
        self.heads.applied(place.position);
    }

    /// The store's contents have this digest at a position that a thousand divides.
    ///
    /// # Errors
    /// If the writer's have another one there.
    pub fn contents(&mut self, own: Contents) -> Result<(), Stop> {
        let differs =
            |theirs: &Contents| theirs.position == own.position && theirs.digest != own.digest;
        match self.contents.iter().flatten().any(differs) {
            true => {
                Err(self.stop(Stop::Refused(Refusal::OtherContents { position: own.position })))
            }
            false => Ok(()),
        }
    }

    /// The store has found that its contents are not the writer's at this position: this member stops.
    pub fn differs(&mut self, position: u64) -> Stop {
        self.stop(Stop::Refused(Refusal::OtherContents { position }))
    }

    fn stop(&mut self, why: Stop) -> Stop {
        self.last_error = Some(why.to_string());
        self.heads.lost();
        self.state = State::Stopped(why.clone());
        why
    }

    /// Where the store stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The highest reign that it has heard of.
    pub fn highest(&self) -> Option<Reign> {
        self.heard
    }

    /// Whether it waits for an answer or follows.
    pub fn is_asking(&self) -> bool {
        matches!(
            self.state,
            State::Connecting { .. } | State::Asked { .. } | State::Following { .. }
        )
    }

    /// Whether it is connected to a writer that it follows.
    pub fn is_following(&self) -> bool {
        matches!(self.state, State::Following { .. })
    }

    /// Why it has stopped.
    pub fn stopped(&self) -> Option<&Stop> {
        match &self.state {
            State::Stopped(why) => Some(why),
            _ => None,
        }
    }

    /// What went wrong last; `None` since all is well again.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// How far it is behind.
    pub fn lag(&self, now: Duration) -> Lag {
        self.heads.lag(self.place.position, self.is_following(), now)
    }
}

#[cfg(test)]
mod tests;
