//! What a member does: it writes, follows, or has been replaced. Derived from its cluster row and from what it has heard.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::message::{ClusterRow, Member, MemberId, Place, Refusal, Reign, RoleName, Status};
use crate::promise::{Promise, PromiseId};

/// How long a writer that starts waits for the other members before it writes without their answers. Longer than a follower
/// takes to notice that a writer is silent ([`SILENCE`](crate::follower::SILENCE)): after it, a follower that says that it
/// is connected has another writer.
pub const START_WAIT: Duration = Duration::from_secs(15);
/// A writer that did nothing for so long has stood still, and may have been replaced meanwhile. A promotion takes longer: it
/// waits for the answer of each member.
pub const STILL_MIN: Duration = Duration::from_secs(2);
/// How long such a writer waits for the other members before it goes on without their answers.
pub const STILL_WAIT: Duration = Duration::from_secs(4);
/// How often a writer asks the members that do not follow it.
pub const ASK_EVERY: Duration = Duration::from_secs(3);

/// What a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It is in no cluster, or is its only member.
    Alone,
    /// It writes. Whether it may do so yet is [`Standing::may_write`].
    Writer,
    /// Its row says that it writes, but it was replaced and has not followed the next writer yet, or its own changes
    /// contradict those of another member.
    Fenced,
    /// It follows.
    Follower,
}

/// A member's standing in its cluster.
#[derive(Clone, Debug)]
pub struct Standing {
    own: MemberId,
    row: Option<ClusterRow>,
    heard: Option<Reign>,
    start: Start,
    stopped: Option<Refusal>,
    /// A promise to one that is to write.
    promise: Option<Promise>,
    /// How many it has given.
    promises: u64,
    /// When it was last seen to run.
    ran: Duration,
    /// How often it has stood still.
    stills: u64,
    /// It has stood still, and asks the others since then.
    still: Option<Still>,
}

#[derive(Clone, Debug)]
struct Still {
    since: Duration,
    /// The members that have not answered yet.
    left: BTreeSet<MemberId>,
}

#[derive(Clone, Debug)]
enum Start {
    Done,
    /// Members that have not said yet that no writer but this one is there, and whether they spoke of one.
    Asking {
        until: Duration,
        left: BTreeMap<MemberId, bool>,
    },
}

/// Why a member cannot be promoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotPromoted {
    /// It is in no cluster.
    Alone,
    /// It is no member of its cluster any more.
    NoMember,
    /// It writes already.
    IsWriter,
    /// There is no higher epoch.
    NoEpoch,
}

impl Standing {
    /// A member that starts. `heard` is what it had heard before ([`Standing::highest`], kept in its folder).
    pub fn new(
        own: MemberId,
        row: Option<ClusterRow>,
        heard: Option<Reign>,
        now: Duration,
    ) -> Self {
        let mut standing = Standing {
            own,
            row: None,
            heard,
            start: Start::Done,
            stopped: None,
            promise: None,
            promises: 0,
            ran: now,
            stills: 0,
            still: None,
        };
        let left: BTreeMap<_, _> =
            row.iter().flat_map(|row| &row.members).map(|m| (m.id, false)).collect();
        let is_writer = row.as_ref().is_some_and(|row| row.writer == own);
        standing.applied(row);
        if is_writer && left.len() > 1 && !standing.is_leased() {
            let left = left.into_iter().filter(|(id, _)| *id != own).collect();
            standing.start = Start::Asking { until: now.saturating_add(START_WAIT), left };
        }
        standing
    }

    /// The store has this cluster row now.
    pub fn applied(&mut self, row: Option<ClusterRow>) {
        let before = self.reign();
        self.row = row;
        let reign = self.reign();
        self.heard = self.heard.max(reign);
        if reign != before {
            // A person, or the lease, has decided anew which changes count.
            self.stopped = None;
            self.start = Start::Done;
            self.still = None;
        }
        self.keep_promise();
    }

    /// Another member speaks of this reign. Returns whether the member is fenced by it and was not before.
    pub fn heard(&mut self, reign: Reign) -> bool {
        let before = self.role();
        self.heard = self.heard.max(Some(reign));
        self.keep_promise();
        self.role() == Role::Fenced && before != Role::Fenced
    }

    /// A promise is kept when its reign, or a later one, has begun.
    fn keep_promise(&mut self) {
        let epoch = self.heard.map(|heard| heard.epoch);
        self.promise = self.promise.filter(|promise| Some(promise.to.epoch) > epoch);
    }

    /// Promises that a reign may begin: changes are not taken meanwhile, and no other member is promised anything. A member
    /// that is to be promoted promises it to itself first.
    ///
    /// # Errors
    /// If another reign of that epoch or a later one has begun, or another member has a promise.
    pub fn promise(&mut self, asked: Reign, now: Duration) -> Result<PromiseId, Refusal> {
        if self.heard.is_some_and(|heard| heard.epoch >= asked.epoch) {
            return Err(Refusal::NotWriter { writer_url: self.writer_url().map(str::to_owned) });
        }
        if let Some(promise) = self.promise.filter(|promise| promise.lasts(now)) {
            promise.gives_way(self.own, asked)?;
        }
        self.promises += 1;
        let id = PromiseId(self.promises);
        self.promise = Some(Promise::new(id, asked, now));
        Ok(id)
    }

    /// The member that was promised this gives it up.
    pub fn release(&mut self, id: PromiseId) {
        self.promise = self.promise.filter(|promise| promise.id != id);
    }

    /// The reign that it has promised to let begin.
    pub fn promised(&self, now: Duration) -> Option<Reign> {
        self.promise.filter(|promise| promise.lasts(now)).map(|promise| promise.to)
    }

    /// Whether this member, which has promised itself a reign, may begin it now. After that nothing else is promised before
    /// the row of that reign is applied, or the promise is released.
    pub fn may_begin(&mut self, id: PromiseId, now: Duration) -> bool {
        let own = self.promise.as_mut().filter(|promise| promise.id == id);
        own.is_some_and(|promise| promise.make_final(now))
    }

    /// How often it has stood still. One that did so while it asked others takes their answers for silence, and their
    /// promises may have ended.
    pub fn stills(&mut self, now: Duration) -> u64 {
        self.tick(now);
        self.stills
    }

    /// Whether changes that are on the disk may be acknowledged. `None`: this one has stood still, and all others are to be
    /// asked how they are; [`Standing::answered`] or [`Standing::deadline`] ends that.
    pub fn may_acknowledge(&mut self, now: Duration) -> Option<Result<(), Refusal>> {
        self.tick(now);
        let begins = self.promise.is_some_and(|it| it.is_final() && it.to.writer == self.own);
        match self.role() {
            Role::Writer if self.still.is_some() => None,
            Role::Writer | Role::Alone => Some(Ok(())),
            Role::Follower | Role::Fenced if begins => Some(Ok(())),
            Role::Follower | Role::Fenced => {
                Some(Err(Refusal::NotWriter { writer_url: self.writer_url().map(str::to_owned) }))
            }
        }
    }

    /// The writer's own changes contradict those of another member: it stops writing.
    pub fn stop(&mut self, why: Refusal) {
        self.stopped.get_or_insert(why);
    }

    /// What it does.
    pub fn role(&self) -> Role {
        let Some((row, reign)) = self.row.as_ref().zip(self.reign()) else { return Role::Alone };
        if row.writer != self.own {
            return Role::Follower;
        }
        if self.heard > Some(reign) || self.stopped.is_some() {
            return Role::Fenced;
        }
        if row.members.len() <= 1 { Role::Alone } else { Role::Writer }
    }

    /// [`Standing::role`] as a [`Status`] has it.
    pub fn role_name(&self) -> RoleName {
        match (self.role(), &self.start) {
            (Role::Alone, _) => RoleName::Alone,
            (Role::Writer, Start::Done) => RoleName::Writer,
            (Role::Writer, Start::Asking { .. }) => RoleName::Starting,
            (Role::Fenced, _) => RoleName::Fenced,
            (Role::Follower, _) => RoleName::Follower,
        }
    }

    /// Whether a change may be committed here now. With etcd the lease is needed too.
    ///
    /// # Errors
    /// Why not.
    pub fn may_write(&mut self, now: Duration) -> Result<(), Refusal> {
        self.may_serve(now)?;
        match self.promised(now).filter(|_| self.role() == Role::Writer) {
            Some(reign) => Err(Refusal::Promised { to: reign.writer }),
            None => Ok(()),
        }
    }

    /// Whether others may follow. A writer that has promised another one to take no changes has some that they lack, perhaps.
    ///
    /// # Errors
    /// Why not.
    pub fn may_serve(&mut self, now: Duration) -> Result<(), Refusal> {
        self.tick(now);
        match self.role() {
            Role::Alone => Ok(()),
            Role::Writer if matches!(self.start, Start::Done) => Ok(()),
            Role::Writer => Err(Refusal::Busy),
            Role::Fenced | Role::Follower => match &self.stopped {
                Some(why) if self.heard <= self.reign() => Err(why.clone()),
                _ => Err(Refusal::NotWriter { writer_url: self.writer_url().map(str::to_owned) }),
            },
        }
    }

    /// Whether it is to follow the writer: as a follower, or as one that was replaced. The latter is a follower when it has the
    /// row of the reign that replaced it, and cannot follow if it has changes of its own. One that wrote by a lease in etcd
    /// goes by etcd.
    pub fn may_follow(&self) -> bool {
        match self.role() {
            Role::Follower => true,
            Role::Fenced => self.heard > self.reign() && !self.is_leased(),
            Role::Alone | Role::Writer => false,
        }
    }

    /// The members to ask for their [`Status`] now and then, by a writer: all others, but for those that follow it.
    pub fn to_ask(&self, follows: impl Fn(MemberId) -> bool) -> impl Iterator<Item = &Member> {
        let is_asking = matches!(self.role(), Role::Writer | Role::Fenced);
        let members = self.row.iter().filter(move |_| is_asking).flat_map(|row| &row.members);
        members.filter(move |member| member.id != self.own && !follows(member.id))
    }

    /// A member has said how it is, when it was asked at `asked`. `own` is where this member's store stands.
    pub fn answered(&mut self, status: &Status, own: &Place, asked: Duration, now: Duration) {
        status.heard.into_iter().for_each(|reign| {
            self.heard(reign);
        });
        let speaks_of_own =
            status.writer == Some(self.own) && Some(status.epoch) == self.reign().map(|r| r.epoch);
        if speaks_of_own && !self.is_leased() && self.role() == Role::Writer {
            if status.position > own.position {
                self.stop(Refusal::Behind { last: own.position });
            } else if status.position == own.position && status.digest != own.digest {
                self.stop(Refusal::Forked { position: own.position });
            }
        }
        if let Start::Asking { left, .. } = &mut self.start {
            match left.get_mut(&status.member) {
                Some(spoke) if speaks_of_own && status.is_connected => *spoke = true,
                _ => {
                    left.remove(&status.member);
                }
            }
        }
        // One that is asked later may know that another one writes by then.
        let may_hear_more = status.promised.is_some_and(|reign| reign.writer != self.own);
        if let Some(still) =
            self.still.as_mut().filter(|still| still.since <= asked && !may_hear_more)
        {
            still.left.remove(&status.member);
        }
        self.tick(now);
    }

    /// The member runs: to be called several times within [`STILL_MIN`], and when the time has come that
    /// [`Standing::deadline`] spoke of.
    pub fn tick(&mut self, now: Duration) {
        let has_run = now.saturating_sub(self.ran) < STILL_MIN;
        self.ran = now.max(self.ran);
        self.stills += u64::from(!has_run);
        if !has_run && self.role() == Role::Writer && !self.is_leased() {
            let members = self.row.iter().flat_map(|row| &row.members).map(|member| member.id);
            let left = members.filter(|id| *id != self.own).collect();
            self.still = Some(Still { since: now, left });
        }
        let is_over =
            |still: &Still| still.left.is_empty() || now >= still.since.saturating_add(STILL_WAIT);
        self.still.take_if(|still| is_over(still));
        let Start::Asking { until, left } = &self.start else { return };
        if left.is_empty() {
            self.start = Start::Done;
        } else if now >= *until {
            let is_twin = left.values().any(|spoke| *spoke);
            self.start = Start::Done;
            if is_twin {
                self.stop(Refusal::Twin);
            }
        }
    }

    /// When [`Standing::tick`] is to be called.
    pub fn deadline(&self) -> Option<Duration> {
        let still = self.still.as_ref().map(|still| still.since.saturating_add(STILL_WAIT));
        match &self.start {
            Start::Asking { until, .. } => Some(still.map_or(*until, |still| still.min(*until))),
            Start::Done => still,
        }
    }

    /// The row that makes this member the writer: the first change of the next epoch. A fenced writer can be promoted too: a
    /// person has decided that its changes count.
    /// `position` is the store's last one; the row must become the one behind it.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn promoted(&self, position: u64) -> Result<ClusterRow, NotPromoted> {
        let row = self.leased(position, None)?;
        match self.role() {
            Role::Alone | Role::Writer => Err(NotPromoted::IsWriter),
            Role::Follower | Role::Fenced => Ok(row),
        }
    }

    /// [`Standing::promoted`] by a lease: also for the member that wrote last, since each lease is a reign of its own.
    /// `store` is the etcd that the lease is in.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn leased(&self, position: u64, store: Option<u64>) -> Result<ClusterRow, NotPromoted> {
        let row = self.row.as_ref().ok_or(NotPromoted::Alone)?;
        row.member(self.own).ok_or(NotPromoted::NoMember)?;
        let highest = self.heard.map_or(row.epoch, |heard| heard.epoch.max(row.epoch));
        let epoch = highest.checked_add(1).ok_or(NotPromoted::NoEpoch)?;
        Ok(ClusterRow { etcd: store, ..row.next(epoch, self.own, position.saturating_add(1)) })
    }

    /// Which member it is.
    pub fn own(&self) -> MemberId {
        self.own
    }

    /// Whether the writer holds a lease in etcd. Then etcd's fence decides who writes, and members may have a row before its
    /// writer knows that it is there.
    fn is_leased(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.etcd.is_some())
    }

    /// The reign of its row.
    pub fn reign(&self) -> Option<Reign> {
        self.row.as_ref().map(|row| Reign { epoch: row.epoch, writer: row.writer })
    }

    /// The highest reign that it has heard of, to be kept in its folder.
    pub fn highest(&self) -> Option<Reign> {
        self.heard
    }

    /// Its row.
    pub fn row(&self) -> Option<&ClusterRow> {
        self.row.as_ref()
    }

    /// Where the writer of the highest reign listens, if it is known and another member.
    pub fn writer_url(&self) -> Option<&str> {
        let writer = self.heard?.writer;
        let member = self.row.as_ref()?.member(writer)?;
        (writer != self.own).then_some(&*member.url)
    }
}

impl std::fmt::Display for NotPromoted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NotPromoted::Alone => "this server is in no cluster; a token for one: `keyway cluster token` at its writer",
            NotPromoted::NoMember => "this server is no member of its cluster any more; join it again with a token",
            NotPromoted::IsWriter => "this server is the writer already; there is nothing to do",
            NotPromoted::NoEpoch => "the epochs are used up: a member has spoken of the highest one; look for it in the logs",
        })
    }
}

impl std::error::Error for NotPromoted {}

#[cfg(test)]
mod tests;
