//! The writer's lease in etcd: who may take it, and when it is renewed.
//!
//! A lease is a clock, and clocks differ. So what a holder believes of its end is a hint, by which it says early that it
//! does not write; an append is right or wrong by its [`Fence`], in etcd's own transaction.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::fence::Fence;
use crate::message::{ClusterRow, Digest, MemberId, Place, Status};
use crate::role::START_WAIT;

/// Looks at who holds the lease, in the time of one, and the longest pause between two: so much later it is seen that
/// there is no holder.
const LOOKS: u32 = 30;
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(250);

/// Which etcd it is: its cluster's identifier. One that was restored from a snapshot may have another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreId(pub u64);

/// What is to be asked of etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Who holds the lease, and where the tail ends.
    Look,
    /// To put the writer's key under a new lease, if there is none.
    Take {
        /// Who asks.
        member: MemberId,
        /// How long the lease is to last.
        ttl: Duration,
    },
    /// To let the lease last from now on.
    Renew(Fence),
    /// To give the lease back.
    Release(Fence),
}

/// What etcd has said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// The state.
    State {
        /// Which etcd it is.
        store: StoreId,
        /// Its revision; one that is lower than before tells of a restored etcd.
        revision: u64,
        /// Who holds the lease.
        holder: Option<MemberId>,
        /// Position and digest of the last row; `None` if there is no row.
        last: Option<(u64, Digest)>,
    },
    /// The lease is taken by the one that asked.
    Taken(Fence),
    /// The lease lasts on.
    Renewed {
        /// Which etcd it is.
        store: StoreId,
        /// Its revision.
        revision: u64,
    },
    /// There is another holder, or the lease has ended.
    Refused,
    /// No answer.
    Unavailable,
}

/// What a member does about the lease now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Asks etcd; then [`Lease::told`].
    Ask(Ask),
    /// Waits until then.
    Wait(Duration),
}

/// Where this member stands.
#[derive(Clone, Copy, Debug)]
pub struct Own<'r> {
    /// Its store's place.
    pub place: &'r Place,
    /// Its cluster row.
    pub row: Option<&'r ClusterRow>,
}

/// A member's part in who holds the lease.
#[derive(Debug)]
pub struct Lease {
    own: MemberId,
    ttl: Duration,
    state: State,
    backoff: Backoff,
    failures: u32,
    /// The highest revision of etcd that this process has seen.
    revision: u64,
    /// Where the tail ended when etcd had gone back: a reign that began behind it is one of the restored etcd.
    went_back: Option<u64>,
    /// Until when this member asks the others first: it has just started, or has not seen etcd for a while.
    starts_until: Duration,
    /// Where the tail ended when it saw etcd again.
    start_end: Option<u64>,
    /// The last holder that it has seen append since then.
    wrote: Option<MemberId>,
    /// When it saw etcd last.
    seen: Duration,
    /// Since when there has been no holder and a doubt: who answers what was asked before may have got rows since.
    doubting: Option<Duration>,
    /// Where other members stand, by what they were asked since then.
    others: BTreeMap<MemberId, Stands>,
    /// Which etcd was seen last.
    store: Option<StoreId>,
}

/// Where a member stood when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stands {
    position: u64,
    asked: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// Looks at this time.
    Looking { at: Duration, found: Option<Doubt> },
    /// Is to take it, and has looked.
    Taking { asked: bool },
    /// Holds it, by an answer to what was sent at `since`.
    Holding { fence: Fence, since: Duration, next: Duration },
}

/// Why a member does not take a lease that is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// It has not applied the whole tail.
    Behind,
    /// It has just started or was cut off, and has not seen whether etcd was restored: the others are asked how far they
    /// are, for [`START_WAIT`], or until all have answered but a holder that it has seen append.
    Starting,
    /// etcd is not the one that it has followed, or has lost rows: it was restored. All members are to be asked how far
    /// they are; the one that is furthest takes the lease, and puts what the tail lacks.
    Restored {
        /// Which etcd it is now.
        store: StoreId,
    },
    /// The tail ends with another row than this member's: the member rejoins.
    Diverged,
}

/// Another member that keeps this one from taking a lease that is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It has to answer first, and has not.
    Silent(MemberId),
    /// It is to take the lease: it has more, or as much and the lower number.
    Ahead(MemberId),
}

impl Lease {
    /// A member that starts. Leases last for `ttl`.
    pub fn new(own: MemberId, ttl: Duration, now: Duration) -> Lease {
        Lease {
            own,
            ttl,
            state: State::Looking { at: now, found: None },
            backoff: Backoff::new(own.0),
            failures: 0,
            revision: 0,
            went_back: None,
            starts_until: now.saturating_add(START_WAIT),
            start_end: None,
            wrote: None,
            seen: now,
            doubting: None,
            others: BTreeMap::new(),
            store: None,
        }
    }

    /// What to do now.
    pub fn step(&mut self, now: Duration) -> Step {
        match &mut self.state {
            State::Looking { at, .. } if *at <= now => Step::Ask(Ask::Look),
            State::Looking { at, .. } => Step::Wait(*at),
            State::Taking { asked } => {
                *asked = true;
                Step::Ask(Ask::Take { member: self.own, ttl: self.ttl })
            }
            State::Holding { fence, next, .. } if *next <= now => Step::Ask(Ask::Renew(*fence)),
            State::Holding { next, .. } => Step::Wait(*next),
        }
    }

    /// The answer to what was asked at `sent`. `own_at` gives the digest of this member's row at a position if it has it.
    pub fn told(
        &mut self,
        told: &Told,
        own: Own<'_>,
        own_at: impl FnOnce(u64) -> Option<Digest>,
        (sent, now): (Duration, Duration),
    ) {
        match (&self.state, told) {
            (State::Looking { .. }, Told::State { store, revision, holder, last }) => {
                self.failures = 0;
                let unseen = now.saturating_sub(self.seen);
                let is_back = *revision < self.revision;
                if unseen > self.ttl {
                    self.starts_until = now.saturating_add(START_WAIT);
                }
                if is_back {
                    self.went_back = Some(last.map_or(0, |(end, _)| end));
                }
                if is_back || unseen > self.ttl / 2 || self.store != Some(*store) {
                    // There may have been a holder in between, which this member has not seen.
                    self.doubting = None;
                    self.others.clear();
                    self.start_end = None;
                }
                (self.seen, self.revision, self.store) = (now, *revision, Some(*store));
                let end = last.map_or(0, |(end, _)| end);
                match self.start_end {
                    None => (self.start_end, self.wrote) = (Some(end), None),
                    Some(first) if first < end => self.wrote = holder.or(self.wrote),
                    Some(_) => {}
                }
                let found = self.doubt(*store, *last, own, own_at, now);
                if holder.is_some() || matches!(found, None | Some(Doubt::Behind | Doubt::Diverged))
                {
                    self.doubting = None;
                    self.others.clear();
                } else if self.doubting.is_none() {
                    self.doubting = Some(now);
                }
                if holder.is_none() && found.is_none() {
                    self.state = State::Taking { asked: false };
                } else {
                    self.look(self.next_look(now), found);
                }
            }
            (State::Taking { .. }, Told::Taken(fence)) => {
                let next = sent.saturating_add(self.ttl / 3);
                self.state = State::Holding { fence: *fence, since: sent, next };
            }
            (State::Holding { .. }, Told::Renewed { store, revision })
                if *revision < self.revision || self.store != Some(*store) =>
            {
                // etcd was restored, with this lease in it: what the tail lacks is to be put, in a reign of its own.
                self.look(now, None);
            }
            (State::Holding { fence, .. }, Told::Renewed { revision, .. }) => {
                let next = sent.saturating_add(self.ttl / 3);
                self.state = State::Holding { fence: *fence, since: sent, next };
                (self.failures, self.seen, self.revision) = (0, now, *revision);
            }
            (State::Holding { fence, since, .. }, Told::Unavailable) => {
                let next = now.saturating_add(self.ttl / 20);
                self.state = State::Holding { fence: *fence, since: *since, next };
            }
            (_, Told::Refused) => self.look(self.next_look(now), None),
            (State::Looking { .. } | State::Taking { .. }, _) => {
                // Whether a lease was taken is not known: a look will tell, and one without a holder ends by itself.
                self.failures = self.failures.saturating_add(1);
                let pause = self.backoff.pause(self.failures).min(self.ttl / 4);
                self.look(now.saturating_add(pause), None);
            }
            (State::Holding { .. }, _) => {}
        }
    }

    fn next_look(&self, now: Duration) -> Duration {
        now.saturating_add((self.ttl / LOOKS).min(LOOK_PAUSE_MAX))
    }

    fn look(&mut self, at: Duration, found: Option<Doubt>) {
        self.state = State::Looking { at, found };
    }

    fn doubt(
        &mut self,
        store: StoreId,
        last: Option<(u64, Digest)>,
        own: Own<'_>,
        own_at: impl FnOnce(u64) -> Option<Digest>,
        now: Duration,
    ) -> Option<Doubt> {
        let place = own.place;
        let (end, digest) = last.unwrap_or((0, Digest([0; 32])));
        if end > place.position {
            return Some(Doubt::Behind);
        }
        let own_digest = if end == place.position { Some(place.digest) } else { own_at(end) };
        if last.is_some() && own_digest.is_some_and(|own| own != digest) {
            return Some(Doubt::Diverged);
        }
        let began = own.row.and_then(|row| row.began.last()).map_or(0, |began| began.position);
        if self.went_back.is_some_and(|end| began > end) {
            self.went_back = None;
        }
        let mut ids = others(self.own, own.row);
        let is_before = |id: MemberId, at: u64| rank(at, id) < self.rank(own);
        let is_furthest =
            ids.clone().all(|id| self.answer(id, now).is_some_and(|at| is_before(id, at.position)));
        let is_trusted = own.row.is_some_and(|row| row.etcd == Some(store.0))
            && self.went_back.is_none()
            && end == place.position;
        match (is_trusted, is_furthest) {
            (_, true) => None,
            (false, false) => Some(Doubt::Restored { store }),
            (true, false) => {
                let is_ahead = self.others.values().any(|at| at.position > place.position);
                // The lease is free since its last holder is gone, which wrote to this etcd: all others have answered.
                let is_answered = self.wrote.is_some()
                    && ids.all(|id| self.wrote == Some(id) || self.answer(id, now).is_some());
                let waits = now < self.starts_until && !is_answered;
                (is_ahead || waits).then_some(Doubt::Starting)
            }
        }
    }

    /// Another member that was asked at `asked` says how it is, while [`Lease::doubt_found`] is [`Doubt::Restored`] or
    /// [`Doubt::Starting`].
    pub fn stands(&mut self, status: &Status, asked: Duration) {
        if self.is_free_since(asked) {
            // One that this etcd contradicts cannot take the lease, and what it has beyond is not this feed's.
            let diverged_from = status.diverged_from.map(StoreId);
            let counts = diverged_from.is_none() || diverged_from != self.store;
            let position = if counts { status.position } else { 0 };
            self.others.insert(status.member, Stands { position, asked });
        }
    }

    /// The etcd whose last row contradicts what this member has.
    pub fn diverged_from(&self) -> Option<StoreId> {
        self.store.filter(|_| self.doubt_found() == Some(Doubt::Diverged))
    }

    /// The member that has kept this one from a free lease for [`START_WAIT`], if one has.
    pub fn obstacle(&self, own: Own<'_>, now: Duration) -> Option<Obstacle> {
        let asked = now.checked_sub(START_WAIT)?;
        let is_restored = match self.doubt_found()? {
            Doubt::Restored { .. } => true,
            Doubt::Starting => false,
            Doubt::Behind | Doubt::Diverged => return None,
        };
        if !self.is_free_since(asked) {
            return None;
        }
        let others = || others(self.own, own.row);
        let silent = others().find(|id| is_restored && self.answer(*id, now).is_none());
        let is_ahead = |id: &MemberId| {
            self.others.get(id).is_some_and(|at| rank(at.position, *id) > self.rank(own))
        };
        silent.map(Obstacle::Silent).or_else(|| others().find(is_ahead).map(Obstacle::Ahead))
    }

    /// The fresh answer of another member.
    fn answer(&self, id: MemberId, now: Duration) -> Option<&Stands> {
        self.others.get(&id).filter(|at| now.saturating_sub(at.asked) < self.ttl)
    }

    fn rank(&self, own: Own<'_>) -> (u64, Reverse<MemberId>) {
        rank(own.place.position, self.own)
    }

    /// Whether there has been no holder, and a doubt, since this time or before.
    pub fn is_free_since(&self, time: Duration) -> bool {
        self.doubting.is_some_and(|since| since <= time)
    }

    /// What keeps this member from taking the lease.
    pub fn doubt_found(&self) -> Option<Doubt> {
        match self.state {
            State::Looking { found, .. } => found,
            _ => None,
        }
    }

    /// An append was fenced, or this member cannot write: it holds the lease no more.
    pub fn lost(&mut self, now: Duration) {
        self.look(now, None);
    }

    /// The fence of the lease that it holds, as far as it knows.
    pub fn fence(&self) -> Option<Fence> {
        match &self.state {
            State::Holding { fence, .. } => Some(*fence),
            _ => None,
        }
    }

    /// Whether the lease lasts, as far as this member's clock can say; `margin` is how much clocks may differ over a lease. A
    /// hint: a member that believes so may be wrong, and its append is refused then.
    pub fn believes(&self, now: Duration, margin: Duration) -> bool {
        match &self.state {
            State::Holding { since, .. } => {
                now < since.saturating_add(self.ttl).saturating_sub(margin)
            }
            _ => false,
        }
    }
}

/// How far a member is; of two that are at one position, the lower number is further.
fn rank(position: u64, id: MemberId) -> (u64, Reverse<MemberId>) {
    (position, Reverse(id))
}

/// The members but this one.
fn others(own: MemberId, row: Option<&ClusterRow>) -> impl Iterator<Item = MemberId> + Clone {
    let ids = row.into_iter().flat_map(|row| &row.members).map(|member| member.id);
    ids.filter(move |id| *id != own)
}

#[cfg(test)]
mod tests;
