//! A member's row in etcd, which says how far it is, and the writer's care for the space there.

use super::node::Node;
use keyway_cluster::append::Fence;
use keyway_cluster::message::MemberId;
use keyway_cluster_etcd::{Error, Etcd, Member, Point, Presence};
use std::time::Duration;

/// How often a member says how far it is, and how often the writer removes rows that all have.
const TELL_EVERY: Duration = Duration::from_secs(5);
const TRIM_EVERY: Duration = Duration::from_secs(30);
/// How often a member looks whether another process is that member still.
const JOIN_EVERY: Duration = Duration::from_secs(1);
/// How often etcd gives back the space of what was removed.
const RECLAIM_EVERY: Duration = Duration::from_secs(600);
/// Rows that stay in etcd in any case.
const ROWS_KEPT: u64 = 1000;

/// The part of a member's work with etcd that only has to be done now and then.
pub(super) struct Telling {
    own: MemberId,
    presence: Option<Presence>,
    /// Since when another process says that it is this member.
    twin: Option<Duration>,
    told: Option<Duration>,
    trimmed: Duration,
    reclaimed: Duration,
}

impl Telling {
    pub fn new(own: MemberId, now: Duration) -> Telling {
        Telling { own, presence: None, twin: None, told: None, trimmed: now, reclaimed: now }
    }

    /// Does what is due. A member that writes has a fence.
    ///
    /// # Errors
    /// If etcd does not take this member's row; it is tried again at the next turn.
    pub fn turn(&mut self, node: &Node, etcd: &Etcd, fence: Option<Fence>) -> Result<(), Error> {
        let now = node.now();
        let pause = match (&self.presence, self.twin) {
            (Some(_), _) => TELL_EVERY,
            (None, Some(_)) => JOIN_EVERY,
            (None, None) => Duration::ZERO,
        };
        if self.told.is_some_and(|told| now.saturating_sub(told) < pause) {
            return Ok(());
        }
        self.told = Some(now);
        let told = self.say_where(node, etcd, now);
        if told.is_err() {
            self.presence = None;
        }
        if let Some(fence) = fence.filter(|_| node.is_open()) {
            self.make_space(node, etcd, &fence, now);
        }
        match told {
            // It joins at the next turn.
            Err(Error::Expired) => Ok(()),
            told => told,
        }
    }

    /// Whether another process may be this member. One that was killed counts until its lease has ended.
    pub fn may_be_twin(&self) -> bool {
        self.twin.is_some()
    }

    /// Whether one has said so for longer than a lease lasts that is not renewed.
    pub fn is_twin(&self, now: Duration, lease: Duration) -> bool {
        self.twin.is_some_and(|since| now.saturating_sub(since) > lease.saturating_mul(2))
    }

    /// Says that this member has gone. If etcd does not hear it, it notices later.
    pub fn end(&mut self, etcd: &Etcd) {
        if let Some(presence) = self.presence.take() {
            let _ = presence.leave(etcd);
        }
    }

    fn say_where(&mut self, node: &Node, etcd: &Etcd, now: Duration) -> Result<(), Error> {
        let Ok(place) = node.place() else { return Ok(()) };
        let (name, url) = {
            let standing = node.standing();
            let own = standing.row().and_then(|row| row.member(self.own));
            own.map(|own| (own.name.clone(), own.url.clone())).unwrap_or_default()
        };
        let applied = Point { position: place.position, digest: place.digest };
        let member = Member { id: self.own, name, url, applied };
        match &self.presence {
            Some(presence) => presence.update(etcd, &member),
            None => {
                self.presence = etcd.join(&member)?;
                self.twin = match self.presence {
                    Some(_) => None,
                    None => self.twin.or(Some(now)),
                };
                Ok(())
            }
        }
    }

    /// Removes rows that all members have. It is tried again later, and nothing depends on it now.
    fn make_space(&mut self, node: &Node, etcd: &Etcd, fence: &Fence, now: Duration) {
        if let Ok(members) = etcd.members() {
            for member in members.iter().filter(|member| member.id != self.own) {
                node.acknowledged(member.id, member.applied.position);
            }
        }
        if now.saturating_sub(self.trimmed) >= TRIM_EVERY {
            self.trimmed = now;
            let wanted = node.place().map_or(0, |place| place.position);
            if let Some(until) = node.trim_until(wanted.saturating_sub(ROWS_KEPT)) {
                let _ = etcd.trim(fence, until);
            }
        }
        if now.saturating_sub(self.reclaimed) >= RECLAIM_EVERY {
            self.reclaimed = now;
            let _ = etcd.reclaim();
        }
    }
}
